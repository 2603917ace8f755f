// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"context"
	"errors"
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

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
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
	change(c, "worker-1", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	change(c, "worker-3", func(n *corev1.Node) { n.Spec = corev1.NodeSpec{} })
	c.remove("e", "f")
	for _, name := range []string{"a", "b", "c", "d"} {
		change(c, name, func(p *corev1.Pod) { p.OwnerReferences = owner("apps/v1", "StatefulSet", name) })
	}
	return c
}

func owner(version, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: types.UID(name + "-uid"), Controller: new(true)}}
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
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("pod-" + name + "-uid"), CreationTimestamp: metav1.NewTime(c.now), OwnerReferences: owner("apps/v1", "StatefulSet", name)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v0", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
		Status: corev1.PodStatus{Phase: phase},
	})
}

// begin begins a drain of worker-1, with what it says.
func (c *scene) begin(atOnce int) (m *moves, said *[]string) {
	return c.beginAs(task{node: "worker-1", uid: "node-worker-1-uid", atOnce: atOnce, selector: labels.Everything(), began: c.now})
}

func (c *scene) beginAs(t task) (m *moves, said *[]string) {
	c.t.Helper()
	said = &[]string{}
	choice := t.choose(c.world())
	if err := choice.refused(t.node, ""); err != nil {
		c.t.Fatal(err)
	}
	return newMoves(t, func(format string, args ...any) {
		*said = append(*said, fmt.Sprintf(format, args...))
	}), said
}

// agreed has the API server agree to the eviction of a pod.
func (c *scene) agreed(m *moves, pods ...string) {
	for _, name := range pods {
		m.answered(answer{of: m.pods[types.UID("pod-"+name+"-uid")], ifNot: "it is not being deleted"}, c.now)
	}
}

// evicting is a drain that has begun: the API server has agreed to the evictions of a and b.
func evicting(t *testing.T) (c *scene, m *moves, said *[]string) {
	t.Helper()
	c = newScene(t)
	m, said = c.begin(10)
	c.expect(m, "a b", "at first")
	c.agreed(m, "a", "b")
	return c, m, said
}

func (c *scene) refused(m *moves, pod string, r refusal) {
	m.answered(answer{of: m.pods[types.UID("pod-"+pod+"-uid")], refusal: r}, c.now)
}

// ending is a pod's deletion, while the pod is still there.
func (c *scene) ending(pods ...string) {
	for _, name := range pods {
		change(c, name, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(c.now)) })
	}
}

// unmounted has the kubelet of worker-1 report nothing in use.
func (c *scene) unmounted() {
	change(c, "worker-1", func(n *corev1.Node) { n.Status.VolumesInUse = nil })
}

// over says how the drain ends, as the cluster is.
func (c *scene) over(m *moves) (bool, error) {
	m.next(c.world(), c.now)
	return m.end()
}

func (c *scene) expectOn(m *moves, when string) {
	c.t.Helper()
	if over, err := c.over(m); over {
		c.t.Fatalf("it ends %s: %v", when, err)
	}
}

// expectEnd fails unless the drain ends with an error that says something; empty: without one.
func (c *scene) expectEnd(m *moves, want string) {
	c.t.Helper()
	over, err := c.over(m)
	switch {
	case !over:
		c.t.Fatalf("it does not end: %s", m.remaining())
	case want == "" && err != nil:
		c.t.Fatalf("it ends with %v", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		c.t.Fatalf("it ends with %v, not %q", err, want)
	}
}

func expectSaid(t *testing.T, said *[]string, want string) {
	t.Helper()
	if text := strings.Join(*said, "\n"); !strings.Contains(text, want) {
		t.Errorf("%q is not said:\n%s", want, text)
	}
}

// next are the names of the pods to evict now, which are then under way.
func (c *scene) next(m *moves) string {
	var names []string
	for _, d := range m.next(c.world(), c.now) {
		d.asking, d.asked = true, c.now
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
	c.agreed(m, "a")
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
	c.agreed(m, "a")
	c.remove("a")
	c.run("a2", "data-a", "worker-3", corev1.PodPending)
	c.expect(m, "", "when a is gone")
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
	c.agreed(m, "a")
	c.ending("a")
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
	c.refused(m, "a", refusal{why: "it would violate the budget."})
	c.expect(m, "b", "when a was refused")
	expectSaid(t, said, "shop/a stays for now: it would violate the budget.")
	if left := m.remaining(); left != "Still at the node: shop/a: it would violate the budget; shop/b: it is being evicted" {
		t.Errorf("what remains is told as %q", left)
	}
	c.refused(m, "b", refusal{why: "it would violate the budget."})
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
	c.refused(m, "a", refusal{why: "it would violate the budget."})
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
	if text := strings.Join(*said, "\n"); !strings.Contains(text, "shop/a, shop/b stay for now: moorage-controller is down") {
		t.Errorf("it says %s", text)
	}
	c.leases.Components[0].Spec.RenewTime = new(metav1.NewMicroTime(c.now))
	c.expect(m, "a b", "when it leads again")
}

// The node is empty when the pods are gone and nothing is in use there, whether this run has
// evicted them or another one had.
func TestEnd(t *testing.T) {
	c, m, said := evicting(t)
	c.expectOn(m, "though its pods are there")
	c.remove("a", "b")
	c.expectOn(m, "though its kubelet has volumes in use")
	m.tellWhatIsOpen()
	expectSaid(t, said, "Still mounted, as far as is known: pv-a, pv-b (")
	again, _ := c.begin(10)
	c.expectOn(again, "begun again, though its kubelet has volumes in use")
	c.unmounted()
	c.expectEnd(m, "")
	c.expectEnd(again, "")
	c.now = c.now.Add(nobodyAfter + time.Second)
	c.expectEnd(m, "")
	if text := m.summary(); text != "node worker-1 is drained: 2 pods left it" {
		t.Errorf("it says %q of pods that nobody makes again", text)
	}
}

// A claim that is gone with its pod does not hide that its volume is mounted.
func TestEndWithoutClaims(t *testing.T) {
	c, m, _ := evicting(t)
	c.remove("a", "b")
	c.objects = slices.DeleteFunc(c.objects, func(o runtime.Object) bool {
		_, claim := o.(*corev1.PersistentVolumeClaim)
		_, pv := o.(*corev1.PersistentVolume)
		return claim || pv
	})
	c.expectOn(m, "though its kubelet has volumes in use, whose claims are gone")
}

// Volumes of pods that stay on purpose keep nobody waiting, and the end says that they are
// there.
func TestEndBesidePodsThatStay(t *testing.T) {
	c := newScene(t)
	change(c, "b", func(p *corev1.Pod) { p.OwnerReferences = owner("apps/v1", "DaemonSet", "d") })
	m, _ := c.beginAs(task{node: "worker-1", uid: "node-worker-1-uid", atOnce: 10, may: permissions{ignoreDaemonSets: true}, selector: labels.Everything(), began: c.now})
	c.expect(m, "a", "at first")
	c.agreed(m, "a")
	c.remove("a")
	c.expectOn(m, "though pv-a is in use")
	change(c, "worker-1", func(n *corev1.Node) { n.Status.VolumesInUse = n.Status.VolumesInUse[1:] })
	c.expectEnd(m, "")
	for _, want := range []string{"left where they are: 1 pod of a DaemonSet", "Don't switch it off: pods that stay there use pv-b"} {
		if text := m.summary(); !strings.Contains(text, want) {
			t.Errorf("%q is not said: %s", want, text)
		}
	}
}

// A volume that only a ticket keeps at the node is waited for, unless it is to be left there; the
// end names the ticket then. What the kubelet has mounted is waited for in any case.
func TestEndBesideATicket(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		c := newScene(t)
		m, _ := c.beginAs(task{node: "worker-1", uid: "node-worker-1-uid", atOnce: 10, may: permissions{ignoreTickets: ignore}, selector: labels.Everything(), began: c.now})
		c.expect(m, "a b", "at first")
		c.agreed(m, "a", "b")
		c.objects = append(c.objects, &v1alpha1.VolumeTicket{
			ObjectMeta: metav1.ObjectMeta{Name: "pin", Namespace: "shop", UID: "pin-uid"},
			Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "worker-1",
				Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data-a"}}}},
			Status: v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: "Granted"}}},
		})
		c.remove("a", "b")
		c.expectOn(m, "though the volumes are in use")
		c.unmounted()
		if !ignore {
			c.expectOn(m, "though a ticket keeps one of the volumes")
			if text := m.openText(); !strings.Contains(text, "VolumeTicket shop/pin keeps it there; --ignore-tickets does not wait for it") {
				t.Errorf("it says %s", text)
			}
			continue
		}
		c.expectEnd(m, "")
		if text := m.summary(); !strings.Contains(text, "Don't switch it off before who made these VolumeTickets is done with their volumes: shop/pin") {
			t.Errorf("it says %s", text)
		}
	}
}

// The next pod of one whose volume a ticket has, too, waits until that has let go of it: the plan and
// the drain say so, and for how long, unless the ticket is no longer waited for.
func TestEvictionIntoANotice(t *testing.T) {
	asked := []metav1.Condition{{Type: v1alpha1.TicketYielding, Status: metav1.ConditionTrue, Reason: "Outranked", LastTransitionTime: metav1.NewTime(newScene(t).now.Add(-20 * time.Second))}}
	const first, by = "its next pod waits for up to 30s for ticket shop/nightly, which is asked to let go of volume data-a first", "its next pod waits for ticket shop/nightly, which has been asked to let go of volume data-a by 2026-03-01T12:00:10Z"
	for name, test := range map[string]struct {
		change func(*v1alpha1.VolumeTicket)
		want   string
	}{
		"it is asked when the next pod comes": {func(*v1alpha1.VolumeTicket) {}, first},
		"it is asked already":                 {func(t *v1alpha1.VolumeTicket) { t.Status.Conditions = append(t.Status.Conditions, asked...) }, by},
		"it has let go": {func(t *v1alpha1.VolumeTicket) {
			t.Status.Conditions = append(t.Status.Conditions, asked...)
			t.Annotations = map[string]string{v1alpha1.AnnotationLetsGo: asked[0].LastTransitionTime.UTC().Format(time.RFC3339)}
		}, ""},
		"it moves with the cordon": {func(t *v1alpha1.VolumeTicket) {
			t.Spec.Type, t.Spec.OnDrain, t.Spec.Wherever, t.Spec.NodeName, t.Status.NodeName = v1alpha1.TicketRestore, v1alpha1.OnDrainMove, true, "", "worker-1"
		}, first},
		"it ends with the cordon": {func(t *v1alpha1.VolumeTicket) { t.Spec.OnDrain = v1alpha1.OnDrainEnd }, ""},
		"nobody uses it yet":      {func(t *v1alpha1.VolumeTicket) { t.Status.Conditions = t.Status.Conditions[:1] }, ""},
		"it is for another claim": {func(t *v1alpha1.VolumeTicket) { t.Spec.Volumes[0].Claim.Name = "data-c" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScene(t)
			ticket := &v1alpha1.VolumeTicket{
				ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "shop", UID: "nightly-uid"},
				Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketBackup, NodeName: "worker-1", Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data-a"}}}},
				Status: v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{
					{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: "Granted"},
					{Type: v1alpha1.TicketSatisfied, Status: metav1.ConditionTrue, Reason: "Satisfied", LastTransitionTime: metav1.NewTime(c.now.Add(-time.Minute))},
				}},
			}
			test.change(ticket)
			c.objects = append(c.objects, ticket)
			for _, pod := range c.world().DrainPlan("worker-1").Pods {
				if want := test.want; pod.To == "" || pod.Name == "a" && pod.Note != want || pod.Name != "a" && pod.Note != "" {
					t.Errorf("the plan says of %s, which goes to %q: %q", pod.Name, pod.To, pod.Note)
				}
			}
			m, said := c.begin(10)
			c.expect(m, "a b", "at first")
			c.agreed(m, "a", "b")
			c.ending("a", "b")
			c.expect(m, "", "then")
			want := strings.TrimSuffix("[0/2] shop/a is evicted; "+test.want, "; ")
			if !slices.Equal(*said, []string{want, "[0/2] shop/b is evicted"}) {
				t.Errorf("it says %q, want %q", *said, want)
			}
		})
	}
}

// A pod that comes to the node after the first look is evicted, too.
func TestPodsThatComeLater(t *testing.T) {
	c, m, _ := evicting(t)
	c.remove("a", "b")
	c.unmounted()
	c.run("late", "data-b", "worker-1", corev1.PodRunning)
	c.expectOn(m, "though a pod came")
	c.expect(m, "late", "when it came")
}

// A pod that was made after the cordon and is at the node all the same would come again: it is
// not evicted in a circle, and is told.
func TestPodsThatComeBack(t *testing.T) {
	c, m, _ := evicting(t)
	c.remove("a", "b")
	c.unmounted()
	c.now = c.now.Add(afterCordon + time.Second)
	c.run("a2", "data-a", "worker-1", corev1.PodRunning)
	c.expect(m, "", "when it came")
	c.expectEnd(m, "pods were made there after the cordon, such as shop/a2")
	if strings.Contains(m.summary(), "run elsewhere") {
		t.Errorf("the drained node counts as elsewhere: %s", m.summary())
	}
	again, _ := c.beginAs(task{node: "worker-1", uid: "node-worker-1-uid", atOnce: 10, selector: labels.Everything(), began: c.now.Add(-time.Hour)})
	c.expect(again, "", "begun again")
}

// A pod that comes and needs a permission ends the drain once all others have left.
func TestPodThatNeedsPermissionComes(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(10)
	c.expect(m, "a b", "at first")
	c.run("debugger", "none", "worker-1", corev1.PodRunning)
	change(c, "debugger", func(p *corev1.Pod) { p.OwnerReferences, p.Spec.Volumes = nil, nil })
	c.agreed(m, "a", "b")
	c.expectOn(m, "before the others have left")
	c.remove("a", "b")
	c.unmounted()
	c.expectEnd(m, "shop/debugger (--force evicts them)")
}

// Nothing is evicted, and nothing is called drained, when the Node is deleted, is another one,
// is not ready or is uncordoned.
func TestNodeChanges(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *scene)
		want   string
	}{
		"deleted": {func(c *scene) {
			c.objects = slices.DeleteFunc(c.objects, func(o runtime.Object) bool { n, ok := o.(*corev1.Node); return ok && n.Name == "worker-1" })
		}, "was deleted in the middle"},
		"made again": {func(c *scene) { change(c, "worker-1", func(n *corev1.Node) { n.UID = "another" }) }, "was deleted in the middle"},
		"not ready": {func(c *scene) {
			change(c, "worker-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		}, "is not ready any more"},
		"uncordoned": {func(c *scene) { change(c, "worker-1", func(n *corev1.Node) { n.Spec.Unschedulable = false }) }, "somebody has uncordoned"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScene(t)
			m, _ := c.begin(1)
			c.expect(m, "a", "at first")
			c.agreed(m, "a")
			c.remove("a")
			c.now = c.now.Add(time.Hour)
			test.change(c)
			c.expect(m, "", "then")
			c.expectEnd(m, test.want)
		})
	}
}

// A component is not down because nothing changed for long: its Lease goes with the time at
// which it was read.
func TestQuietCluster(t *testing.T) {
	c := newScene(t)
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: facts.DefaultHome, Name: "moorage-controller"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("one"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(c.now))}}
	c.leases = facts.Leases{Seen: true, Components: []coordinationv1.Lease{lease}}
	m, _ := c.begin(10)
	if due := m.next(c.world(), c.now.Add(time.Hour)); len(due) != 2 {
		t.Errorf("%d pods go, not 2: %s", len(due), m.remaining())
	}
}

// An answer by which a pod would be gone, and a consent after which it is not deleted, do not
// count: it is told, and asked for again.
func TestConsentThatDoesNothing(t *testing.T) {
	c := newScene(t)
	m, said := c.begin(1)
	c.expect(m, "a", "at first")
	c.agreed(m, "a")
	c.now = c.now.Add(seenAfter)
	c.expect(m, "", "while it may still come")
	c.now = c.now.Add(time.Second)
	c.expect(m, "b", "when it did not come")
	expectSaid(t, said, "shop/a stays for now: it is not being deleted")
	if strings.Contains(strings.Join(*said, "\n"), "is evicted") {
		t.Errorf("it says %s", *said)
	}
}

// A pod that was ending before delays the others for two minutes, and no longer; nor does one
// with a long grace period, whose time between nodes begins when it has ended.
func TestLongEnd(t *testing.T) {
	c := newScene(t)
	c.ending("a")
	m, _ := c.begin(1)
	c.expect(m, "", "while a ends")
	c.now = c.now.Add(awayAtMost)
	c.expect(m, "", "after two minutes")
	c.now = c.now.Add(time.Second)
	c.expect(m, "b", "after more than two minutes")
	c.refused(m, "b", refusal{why: "later"})
	c.now = c.now.Add(retryAfter)
	c.remove("a")
	c.expect(m, "", "when a has ended, and is between two nodes")
}

// An eviction that is not answered keeps its place for a while only.
func TestSlowAnswer(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(1)
	c.expect(m, "a", "at first")
	c.now = c.now.Add(retryAfter + time.Second)
	c.expect(m, "b", "when nobody has answered")
}

// Pods that nobody makes again need no room elsewhere, and go with --force.
func TestForcedPodsNeedNoRoom(t *testing.T) {
	c := newScene(t)
	change(c, "worker-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	change(c, "worker-3", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	for _, name := range []string{"a", "b"} {
		change(c, name, func(p *corev1.Pod) { p.OwnerReferences = nil })
	}
	forced := task{node: "worker-1", uid: "node-worker-1-uid", atOnce: 1, may: permissions{force: true}, selector: labels.Everything(), began: c.now}
	m, _ := c.beginAs(forced)
	c.expect(m, "a b", "without room")
}

// A pod with a volume that only this node can use is named before anything is done, and goes
// with --force.
func TestLocalVolume(t *testing.T) {
	c := newScene(t)
	change(c, "pv-a", func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-1"}}}}}}}
	})
	plain := task{node: "worker-1", uid: "node-worker-1-uid", atOnce: 10, selector: labels.Everything(), began: c.now}
	choice := plain.choose(c.world())
	if err := choice.refused("worker-1", ""); err == nil || !strings.Contains(err.Error(), "and they would wait for this one: shop/a (--force") {
		t.Errorf("it says %v", err)
	}
	plain.may.force = true
	m, _ := c.beginAs(plain)
	c.expect(m, "a b", "with --force")
}

// A refusal that asking again does not change ends the drain once nothing else is left.
func TestRefusedForGood(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(10)
	c.expect(m, "a b", "at first")
	c.refused(m, "a", refusal{why: "you may not", good: true})
	c.expectOn(m, "while b is asked for")
	c.agreed(m, "b")
	c.remove("b")
	c.expectEnd(m, "to ask again is of no use: shop/a: you may not")
}

// Pods of other nodes that are ending, and made again, are given room before any is evicted:
// such as those of another drain.
func TestTwoDrains(t *testing.T) {
	c := newScene(t)
	change(c, "worker-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	c.ending("c", "d")
	m, said := c.begin(10)
	c.expect(m, "", "while c and d of worker-2 are on their way to worker-3")
	expectSaid(t, said, "Room is kept first for pods that are about to be placed: shop/c, shop/d")
	c.now = c.now.Add(3 * time.Minute)
	c.expect(m, "a b", "when they have not ended in time")
}

// Room is not kept for pods of which no scheduler says that they wait for room, once they are not
// new: anybody can make pods that nobody will ever place.
func TestPodsThatNobodyPlacesKeepNoRoom(t *testing.T) {
	for name, said := range map[string]*corev1.PodCondition{
		"no scheduler looks at them": nil,
		"they wait for a quota":      {Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "waiting for quota of queue batch"},
	} {
		c := newScene(t)
		for _, claim := range []string{"data-e", "data-f"} {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: claim, Namespace: "shop", UID: types.UID(claim), CreationTimestamp: metav1.NewTime(c.now)},
				Spec: corev1.PodSpec{SchedulerName: "nobody", Volumes: []corev1.Volume{{Name: "v0", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
				Status: corev1.PodStatus{Phase: corev1.PodPending},
			}
			if said != nil {
				pod.Status.Conditions = []corev1.PodCondition{*said}
			}
			c.objects = append(c.objects, pod)
		}
		m, _ := c.begin(10)
		c.expect(m, "", name+": while they are new")
		c.now = c.now.Add(3 * time.Minute)
		c.expect(m, "a b", name+": later")
	}
}

// A drain that ends before it has looked at the cluster does not say that the pods have left.
func TestBrokenOffBeforeTheFirstLook(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(10)
	if text := m.brokenOff().Error(); strings.Contains(text, "have left") || !strings.Contains(text, "Nothing was evicted") {
		t.Errorf("it says %q", text)
	}
}

// Room is kept for a pod that has ended, until its next one is made.
func TestRoomUntilMadeAgain(t *testing.T) {
	c := newScene(t)
	change(c, "worker-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	change(c, "worker-3", func(n *storagev1.CSINode) { n.Spec.Drivers[0].Allocatable.Count = new(int32(1)) })
	m, _ := c.begin(10)
	c.expect(m, "a", "with one slot")
	c.agreed(m, "a")
	c.remove("a")
	c.expect(m, "", "while nobody has made a again")
}

// A pod that its scheduler refuses for want of CPU takes no room from the others.
func TestPodThatWaitsForCPU(t *testing.T) {
	c := newScene(t)
	change(c, "worker-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	c.run("other", "data-e", "", corev1.PodPending)
	change(c, "other", func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable. preemption: 0/3 nodes are available."}}
	})
	m, _ := c.begin(10)
	c.expect(m, "a b", "beside a pod that waits for CPU")
	change(c, "other", func(p *corev1.Pod) {
		p.Status.Conditions[0].Message = "0/3 nodes are available: 1 node(s) exceed max volume count: no free slot of driver disk.example.com (2 of 2 used), 2 node(s) were unschedulable."
	})
	m, _ = c.begin(10)
	c.expect(m, "a", "beside a pod that waits for a slot")
}

// A pod of a DaemonSet that is gone is one that nobody makes again.
func TestDaemonSetGone(t *testing.T) {
	c := newScene(t)
	change(c, "a", func(p *corev1.Pod) { p.OwnerReferences = owner("apps/v1", "DaemonSet", "d") })
	change(c, "b", func(p *corev1.Pod) { p.OwnerReferences = owner("example.com/v1", "DaemonSet", "other") })
	t1 := task{node: "worker-1", uid: "node-worker-1-uid", atOnce: 10, may: permissions{ignoreDaemonSets: true}, selector: labels.Everything(), began: c.now}
	m, _ := c.beginAs(t1)
	c.expect(m, "b", "while there is a DaemonSet")
	t1.orphans = map[types.UID]bool{"d-uid": true}
	choice := t1.choose(c.world())
	if err := choice.refused("worker-1", ""); err == nil || !strings.Contains(err.Error(), ". No controller would make these pods again: shop/a (--force") {
		t.Errorf("it says %v", err)
	}
	t1.may.force = true
	m, _ = c.beginAs(t1)
	c.expect(m, "a b", "with --force, when it is gone")
}

// What remains says of each pod whether its turn has come.
func TestRemaining(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(1)
	c.expect(m, "a", "at first")
	if text := m.remaining(); text != "Still at the node: shop/a: it is being evicted; shop/b: its turn has not come (--at-once)" {
		t.Errorf("it says %s", text)
	}
	c.ending("a")
	c.expect(m, "", "while a ends")
	if text := m.remaining(); !strings.Contains(text, "shop/a: it has not ended yet") {
		t.Errorf("it says %s", text)
	}
}

// Who does not run yet at the end is named, with what it waits for.
func TestWhoDoesNotRunYet(t *testing.T) {
	c, m, _ := evicting(t)
	c.remove("a", "b")
	c.unmounted()
	c.run("a2", "data-a", "", corev1.PodPending)
	c.run("b2", "data-b", "worker-3", corev1.PodPending)
	c.expectEnd(m, "")
	if text := m.summary(); text != "node worker-1 is drained: 2 pods left it; 2 pods are not running yet: shop/a (no node yet), shop/b (starting at worker-3)" {
		t.Errorf("it says %s", text)
	}
	change(c, "b2", func(p *corev1.Pod) { p.Spec.NodeName = "" })
	c.expectEnd(m, "")
	if text := m.summary(); !strings.HasSuffix(text, "; 2 pods are not running yet: shop/a, shop/b (no node yet)") {
		t.Errorf("two that wait for the same: it says %s", text)
	}
}

// Pods that stay for the same reason are told together, and not again at every nuance.
func TestTellsRarely(t *testing.T) {
	c := newScene(t)
	m, said := c.begin(10)
	c.expect(m, "a b", "at first")
	c.refused(m, "a", refusal{why: "no, 1"})
	c.refused(m, "b", refusal{why: "no, 1"})
	c.expect(m, "", "at once")
	c.refused(m, "a", refusal{why: "no, 2"})
	c.expect(m, "", "soon")
	if text := strings.Join(*said, "\n"); text != "[0/2] shop/a, shop/b stay for now: no, 1" {
		t.Errorf("it says %s", text)
	}
	c.now = c.now.Add(tellAgain)
	c.expect(m, "a b", "later")
	expectSaid(t, said, "shop/a stays for now: no, 2")
}

// A pod that a scheduler placed just before it saw the cordon leaves, too.
func TestPodsPlacedBesideTheCordon(t *testing.T) {
	for after, want := range map[time.Duration]string{0: "a b late", afterCordon: "a b late", afterCordon + time.Second: "a b"} {
		c := newScene(t)
		m, _ := c.begin(10)
		c.now = c.now.Add(after)
		c.run("late", "none", "worker-1", corev1.PodRunning)
		change(c, "late", func(p *corev1.Pod) { p.Spec.Volumes = nil })
		c.expect(m, want, after.String()+" after it")
	}
}

// A pod that the kubelet runs from a file stays, and needs no permission: nobody can evict it.
func TestStaticPods(t *testing.T) {
	c := newScene(t)
	change(c, "a", func(p *corev1.Pod) {
		p.OwnerReferences, p.Annotations = owner("v1", "Node", "worker-1"), map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	})
	m, _ := c.begin(10)
	c.expect(m, "b", "at first")
	if stay := m.choice.stay(); stay != "1 pod run by the kubelet from a file" {
		t.Errorf("it says that %q stays", stay)
	}
}

// What was seen last may be old: a drain is over only when lists that are read anew say so.
func TestEndIsReadAnew(t *testing.T) {
	c, m, said := evicting(t)
	now := c.world()
	c.remove("a", "b")
	c.unmounted()
	l := &loop{drainer: &drainer{}, m: m, c: &cluster.Cluster{Clock: func() time.Time { return c.now }}, world: c.world(),
		fresh: func(context.Context) (*facts.World, error) { return now, nil }, answers: make(chan answer, 2)}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if over, err := l.pass(ctx); over || err != nil {
		t.Errorf("it ends though the pods are there: %t, %v (%v)", over, err, *said)
	}
	l.fresh = func(context.Context) (*facts.World, error) { return nil, errors.New("the API server is busy") }
	if over, _ := (&loop{drainer: l.drainer, m: m, c: l.c, world: c.world(), fresh: l.fresh}).pass(t.Context()); over {
		t.Error("it ends by what it has not read")
	}
}

// A volume of which the controller says that a node may have it mounted since a forced detach
// is at the node until the controller says otherwise, and a pod that has it finds no room
// elsewhere.
func TestVolumeInDoubt(t *testing.T) {
	c := newScene(t)
	var attachment types.UID
	for _, o := range c.objects {
		if va, ok := o.(*storagev1.VolumeAttachment); ok && *va.Spec.Source.PersistentVolumeName == "pv-a" {
			attachment = va.UID
		}
	}
	if attachment == "" {
		t.Fatal("pv-a has no attachment")
	}
	hold := &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName("disk.example.com", "vol-a"), UID: "hold-a"}, Spec: v1alpha1.VolumeHoldSpec{Driver: "disk.example.com", Handle: "vol-a"},
		Status: v1alpha1.VolumeHoldStatus{PersistentVolumes: []string{"pv-a"}, Transitions: 3, Holder: &v1alpha1.Holder{Node: "worker-1", NodeUID: "node-worker-1-uid"},
			Fenced: []v1alpha1.FencedNode{{Node: "worker-1", NodeUID: "node-worker-1-uid", AttachmentUID: attachment, InUse: true}}},
	}
	c.objects = append(c.objects, hold)
	m, _ := c.begin(10)
	c.expect(m, "b", "at first")
	c.agreed(m, "b")
	c.remove("a", "b")
	c.unmounted()
	c.expectOn(m, "though the controller takes a volume for mounted")
	if text := m.openText(); !strings.Contains(text, "pv-a") || strings.Contains(text, "pv-b") {
		t.Errorf("it waits for %q", text)
	}
	hold.Status.Fenced = nil
	c.expectEnd(m, "")
}

// A pod that names this node alone by a selector would wait for it, too; one that others match
// does not.
func TestPinnedPod(t *testing.T) {
	for name, test := range map[string]struct {
		selector map[string]string
		tied     bool
	}{
		"this node":  {map[string]string{corev1.LabelHostname: "worker-1"}, true},
		"another":    {map[string]string{corev1.LabelHostname: "worker-3"}, false},
		"any":        {nil, false},
		"none there": {map[string]string{"pool": "large"}, true},
	} {
		c := newScene(t)
		change(c, "worker-3", func(n *corev1.Node) { n.Labels = map[string]string{corev1.LabelHostname: "worker-3"} })
		change(c, "a", func(p *corev1.Pod) { p.Spec.NodeSelector = test.selector })
		plain := task{node: "worker-1", uid: "node-worker-1-uid", atOnce: 10, selector: labels.Everything(), began: c.now}
		choice := plain.choose(c.world())
		if err := choice.refused("worker-1", ""); (err != nil) != test.tied || err != nil && !strings.Contains(err.Error(), "shop/a (--force") {
			t.Errorf("%s: it says %v", name, err)
		}
		change(c, "a", func(p *corev1.Pod) { p.Spec.Volumes = nil })
		choice = plain.choose(c.world())
		if err := choice.refused("worker-1", ""); err != nil {
			t.Errorf("%s, without volumes: it says %v", name, err)
		}
	}
}

// Who breaks a drain off is told what is left behind.
func TestBrokenOff(t *testing.T) {
	c := newScene(t)
	m, _ := c.begin(10)
	c.expect(m, "a b", "at first")
	ended := (*command.ExitError)(nil)
	if err := m.brokenOff(); !errors.As(err, &ended) || ended.Code != 130 || !strings.Contains(ended.Message, "worker-1 stays cordoned") || !strings.Contains(ended.Message, "shop/a, shop/b: it is being evicted") {
		t.Errorf("it says %v", err)
	}
}

// Another node is not offered for the drain of one that is gone, and that may still have volumes.
func TestNodeThatIsGone(t *testing.T) {
	c := newScene(t)
	if err := noNode(c.world(), "wrker-1"); err == nil || !strings.Contains(err.Error(), "Did you mean") {
		t.Errorf("of a name that nobody has it says %v", err)
	}
	c.objects = slices.DeleteFunc(c.objects, func(o runtime.Object) bool {
		n, ok := o.(*corev1.Node)
		return ok && n.Name == "worker-1"
	})
	if err := noNode(c.world(), "worker-1"); err == nil || strings.Contains(err.Error(), "Did you mean") || !strings.Contains(err.Error(), "its machine may still have 2 volumes") {
		t.Errorf("it says %v", err)
	}
}

// Pods of which the same is said are named together, the first ones only where there are many.
func TestManyPodsAreNamedTogether(t *testing.T) {
	m := newMoves(task{}, func(string, ...any) {})
	m.looked = true
	for i := range mostPods + 2 {
		uid := types.UID(fmt.Sprintf("uid-%d", i))
		m.pods[uid] = &departure{pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("db-%d", i), UID: uid}}, stays: "no room"}
	}
	if got := m.remaining(); got != "Still at the node: shop/db-0, shop/db-1, shop/db-2, shop/db-3, shop/db-4, shop/db-5, shop/db-6, shop/db-7 and 2 more (-o wide names them): no room" {
		t.Error(got)
	}
	m.wide = true
	if got := m.remaining(); !strings.HasSuffix(got, "shop/db-7, shop/db-8, shop/db-9: no room") {
		t.Error(got)
	}
}
