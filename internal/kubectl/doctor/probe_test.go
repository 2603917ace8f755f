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

// A full quota shows nothing about the webhook.
func TestTheProbe(t *testing.T) {
	for full, stamped := range map[bool]bool{false: true, true: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
				fmt.Fprint(w, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`)
			case r.URL.Query().Get("dryRun") != metav1.DryRunAll || r.URL.Path != "/api/v1/namespaces/shop/pods":
				t.Errorf("%s %s is no dry run", r.Method, r.URL)
			case full:
				w.WriteHeader(http.StatusForbidden)
				fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"exceeded quota: pods"}`)
			default:
				fmt.Fprintf(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"annotations":{%q:"{}"}},"spec":{"schedulerName":%q}}`, v1alpha1.AnnotationVolumeStatus, v1alpha1.SchedulerName)
			}
		}))
		defer server.Close()
		k, err := cluster.Connect(&rest.Config{Host: server.URL}, "", "")
		if err != nil {
			t.Fatal(err)
		}
		e := &Evidence{Namespaces: Read[corev1.Namespace]{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}}}
		if p := tryPod(t.Context(), k, e, true); p.Stamped != stamped || (p.Err == nil) != stamped {
			t.Errorf("full: %t: %+v", full, p)
		}
	}
}
