// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Task is work in progress: a step of a plan, an answer to a ticket, the end of a ticket, or a part of a
// take-over. It is a value. Do, Decide, Interruption, Ending, Renew and Memory.TakeOver make tasks; only
// encoders and printers read their fields.
type Task struct {
	// Step is the step of a plan; its Do is 0 if the task is about Ticket, or a read of a take-over.
	Step rules.Step
	// Ticket is the decided ticket. Read only.
	Ticket *ledger.Ticket
	// Cause is why Ticket ends or moves because of its node. The read in Proofs must still show it.
	Cause rules.EndCause
	// Was is the Node that a take-over reads, as it was known before. Read only.
	Was *ledger.Node
	// Proofs are reads that must find nothing, or a Node in the state of Cause, before Commit and in this
	// order. Done entries leave the list.
	Proofs []Request
	Commit Request
	// TookOver has the ledger know that this process begins to lead (ledger.TookOver).
	TookOver bool

	// Sent is the request in flight, or the last that was answered.
	Sent Request
	// Announced says that the ledger was told of a creation (ledger.AttachSent), or of a removal from volumesAttached
	// that detaches (ledger.UnreportSent).
	Announced bool
	// Before has the facts at the time of a ListPods in flight. Listed are the unfinished pods in the last
	// list, Known the pods among them that were known to be bound before, and Read the reads of their
	// claims since.
	Before ledger.Snapshot
	Listed []ledger.Pod
	Known  []bool
	Read   []ReadOf
	// Until is when a step with Within must be over.
	Until time.Time
	// Outlasted says that an unanswered grant or write of a hold can have no effect any more.
	Outlasted bool
	// Unanswered is the number of unanswered writes of the hold when this task began to outlast them.
	Unanswered uint16
}

// Do is the task for a plan's step.
func Do(step rules.Step) Task { return Task{Step: step} }

// End is how a task ended.
type End uint8

// The ends of a task.
const (
	// Going: it has not ended.
	Going End = iota
	// Finished: its effect is known to the ledger.
	Finished
	// Stale: the decided facts have changed, and the new facts are known to the ledger, or will be in a
	// moment. Decide anew, without a pause.
	Stale
	// Failed: decide anew after a pause.
	Failed
)

func (e End) String() string { return [...]string{"going", "finished", "stale", "failed"}[e] }

// Move is a driver's next action for a task. First the ledger takes Tell in. Then at most one of the others
// is set: Send is a request to send; Wait is a time to wait; End says that the task is over. If none is
// set, and after the wait, the driver calls Next.
type Move struct {
	Tell []ledger.Event
	Send *Request
	Wait time.Time
	End  End
	// Why says in words why the task ended, if the answer alone doesn't.
	Why string
}

// Memory is one process's memory in one term of leadership. A new term begins with a new one. Its methods
// are serial.
type Memory struct {
	// Epoch is the term's number; it rises from leader to leader.
	Epoch int64
	// Outlast is how long a request may still have its effect after its sender gave it up: the timeout
	// given to the API server, which begins when the request arrives, and a margin.
	Outlast time.Duration

	// confirmed are the UIDs of the VolumeAttachments that this process created or last wrote to, without a
	// DELETE since. An older process's DELETE in flight names an older version of them, and fails.
	confirmed set[string]
	listed    set[Object]          // by the take-over
	current   set[ledger.NodeName] // Nodes that the take-over has read
	tookOver  bool
}

// Clone returns an independent copy of m.
func (m *Memory) Clone() *Memory {
	c := *m
	c.confirmed, c.listed, c.current = m.confirmed.clone(), m.listed.clone(), m.current.clone()
	return &c
}

// Confirmed says whether this process created or last wrote to the VolumeAttachment of a UID, without a
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

// outlast waits until an unanswered request can have no effect any more. Then its possible effects can be
// read.
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
