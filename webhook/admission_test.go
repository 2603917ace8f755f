// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

const rawPod = `{"metadata":{"name":"db-0","namespace":"shop"},"spec":{"schedulerName":"default-scheduler",` +
	`"volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"data"}}]}}`

func newServer(t testing.TB) *Server {
	t.Helper()
	config := DefaultConfig()
	config.Listen = "127.0.0.1:0"
	config.CertFile, config.KeyFile = writeCertificate(t, t.TempDir(), "first")
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return server
}

func review(t testing.TB, object string, change func(*admissionv1.AdmissionReview)) []byte {
	t.Helper()
	out := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID:       "r-1",
			Kind:      metav1.GroupVersionKind{Version: "v1", Kind: "Pod"},
			Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
			Operation: admissionv1.Create,
			Object:    runtime.RawExtension{Raw: []byte(object)},
		},
	}
	if change != nil {
		change(out)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A pod without volumes needs the scheduler of the other pods in its group.
func TestGroupsHaveOneScheduler(t *testing.T) {
	for name, object := range map[string]string{
		"of Kubernetes":        `{"metadata":{"name":"a"},"spec":{"schedulingGroup":{"podGroupName":"train"}}}`,
		"of scheduler-plugins": `{"metadata":{"name":"a","labels":{"scheduling.x-k8s.io/pod-group":"train"}},"spec":{}}`,
	} {
		response := answer(t, post(newServer(t).Handler(), "application/json", review(t, object, nil)))
		if want := `[{"op":"add","path":"/spec/schedulerName","value":"moorage-scheduler"}]`; string(response.Patch) != want {
			t.Errorf("%s: the patch is %s, want %s", name, response.Patch, want)
		}
	}
}

func post(handler http.Handler, contentType string, body []byte) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, pathMutatePod, bytes.NewReader(body))
	request.Header.Set("Content-Type", contentType)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func answer(t testing.TB, recorder *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	if recorder.Code != http.StatusOK {
		t.Fatalf("answered %d: %s", recorder.Code, recorder.Body)
	}
	var out admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &out); err != nil {
		t.Fatalf("the answer is no review: %v", err)
	}
	if out.APIVersion != "admission.k8s.io/v1" || out.Kind != "AdmissionReview" || out.Response == nil {
		t.Fatalf("the answer is %s", recorder.Body)
	}
	if !out.Response.Allowed {
		t.Fatalf("the pod is refused: %s", recorder.Body)
	}
	return out.Response
}

func TestReviewsAreAnsweredWithAPatch(t *testing.T) {
	server := newServer(t)
	dryRun := true
	tests := map[string]func(*admissionv1.AdmissionReview){
		"create":           nil,
		"create, dry run":  func(r *admissionv1.AdmissionReview) { r.Request.DryRun = &dryRun },
		"an unknown field": func(r *admissionv1.AdmissionReview) { r.Request.Object.Raw = []byte(`{"speed":9,` + rawPod[1:]) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			response := answer(t, post(server.Handler(), "application/json", review(t, rawPod, change)))
			if response.UID != "r-1" || response.PatchType == nil || *response.PatchType != admissionv1.PatchTypeJSONPatch {
				t.Fatalf("the answer is %+v", response)
			}
			patch, err := jsonpatch.DecodePatch(response.Patch)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := patch.Apply([]byte(rawPod))
			if err != nil {
				t.Fatal(err)
			}
			var pod corev1.Pod
			if err := json.Unmarshal(raw, &pod); err != nil {
				t.Fatal(err)
			}
			if pod.Spec.SchedulerName != v1alpha1.SchedulerName || pod.Annotations[v1alpha1.AnnotationVolumeStatus] == "" {
				t.Errorf("the pod becomes %s", raw)
			}
		})
	}
	if stamped, moved := testutil.ToFloat64(server.metrics.stamped), testutil.ToFloat64(server.metrics.moved); stamped != 3 || moved != 3 {
		t.Errorf("counted %v stamped and %v moved, want 3 and 3", stamped, moved)
	}
}

func TestReviewsAreAnsweredWithoutAPatch(t *testing.T) {
	server := newServer(t)
	tests := map[string][]byte{
		"no volumes": review(t, `{"metadata":{"name":"web"},"spec":{"schedulerName":"default-scheduler"}}`, nil),
		"an update":  review(t, rawPod, func(r *admissionv1.AdmissionReview) { r.Request.Operation = admissionv1.Update }),
		"a deletion": review(t, rawPod, func(r *admissionv1.AdmissionReview) {
			r.Request.Operation = admissionv1.Delete
			r.Request.Object.Raw = nil
		}),
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			response := answer(t, post(server.Handler(), "application/json", body))
			if response.UID != "r-1" || response.Patch != nil || response.PatchType != nil {
				t.Errorf("the answer is %+v", response)
			}
		})
	}
}

func TestBadRequestsGetAClearError(t *testing.T) {
	server := newServer(t)
	tests := []struct {
		name, contentType string
		body              []byte
		code              int
		want              string
	}{
		{"no body", "application/json", nil, 400, "not an AdmissionReview"},
		{"not JSON", "application/json", []byte("<pod/>"), 400, "not an AdmissionReview"},
		{"an array", "application/json", []byte("[]"), 400, "not an AdmissionReview"},
		{"protobuf", "application/vnd.kubernetes.protobuf", review(t, rawPod, nil), 415, "application/json"},
		{"no content type", "", review(t, rawPod, nil), 415, "application/json"},
		{"too large", "application/json", bytes.Repeat([]byte(" "), maxBodyBytes+1), 413, "8388608 bytes"},
		{"v1beta1", "application/json", review(t, rawPod, func(r *admissionv1.AdmissionReview) { r.APIVersion = "admission.k8s.io/v1beta1" }),
			400, "send an AdmissionReview of admission.k8s.io/v1"},
		{"no request", "application/json", review(t, rawPod, func(r *admissionv1.AdmissionReview) { r.Request = nil }), 400, "no request"},
		{"no uid", "application/json", review(t, rawPod, func(r *admissionv1.AdmissionReview) { r.Request.UID = "" }), 400, "no request with a uid"},
		{"another resource", "application/json", review(t, rawPod, func(r *admissionv1.AdmissionReview) { r.Request.Resource.Resource = "nodes" }),
			400, "send only v1 pods"},
		{"a subresource", "application/json", review(t, rawPod, func(r *admissionv1.AdmissionReview) { r.Request.SubResource = "status" }),
			400, "send only v1 pods"},
		{"not a pod", "application/json", review(t, `{"spec":{"volumes":"all"}}`, nil), 400, "not a v1 Pod"},
		{"no object", "application/json", review(t, "", func(r *admissionv1.AdmissionReview) { r.Request.Object.Raw = nil }), 400, "not a v1 Pod"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			recorder := post(server.Handler(), test.contentType, test.body)
			checkStatus(t, recorder, test.code, test.want)
		})
	}
	get := httptest.NewRecorder()
	server.Handler().ServeHTTP(get, httptest.NewRequest(http.MethodGet, pathMutatePod, nil))
	checkStatus(t, get, http.StatusMethodNotAllowed, "does not take GET")
	lost := httptest.NewRecorder()
	server.Handler().ServeHTTP(lost, httptest.NewRequest(http.MethodPost, "/mutate", nil))
	checkStatus(t, lost, http.StatusNotFound, pathMutatePod)
}

func checkStatus(t *testing.T, recorder *httptest.ResponseRecorder, code int, message string) {
	t.Helper()
	var status metav1.Status
	if err := json.Unmarshal(recorder.Body.Bytes(), &status); err != nil {
		t.Fatalf("the answer %q is no Status: %v", recorder.Body, err)
	}
	if recorder.Code != code || int(status.Code) != code || status.Kind != "Status" || status.Status != metav1.StatusFailure {
		t.Errorf("answered %d with %+v, want %d", recorder.Code, status, code)
	}
	if !strings.Contains(status.Message, message) {
		t.Errorf("the message is %q, want it to say %q", status.Message, message)
	}
}

// For any input, the handler does not panic, and the API server could use the answer.
func FuzzMutatePod(f *testing.F) {
	f.Add(review(f, rawPod, nil))
	f.Add(review(f, `{"metadata":{"annotations":{"a":"b"}},"spec":{"nodeName":"n","volumes":[{"name":"x","fc":{}},{}]}}`, nil))
	f.Add(review(f, `null`, nil))
	f.Add(review(f, `{"spec":{"volumes":[null]}}`, nil))
	f.Add([]byte(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u"}}`))
	f.Add([]byte(`{`))
	server := newServer(f)
	handler := server.Handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		recorder := post(handler, "application/json", body)
		switch recorder.Code {
		case http.StatusBadRequest:
			checkStatus(t, recorder, http.StatusBadRequest, "moorage-webhook: ")
		case http.StatusOK:
			checkPatch(t, body, answer(t, recorder))
		default:
			t.Errorf("answered %d: %s", recorder.Code, recorder.Body)
		}
	})
}

// The patch applies to the pod as the API server would send it, and is complete.
func checkPatch(t *testing.T, body []byte, response *admissionv1.AdmissionResponse) {
	t.Helper()
	if response.Patch == nil {
		return
	}
	var sent admissionv1.AdmissionReview
	var pod corev1.Pod
	if err := json.Unmarshal(body, &sent); err != nil {
		return // stdlib and API machinery differ on keys that differ in case only
	}
	if err := json.Unmarshal(sent.Request.Object.Raw, &pod); err != nil {
		return
	}
	canonical, err := json.Marshal(&pod)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := patch.Apply(canonical); err != nil {
		t.Errorf("patch %s does not apply to %s: %v", response.Patch, canonical, err)
	}
}
