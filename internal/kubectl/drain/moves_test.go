// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// scene is a cluster that a test changes: two nodes with two slots each, all taken, by a and b at
// worker-1 and c and d at worker-2, and worker-3 with two free ones.
type scene struct {
	t       *testing.T
	now     time.Time
	objects []runtime.Object
	leases  facts.Leases
}

func newScene(t *testing.T) *scene {
	t.Helper()
	c := &scene{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	for _, file := range []string{"base.yaml", "limit/objects.yaml"} {
		raw, err := os.ReadFile(filepath.Join("../testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(raw), "\n---\n") {
			if object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil); err == nil {
				c.objects = append(c.objects, object) // Moorage's own are not needed
			}
		}
	}
	change(c, "worker-3", func(n *corev1.Node) { n.Spec = corev1.NodeSpec{} })
	c.remove("e", "f")
	return c
}

func (c *scene) world() *facts.World {
	objects := facts.Objects{Leases: c.leases}
	for _, o := range c.objects {
		objects.Add(o.DeepCopyObject())
	}
	return facts.NewWorld(objects, c.now)
}

// change changes the object of a kind that has a name.
func change[T metav1.Object](c *scene, name string, f func(T)) {
	for _, o := range c.objects {
		if typed, ok := o.(T); ok && typed.GetName() == name {
			f(typed)
			return
		}
	}
	c.t.Fatalf("there is no %s", name)
}

func (c *scene) remove(pods ...string) {
	c.objects = slices.DeleteFunc(c.objects, func(o runtime.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && slices.Contains(pods, p.Name)
	})
}

// run adds the pod that takes another's place.
func (c *scene) run(name, claim, node string, phase corev1.PodPhase) {
	c.objects = append(c.objects, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("pod-" + name + "-uid"), CreationTimestamp: metav1.NewTime(c.now)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v0", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
		Status: corev1.PodStatus{Phase: phase},
	})
}

// begin begins a drain of worker-1, with what it says.
func (c *scene) begin(atOnce int) (m *moves, said *[]string) {
	said = &[]string{}
	pods, err := permissions{force: true}.choose(c.world(), "worker-1", labels.Everything())
	if err != nil {
		c.t.Fatal(err)
	}
	return newMoves("worker-1", atOnce, pods, func(format string, args ...any) {
		*said = append(*said, fmt.Sprintf(format, args...))
	}), said
}

// next are the names of the pods to evict now, which are then under way.
func (c *scene) next(m *moves) string {
	var names []string
	for _, d := range m.next(c.world()) {
		d.asking = true
		names = append(names, d.pod.Name)
	}
	return strings.Join(names, " ")
}

func (c *scene) expect(m *moves, want, when string) {
	c.t.Helper()
	if got := c.next(m); got != want {
		c.t.Fatalf("%s it evicts %q, not %q", when, got, want)
	}
}

// No more pods than --at-once are between two nodes, until one that is away runs elsewhere.
func TestAtOnce(t *testing.T) {
	c := newScene(t)
	m, said := c.begin(1)
	c.expect(m, "a", "at first")
	c.expect(m, "", "while the eviction is under way")
	m.answered(m.pods["pod-a-uid"], "", c.now)
	c.expect(m, "", "before a is gone")
	c.remove("a")
	c.run("a2", "data-a", "", corev1.PodPending)
	c.expect(m, "", "while the next pod waits")
	c.now = c.now.Add(10 * time.Second)
	c.remove("a2")
	c.run("a2", "data-a", "worker-3", corev1.PodRunning)
	c.expect(m, "b", "when the next pod runs")
	if text := (*said)[len(*said)-1]; text != "[1/2] shop/a2 runs at worker-3, 10s after it was evicted" {
		t.Errorf("it says %q", text)
	}
}

// A pod that does not come back delays the others for two minutes, and no longer.
func TestOneAwayForLong(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(1)
	c.expect(m, "a", "at first")
	m.answered(m.pods["pod-a-uid"], "", c.now)
	c.remove("a")
	c.run("a2", "data-a", "worker-3", corev1.PodPending)
	c.now = c.now.Add(awayAtMost)
	c.expect(m, "", "after two minutes")
	c.now = c.now.Add(time.Second)
	c.expect(m, "b", "after more than two minutes")
}

// Room is kept for the pod that was evicted, and for one that waits already.
func TestRoomIsKept(t *testing.T) {
	c := newScene(t)
	change(c, "worker-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	c.run("other", "data-e", "", corev1.PodPending)
	m, said := c.begin(10)
	c.expect(m, "a", "with two slots, and a pod that waits")
	if text := strings.Join(*said, "\n"); !strings.Contains(text, "shop/b stays for now: no other node can take its volumes") || !strings.Contains(text, "NoFreeSlot") {
		t.Errorf("it says %s", text)
	}
	m.answered(m.pods["pod-a-uid"], "", c.now)
	change(c, "a", func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(c.now)) })
	c.expect(m, "", "while a ends")
	c.remove("a")
	c.run("a2", "data-a", "worker-3", corev1.PodRunning)
	c.expect(m, "", "when a runs elsewhere")
	c.remove("other")
	c.expect(m, "b", "when the other pod waits no more")
}

// An eviction that was refused, as by a disruption budget, is asked for again after a while,
// and holds up nobody.
func TestRefusedEviction(t *testing.T) {
	c := newScene(t)
	m, said := c.begin(1)
	c.expect(m, "a", "at first")
	m.answered(m.pods["pod-a-uid"], "it would violate the budget.", c.now)
	c.expect(m, "b", "when a was refused")
	if text := strings.Join(*said, "\n"); !strings.Contains(text, "shop/a stays for now: it would violate the budget.") {
		t.Errorf("it says %s", text)
	}
	if left := m.remaining(); left != "shop/a: it would violate the budget; shop/b: it is being evicted" {
		t.Errorf("what remains is told as %q", left)
	}
	m.answered(m.pods["pod-b-uid"], "it would violate the budget.", c.now)
	c.now = c.now.Add(retryAfter - time.Second)
	c.expect(m, "", "too soon")
	c.now = c.now.Add(time.Second)
	c.expect(m, "a", "after five seconds")
}

// A pod whose eviction is refused keeps no room from the others.
func TestRefusedKeepsNoRoom(t *testing.T) {
	c := newScene(t)
	change(c, "worker-3", func(n *storagev1.CSINode) { n.Spec.Drivers[0].Allocatable.Count = new(int32(1)) })
	m, _ := c.begin(10)
	c.expect(m, "a", "with one slot")
	m.answered(m.pods["pod-a-uid"], "it would violate the budget.", c.now)
	c.expect(m, "b", "when a was refused")
}

// Nobody is evicted while a component is down without which no volume comes to another node,
// and it is told.
func TestComponentDown(t *testing.T) {
	c := newScene(t)
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: facts.DefaultHome, Name: "moorage-controller"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("one"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(c.now.Add(-time.Hour)))}}
	c.leases = facts.Leases{Seen: true, Components: []coordinationv1.Lease{lease}}
	m, said := c.begin(10)
	c.expect(m, "", "while moorage-controller is down")
	if text := strings.Join(*said, "\n"); !strings.Contains(text, "shop/a stays for now: moorage-controller is down") {
		t.Errorf("it says %s", text)
	}
	c.leases.Components[0].Spec.RenewTime = new(metav1.NewMicroTime(c.now))
	c.expect(m, "a b", "when it leads again")
}

// The node is empty when the pods are gone and their volumes are not in use: a drained
// machine may be switched off.
func TestLeft(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(10)
	c.expect(m, "a b", "at first")
	for _, name := range []string{"a", "b"} {
		m.answered(m.pods[types.UID("pod-"+name+"-uid")], "", c.now)
	}
	if m.left(c.world()) {
		t.Error("it is empty though its pods are there")
	}
	c.remove("a", "b")
	m.next(c.world())
	if m.left(c.world()) {
		t.Error("it is empty though its kubelet has volumes in use")
	}
	change(c, "worker-1", func(n *corev1.Node) { n.Status.VolumesInUse = nil })
	m.next(c.world())
	if !m.left(c.world()) {
		t.Error("it is not empty though nothing is left")
	}
	c.now = c.now.Add(nobodyAfter + time.Second)
	m.next(c.world())
	if text := m.summary(); text != "node worker-1 is drained: 2 pods left it" {
		t.Errorf("it says %q of pods that nobody makes again", text)
	}
}
