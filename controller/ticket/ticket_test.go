// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/test/sample"
)

const driver = sample.Driver

var (
	now    = sample.Now
	facts  = sample.Ledger
	pod    = sample.Pod
	ticket = sample.Ticket
)

func TestMessagesAreBounded(t *testing.T) {
	v := arbiter.Verdict{}
	for range 100 {
		v.Reasons = append(v.Reasons, arbiter.Reason{Code: arbiter.ClaimMissing, Claim: strings.Repeat("ä", 20)})
	}
	c := condition(v1alpha1.TicketGranted, metav1.ConditionFalse, v, "", &v1alpha1.VolumeTicket{}, now)
	if len(c.Message) > maxMessage || strings.ToValidUTF8(c.Message, "?") != c.Message || c.Reason != string(arbiter.ClaimMissing) {
		t.Errorf("condition %+v", c)
	}
}

// A condition says of which generation it is.
func TestConditionsHaveTheirGeneration(t *testing.T) {
	object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		if c := condition(v1alpha1.TicketGranted, status, arbiter.Verdict{}, "", object, now); c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(now) {
			t.Errorf("condition %+v", c)
		}
	}
}

// writer records what is written, and puts it into the ledger.
type writer struct {
	mu     sync.Mutex
	ledger *ledger.Ledger
	unseen map[string]bool   // claims, with volumes of their names, that are there
	node   *ledger.NodeState // what a read of it shows
	// refuses says that the API server refuses all VolumeHolds.
	refuses bool
}

// holds is what the API server answers to the write of a VolumeHold.
func (w *writer) holds() flow.Result {
	if w.refuses {
		return flow.Refused
	}
	return flow.Done
}

func (w *writer) Snapshot() ledger.Snapshot { return w.ledger.Snapshot() }
func (w *writer) Apply(e ledger.Event)      { w.ledger.Apply(now, e) }

// put has the ledger see a claim.
func (w *writer) put(claim string) {
	w.ledger.Apply(now, ledger.PersistentVolume{Name: claim, Version: "1", Volume: ledger.VolumeID{Driver: driver, Handle: claim}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: claim}})
	w.ledger.Apply(now, ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: claim}, UID: claim, Version: "1", PersistentVolume: claim, Bound: true})
}

// read knows of the nodes and claims that the ledger has not seen.
func (w *writer) read(r flow.Request) flow.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := r.Key[strings.Index(r.Key, "/")+1:]
	switch {
	case r.Kind == flow.Nodes && w.node != nil && string(w.node.Name) == name:
		w.ledger.Apply(now, *w.node)
		return flow.Answer{Result: flow.Done, Facts: []ledger.Event{*w.node}}
	case !w.unseen[name]:
		return flow.Answer{Result: flow.NotFound}
	case r.Kind == flow.Nodes:
		node := ledger.NodeState{Name: ledger.NodeName(name), UID: name, Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
		w.ledger.Apply(now, node)
		return flow.Answer{Result: flow.Done, Facts: []ledger.Event{node}}
	}
	delete(w.unseen, name)
	w.put(name)
	return flow.Answer{Result: flow.Done, Facts: []ledger.Event{*w.ledger.Snapshot().Claim(ledger.ClaimKey{Namespace: "s", Name: name})}}
}

// sink is where the writes of a task end.
type sink interface {
	Snapshot() ledger.Snapshot
	Apply(ledger.Event)
	read(flow.Request) flow.Answer
	holds() flow.Result
	WriteTicketStatus(context.Context, *v1alpha1.VolumeTicket) error
}

func (w *writer) Carry(ctx context.Context, task flow.Task, status execute.Status) error {
	return carry(ctx, w, task, status)
}

// carry carries a task out as package execute does.
func carry(ctx context.Context, to sink, task flow.Task, status execute.Status) error {
	memory := flow.Memory{}
	task, move := memory.Next(task, to.Snapshot(), now)
	for {
		for _, e := range move.Tell {
			to.Apply(e)
		}
		if move.End == flow.Stale {
			return fmt.Errorf("%w: %s", flow.ErrStale, move.Why)
		} else if move.End == flow.Failed {
			return errors.New(move.Why)
		} else if move.End != flow.Going {
			return nil
		}
		answer := flow.Answer{Result: flow.Done}
		switch move.Send.Do {
		case flow.GetObject:
			answer = to.read(*move.Send)
		case flow.PutHold:
			answer.Result = to.holds()
		case flow.DecideTicket:
			if object, err := status(*move.Send); err != nil {
				answer.Result = flow.Unfit
			} else if object == nil {
				break
			} else if to.WriteTicketStatus(ctx, object) != nil {
				answer.Result = flow.Unfit
			}
		default: // succeeds, and shows nothing
		}
		task, move = memory.Answer(task, answer, to.Snapshot(), now)
	}
}

func (w *writer) Ticket(id ledger.TicketID) (*v1alpha1.VolumeTicket, bool) {
	return &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{
		Namespace: id.Namespace, Name: id.Name, ResourceVersion: w.ledger.Snapshot().Ticket(id).Version}}, true
}

func (w *writer) WriteTicketStatus(_ context.Context, t *v1alpha1.VolumeTicket) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fact := *w.ledger.Snapshot().Ticket(ledger.TicketID{Namespace: t.Namespace, Name: t.Name})
	fact.Version += "0"
	fact.Phase, fact.Reason = ledger.TicketPending, t.Status.Conditions[0].Reason
	if t.Status.Conditions[0].Status == metav1.ConditionTrue {
		fact.Phase = ledger.TicketGranted
	}
	w.ledger.Apply(now, fact)
	return nil
}

// The tickets of a node share its slots, whatever becomes of who ranks first:
// the slots that are there are given, once each.
func TestTicketsOfANodeShareItsSlots(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := &writer{ledger: facts(), unseen: map[string]bool{}}
		there := map[string]bool{"a": true}
		room := 2
		for i := range rapid.IntRange(1, 8).Draw(t, "tickets") {
			claim := fmt.Sprintf("c%d", i)
			switch rapid.IntRange(0, 3).Draw(t, "its claim is missing, not seen yet, seen, in use") {
			case 1:
				there[claim], w.unseen[claim] = true, true
			case 2:
				there[claim] = true
				w.put(claim)
			case 3:
				if room > 0 {
					room--
					w.put(claim)
					w.ledger.Apply(now, pod(fmt.Sprint("bound", i), "n1", claim))
					continue
				}
			}
			w.ledger.Apply(now, pod(fmt.Sprint("p", i), "", claim))
			k := ticket(fmt.Sprint("p", i), "n1", ledger.TypeManual, claim)
			k.Created = rapid.Int64Range(1, 3).Draw(t, "created")
			if rapid.Bool().Draw(t, "its writer names the claim's UID") {
				k.Volumes[0].ClaimUID = claim
			}
			if rapid.Bool().Draw(t, "it asks for two") {
				k.Volumes = append(k.Volumes, ledger.TicketVolume{Claim: "a"})
			}
			w.ledger.Apply(now, k)
		}
		w.decideAll(t)
		w.judge(t)
	})
}

// decideAll decides on the tickets of n1, anew whenever the facts were old.
func (w *writer) decideAll(t *rapid.T) {
	c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 + len(w.unseen) {
		if _, err = c.grantAt(context.Background(), "n1"); !errors.Is(err, flow.ErrStale) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// judge looks at what became of the tickets of n1.
func (w *writer) judge(t *rapid.T) {
	s := w.ledger.Snapshot()
	used := 0
	for v := range s.Volumes() {
		if place := v.NodeVolume("n1"); place != nil && slices.ContainsFunc(place.Users, func(u ledger.User) bool {
			return u.Pod != "" || s.Ticket(u.Ticket).Phase == ledger.TicketGranted
		}) {
			used++
		}
	}
	if used > 2 {
		t.Fatalf("%d slots are used of 2", used)
	}
	for k := range s.Tickets() {
		if k.Phase != ledger.TicketPending {
			continue
		}
		if k.Reason == "" {
			t.Fatalf("ticket %s is not decided on", k.ID)
		}
		// Nobody waits who would have a slot now.
		if d := flow.Rule(arbiter.Arbiter{}, s, k, now); d.Ruling == flow.Grant {
			t.Fatalf("ticket %s waits (%s), and there is room", k.ID, k.Reason)
		}
	}
}
