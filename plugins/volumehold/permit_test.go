// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
	"github.com/moorage-dev/moorage/plugins/internal/requeuer"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
)

func TestGrantLetsThePodBeBound(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1")
	if len(r.writes()) != 0 {
		t.Fatalf("Reserve wrote %v: the framework also reserves to simulate", r.writes())
	}
	c.permit()
	ticket := r.written(pod, "n1")
	owner := ticket.OwnerReferences[0]
	if ticket.Name != string(pod.UID) || owner.UID != pod.UID || owner.Kind != "Pod" || *owner.BlockOwnerDeletion || *owner.Controller {
		t.Errorf("the ticket is %s, owned by %+v", ticket.Name, owner)
	}
	if spec := ticket.Spec; spec.Type != v1alpha1.TicketPod || spec.Scheduler != profile || len(spec.Volumes) != 1 ||
		spec.Volumes[0].Claim.Name != "data" || spec.Volumes[0].Claim.UID != "claim-data" {
		t.Errorf("the ticket's spec is %+v", spec)
	}
	r.decide(pod, metav1.ConditionTrue, "")
	if status := c.verdict(); !status.IsSuccess() {
		t.Fatalf("granted, and the pod gets %v", status)
	}
	if status := r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1"); !status.IsSkip() {
		t.Errorf("PreBind is not skipped: %v", status)
	}
	r.RunPostBindPlugins(t.Context(), c.state, pod, "n1")
	r.apply(factOf(boundTo(pod, "n1")))
	eventually(t, "the bound pod to leave the book", func() bool { return r.plugin.core.book.Of(string(pod.UID)) == nil })
	if w := r.writes(); !slices.Equal(w, []string{"create n1"}) {
		t.Errorf("writes are %v: the ticket of a bound pod is the controller's to end", w)
	}
}

// The controller may end the ticket of a bound pod before the scheduler has seen
// that the pod is bound. Nothing may be left that counts beside the pod.
func TestTicketEndsBeforeThePodIsSeenBound(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.granted(pod, "n1")
	r.RunPostBindPlugins(t.Context(), c.state, pod, "n1")
	r.apply(ledger.TicketGone{ID: ticketID(pod)})
	eventually(t, "the end to be looked at", func() bool { return r.plugin.core.book.Pending() == 0 })
	if place := r.Snapshot().Volume(volume("data")).NodeVolume("n1"); place == nil {
		t.Fatal("between ticket and bound pod nothing counts")
	}
	r.apply(factOf(boundTo(pod, "n1")))
	eventually(t, "the bound pod to leave the book", func() bool { return r.plugin.core.book.Of(string(pod.UID)) == nil })
	r.apply(ledger.PodGone{UID: string(pod.UID)})
	if place := r.Snapshot().Volume(volume("data")).NodeVolume("n1"); place != nil {
		t.Errorf("the pod is gone, and the volume is still counted for %+v", place.Users)
	}
}

// The grant may come before the framework knows the pod as waiting.
func TestVerdictFasterThanTheFramework(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1")
	waits, status := r.RunPermitPlugins(t.Context(), c.state, pod, "n1")
	if !status.IsWait() {
		t.Fatal(status)
	}
	r.written(pod, "n1")
	r.decide(pod, metav1.ConditionTrue, "")
	eventually(t, "the grant to be offered", func() bool { return r.handle.asked.Load() > 0 })
	r.AddWaitingPod(pod, waits)
	if status := c.verdict(); !status.IsSuccess() {
		t.Errorf("granted before it waited, and the pod gets %v", status)
	}
}

func TestRefusalSendsThePodElsewhere(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1").permit()
	r.written(pod, "n1")
	r.decide(pod, metav1.ConditionFalse, "no free slot of driver disk.example.com (2 of 2 used)")
	status := c.verdict()
	if want := "node(s) refused: no free slot of driver disk.example.com (2 of 2 used)"; status.Code() != fwk.Unschedulable || status.Message() != want {
		t.Errorf("got %s %q, want Unschedulable %q", status.Code(), status.Message(), want)
	}
	c.unreserve()
	eventually(t, "the pod to be tried again", func() bool { return slices.Contains(r.queue.names(), "p") })
	if _, exists := r.Ticket(ticketID(pod)); exists {
		t.Error("the pod is tried again before its ticket is withdrawn")
	}
	if status := r.filter(pod, "n1"); status.Message() != "node(s) refused: no free slot of driver disk.example.com (2 of 2 used)" {
		t.Errorf("the node that was just refused: %v", status)
	}
	again := r.reserve(pod, "n2").permit()
	r.written(pod, "n2")
	r.decide(pod, metav1.ConditionTrue, "")
	if status := again.verdict(); !status.IsSuccess() {
		t.Errorf("granted at n2: %v", status)
	}
	if w, want := r.writes(), []string{"create n1", "delete n1", "create n2"}; !slices.Equal(w, want) {
		t.Errorf("writes are %v, want %v", w, want)
	}
}

// A pod that waited in vain is told for what.
func TestNoAnswerInTime(t *testing.T) {
	tests := map[string]struct{ message, want string }{
		"the controller is not there": {"", "moorage-controller did not answer within 1s; does it run, and lead? It will be tried again"},
		"the controller waits, too":   {"driver disk.example.com is not registered", "not granted within 1s, and will be tried again: driver disk.example.com is not registered"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.Policy{Name: "p", Driver: driver, GrantTimeout: time.Second}))...)
			pod := podWith("p", "data")
			r.known(pod)
			c := r.reserve(pod, "n1").permit()
			r.written(pod, "n1")
			if test.message != "" {
				r.decide(pod, metav1.ConditionUnknown, test.message)
			}
			if status := c.verdict(); status.Code() != fwk.Unschedulable || status.Message() != test.want {
				t.Errorf("got %s %q, want Unschedulable %q", status.Code(), status.Message(), test.want)
			}
			c.unreserve()
			eventually(t, "the pod to be tried again", func() bool { return slices.Contains(r.queue.names(), "p") })
		})
	}
}

// A refusal is not for ever: by then the ledger has what the controller went by.
func TestRefusalIsForgotten(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1").permit()
	r.written(pod, "n1")
	r.decide(pod, metav1.ConditionFalse, "not now")
	c.verdict()
	c.unreserve()
	eventually(t, "the pod to be tried again", func() bool { return slices.Contains(r.queue.names(), "p") })
	if r.filter(pod, "n1").IsSuccess() {
		t.Error("the node that was just refused is taken again")
	}
	r.later.Store(int64(requeuer.RefusalLasts))
	if status := r.filter(pod, "n1"); !status.IsSuccess() {
		t.Errorf("after %s: %v", requeuer.RefusalLasts, status)
	}
}

// A reservation counts until it is confirmed to be withdrawn, then no more.
func TestReservationCountsUntilWithdrawn(t *testing.T) {
	r := newRig(t, all(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), disk("c", ledger.AccessNode))...)
	first, second := podWith("first", "a", "b"), podWith("second", "c")
	r.known(first, second)
	c := r.reserve(first, "n1").permit()
	r.written(first, "n1")
	release := make(chan struct{})
	r.failWith(func(verb string, _ *v1alpha1.VolumeTicket) error {
		if verb == "delete" {
			<-release
		}
		return nil
	})
	if r.filter(second, "n1").IsSuccess() {
		t.Fatal("two reserved slots of two don't count")
	}
	c.unreserve()
	if r.filter(second, "n1").IsSuccess() {
		t.Error("the slots are free though the ticket may still be granted")
	}
	close(release)
	eventually(t, "the other pod to be woken", func() bool { return slices.Contains(r.queue.names(), "second") })
	if status := r.filter(second, "n1"); !status.IsSuccess() {
		t.Errorf("after the withdrawal: %v", status)
	}
}

func TestUnreserveIsIdempotent(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	(&cycle{r, pod, framework.NewCycleState(), "n1"}).unreserve() // without Reserve
	c := r.reserve(pod, "n1")
	c.unreserve()
	c.unreserve()
	if r.Snapshot().Ticket(ticketID(pod)) != nil {
		t.Error("what was only reserved still counts")
	}
	if len(r.writes()) != 0 {
		t.Errorf("writes are %v, though Permit never ran", r.writes())
	}
}

// A pod that is deleted while its ticket is being written leaves none behind.
func TestWithdrawnWhileBeingWritten(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	asked, release := make(chan struct{}), make(chan struct{})
	r.failWith(func(verb string, _ *v1alpha1.VolumeTicket) error {
		if verb == "create" {
			close(asked)
			<-release
		}
		return nil
	})
	c := r.reserve(pod, "n1").permit()
	<-asked
	c.unreserve()
	close(release)
	eventually(t, "the ticket to be written and withdrawn", func() bool {
		return slices.Equal(r.writes(), []string{"create n1", "delete n1"})
	})
}

// What became of a write is not known when its answer is lost.
func TestLostAnswerIsWithdrawn(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	r.failWith(func(verb string, ticket *v1alpha1.VolumeTicket) error {
		if verb != "create" {
			return nil
		}
		r.failWith(nil)
		if _, err := r.VolumeTickets(pod.Namespace).Create(context.Background(), ticket, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
		return errors.New("connection reset by peer")
	})
	c := r.reserve(pod, "n1").permit()
	status := c.verdict()
	if status.Code() != fwk.Unschedulable || !strings.Contains(status.Message(), "connection reset by peer") || !strings.Contains(status.Message(), "tried again") {
		t.Errorf("got %v", status)
	}
	c.unreserve()
	eventually(t, "the ticket to be withdrawn", func() bool {
		_, exists := r.Ticket(ticketID(pod))
		return !exists
	})
	eventually(t, "the pod to be tried again", func() bool { return slices.Contains(r.queue.names(), "p") })
}

// A server that is slow may have written the ticket all the same. The pod waits
// on for its grant instead of being placed anew.
func TestLateAnswerIsAskedForAgain(t *testing.T) {
	for name, written := range map[string]bool{"written": true, "not written": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, disk("data", ledger.AccessNode)...)
			pod := podWith("p", "data")
			r.known(pod)
			r.failWith(func(verb string, ticket *v1alpha1.VolumeTicket) error {
				if verb != "create" {
					return nil
				}
				r.failWith(nil)
				if written {
					if _, err := r.VolumeTickets(pod.Namespace).Create(context.Background(), ticket, metav1.CreateOptions{}); err != nil {
						t.Error(err)
					}
				}
				return apierrors.NewTimeoutError("the server is busy", 1)
			})
			c := r.reserve(pod, "n1").permit()
			r.written(pod, "n1")
			eventually(t, "the ticket to be known", func() bool { return r.Snapshot().Ticket(ticketID(pod)).UID != "" })
			r.decide(pod, metav1.ConditionTrue, "")
			if status := c.verdict(); !status.IsSuccess() {
				t.Errorf("granted, and the pod gets %v", status)
			}
			if w := r.writes(); !slices.Equal(w, []string{"create n1"}) {
				t.Errorf("writes are %v", w)
			}
		})
	}
}

// A ticket of the same name may be there already.
func TestExistingTickets(t *testing.T) {
	tests := []struct {
		name      string
		node      string // of the existing ticket
		scheduler string
		granted   bool
		writes    []string
		refused   string
	}{
		{"asks for the same", "n1", profile, false, nil, ""},
		{"asks for the same, and is granted already", "n1", profile, true, nil, ""},
		{"asks for another node", "n2", profile, false, []string{"delete n2", "create n1"}, ""},
		{"is another scheduler's", "n1", "other", false, nil, "belongs to another scheduler: other"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, disk("data", ledger.AccessNode)...)
			pod := podWith("p", "data")
			r.known(pod)
			c := r.reserve(pod, "n1")
			existing := reservation.Object(r.plugin.core.book.Of(string(pod.UID)).Ticket)
			existing.UID, existing.ResourceVersion = "ticket-1", "1"
			existing.Spec.NodeName, existing.Spec.Scheduler = test.node, test.scheduler
			if test.granted {
				existing.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue}}
			}
			r.mu.Lock()
			r.tickets[ticketID(pod).String()] = existing
			r.mu.Unlock()
			c.permit()
			if test.refused == "" && !test.granted {
				eventually(t, "the ticket to be ready", func() bool {
					found, ok := r.Ticket(ticketID(pod))
					return ok && found.Spec.NodeName == "n1" && r.Snapshot().Ticket(ticketID(pod)).UID == string(found.UID)
				})
				r.decide(pod, metav1.ConditionTrue, "")
			}
			status := c.verdict()
			if !strings.Contains(status.Message(), test.refused) || status.IsSuccess() != (test.refused == "") {
				t.Errorf("the pod gets %v, want %q", status, test.refused)
			}
			if w := r.writes(); !slices.Equal(w, test.writes) {
				t.Errorf("writes are %v, want %v", w, test.writes)
			}
		})
	}
}

func TestDeletedTicketIsAskedForAgain(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1").permit()
	ticket := r.written(pod, "n1")
	eventually(t, "the ticket to be known", func() bool { return r.Snapshot().Ticket(ticketID(pod)).UID == string(ticket.UID) })
	r.apply(translate.Ticket(ticket), ledger.TicketGone{ID: ticketID(pod)})
	if status := c.verdict(); status.Code() != fwk.Unschedulable || !strings.Contains(status.Message(), "was deleted") {
		t.Errorf("the pod gets %v", status)
	}
}

// The verdict on an earlier attempt must not reach a later one.
func TestLateVerdictDoesNotReachTheNextAttempt(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1").permit()
	r.written(pod, "n1")
	old := r.plugin.core.book.Of(string(pod.UID))
	r.RejectWaitingPod(pod.UID)
	c.verdict()
	c.unreserve()
	next := r.reserve(pod, "n2").permit()
	r.written(pod, "n2")
	r.plugin.core.deliver(t.Context(), old, verdict{})
	if waiting := r.GetWaitingPod(pod.UID); waiting == nil || len(waiting.GetPendingPlugins()) != 1 {
		t.Fatal("the earlier attempt's grant let the later one pass")
	}
	r.decide(pod, metav1.ConditionTrue, "")
	if status := next.verdict(); !status.IsSuccess() {
		t.Errorf("the later attempt's own grant: %v", status)
	}
}

// A granted ticket that an event shows late must not take the place of the
// reservation for another node.
func TestLateEventDoesNotMoveAReservation(t *testing.T) {
	r := newRig(t, all(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), disk("c", ledger.AccessNode))...)
	pod := podWith("p", "a", "b")
	r.known(pod)
	c := r.reserve(pod, "n1").permit()
	stale := r.written(pod, "n1").DeepCopy()
	r.RejectWaitingPod(pod.UID)
	c.verdict()
	c.unreserve()
	eventually(t, "the withdrawal", func() bool { return len(r.writes()) == 2 })
	r.reserve(pod, "n2")
	stale.ResourceVersion = "1000"
	r.apply(translate.Ticket(stale))
	eventually(t, "the reservation at n2 to count again", func() bool {
		known := r.Snapshot().Ticket(ticketID(pod))
		return known != nil && known.Node == "n2"
	})
	if r.filter(podWith("q", "c"), "n2").IsSuccess() {
		t.Error("the reserved slots at n2 don't count")
	}
}

func TestGrantTimeoutOfThePolicies(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	if got := r.plugin.terms(pod).limit; got != 30*time.Second {
		t.Errorf("without a policy: %s", got)
	}
	r.apply(ledger.Policy{Name: "fast", Driver: driver, GrantTimeout: 5 * time.Second})
	if got := r.plugin.terms(pod).limit; got != 5*time.Second {
		t.Errorf("with a policy: %s", got)
	}
}

// A pod has its answer before the scheduling framework gives up, however long a policy has it wait and
// however often it waits anew.
func TestWaitsEndBeforeTheFramework(t *testing.T) {
	for limit, want := range map[time.Duration]int{
		time.Millisecond: 4, 30 * time.Second: 4, 3 * time.Minute: 4, 4 * time.Minute: 3, 5 * time.Minute: 2, 8 * time.Minute: 1, 15*time.Minute - time.Second: 1,
	} {
		r := newRig(t, disk("data", ledger.AccessNode)...)
		pod := podWith("p", "data")
		r.apply(ledger.Policy{Name: "slow", Driver: driver, GrantTimeout: limit})
		terms := r.plugin.terms(pod)
		if terms.waits() != want {
			t.Errorf("with a grantTimeout of %s it waits %d times, not %d", limit, terms.waits(), want)
		}
		r.reserve(pod, "n1")
		status, timeout := r.plugin.Permit(t.Context(), nil, pod, "n1")
		if most := time.Duration(want) * limit; status.Code() != fwk.Wait || timeout > 15*time.Minute || timeout <= most && want > 1 {
			t.Errorf("with a grantTimeout of %s the framework gives up after %s, and it may wait %s (%v)", limit, timeout, most, status)
		}
	}
}

func TestReserveJudgesByTheNewestFacts(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	state, _, status := r.prefilter(pod)
	if !status.IsSuccess() {
		t.Fatal(status)
	}
	r.apply(factOf(boundTo(podWith("faster", "data"), "n2")))
	status = r.RunReservePluginsReserve(t.Context(), state, pod, "n1")
	if status.Code() != fwk.UnschedulableAndUnresolvable || !strings.Contains(status.Message(), "n2 holds it for pod shop/faster") {
		t.Errorf("Reserve after another pod took the volume: %v", status)
	}
	eventually(t, "the pod to be tried again", func() bool { return slices.Contains(r.queue.names(), "p") })
	if r.Snapshot().Ticket(ticketID(pod)) != nil {
		t.Error("a refused reservation counts")
	}
}
