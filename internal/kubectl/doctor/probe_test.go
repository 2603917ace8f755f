// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
)

// A namespace with a full quota shows nothing about the webhook: the next namespaces are tried, up to a
// few.
func TestTheProbeTriesTheNextNamespace(t *testing.T) {
	for what, c := range map[string]struct {
		full, open int
		stamped    bool
		in         string
		requests   int
	}{
		"the first will do": {0, 2, true, "ns-0", 1},
		"one is full":       {1, 2, true, "ns-1", 2},
		"all are full":      {3, 0, false, "ns-0", 3},
		"too many are full": {mostTried, 1, false, "ns-0", mostTried},
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
				fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
				return
			}
			if r.URL.Query().Get("dryRun") != metav1.DryRunAll {
				t.Errorf("%s: %s %s is no dry run", what, r.Method, r.URL)
			}
			requests++
			var n int
			if _, err := fmt.Sscanf(r.URL.Path, "/api/v1/namespaces/ns-%d/pods", &n); err != nil {
				t.Errorf("%s: %s %s", what, r.Method, r.URL)
			}
			if n < c.full {
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"exceeded quota: pods"}`)
				return
			}
			fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{%q:"{}"}},"spec":{"schedulerName":%q}}`, v1alpha1.AnnotationVolumeStatus, v1alpha1.SchedulerName)
		}))
		defer server.Close()
		k, err := cluster.New(&rest.Config{Host: server.URL}, "")
		if err != nil {
			t.Fatal(err)
		}
		e := &Evidence{}
		for i := range c.full + c.open {
			e.Namespaces.Items = append(e.Namespaces.Items, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("ns-%d", i)}})
		}
		p := tryPod(t.Context(), k, e, true)
		if p.Stamped != c.stamped || p.Namespace != c.in || requests != c.requests || (p.Err == nil) != c.stamped {
			t.Errorf("%s: %+v after %d requests", what, p, requests)
		}
	}
}
