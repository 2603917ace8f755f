// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// known is a ledger, and the tickets as objects.
type known struct {
	ledger *ledger.Ledger

	mu      sync.Mutex
	tickets map[ledger.TicketID]*v1alpha1.VolumeTicket
}

func (k *known) Ledger() *ledger.Ledger    { return k.ledger }
func (k *known) Snapshot() ledger.Snapshot { return k.ledger.Snapshot() }
func (k *known) Saw(o runtime.Object) {
	if t, ok := o.(*v1alpha1.VolumeTicket); ok {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.tickets[ledger.TicketID{Namespace: t.Namespace, Name: t.Name}] = t
		k.ledger.Apply(time.Now(), translate.Ticket(t))
	}
}

func (k *known) Ticket(id ledger.TicketID) (*v1alpha1.VolumeTicket, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t, ok := k.tickets[id]
	return t, ok
}

func (*known) ConfirmPod(context.Context, string, string, string) (*corev1.Pod, error) {
	return nil, nil
}

// written is a reservation whose ticket is written, with a condition Granted if the controller
// has said something.
func written(uid string, granted metav1.ConditionStatus, message string) *Reservation {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: uid, UID: types.UID(uid)}}
	r := New(pod, ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: uid}, Type: ledger.TypePod, Node: "n1", Pod: uid}, false)
	ticket := Object(r.Ticket)
	ticket.UID, ticket.ResourceVersion = types.UID("ticket-"+uid), "7"
	if granted != "" {
		ticket.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: granted, Reason: "NotGranted", Message: message}}
	}
	r.attempt = &attempt{done: make(chan struct{}), ticket: ticket}
	close(r.attempt.done)
	return r
}

// A ticket of which the controller has said nothing waits on while it decides on others, and no
// longer than so many times its limit. One that it has spoken of, or beside which nothing is
// decided, ends in time.
func TestWaitWhileOthersAreDecided(t *testing.T) {
	const silent = "moorage-controller did not answer within "
	tests := map[string]struct {
		said    string
		others  []time.Duration // when others are decided
		times   int
		takes   time.Duration
		message string
	}{
		"nobody is decided":         {"", nil, 4, time.Second, silent + "1s"},
		"one is, in time":           {"", []time.Duration{900 * time.Millisecond}, 4, 2 * time.Second, silent + "2s, though it decided on others; its log"},
		"one was before":            {"", []time.Duration{0}, 4, time.Second, silent + "1s; does it run"},
		"others all the time":       {"", []time.Duration{500 * time.Millisecond, 1500 * time.Millisecond, 2500 * time.Millisecond, 3500 * time.Millisecond}, 4, 4 * time.Second, silent + "4s"},
		"whoever can't wait":        {"", []time.Duration{500 * time.Millisecond}, 1, time.Second, silent + "1s"},
		"the controller has spoken": {"no slot", []time.Duration{500 * time.Millisecond}, 4, time.Second, "not granted within 1s"},
	}
	for name, test := range tests {
		synctest.Test(t, func(t *testing.T) {
			b := &Book{facts: &known{ledger: ledger.New(), tickets: map[ledger.TicketID]*v1alpha1.VolumeTicket{}}}
			decideAnother := func() {
				if outcome, _ := b.WaitForGrant(t.Context(), written("another", metav1.ConditionTrue, ""), time.Second, 1); outcome.Message != "" {
					t.Errorf("%s: the other one: %+v", name, outcome)
				}
			}
			for _, in := range test.others {
				if in == 0 {
					decideAnother()
				} else {
					time.AfterFunc(in, decideAnother)
				}
			}
			began, granted := time.Now(), metav1.ConditionStatus("")
			if test.said != "" {
				granted = metav1.ConditionUnknown
			}
			outcome, ended := b.WaitForGrant(t.Context(), written("p", granted, test.said), time.Second, test.times)
			if took := time.Since(began); took != test.takes || ended || len(outcome.Message) < len(test.message) || outcome.Message[:len(test.message)] != test.message {
				t.Errorf("%s: after %s %q, want after %s %q", name, took, outcome.Message, test.takes, test.message)
			}
			if outcome.Silent != (test.said == "") {
				t.Errorf("%s: silent %t", name, outcome.Silent)
			}
		})
	}
}

// A ticket that is deleted before anything else is heard of it is not waited for, nor is the controller
// taken for silent.
func TestWaitEndsWithATicketDeletedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		facts := &known{ledger: ledger.New(), tickets: map[ledger.TicketID]*v1alpha1.VolumeTicket{}}
		b, r := &Book{facts: facts}, written("p", "", "")
		time.AfterFunc(time.Millisecond, func() {
			facts.ledger.Apply(time.Now(), ledger.TicketGone{ID: r.Ticket.ID})
			r.signal()
		})
		outcome, ended := b.WaitForGrant(t.Context(), r, time.Second, 1)
		if ended || outcome.Silent || outcome.Message != "the reservation was deleted, and will be tried again" {
			t.Errorf("%+v, ended %t", outcome, ended)
		}
	})
}
