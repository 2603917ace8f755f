// SPDX-License-Identifier: Apache-2.0

// Package ticketwriter writes tickets in tests into a ledger, without an API server.
package ticketwriter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/sample"
)

type Writer struct {
	mu     sync.Mutex
	Ledger *ledger.Ledger
	Unseen map[string]bool   // claims, with volumes of their names, that are there
	Node   *ledger.NodeState // what a read of it shows
}

func (w *Writer) Snapshot() ledger.Snapshot { return w.Ledger.Snapshot() }

func (w *Writer) Apply(e ledger.Event) { w.Ledger.Apply(sample.Now, e) }

func (w *Writer) Put(claim string) {
	w.Ledger.Apply(sample.Now, ledger.PersistentVolume{Name: claim, Version: "1", Volume: ledger.VolumeID{Driver: sample.Driver, Handle: claim}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: claim}})
	w.Ledger.Apply(sample.Now, ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: claim}, UID: claim, Version: "1", PersistentVolume: claim, Bound: true})
}

func (w *Writer) Read(r protocol.Request) protocol.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := r.Key[strings.Index(r.Key, "/")+1:]
	switch {
	case r.Object == protocol.Nodes && w.Node != nil && string(w.Node.Name) == name:
		w.Ledger.Apply(sample.Now, *w.Node)
		return protocol.Answer{Result: protocol.Done, Facts: []ledger.Event{*w.Node}}
	case !w.Unseen[name]:
		return protocol.Answer{Result: protocol.NotFound}
	case r.Object == protocol.Nodes:
		node := ledger.NodeState{Name: ledger.NodeName(name), UID: name, Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
		w.Ledger.Apply(sample.Now, node)
		return protocol.Answer{Result: protocol.Done, Facts: []ledger.Event{node}}
	}
	delete(w.Unseen, name)
	w.Put(name)
	return protocol.Answer{Result: protocol.Done, Facts: []ledger.Event{*w.Ledger.Snapshot().Claim(ledger.ClaimKey{Namespace: "s", Name: name})}}
}

type Sink interface {
	Snapshot() ledger.Snapshot
	Apply(ledger.Event)
	Read(protocol.Request) protocol.Answer
	WriteTicketStatus(context.Context, *v1alpha1.VolumeTicket) error
}

func (w *Writer) Carry(ctx context.Context, task protocol.Task, status write.Status) error {
	return Carry(ctx, w, task, status)
}

func Carry(ctx context.Context, to Sink, task protocol.Task, status write.Status) error {
	memory := protocol.Memory{}
	task, move := memory.Next(task, to.Snapshot(), sample.Now)
	for {
		for _, e := range move.Tell {
			to.Apply(e)
		}
		if move.End == protocol.Stale {
			return fmt.Errorf("%w: %s", protocol.ErrStale, move.Why)
		} else if move.End == protocol.Failed {
			return errors.New(move.Why)
		} else if move.End != protocol.Going {
			return nil
		}
		answer := protocol.Answer{Result: protocol.Done}
		switch move.Send.Kind {
		case rules.GetObject:
			answer = to.Read(*move.Send)
		case rules.DecideTicket:
			if object, err := status(*move.Send); err != nil {
				answer.Result = protocol.Unfit
			} else if object == nil {
				break
			} else if to.WriteTicketStatus(ctx, object) != nil {
				answer.Result = protocol.Unfit
			}
		default: // succeeds, and shows nothing
		}
		task, move = memory.Answer(task, answer, to.Snapshot(), sample.Now)
	}
}

func (w *Writer) Ticket(id ledger.TicketID) (*v1alpha1.VolumeTicket, bool) {
	return &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{
		Namespace: id.Namespace, Name: id.Name, ResourceVersion: w.Ledger.Snapshot().Ticket(id).Version}}, true
}

func (w *Writer) WriteTicketStatus(_ context.Context, t *v1alpha1.VolumeTicket) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	fact := *w.Ledger.Snapshot().Ticket(ledger.TicketID{Namespace: t.Namespace, Name: t.Name})
	fact.Version += "0"
	fact.Phase, fact.Reason = ledger.TicketPending, t.Status.Conditions[0].Reason
	if t.Status.Conditions[0].Status == metav1.ConditionTrue {
		fact.Phase = ledger.TicketGranted
	}
	w.Ledger.Apply(sample.Now, fact)
	return nil
}
