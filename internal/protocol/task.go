// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Task is work in progress: a plan's step, a ticket's answer or end, or a part of a take-over. It is a
// value, whose fields only encoders and printers read.
type Task struct {
	// Step is a plan's step; its Do is 0 if the task is about Ticket, or a read of a take-over.
	Step rules.Step
	// Ticket is the decided ticket. Read only.
	Ticket *ledger.Ticket
	// Cause is why Ticket ends or moves because of its node. The read in Proofs must still show it.
	Cause rules.EndCause
	// Was is the earlier known Node that a take-over reads. Read only.
	Was *ledger.Node
	// Proofs are reads before Commit, in order. Each must find nothing, or a Node in the state of Cause.
	Proofs []Request
	Commit Request
	// TookOver has the ledger know that this process begins to lead (ledger.TookOver).
	TookOver bool

	// Sent is the request in flight, or the last answered.
	Sent Request
	// Announced: the ledger was told of a creation (ledger.AttachSent), or of a detaching removal from
	// volumesAttached (ledger.UnreportSent).
	Announced bool
	// Before has the facts at a ListPods in flight. Listed are its unfinished pods, Known the pods among
	// them known to be bound before, and Read the reads of their claims since.
	Before ledger.Snapshot
	Listed []ledger.Pod
	Known  []bool
	Read   []ReadOf
	// Until is the end of a step with Within.
	Until time.Time
	// Outlasted: an unanswered grant or write of a hold can have no effect any more.
	Outlasted bool
	// Unanswered is the hold's unanswered writes when this task began to outlast them.
	Unanswered uint16
}

// Do is the task for a plan's step.
func Do(step rules.Step) Task { return Task{Step: step} }

// End is the end of a task.
type End uint8

// The ends of a task.
const (
	// Going: it has not ended.
	Going End = iota
	// Finished: the ledger knows its effect.
	Finished
	// Stale: the decided facts have changed. Decide anew without a pause: the ledger knows the new facts,
	// or will in a moment.
	Stale
	// Failed: decide anew after a pause.
	Failed
)

func (e End) String() string { return [...]string{"going", "finished", "stale", "failed"}[e] }

// Move is a driver's next action for a task. First the ledger takes Tell in. Then Send is a request, or
// Wait a time, or End the task's end. After Wait, or with none of them, call Next.
type Move struct {
	Tell []ledger.Event
	Send *Request
	Wait time.Time
	End  End
	// Why says why the task ended, if the answer doesn't.
	Why string
}

// Memory is one process's in one term of leadership; a new term needs a new one. Its methods are serial.
type Memory struct {
	// Epoch is the term's number; it rises from leader to leader.
	Epoch int64
	// Outlast is how long a request may have its effect after its sender gave it up: the timeout given to
	// the API server, from the request's arrival, and a margin.
	Outlast time.Duration

	// confirmed are UIDs as in Confirmed. An older process's DELETE in flight fails on their version.
	confirmed set[string]
	listed    set[Object]          // by the take-over
	current   set[ledger.NodeName] // read by the take-over
	tookOver  bool
}

// Clone returns an independent copy.
func (m *Memory) Clone() *Memory {
	c := *m
	c.confirmed, c.listed, c.current = m.confirmed.clone(), m.listed.clone(), m.current.clone()
	return &c
}

// Confirmed says whether this process created or last wrote to a VolumeAttachment, by its UID, without a
// DELETE since.
func (m *Memory) Confirmed(uid string) bool { return m.confirmed[uid] }

// Prune forgets VolumeAttachments that are gone.
func (m *Memory) Prune(s ledger.Snapshot) {
	exists := set[string]{}
	for v := range s.Volumes() {
		for i := range v.OnNodes {
			for _, a := range v.OnNodes[i].Attachments() {
				if m.confirmed[a.UID] {
					exists.add(a.UID)
				}
			}
		}
	}
	m.confirmed = exists
}

// Next says how a task begins, and how it continues after a Move without a request.
func (m *Memory) Next(t Task, s ledger.Snapshot, now time.Time) (Task, Move) {
	switch t.Step.Kind {
	case 0:
		return m.advance(t, s)
	case rules.WriteHold:
		return beginWriteHold(t)
	case rules.DeleteHold:
		return beginDeleteHold(t)
	case rules.CreateAttachment:
		return beginCreate(t, s)
	case rules.AskNode:
		return t.send(askNode(t.Step))
	case rules.FindAttachment:
		return t.send(read(Attachments, t.Step.Attachment))
	case rules.Report:
		return m.beginReport(t, s)
	case rules.MarkWanted:
		return t.send(Request{Kind: rules.MarkWanted, Key: t.Step.Attachment, UID: t.Step.UID, Volume: t.Step.Volume, Node: t.Step.Node, Who: t.Step.Who})
	case rules.RetryAttach:
		return t.confirm()
	case rules.ProveAbsent, rules.RemovePod:
		return t.send(read(Nodes, string(t.Step.Node)))
	case rules.Unreport:
		return beginUnreport(t, s, now)
	case rules.ConfirmUnwanted:
		return t.listPods(s)
	case rules.DeleteAttachment:
		return m.beginDelete(t, s, now)
	case rules.GetObject, rules.ListObjects, rules.ListPods, rules.ConfirmAttachment, rules.PatchNode, rules.DecideTicket, rules.DeleteTicket, rules.Kinds:
		// No step has these.
	}
	return t.end(Failed, fmt.Sprintf("step %d is not known", t.Step.Kind))
}

// Answer says what follows from the answer to the request in flight. Its objects are in s.
func (m *Memory) Answer(t Task, a Answer, s ledger.Snapshot, now time.Time) (Task, Move) {
	if a.Result == 0 || t.Sent.Kind == 0 {
		return t.end(Failed, "an answer without a result, or to no request")
	}
	switch t.Step.Kind {
	case 0:
		return m.ticketAnswered(t, a, s, now)
	case rules.WriteHold, rules.DeleteHold:
		return m.holdAnswered(t, a, s, now)
	case rules.CreateAttachment, rules.FindAttachment:
		return m.createAnswered(t, a, now)
	case rules.Report, rules.Unreport:
		return m.reportAnswered(t, a, s, now)
	case rules.MarkWanted, rules.RetryAttach:
		return markAnswered(t, a)
	case rules.AskNode:
		return askAnswered(t, a)
	case rules.ProveAbsent:
		return absentAnswered(t, a)
	case rules.RemovePod:
		return removeAnswered(t, a)
	case rules.ConfirmUnwanted:
		return podsAnswered(t, a, s)
	case rules.DeleteAttachment:
		return m.deleteAnswered(t, a, s)
	case rules.GetObject, rules.ListObjects, rules.ListPods, rules.ConfirmAttachment, rules.PatchNode, rules.DecideTicket, rules.DeleteTicket, rules.Kinds:
		// No step has these.
	}
	return t.end(Failed, fmt.Sprintf("step %d is not known", t.Step.Kind))
}

func (t Task) send(r Request) (Task, Move) {
	if r.Until.IsZero() {
		r.Until = t.Until
	}
	t.Sent = r
	return t, Move{Send: &r}
}

func (t Task) end(e End, why string, tell ...ledger.Event) (Task, Move) {
	if t.grants() {
		tell = append(tell, ledger.GrantResolved{ID: t.Ticket.ID, UID: t.Ticket.UID, Version: t.Ticket.Version})
	}
	if t.detaches() {
		tell = append(tell, ledger.UnreportResolved{Volume: t.Step.Volume, Node: t.Step.Node})
	}
	return t, Move{Tell: tell, End: e, Why: why}
}

// outlast waits until an unanswered request can have no effect any more, and reads can tell.
func (m *Memory) outlast(t Task, now time.Time) (Task, Move) {
	return t, Move{Wait: now.Add(m.Outlast)}
}

func read(k Object, key string) Request { return Request{Kind: rules.GetObject, Object: k, Key: key} }

// reread ends a task with a refused write, after a read of the object.
func (t Task) reread(a Answer) (Task, Move) {
	if a.Result == Done || a.Result == NotFound {
		return t.end(Stale, fmt.Sprintf("%s %s is not as it was", t.Sent.Object, t.Sent.Key))
	}
	return t.fail(a)
}

// fail ends a task with the failure of its last request.
func (t Task) fail(a Answer, tell ...ledger.Event) (Task, Move) {
	if a.Result == Unfit {
		return t.end(Stale, "the facts have changed since it was decided", tell...)
	}
	return t.end(Failed, fmt.Sprintf("%s %s: %s", t.Sent.Kind, t.Sent.Key, a.Result), tell...)
}

// set is a set; its zero value is empty.
type set[K comparable] map[K]bool

func (s *set[K]) add(k K) {
	if *s == nil {
		*s = set[K]{}
	}
	(*s)[k] = true
}

func (s set[K]) clone() set[K] {
	if len(s) == 0 {
		return nil
	}
	c := make(set[K], len(s))
	for k := range s {
		c[k] = true
	}
	return c
}
