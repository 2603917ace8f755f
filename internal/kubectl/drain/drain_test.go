// SPDX-License-Identifier: Apache-2.0

package drain

import (
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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// Two nodes have two taken slots each: a and b at worker-1, c and d at worker-2. worker-3 has two free
// slots.
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

func (c *scene) run(name, claim, node string, phase corev1.PodPhase) {
	c.objects = append(c.objects, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop", UID: types.UID("pod-" + name + "-uid"), CreationTimestamp: metav1.NewTime(c.now), OwnerReferences: owner("apps/v1", "StatefulSet", name)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "v0", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}}},
		Status: corev1.PodStatus{Phase: phase},
	})
}

type drain struct {
	*drainer
	c       *scene
	said    []string
	refuses map[string]error
	over    bool
	err     error
}

func (c *scene) begin(change func(*drainer)) *drain {
	x := &drain{c: c, refuses: map[string]error{}, drainer: &drainer{node: "worker-1", uid: "node-worker-1-uid", atOnce: 10, selector: labels.Everything(), began: c.now,
		left: map[types.UID]*departure{}, stays: map[types.UID]stay{}}}
	x.say = func(format string, args ...any) { x.said = append(x.said, fmt.Sprintf(format, args...)) }
	if change != nil {
		change(x.drainer)
	}
	return x
}

func (x *drain) next() string {
	var names []string
	var summary string
	x.over, summary, x.err = x.pass(x.c.world(), x.c.now, func(p *corev1.Pod) error {
		names = append(names, p.Name)
		return x.refuses[p.Name]
	})
	if x.over {
		x.said = append(x.said, summary)
	}
	return strings.Join(names, " ")
}

func (x *drain) expect(want, when string) {
	x.c.t.Helper()
	if got := x.next(); got != want || x.over {
		x.c.t.Fatalf("%s it evicts %q, not %q (over: %t, %v)", when, got, want, x.over, x.err)
	}
}

// empty: no error
func (x *drain) expectEnd(want string) {
	x.c.t.Helper()
	x.next()
	switch {
	case !x.over:
		x.c.t.Fatalf("it does not end: %s", x.remains(x.c.world()))
	case want == "" && x.err != nil, want != "" && (x.err == nil || !strings.Contains(x.err.Error(), want)):
		x.c.t.Fatalf("it ends with %v, not %q", x.err, want)
	}
}

func (x *drain) expectSaid(want string) {
	x.c.t.Helper()
	if text := strings.Join(x.said, "\n"); !strings.Contains(text, want) {
		x.c.t.Errorf("%q is not said:\n%s", want, text)
	}
}

func (c *scene) ending(pods ...string) {
	for _, name := range pods {
		change(c, name, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(c.now)) })
	}
}

func (c *scene) unmounted() {
	change(c, "worker-1", func(n *corev1.Node) { n.Status.VolumesInUse = nil })
}

// A pod counts for --at-once until the next pod runs elsewhere, or two minutes are over.
func TestAtOnce(t *testing.T) {
	for name, comesBack := range map[string]bool{"the next pod runs": true, "it does not come back": false} {
		t.Run(name, func(t *testing.T) {
			c := newScene(t)
			x := c.begin(func(d *drainer) { d.atOnce = 1 })
			x.expect("a", "at first")
			x.expect("", "before a is gone")
			c.remove("a")
			c.run("a2", "data-a", "", corev1.PodPending)
			x.expect("", "while the next pod waits")
			c.now = c.now.Add(10 * time.Second)
			if comesBack {
				c.remove("a2")
				c.run("a2", "data-a", "worker-3", corev1.PodRunning)
			} else {
				c.now = c.now.Add(awayAtMost)
			}
			x.expect("b", "then")
			if comesBack {
				x.expectSaid("shop/a2 runs at worker-3, 10s after it was evicted")
			}
		})
	}
}

func TestRoomIsKept(t *testing.T) {
	c := newScene(t)
	change(c, "worker-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	c.run("other", "data-e", "", corev1.PodPending)
	x := c.begin(nil)
	x.expect("a", "with two slots, and a pod that waits")
	x.expectSaid("shop/b stays for now: no other node can take its volumes")
	x.expectSaid("NoFreeSlot")
	c.ending("a")
	x.expect("", "while a ends")
	change(c, "a", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	x.expect("", "when a has ended, and its object is still there")
	c.remove("a")
	x.expect("", "before a is made again")
	c.run("a2", "data-a", "worker-3", corev1.PodRunning)
	x.expect("", "when a runs elsewhere")
	c.remove("other")
	x.expect("b", "when the other pod waits no more")
}

// A pod that waits for CPU, or without a scheduler's report for long, gets no room.
func TestRoomForOthers(t *testing.T) {
	cpu := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Insufficient cpu."}}
	for name, test := range map[string]struct {
		other func(*scene)
		want  string
	}{
		"another drain's pods are ending": {func(c *scene) {
			change(c, "worker-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			c.ending("c", "d")
		}, ""},
		"new pods wait": {func(c *scene) {
			c.run("e", "data-e", "", corev1.PodPending)
			c.run("f", "data-f", "", corev1.PodPending)
		}, ""},
		"they wait for CPU": {func(c *scene) {
			for _, name := range []string{"e", "f"} {
				c.run(name, "data-"+name, "", corev1.PodPending)
				change(c, name, func(p *corev1.Pod) { p.Status.Conditions = cpu })
			}
		}, "a b"},
		"nobody places them": {func(c *scene) {
			c.run("e", "data-e", "", corev1.PodPending)
			c.run("f", "data-f", "", corev1.PodPending)
			c.now = c.now.Add(placedLong)
		}, "a b"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScene(t)
			test.other(c)
			c.begin(nil).expect(test.want, name)
		})
	}
}

const placedLong = 3 * time.Minute

// A refused eviction takes neither room nor a place of --at-once, and is retried.
func TestRefusedEviction(t *testing.T) {
	c := newScene(t)
	change(c, "worker-3", func(n *storagev1.CSINode) { n.Spec.Drivers[0].Allocatable.Count = new(int32(1)) })
	x := c.begin(func(d *drainer) { d.atOnce = 1 })
	x.refuses["a"] = apierrors.NewTooManyRequests("it would violate the budget.", 0)
	x.refuses["b"] = x.refuses["a"]
	x.expect("a", "at first")
	x.expectSaid("shop/a stays for now: it would violate the budget.")
	x.expect("b", "when a was refused")
	x.expect("", "too soon")
	c.now = c.now.Add(retryAfter)
	delete(x.refuses, "a")
	x.expect("a", "after five seconds")
}

func TestMayNotEvict(t *testing.T) {
	x := newScene(t).begin(nil)
	x.refuses["a"] = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", errors.New(`User "eve" cannot create resource "pods/eviction"`))
	x.expectEnd("kubectl auth can-i create pods --subresource=eviction -n shop")
}

// An accepted eviction must delete the pod: otherwise it is retried.
func TestConsentThatDoesNothing(t *testing.T) {
	c := newScene(t)
	x := c.begin(nil)
	x.expect("a b", "at first")
	c.now = c.now.Add(seenAfter + time.Second)
	x.expect("a b", "when nothing came of it")
	x.expectSaid("the API server has agreed to its eviction, and it is not being deleted")
}

func TestComponentDown(t *testing.T) {
	c := newScene(t)
	lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: facts.DefaultHome, Name: "moorage-controller"}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("one"), LeaseDurationSeconds: new(int32(15)), RenewTime: new(metav1.NewMicroTime(c.now.Add(-time.Hour)))}}
	c.leases = facts.Leases{Seen: true, Components: []coordinationv1.Lease{lease}}
	x := c.begin(nil)
	x.expect("", "while moorage-controller is down")
	x.expectSaid("shop/a stays for now: moorage-controller is down")
	c.leases.Components[0].Spec.RenewTime = new(metav1.NewMicroTime(c.now))
	x.expect("a b", "when it leads again")
}

// Another run's evictions count. A mounted volume counts without its claim.
func TestEnd(t *testing.T) {
	c := newScene(t)
	x := c.begin(nil)
	x.expect("a b", "at first")
	x.expect("", "though its pods are there")
	c.remove("a", "b")
	x.expect("", "though its kubelet has volumes in use")
	if text := x.remains(c.world()); !strings.Contains(text, "Still mounted, as far as is known: pv-a (") {
		t.Errorf("it says %s", text)
	}
	again := c.begin(nil)
	again.expect("", "begun again, though its kubelet has volumes in use")
	claims := slices.Clone(c.objects)
	c.objects = slices.DeleteFunc(c.objects, func(o runtime.Object) bool {
		_, claim := o.(*corev1.PersistentVolumeClaim)
		_, pv := o.(*corev1.PersistentVolume)
		return claim || pv
	})
	x.expect("", "though its kubelet has volumes in use, whose claims are gone")
	c.objects = claims
	c.unmounted()
	again.expectEnd("")
	x.expectEnd("")
	x.expectSaid("node worker-1 is drained: 2 pods left it; not running yet: shop/a (not made again yet)")
}

func TestEndBesidePodsThatStay(t *testing.T) {
	c := newScene(t)
	change(c, "b", func(p *corev1.Pod) { p.OwnerReferences = owner("apps/v1", "DaemonSet", "d") })
	x := c.begin(func(d *drainer) { d.ignoreDaemonSets = true })
	x.expect("a", "at first")
	c.remove("a")
	x.expect("", "though pv-a is in use")
	change(c, "worker-1", func(n *corev1.Node) { n.Status.VolumesInUse = n.Status.VolumesInUse[1:] })
	x.expectEnd("")
	x.expectSaid("left where they are: 1 pod of a DaemonSet")
	x.expectSaid("Don't switch it off: pods that stay there use pv-b")
}

// The drain waits for a ticket's volume, unless tickets are ignored, and always for mounted volumes.
func TestEndBesideATicket(t *testing.T) {
	for _, ignore := range []bool{false, true} {
		c := newScene(t)
		x := c.begin(func(d *drainer) { d.ignoreTickets = ignore })
		x.expect("a b", "at first")
		c.objects = append(c.objects, &v1alpha1.VolumeTicket{
			ObjectMeta: metav1.ObjectMeta{Name: "pin", Namespace: "shop", UID: "pin-uid"},
			Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "worker-1",
				Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data-a"}}}},
			Status: v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: "Granted"}}},
		})
		c.remove("a", "b")
		x.expect("", "though the volumes are in use")
		c.unmounted()
		if !ignore {
			x.expect("", "though a ticket keeps one of the volumes")
			if text := x.remains(c.world()); !strings.Contains(text, "VolumeTicket shop/pin keeps it there; --ignore-tickets does not wait for it") {
				t.Errorf("it says %s", text)
			}
			continue
		}
		x.expectEnd("")
		x.expectSaid("Don't switch it off before who made these VolumeTickets is done with their volumes: shop/pin")
	}
}

// A late pod is evicted. A pod made after the cordon would come again: it stays.
func TestPodsThatCome(t *testing.T) {
	c := newScene(t)
	x := c.begin(nil)
	x.expect("a b", "at first")
	c.remove("a", "b")
	c.unmounted()
	c.now = c.now.Add(afterCordon)
	c.run("late", "data-b", "worker-1", corev1.PodRunning)
	x.expect("late", "when a pod was placed beside the cordon")
	c.remove("late")
	c.now = c.now.Add(time.Minute)
	c.run("again", "data-b", "worker-1", corev1.PodRunning)
	x.expectEnd("pods were made there after the cordon, such as shop/again")
}

func TestNodeChanges(t *testing.T) {
	for want, then := range map[string]func(*scene){
		"was deleted in the middle of the drain": func(c *scene) { change(c, "worker-1", func(n *corev1.Node) { n.UID = "another" }) },
		"is not ready any more": func(c *scene) {
			change(c, "worker-1", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown })
		},
		"somebody has uncordoned node": func(c *scene) { change(c, "worker-1", func(n *corev1.Node) { n.Spec.Unschedulable = false }) },
	} {
		c := newScene(t)
		then(c)
		x := c.begin(nil)
		if asked := x.next(); asked != "" || !x.over || x.err == nil || !strings.Contains(x.err.Error(), want) {
			t.Errorf("%s: it evicts %q and ends with %v", want, asked, x.err)
		}
	}
}

// Pods without a controller, or only for this node, need no room elsewhere.
func TestPermissions(t *testing.T) {
	for flag, test := range map[string]struct {
		change func(*scene)
		give   func(*drainer)
		want   string
	}{
		"--ignore-daemonsets": {func(c *scene) {
			change(c, "b", func(p *corev1.Pod) { p.OwnerReferences = owner("apps/v1", "DaemonSet", "d") })
		}, func(d *drainer) { d.ignoreDaemonSets = true }, "a"},
		"--delete-emptydir-data": {func(c *scene) {
			change(c, "b", func(p *corev1.Pod) {
				p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
			})
		}, func(d *drainer) { d.deleteEmptyDirData = true }, "a b"},
		"--force": {func(c *scene) {
			change(c, "worker-3", func(n *corev1.Node) { n.Spec.Unschedulable = true })
			change(c, "a", func(p *corev1.Pod) { p.OwnerReferences = nil })
			change(c, "b", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"none": "such"} })
		}, func(d *drainer) { d.force = true }, "a b"},
	} {
		c := newScene(t)
		test.change(c)
		without := c.begin(nil)
		if choice := without.choose(c.world()); !strings.Contains(choice.lacks, flag) {
			t.Errorf("%s: %q", flag, choice.lacks)
		}
		c.begin(test.give).expect(test.want, "with "+flag)
	}
}

// Another pod's dependent ends with its owner. Static and unlabelled pods stay too.
func TestPodsThatStay(t *testing.T) {
	c := newScene(t)
	change(c, "b", func(p *corev1.Pod) {
		p.OwnerReferences = owner("v1", "Pod", "a")
		p.OwnerReferences[0].UID = "pod-a-uid"
	})
	c.begin(nil).expect("a", "beside a pod of its own")
	c = newScene(t)
	change(c, "a", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })
	change(c, "b", func(p *corev1.Pod) { p.Labels = map[string]string{"app": "b"} })
	x := c.begin(func(d *drainer) { d.selector = labels.SelectorFromSet(labels.Set{"app": "none"}) })
	if got := x.next(); got != "" {
		t.Errorf("of a static pod and one without the labels it evicts %q", got)
	}
}

// After a forced detach the volume is in doubt: its pod finds no room elsewhere.
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
	x := c.begin(nil)
	x.expect("b", "at first")
	x.expectSaid("shop/a stays for now: volume data-a would not leave worker-1")
	c.remove("a", "b")
	c.unmounted()
	x.expect("", "though the controller takes a volume for mounted")
	hold.Status.Fenced = nil
	x.expectEnd("")
}
