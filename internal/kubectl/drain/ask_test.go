// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
)

// server is an API server that answers evictions as a test says, and allows what may returns
// true for.
func server(t *testing.T, evict *metav1.Status, may func(authorizationv1.ResourceAttributes) bool) (c *cluster.Cluster, requests func() []string) {
	t.Helper()
	return recording(t, evict, may, nil)
}

// recording is server that keeps the bodies of requests; it allows nothing then.
func recording(t *testing.T, evict *metav1.Status, may func(authorizationv1.ResourceAttributes) bool, bodies *[]string) (c *cluster.Cluster, requests func() []string) {
	t.Helper()
	var mu sync.Mutex
	var list []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, r.Method+" "+r.URL.Path)
		if bodies != nil {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			*bodies = append(*bodies, string(body))
		}
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews") {
			raw, err := io.ReadAll(r.Body)
			object, _, bad := scheme.Codecs.UniversalDeserializer().Decode(raw, nil, nil)
			review, ok := object.(*authorizationv1.SelfSubjectAccessReview)
			if err != nil || bad != nil || !ok {
				t.Errorf("%T: %v, %v", object, err, bad)
				return
			}
			review.Status.Allowed = may(*review.Spec.ResourceAttributes)
			review.APIVersion, review.Kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
			_ = json.NewEncoder(w).Encode(review)
			return
		}
		evict.APIVersion, evict.Kind = "v1", "Status"
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(int(evict.Code))
		_ = json.NewEncoder(w).Encode(evict)
	}))
	t.Cleanup(s.Close)
	c, err := cluster.New(&rest.Config{Host: s.URL}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	return c, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

func aPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "a"}}
}

// An eviction is asked for once, whatever the API server says of when to come again, and its
// reason is the API server's.
func TestEvictionIsAskedOnce(t *testing.T) {
	const words = "Cannot evict pod as it would violate the pod's disruption budget."
	c, requests := server(t, &metav1.Status{Status: metav1.StatusFailure, Code: 429, Reason: metav1.StatusReasonTooManyRequests, Message: words}, nil)
	a := (&drainer{grace: -1}).evictPod(t.Context(), c, aPod())
	if a.refusal.why != words || a.refusal.good {
		t.Errorf("the reason is %+v", a.refusal)
	}
	if list := requests(); len(list) != 1 || list[0] != "POST /api/v1/namespaces/shop/pods/a/eviction" {
		t.Errorf("requests: %v", list)
	}
}

// What an answer to an eviction means: that the pod is gone has to show in the cluster, and
// refusals that asking again does not change are told from others.
func TestAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		status metav1.Status
		want   answer
	}{
		"created":       {metav1.Status{Status: metav1.StatusSuccess, Code: 201}, answer{ifNot: "the API server has agreed to its eviction, and it is not being deleted"}},
		"not found":     {metav1.Status{Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound, Message: "webhook: not found"}, answer{ifNot: "webhook: not found"}},
		"conflict":      {metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict, Message: "webhook: not now"}, answer{ifNot: "webhook: not now"}},
		"webhook":       {metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: "admission webhook denied the request"}, answer{refusal: refusal{why: "admission webhook denied the request"}}},
		"without right": {metav1.Status{Status: metav1.StatusFailure, Code: 403, Reason: metav1.StatusReasonForbidden, Message: `User "u" cannot create resource "pods/eviction"`}, answer{refusal: refusal{why: `User "u" cannot create resource "pods/eviction" (kubectl auth can-i create pods --subresource=eviction -n shop)`, good: true}}},
		"two budgets":   {metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}, answer{refusal: refusal{why: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.", good: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := server(t, &test.status, nil)
			if got := (&drainer{grace: -1}).evictPod(t.Context(), c, aPod()); got != test.want {
				t.Errorf("%+v, not %+v", got, test.want)
			}
		})
	}
}

// A right that is missing is named before anything is changed.
func TestRightsFirst(t *testing.T) {
	for name, test := range map[string]struct {
		may  func(authorizationv1.ResourceAttributes) bool
		want string
	}{
		"all": {func(authorizationv1.ResourceAttributes) bool { return true }, ""},
		"no nodes": {func(a authorizationv1.ResourceAttributes) bool { return a.Resource != "nodes" },
			"you may not patch it (kubectl auth can-i patch node/worker-1)"},
		"one namespace": {func(a authorizationv1.ResourceAttributes) bool { return a.Resource == "nodes" || a.Namespace == "shop" }, ""},
		"no evictions": {func(a authorizationv1.ResourceAttributes) bool { return a.Resource == "nodes" },
			"you may not evict pods in namespace shop (kubectl auth can-i create pods --subresource=eviction -n shop)"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := server(t, &metav1.Status{Status: metav1.StatusFailure, Code: 500}, test.may)
			err := mayDo(t.Context(), c, "worker-1", []*corev1.Pod{aPod()})
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, not %q", err, test.want)
			}
		})
	}
}

// What is written is about that very pod and that very Node, and not about another one that has
// its name meanwhile.
func TestWritesNameTheUID(t *testing.T) {
	var bodies []string
	c, requests := recording(t, &metav1.Status{Status: metav1.StatusFailure, Code: 409, Reason: metav1.StatusReasonConflict}, nil, &bodies)
	(&drainer{grace: -1}).evictPod(t.Context(), c, aPod())
	(&drainer{grace: 5}).evictPod(t.Context(), c, aPod())
	if err := cordon(t.Context(), c, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "n"}}); err == nil {
		t.Error("a cordon that is refused says nothing")
	}
	if list := requests(); len(bodies) != 3 {
		t.Fatalf("requests: %v", list)
	}
	for i, want := range []metav1.DeleteOptions{{Preconditions: &metav1.Preconditions{UID: new(types.UID("a"))}}, {Preconditions: &metav1.Preconditions{UID: new(types.UID("a"))}, GracePeriodSeconds: new(int64(5))}} {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(bodies[i]), nil, nil)
		eviction, ok := object.(*policyv1.Eviction)
		if !ok || !reflect.DeepEqual(*eviction.DeleteOptions, want) {
			t.Errorf("request %d is for %+v (%v)", i, object, err)
		}
	}
	if bodies[2] != `{"metadata":{"uid":"n"},"spec":{"unschedulable":true}}` {
		t.Errorf("the node is changed by %s", bodies[2])
	}
}
