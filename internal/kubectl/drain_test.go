// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/test/apitest"
)

// Every eviction is permitted and ends the pod at once.
type evictions struct {
	t      *testing.T
	server *apitest.Server
	mu     sync.Mutex
	pods   []string
}

func (e *evictions) intercept(r apitest.Request, serve func()) error {
	if r.Resource == "selfsubjectaccessreviews" {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 404, Reason: metav1.StatusReasonNotFound}}
	}
	if r.Verb != "create" || r.Resource != "pods/eviction" {
		serve()
		return nil
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(r.Body), nil, nil)
	asked, ok := object.(*policyv1.Eviction)
	if !ok {
		e.t.Errorf("%T: %v", object, err)
		return nil
	}
	var pod corev1.Pod
	e.server.Get("pods", "shop", asked.Name, &pod)
	if p := asked.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != pod.UID {
		e.t.Errorf("pod %s may be another one of its name: %+v", asked.Name, asked.DeleteOptions)
	}
	e.mu.Lock()
	e.pods = append(e.pods, asked.Name)
	e.mu.Unlock()
	e.server.Remove("pods", "shop", asked.Name)
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusSuccess, Code: 201}}
}

func (e *evictions) list() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.pods, " ")
}

func runsAt(name, claim, node string, at time.Time) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("pod-" + name + "-uid"), CreationTimestamp: metav1.NewTime(at)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v0", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func uncordoned(t *testing.T, server *apitest.Server, name string) *corev1.Node {
	t.Helper()
	var n corev1.Node
	if !server.Get("nodes", "", name, &n) {
		t.Fatalf("there is no node %s", name)
	}
	n.Spec = corev1.NodeSpec{}
	return &n
}

func remade(t *testing.T, server *apitest.Server, names ...string) {
	t.Helper()
	for _, name := range names {
		var p corev1.Pod
		if !server.Get("pods", "shop", name, &p) {
			t.Fatalf("there is no pod %s", name)
		}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name, UID: types.UID(name), Controller: new(true)}}
		server.Put("pods", &p)
	}
}

func bare(t *testing.T, server *apitest.Server, names ...string) {
	t.Helper()
	for _, name := range names {
		var p corev1.Pod
		if !server.Get("pods", "shop", name, &p) {
			t.Fatalf("there is no pod %s", name)
		}
		p.OwnerReferences = nil
		server.Put("pods", &p)
	}
}

// No pod is evicted before its volumes have room beside those of waiting pods.
func TestDrain(t *testing.T) {
	server, now := load(t, "testdata/limit")
	server.Put("nodes", uncordoned(t, server, "worker-3")) // two slots, for e and f, which wait
	e := &evictions{t: t, server: server}
	server.Intercept(e.intercept)
	out, ended := start(t.Context(), server, kubectl.Setting{Now: func() time.Time { return now }}, "drain", "node/worker-1", "--at-once", "1")
	out.await(t, "shop/b stays for now")
	if got := e.list(); got != "" {
		t.Fatalf("evicted %s, for whose volumes there is no room:\n%s", got, out)
	}
	var node corev1.Node
	if server.Get("nodes", "", "worker-1", &node); !node.Spec.Unschedulable {
		t.Error("the node is not cordoned")
	}
	server.Remove("pods", "shop", "e")
	server.Remove("pods", "shop", "f")
	out.await(t, "shop/a is evicted")
	server.Put("pods", runsAt("a2", "data-a", "worker-3", now))
	out.await(t, "shop/b is evicted")
	server.Put("pods", runsAt("b2", "data-b", "worker-3", now))
	out.await(t, "shop/b2 runs at worker-3")
	empty := uncordoned(t, server, "worker-1")
	empty.Spec.Unschedulable, empty.Status.VolumesInUse = true, nil
	server.Put("nodes", empty)
	if code := <-ended; code != 0 || strings.Count(out.String(), "node worker-1 is drained: 2 pods left it") != 1 {
		t.Errorf("exit code %d, or it does not say once that the node is drained:\n%s", code, out)
	}
}

// The permissions are those of kubectl drain.
func TestDrainAsksFirst(t *testing.T) {
	server, now := load(t, "testdata/limit")
	bare(t, server, "a", "b")
	daemon := runsAt("daemon", "none", "worker-1", now)
	daemon.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: new(true)}}
	daemon.Spec.Volumes = nil
	server.Put("pods", daemon)
	server.Put("daemonsets", &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "d", UID: "d"}})
	scratch := runsAt("scratch", "none", "worker-1", now)
	scratch.Spec.Volumes = []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	server.Put("pods", scratch)
	server.Forget()
	out, stderr, code := run(t.Context(), server, now, "drain", "worker-1")
	for _, want := range []string{"nothing was changed", "shop/daemon (--ignore-daemonsets", "shop/scratch (--delete-emptydir-data", "shop/a, shop/b (--force"} {
		if code != 1 || !strings.Contains(strings.Join(strings.Fields(stderr), " "), want) {
			t.Errorf("exit code %d, %q is not said: %s%s", code, want, out, stderr)
		}
	}
	all := []string{"drain", "worker-1", "--force", "--ignore-daemonsets", "--delete-emptydir-data"}
	out, stderr, code = run(t.Context(), server, now, append(all, "--dry-run")...)
	if code != 0 || !strings.Contains(out, "2 pods with volumes would end: no controller makes them again.") || !strings.Contains(out, "pod shop/b  would end\n") || !strings.Contains(out, "it would evict 3 pods\n") || !strings.Contains(out, "left where they are: 1 pod of a DaemonSet") {
		t.Errorf("dry run of pods that nobody makes again: exit code %d: %s%s", code, out, stderr)
	}
	out, stderr, code = run(t.Context(), server, now, append(all, "--dry-run=client", "--pod-selector", "app=none")...)
	if code != 0 || !strings.Contains(out, "no pod there has the labels") || !strings.Contains(out, "it would evict 0 pods\n") {
		t.Errorf("dry run of no pod: exit code %d: %s%s", code, out, stderr)
	}
	remade(t, server, "a", "b")
	server.Forget()
	out, stderr, code = run(t.Context(), server, now, append(all, "--dry-run=server")...)
	if code != 2 || !strings.Contains(out, "would wait") || !strings.Contains(strings.Join(strings.Fields(out), " "), "it would evict 3 pods") {
		t.Errorf("dry run: exit code %d: %s%s", code, out, stderr)
	}
	for _, args := range [][]string{{"drain", "worker-9"}, {"drain", "worker-1", "--at-once", "0"}, {"drain", "worker-1", "--pod-selector", "=="},
		{"drain", "worker-1", "--dry-run=perhaps"}, {"drain", "worker-1", "--timeout", "-1s"}} {
		if out, stderr, code := run(t.Context(), server, now, args...); code != 1 || stderr == "" || strings.Contains(stderr, "panic") {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, stderr)
		}
	}
	silent := uncordoned(t, server, "worker-1")
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	server.Put("nodes", silent)
	server.Forget()
	if out, stderr, code = run(t.Context(), server, now, all...); code != 2 || !strings.Contains(out, "It is not drained, and nothing was changed.") {
		t.Errorf("of a node that is not ready: exit code %d: %s%s", code, out, stderr)
	}
	if writes := server.Writes(); len(writes) > 0 {
		t.Errorf("written: %v", writes)
	}
}

func TestDrainPlanOfBarePods(t *testing.T) {
	server, now := load(t, "testdata/limit")
	bare(t, server, "a")
	for _, pod := range []string{"e", "f"} {
		server.Remove("pods", "shop", pod)
	}
	expect := func(code int, texts ...string) {
		t.Helper()
		out, stderr, got := run(t.Context(), server, now, "drain-plan", "worker-1")
		for _, text := range texts {
			if got != code || !strings.Contains(strings.Join(strings.Fields(out), " "), text) {
				t.Errorf("exit code %d, %q is not said: %s%s", got, text, out, stderr)
			}
		}
	}
	expect(2, "1 of 1 pod that is made again would wait: no other node will do for it or has room for its volumes. 1 pod with volumes would end: no controller makes it again.",
		"pod shop/a would end", "pod shop/b ✗ would wait")
	var one storagev1.CSINode
	if !server.Get("csinodes", "", "worker-3", &one) {
		t.Fatal("there is no CSINode worker-3")
	}
	one.Spec.Drivers[0].Allocatable.Count = new(int32(1))
	server.Put("csinodes", &one)
	server.Put("nodes", uncordoned(t, server, "worker-3"))
	expect(2, "the volumes of the 1 pod that is made again can go elsewhere. 1 pod with volumes would end: no controller makes it again. A drain needs --force because of shop/a.",
		"pod shop/a would end", "pod shop/b would go to worker-3")
	silent := uncordoned(t, server, "worker-1")
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	server.Put("nodes", silent)
	expect(2, "it is not ready: a drain ends nothing there.")
}

// --dry-run=server asks for each eviction as a dry run.
func TestDryRunAsksTheBudgets(t *testing.T) {
	server, now := load(t, "testdata/attach-refused")
	remade(t, server, "db")
	refuses := true
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb != "create" || r.Resource != "pods/eviction" {
			serve()
			return nil
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(r.Body), nil, nil)
		if asked, ok := object.(*policyv1.Eviction); !ok || !slices.Equal(asked.DeleteOptions.DryRun, []string{metav1.DryRunAll}) {
			t.Errorf("this is no dry run: %v (%v)", object, err)
		}
		if refuses {
			return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
		}
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusSuccess, Code: 201}}
	})
	out, stderr, code := run(t.Context(), server, now, "drain", "worker-2", "--dry-run=server")
	if code != 2 || !strings.Contains(strings.Join(strings.Fields(out), " "), "shop/db would not be evicted now: Cannot evict pod as it would violate the pod's disruption budget.") {
		t.Errorf("a budget refuses: exit code %d: %s%s", code, out, stderr)
	}
	refuses = false
	out, stderr, code = run(t.Context(), server, now, "drain", "worker-2", "--dry-run=server")
	if code != 0 {
		t.Errorf("nothing refuses: exit code %d: %s%s", code, out, stderr)
	}
}
