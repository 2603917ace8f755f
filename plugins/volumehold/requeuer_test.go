// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const (
	roomy  = "roomy.example.com"  // a driver with enough slots
	absent = "absent.example.com" // a driver that no node has
)

// Each event wakes exactly the pods that it lets in, of these:
//
//	slot   wants a slot of the driver; all are taken
//	turn   wants volume held, which pod holder has at n2, where it has no room
//	alone  wants the ReadWriteOncePod volume single, which pod owner has at n1
//	absent wants a slot of a driver that no node has
//	early  names a claim that is not bound yet, of a class that binds at once
//	lost   wants a slot of the driver too, by a claim with an unknown volume
func TestEventsWakeThePodsTheyConcern(t *testing.T) {
	holder, owner := boundTo(podWith("holder", "held"), "n2"), boundTo(podWith("owner", "single"), "n1")
	world := all(
		disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), disk("c", ledger.AccessNode),
		disk("d", ledger.AccessNode), disk("e", ledger.AccessNode), disk("f", ledger.AccessNode),
		disk("fresh", ledger.AccessNode), diskOf(absent, "odd", ledger.AccessNode),
		diskOf(roomy, "held", ledger.AccessNode), diskOf(roomy, "single", ledger.AccessPod),
		one(slotsAt("n1", 2, roomy), slotsAt("n2", 2, roomy), slotsAt("n3", 2, roomy),
			attached("a", "n1"), attached("b", "n1"), attached("c", "n2"), attached("d", "n2"), attached("e", "n3"), attached("f", "n3"),
			factOf(holder), factOf(owner), factOf(boundTo(podWith("user", "c"), "n2")),
			disk("lost", ledger.AccessNode)[1],
			ledger.StorageClass{Name: "now", Driver: roomy},
			ledger.Driver{Name: absent, Version: "1", AttachRequired: true, NeedsNode: true},
			ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "early"}, UID: "claim-early", Class: "now"}))
	bound := diskOf(roomy, "early", ledger.AccessNode)
	tests := []struct {
		name   string
		events []ledger.Event
		woken  []string
	}{
		{"a confirmed detach", one(detached("a", "n1")), []string{"slot"}},
		{"a detach under way", one(ledger.Attachment{
			Name: ledger.AttachmentName(volume("a"), "n1"), UID: "va-an1", Driver: driver, Node: "n1",
			PersistentVolume: "pv-a", Deleting: true, Ours: true}), nil},
		{"a pod is gone, and its volume still attached", one(ledger.PodGone{UID: "uid-user"}), nil},
		{"a limit rises", one(slotsAt("n3", 3, roomy)), []string{"slot"}},
		{"a limit falls", one(slotsAt("n3", 1, roomy)), nil},
		{"a node comes", one(slotsAt("n4", 2), readyNode("n4")), []string{"slot"}},
		{"a node reports its health", one(readyNode("n1")), nil},
		{"the driver comes to a node", one(slotsAt("n3", 2, roomy, absent)), []string{"absent"}},
		{"the driver need be at no node", one(ledger.Driver{Name: absent, Version: "2", AttachRequired: true}), []string{"absent"}},
		{"the holder is going", one(factOf(terminating(holder))), []string{"turn"}},
		{"the holder is gone", one(ledger.PodGone{UID: "uid-holder"}), []string{"turn"}},
		{"the only pod is gone", one(ledger.PodGone{UID: "uid-owner"}), []string{"alone"}},
		{"the claim is bound, its volume not known", bound[1:], nil},
		{"the claim is bound, and its volume known", bound, []string{"early"}},
		{"a claim that leads nowhere gets its volume, and no slot", disk("lost", ledger.AccessNode)[:1], []string{"lost"}},
		{"somebody else's volume", all(disk("x", ledger.AccessNode), one(factOf(podWith("stranger", "x")))), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newStillRig(t, world...)
			close(r.synced)
			pods := []*corev1.Pod{podWith("slot", "fresh"), podWith("turn", "held"), podWith("alone", "single"), podWith("absent", "odd"), podWith("early", "early"), podWith("lost", "lost")}
			r.known(pods...)
			for _, pod := range pods {
				r.prefilter(pod)
			}
			r.plugin.core.requeuer.Look(t.Context())
			if got := r.queue.names(); len(got) != 0 {
				t.Fatalf("woken before anything happened: %v", got)
			}
			r.apply(test.events...)
			r.plugin.core.requeuer.Look(t.Context())
			if got := r.queue.names(); !slices.Equal(got, test.woken) {
				t.Errorf("woken are %v, want %v", got, test.woken)
			}
			r.queue.reset()
			r.plugin.core.requeuer.Look(t.Context())
			if got := r.queue.names(); len(got) != 0 {
				t.Errorf("woken again for nothing: %v", got)
			}
		})
	}
}

func TestPolicyWakesThePodsItLetsIn(t *testing.T) {
	none, two := int32(0), int32(2)
	for name, claim := range map[string][]ledger.Event{
		"with a volume":    disk("data", ledger.AccessNode),
		"with none as yet": pending("data"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newStillRig(t, all(claim, one(ledger.Policy{Name: "few", Version: "1", Driver: driver, MaxSlots: &none}))...)
			close(r.synced)
			pod := podWith("p", "data")
			r.known(pod)
			if r.filter(pod, "n1").IsSuccess() {
				t.Fatal("the policy allows no volume, and one is placed")
			}
			r.apply(ledger.Policy{Name: "few", Version: "2", Driver: driver, MaxSlots: &two})
			r.plugin.core.requeuer.Look(t.Context())
			if got := r.queue.names(); len(got) != 1 {
				t.Errorf("woken are %v, want the pod that the policy lets in", got)
			}
		})
	}
}

func TestChangeDuringTheCycle(t *testing.T) {
	r := newStillRig(t, all(disk("data", ledger.AccessNode), disk("a", ledger.AccessNode), disk("b", ledger.AccessNode),
		one(attached("a", "n1"), attached("b", "n1")))...)
	close(r.synced)
	pod := podWith("p", "data")
	r.known(pod)
	state, _, _ := r.prefilter(pod)
	r.apply(detached("a", "n1"))
	if r.RunFilterPlugins(t.Context(), state, pod, r.node("n1")).IsSuccess() {
		t.Fatal("two reads of one decision disagree")
	}
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); len(got) != 1 {
		t.Errorf("woken are %v, want the pod", got)
	}
}

func TestReservedPodsSleep(t *testing.T) {
	r := newStillRig(t, all(disk("data", ledger.AccessNode), disk("a", ledger.AccessNode), disk("b", ledger.AccessNode),
		one(attached("a", "n1"), attached("b", "n1")))...)
	close(r.synced)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n2")
	r.apply(detached("a", "n1"))
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); len(got) != 0 {
		t.Errorf("woken are %v, though the pod has a node", got)
	}
	c.unreserve()
	r.plugin.core.requeuer.Look(t.Context())
	if got := r.queue.names(); len(got) != 1 {
		t.Errorf("woken are %v: n1 has become free since the pod's snapshot", got)
	}
}

func TestPodsThatAreGoneAreForgotten(t *testing.T) {
	r := newStillRig(t, all(disk("data", ledger.AccessNode), one(factOf(boundTo(podWith("holder", "data"), "n9"))))...)
	close(r.synced)
	pod := podWith("p", "data")
	r.known(pod)
	if _, _, status := r.prefilter(pod); status.IsSuccess() {
		t.Fatal("the pod is not refused")
	}
	if err := r.kube.CoreV1().Pods(pod.Namespace).Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod to be forgotten", func() bool {
		r.plugin.core.requeuer.Sweep()
		return r.plugin.core.requeuer.Waiting() == 0
	})
}

func (r *rig) hint(resource fwk.EventResource) fwk.QueueingHintFn {
	r.t.Helper()
	events, err := r.plugin.EventsToRegister(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range events {
		if e.Event.Resource == resource {
			return e.QueueingHintFn
		}
	}
	r.t.Fatalf("no event of %s is registered", resource)
	return nil
}

// The ledger can't see that event.
func TestNominatedPodGone(t *testing.T) {
	nominated := podWith("nominated", "data")
	nominated.Status.NominatedNodeName = "n1"
	plain := podWith("plain")
	plain.Status.NominatedNodeName = "n1"
	tests := map[string]struct {
		gone any
		want string
	}{
		"nominated, with volumes":    {nominated, "Queue"},
		"nominated, without volumes": {plain, "QueueSkip"},
		"bound":                      {boundTo(podWith("bound", "data"), "n1"), "QueueSkip"},
		"not a pod":                  {kubeNode("n1"), "Queue"},
	}
	r := newRig(t)
	for name, test := range tests {
		hint, _ := r.hint(fwk.AssignedPod)(klog.Background(), podWith("p", "data"), test.gone, nil)
		if hint.String() != test.want {
			t.Errorf("%s: %s, want %s", name, hint, test.want)
		}
	}
}

// The scheduler learns of a node later than the ledger.
func TestNodeBecomesKnown(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), disk("a", ledger.AccessNode), disk("b", ledger.AccessNode),
		one(attached("a", "n1"), attached("b", "n1")))...)
	tests := map[string]struct {
		added any
		want  string
	}{
		"has room":     {kubeNode("n2"), "Queue"},
		"is full":      {kubeNode("n1"), "QueueSkip"},
		"not heard of": {kubeNode("n9"), "Queue"},
		"not a node":   {podWith("p"), "Queue"},
	}
	for name, test := range tests {
		hint, _ := r.hint(fwk.Node)(klog.Background(), podWith("p", "data"), nil, test.added)
		if hint.String() != test.want {
			t.Errorf("%s: %s, want %s", name, hint, test.want)
		}
	}
}

// The ledger does not see a nomination end.
func TestTriedAgainAfterANomination(t *testing.T) {
	r := newRig(t, all(disk("d1", ledger.AccessNode), disk("d2", ledger.AccessNode), one(slotsAt("n1", 1), slotsAt("n2", 0), slotsAt("n3", 0)))...)
	nominated, pod := podWith("nominated", "d1"), podWith("p", "d2")
	r.known(nominated, pod)
	state, _, _ := r.prefilter(pod)
	with := state.Clone()
	info, err := framework.NewPodInfo(nominated)
	if err != nil {
		t.Fatal(err)
	}
	r.plugin.AddPod(t.Context(), with, pod, info, r.node("n1"))
	if r.plugin.Filter(t.Context(), with, pod, r.node("n1")).IsSuccess() {
		t.Fatal("the slot that is promised to another pod is given away")
	}
	r.plugin.PostFilter(t.Context(), state, pod, nil)
	eventually(t, "the pod to be tried again", func() bool { return slices.Equal(r.queue.names(), []string{"p"}) })
}
