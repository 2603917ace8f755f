// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

// waitingInPreBind is a pod whose claim was not bound when it was granted n1.
func waitingInPreBind(t *testing.T, timeout time.Duration) (*rig, *corev1.Pod, <-chan *fwk.Status) {
	t.Helper()
	r := newRig(t, pending("data")...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.granted(pod, "n1")
	if status := r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1"); !status.IsSuccess() || c.state.GetParallelPreBindPlugins().Has(Name) {
		t.Fatalf("PreBind is skipped, or runs beside VolumeBinding's: %v", status)
	}
	r.apply(ledger.Policy{Name: "p", Driver: driver, GrantTimeout: timeout})
	done := make(chan *fwk.Status, 1)
	go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
	return r, pod, done
}

// bindClaim is what VolumeBinding and the provisioner do.
func bindClaim(r *rig) {
	r.apply(disk("data", ledger.AccessNode)...)
}

func TestPreBindWaitsForTheVolumeThatTheClaimBecame(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	bindClaim(r)
	eventually(t, "PreBind to look again", func() bool { return len(r.plugin.core.book.Of(string(pod.UID)).News()) == 0 })
	select {
	case status := <-done:
		t.Fatalf("bound before the controller granted the volume: %v", status)
	default:
	}
	r.apply(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n2"}})
	r.apply(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "2", Node: "n1"}})
	if status := <-done; !status.IsSuccess() {
		t.Errorf("the volume is granted at n1, and PreBind says %v", status)
	}
}

func TestPreBindEndsWithThePod(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	r.apply(factOf(terminating(pod)))
	if status := <-done; !errors.Is(status.AsError(), reservation.ErrPodGone) {
		t.Errorf("the pod is being deleted, and PreBind says %v", status)
	}
}

func TestPreBindEndsWithTheReservation(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	r.apply(ledger.TicketGone{ID: ticketID(pod)})
	if status := <-done; !errors.Is(status.AsError(), reservation.ErrEnded) {
		t.Errorf("the ticket was deleted, and PreBind says %v", status)
	}
}

// A grant can lead nowhere: the driver found no room. The pod goes elsewhere.
func TestPreBindEndsWhenTheGrantIsTakenBack(t *testing.T) {
	r, pod, done := waitingInPreBind(t, 10*time.Minute)
	r.decide(pod, metav1.ConditionFalse, "driver disk.example.com has no room")
	if status := <-done; !errors.Is(status.AsError(), reservation.ErrRefused) || !strings.Contains(status.Message(), "has no room") {
		t.Errorf("the grant was taken back, and PreBind says %v", status)
	}
	if status := r.filter(pod, "n1"); status.Message() != "node(s) refused: driver disk.example.com has no room" {
		t.Errorf("at the same node again: %v", status)
	}
}

func TestPreBindIsBounded(t *testing.T) {
	_, _, done := waitingInPreBind(t, time.Nanosecond)
	if status := <-done; status.Code() != fwk.Error || !strings.Contains(status.Message(), "claim data is not bound yet: still so after 1ns") {
		t.Errorf("PreBind says %v", status)
	}
}

// A ticket that is asked to let go of the pod's volume first has its time for that, whatever the
// scheduler's own limit is: else the pod would give up each time before it gets the volume.
func TestPreBindWaitsForATicketThatYields(t *testing.T) {
	for name, test := range map[string]struct {
		notice time.Duration
		bound  bool
	}{
		"it has its notice": {10 * time.Minute, true},
		"it has none":       {0, false},
	} {
		t.Run(name, func(t *testing.T) {
			policy := ledger.Policy{Name: "p", Version: "1", Driver: driver, YieldNotice: &test.notice}
			r := newRig(t, all(disk("data", ledger.AccessNode), one(policy, ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			pod := podWith("p", "data")
			backup := ledger.Ticket{ID: ledger.TicketID{Namespace: pod.Namespace, Name: "nightly"}, UID: "nightly", Version: "1", Type: ledger.TypeBackup, Node: "n1",
				Phase: ledger.TicketGranted, SatisfiedSince: 1, Parameters: "x", Volumes: []ledger.TicketVolume{{Claim: "data"}}}
			r.apply(backup)
			r.known(pod)
			c := r.granted(pod, "n1")
			r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1")
			policy.Version, policy.GrantTimeout = "2", time.Nanosecond // it is over at once
			r.apply(policy)
			done := make(chan *fwk.Status, 1)
			go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
			if !test.bound {
				if status := <-done; !strings.Contains(status.Message(), "still so after 1ns") {
					t.Errorf("PreBind says %v", status)
				}
				return
			}
			backup.Version, backup.Phase, backup.Reason = "2", ledger.TicketPending, string(arbiter.Outranked)
			r.apply(backup)
			if status := <-done; !status.IsSuccess() {
				t.Errorf("the ticket has let go, and PreBind says %v", status)
			}
		})
	}
}

// A ticket with parameters that has the pod's volume at its own node has to let go of it first,
// also one that was granted after the node was chosen.
func TestPreBindWaitsForOtherParameters(t *testing.T) {
	for name, late := range map[string]bool{"known when the node is chosen": false, "granted since": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
			pod := podWith("p", "data")
			backup := ledger.Ticket{ID: ledger.TicketID{Namespace: pod.Namespace, Name: "nightly"}, UID: "nightly", Version: "1", Type: ledger.TypeBackup, Node: "n1",
				Phase: ledger.TicketGranted, SatisfiedSince: 1, Parameters: "x", Volumes: []ledger.TicketVolume{{Claim: "data"}}}
			if !late {
				r.apply(backup)
			}
			r.known(pod)
			c := r.granted(pod, "n1")
			r.apply(backup)
			r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1")
			book := r.plugin.core.book
			if waitsFor, err := book.PendingBeforeBind(r.plugin.core.arbiter, book.Of(string(pod.UID))); err != nil || !strings.Contains(waitsFor, "for ticket "+pod.Namespace+"/nightly") {
				t.Errorf("the pod waits for %q (%v)", waitsFor, err)
			}
			if !book.Of(string(pod.UID)).Follow {
				t.Error("PreBind is skipped")
			}
			done := make(chan *fwk.Status, 1)
			go func() { done <- r.RunPreBindPlugins(t.Context(), c.state, pod, "n1") }()
			backup.Version, backup.Phase, backup.Reason = "2", ledger.TicketPending, string(arbiter.Outranked)
			r.apply(backup)
			if status := <-done; !status.IsSuccess() {
				t.Errorf("the ticket has let go, and PreBind says %v", status)
			}
		})
	}
}

// A pod that the controller may bind at once has no ticket: PreBind leaves what has come since to Bind.
func TestPreBindLeavesAtOnceToBind(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1"}}))...)
	c := r.atOnce(&fakeBinder{})
	r.apply(ledger.Ticket{ID: ledger.TicketID{Namespace: c.pod.Namespace, Name: "nightly"}, UID: "nightly", Version: "1", Type: ledger.TypeBackup, Node: "n1",
		Phase: ledger.TicketGranted, SatisfiedSince: 1, Parameters: "x", Volumes: []ledger.TicketVolume{{Claim: "data"}}},
		ledger.Policy{Name: "p", Version: "1", Driver: driver, GrantTimeout: time.Millisecond})
	if status := r.RunPreBindPreFlights(t.Context(), c.state, c.pod, "n1"); !status.IsSkip() {
		t.Errorf("PreBind is not skipped: %v", status)
	}
	if status := r.RunPreBindPlugins(t.Context(), c.state, c.pod, "n1"); !status.IsSuccess() {
		t.Errorf("PreBind says %v", status)
	}
}

// A pod that was granted and then could not be bound gives its node up.
func TestGrantedButNotBound(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.granted(pod, "n1")
	c.unreserve()
	eventually(t, "the ticket to be withdrawn", func() bool { return slices.Equal(r.writes(), []string{"create n1", "delete n1"}) })
	if got := r.queue.names(); len(got) != 0 {
		t.Errorf("woken are %v: after a failed bind the framework itself tries again", got)
	}
}
