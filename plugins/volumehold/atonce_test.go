// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// fakeBinder answers as the test says, and records what it was asked.
type fakeBinder struct {
	mu     sync.Mutex
	asked  []bind.Request
	answer func(bind.Request) error
}

func (b *fakeBinder) Bind(_ context.Context, r bind.Request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, r)
	if b.answer == nil {
		return nil
	}
	return b.answer(r)
}

// atOnce is a pod at n1 that does not wait in Permit, since the controller may bind it.
func (r *rig) atOnce(b *fakeBinder) *cycle {
	r.t.Helper()
	r.plugin.binder = b
	pod := podWith("p", "data")
	pod.ResourceVersion = "41"
	r.known(pod)
	c := r.reserve(pod, "n1")
	if _, status := r.RunPermitPlugins(r.t.Context(), c.state, pod, "n1"); !status.IsSuccess() {
		r.t.Fatalf("it waits in Permit: %v", status)
	}
	return c
}

// bound is the pod as the API server has it once it is bound to a node.
func (r *rig) bound(pod *corev1.Pod, node string) *corev1.Pod {
	next := pod.DeepCopy()
	next.ResourceVersion, next.Spec.NodeName = "50", node
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pods[string(pod.UID)] = next
	return next
}

func (r *rig) reserved(pod *corev1.Pod) bool { return r.Snapshot().Ticket(ticketID(pod)) != nil }

// A pod that the controller binds has no ticket; its reservation ends when it is seen bound.
func TestBoundAtOnce(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	sent, b := r.binds(), &fakeBinder{}
	c := r.atOnce(b)
	if status := r.RunBindPlugins(t.Context(), c.state, c.pod, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	if len(b.asked) != 1 || b.asked[0] != (bind.Request{Pod: c.pod.UID, Version: "41", Node: "n1"}) {
		t.Errorf("the controller was asked %+v", b.asked)
	}
	r.RunPostBindPlugins(t.Context(), c.state, c.pod, "n1")
	if !r.reserved(c.pod) {
		t.Error("its slot is free before it is seen bound")
	}
	r.apply(factOf(r.bound(c.pod, "n1")))
	eventually(t, "the reservation to end", func() bool { return !r.reserved(c.pod) })
	if writes := r.writes(); len(writes)+len(sent.sent) > 0 {
		t.Errorf("written: %v, %v", writes, sent.sent)
	}
}

// One that is gone before it is seen bound leaves nothing behind.
func TestBoundAtOnceAndGone(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	c := r.atOnce(&fakeBinder{})
	if status := r.RunBindPlugins(t.Context(), c.state, c.pod, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	r.RunPostBindPlugins(t.Context(), c.state, c.pod, "n1")
	r.apply(ledger.PodGone{UID: string(c.pod.UID)})
	eventually(t, "the reservation to end", func() bool { return !r.reserved(c.pod) })
}

// Where the controller wants a ticket, or nobody knows whether it has bound the pod, the
// pod's own ticket for the same node is granted, and the pod is bound by it.
func TestTicketWhereNotAtOnce(t *testing.T) {
	for name, answer := range map[string]error{"it wants a ticket": bind.ErrUseTicket, "no answer": errors.New("no answer")} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, disk("data", ledger.AccessNode)...)
			sent := r.binds()
			c := r.atOnce(&fakeBinder{answer: func(bind.Request) error { return answer }})
			done := make(chan *fwk.Status)
			go func() { done <- r.RunBindPlugins(t.Context(), c.state, c.pod, "n1") }()
			eventually(t, "a ticket", func() bool { _, there := r.Ticket(ticketID(c.pod)); return there })
			r.decide(c.pod, metav1.ConditionTrue, "")
			if status := <-done; !status.IsSuccess() {
				t.Fatal(status)
			}
			if len(sent.sent) != 1 || sent.sent[0].Target.Name != "n1" || sent.sent[0].ResourceVersion != "41" {
				t.Errorf("sent: %+v", sent.sent)
			}
		})
	}
}

// Where the controller wants a ticket because of what has come since the node was chosen, the pod is not
// bound by its grant alone: a ticket with other parameters lets go of the volume first.
func TestTicketWhereNotAtOnceIsNotTheLastWord(t *testing.T) {
	backup := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "nightly"}, UID: "nightly", Version: "1", Type: ledger.TypeBackup, Node: "n1",
		Phase: ledger.TicketGranted, SatisfiedSince: 1, Parameters: "x", Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	gone := backup
	gone.Version, gone.Phase, gone.Reason = "2", ledger.TicketPending, string(arbiter.Outranked)
	for name, test := range map[string]struct{ comes, then ledger.Event }{
		"a ticket with parameters": {backup, gone},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			sent := r.binds()
			c := r.atOnce(&fakeBinder{answer: func(bind.Request) error {
				r.apply(test.comes)
				return bind.ErrUseTicket
			}})
			done := make(chan *fwk.Status, 1)
			go func() { done <- r.RunBindPlugins(t.Context(), c.state, c.pod, "n1") }()
			r.written(c.pod, "n1")
			r.decide(c.pod, metav1.ConditionTrue, "")
			book := r.plugin.core.book
			eventually(t, "the pod to be bound, or to wait", func() bool {
				waits := false
				of := book.Of(string(c.pod.UID))
				book.While(of, func() { waits = of.Follow })
				return waits || len(done) > 0
			})
			if len(done) > 0 {
				t.Fatalf("it is bound too early: %v, %+v", <-done, sent.sent)
			}
			r.apply(test.then)
			if status := <-done; !status.IsSuccess() || len(sent.sent) != 1 {
				t.Errorf("%v, %+v", status, sent.sent)
			}
		})
	}
}

// A refused ticket sends the pod to look for another node.
func TestRefusedWhereNotAtOnce(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	c := r.atOnce(&fakeBinder{answer: func(bind.Request) error { return bind.ErrUseTicket }})
	done := make(chan *fwk.Status)
	go func() { done <- r.RunBindPlugins(t.Context(), c.state, c.pod, "n1") }()
	eventually(t, "a ticket", func() bool { _, there := r.Ticket(ticketID(c.pod)); return there })
	r.decide(c.pod, metav1.ConditionFalse, "full")
	if status := <-done; status.Code() != fwk.Unschedulable {
		t.Errorf("%v", status)
	}
}

// Without an answer the pod is read: one that is bound needs nothing more.
func TestBoundWithoutAnAnswer(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	b := &fakeBinder{}
	c := r.atOnce(b)
	b.answer = func(bind.Request) error {
		r.bound(c.pod, "n1")
		return errors.New("no answer")
	}
	if status := r.RunBindPlugins(t.Context(), c.state, c.pod, "n1"); !status.IsSuccess() {
		t.Error(status)
	}
	if writes := r.writes(); len(writes) > 0 {
		t.Errorf("written: %v", writes)
	}
}

// A pod whose bind may still come is fenced before its slot is free again.
func TestFencedBeforeItsSlotIsFree(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	c := r.atOnce(&fakeBinder{answer: func(bind.Request) error { return errors.New("no answer") }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan *fwk.Status)
	go func() { done <- r.RunBindPlugins(ctx, c.state, c.pod, "n1") }()
	eventually(t, "a ticket", func() bool { _, there := r.Ticket(ticketID(c.pod)); return there })
	cancel()
	if status := <-done; status.IsSuccess() {
		t.Fatal("bound, though its time was over")
	}
	fences := 0
	c.unreserve()
	eventually(t, "the reservation to end", func() bool { return !r.reserved(c.pod) })
	for _, action := range r.kube.Actions() {
		if action.Matches("patch", "pods") {
			fences++
		}
	}
	if fences != 1 {
		t.Errorf("%d fences", fences)
	}
}
