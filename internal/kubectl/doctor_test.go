// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func discovering(t *testing.T, server *apitest.Server) *apitest.Server {
	t.Helper()
	backend, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(backend)
	served := map[string][]string{
		"/apis/moorage.dev/v1alpha1":            {v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies},
		"/apis/storage.k8s.io/v1":               {"volumeattachments", "csinodes", "csidrivers", "storageclasses"},
		"/apis/resource.k8s.io/v1":              {"deviceclasses", "devicetaintrules", "resourceclaims", "resourceslices"},
		"/apis/admissionregistration.k8s.io/v1": {"mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answer any
		switch names, known := served[r.URL.Path]; {
		case known:
			list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
			for _, name := range names {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			answer = list
		case strings.HasPrefix(r.URL.Path, "/apis/") && strings.Count(r.URL.Path, "/") == 3:
			http.NotFound(w, r) // a group version that is not served
			return
		case r.URL.Path == "/version":
			answer = map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1"}
		default:
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer) // a client that is gone needs no answer
	}))
	t.Cleanup(front.Close)
	return &apitest.Server{URL: front.URL}
}

// Exit code 0: nothing as bad as --fail-on; 2: a finding; 1: no look. doctor only reads.
func TestDoctorForCI(t *testing.T) {
	server, now := load(t, "testdata/zoo")
	at := metav1.NewMicroTime(now.Add(-time.Minute))
	holder, seconds := "one", int32(15)
	server.Put("leases", &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: v1alpha1.ControllerName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at, LeaseDurationSeconds: &seconds},
	})
	server.Forget()
	front := discovering(t, server)
	for _, test := range []struct {
		args []string
		code int
		says []string
	}{
		{nil, 2, []string{"✗ controller", "nobody leads moorage-controller: its Lease ended 45s ago", "Lease moorage-system/moorage-controller, held by", "✗ scheduler", "moorage-scheduler has never led", "? kubelets", "nodeStatusUpdateFrequency: 1s", "nodeStatusReportFrequency: 5m"}},
		{[]string{"--all"}, 2, []string{"✓ api", "Kubernetes v1.37.1 serves all that is needed"}},
		{[]string{"--fail-on", "never"}, 0, []string{"✗ controller"}},
	} {
		out, errs, code := run(t.Context(), front, now, append([]string{"doctor"}, test.args...)...)
		if code != test.code {
			t.Errorf("doctor %v: exit code %d, want %d: %s", test.args, code, test.code, errs)
		}
		for _, text := range test.says {
			if !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
				t.Errorf("doctor %v does not say %q:\n%s", test.args, text, out)
			}
		}
	}
	for _, r := range server.Requests() {
		if r.Verb != "list" && r.Verb != "get" {
			t.Errorf("it asks for %s", r)
		}
	}
	if _, _, code := run(t.Context(), &apitest.Server{URL: "http://127.0.0.1:1"}, now, "doctor"); code != 1 {
		t.Errorf("exit code %d where no cluster is, want 1", code)
	}
}

func TestDoctorAsJSON(t *testing.T) {
	server, now := load(t, "testdata/zoo")
	out, errs, code := run(t.Context(), discovering(t, server), now, "doctor", "-o", "json", "--fail-on", "warning")
	var report struct {
		APIVersion, Kind, Worst string
		Findings                []struct{ Check, Severity, Message, Evidence, Fix string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if code != 2 || report.Kind != "DoctorReport" || report.APIVersion != "cli.moorage.dev/v1alpha1" || report.Worst != "Error" || report.Findings[0].Severity != "Error" {
		t.Errorf("exit code %d, report %+v", code, report)
	}
	for _, f := range report.Findings {
		if f.Check == "" || f.Message == "" || (f.Severity == "Error" || f.Severity == "Warning") && (f.Evidence == "" || f.Fix == "") {
			t.Errorf("a finding lacks its check, evidence or fix: %+v", f)
		}
	}
}

func TestDoctorBeginsWithTheIncident(t *testing.T) {
	for _, folder := range []string{"dead-node", "stock-dead-node"} {
		server, now := load(t, "testdata/"+folder)
		out, errs, code := run(t.Context(), discovering(t, server), now, "doctor")
		text := strings.Join(strings.Fields(out), " ")
		if code != 2 || !strings.HasPrefix(text, "✗ incidents node worker-1 is not ready: 1 volume can't leave it. evidence 1 waiting: pod shop/db fix If its machine runs, mend") {
			t.Errorf("%s: exit code %d, errors %q, output\n%s", folder, code, errs, out)
		}
	}
}
