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

// An answer that is none of the API's is told with the request, its status and its words, and the
// advice does not take it for a missing right.
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
