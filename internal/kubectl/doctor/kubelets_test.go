// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// A missing right is reported as missing, also where client-go does not decode the API server's message.
func TestForbiddenIsAMissingRight(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`))
	}))
	defer server.Close()
	c, err := cluster.New(&rest.Config{Host: server.URL}, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Kube.Discovery().RESTClient().Get().SetHeader("Accept", "application/json").AbsPath("/apis/x").DoRaw(t.Context())
	if !strings.Contains(err.Error(), "unknown") {
		t.Fatalf("it is decoded by now: %v", err)
	}
	f := unchecked("customresourcedefinitions", err)[0]
	if f.Evidence != "the right to read it is missing (HTTP status 403)" || f.Fix != "Run doctor with the right to read customresourcedefinitions, or check it by hand." {
		t.Errorf("%+v", f)
	}
}

// A foreign answer is reported with the request, its status and its words, and the advice does not call it
// a missing right.
func TestUnexpectedAnswersAreTold(t *testing.T) {
	for body, want := range map[string]string{
		"Client sent an HTTP request to an HTTPS server.\nbye": "was answered with HTTP status 400: Client sent an HTTP request to an HTTPS server.",
		"": "was answered with HTTP status 400",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(body))
		}))
		defer server.Close()
		c, err := cluster.New(&rest.Config{Host: server.URL}, "")
		if err != nil {
			t.Fatal(err)
		}
		ready := []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "n"}, Status: corev1.NodeStatus{Conditions: ready}}
		e := &Evidence{World: facts.NewWorld(facts.Objects{Nodes: []*corev1.Node{worker}}, now())}
		readKubelets(t.Context(), c, e)
		if e.Kubelets.Err == nil || e.Kubelets.Err.Error() != "GET /api/v1/nodes/worker-1/proxy/configz "+want {
			t.Errorf("a kubelet's configuration: %v", e.Kubelets.Err)
		}
		readRenewal(t.Context(), c, e)
		f := unchecked("certificates.cert-manager.io", e.Certificates.Err)[0]
		if f.Evidence != "The request for certificates.cert-manager.io "+want || strings.Contains(f.Fix, "right") {
			t.Errorf("certificates: %+v", f)
		}
	}
}
