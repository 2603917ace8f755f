// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// TakeOver lists the tasks of a new leader before its first decision; none: it may decide. They may run in
// any order and in parallel; call it again after their end.
//
// It begins when no request of the last leader can be in flight, and the first list of each kind is taken
// in. Caches may be behind: it lists again the tickets, VolumeAttachments, VolumeHolds (volumes taken by
// force) and PersistentVolumes (a new PersistentVolume may make a shared disk exclusive). If there are
// volumes without VolumeAttachments, the Nodes are listed too: only volumesAttached says where they are
// attached. A Node that seems to differ from a VolumeHold is read.
func (m *Memory) TakeOver(s ledger.Snapshot) []Task {
	var tasks []Task
	for _, k := range []Object{Tickets, Attachments, Holds, PersistentVolumes, Nodes} {
		if !m.listed[k] && (k != Nodes || withoutAttachments(s)) {
			tasks = append(tasks, Task{Commit: Request{Kind: rules.ListObjects, Object: k}})
		}
	}
	if len(tasks) == 0 && !m.tookOver {
		tasks = m.nodesBefore(s)
	}
	if len(tasks) == 0 && !m.tookOver {
		tasks = append(tasks, Task{TookOver: true})
	}
	return tasks
}

// nodesBefore are the reads of Nodes with another machine or boot than a volume's record names: the
// holder's Node, or a Node that may still have the volume mounted. The cache may be behind.
func (m *Memory) nodesBefore(s ledger.Snapshot) []Task {
	var tasks []Task
	var asked set[ledger.NodeName]
	for v := range s.Volumes() {
		for name := range s.NodesOfBefore(v) {
			if !m.current[name] && !asked[name] {
				asked.add(name)
				tasks = append(tasks, Task{Commit: read(Nodes, string(name)), Was: s.Node(name)})
			}
		}
	}
	return tasks
}

func withoutAttachments(s ledger.Snapshot) bool {
	for v := range s.Volumes() {
		if v.ID.NoAttach() {
			return true
		}
	}
	return false
}

// tookOverNow tells the ledger that this process begins to lead.
func (m *Memory) tookOverNow(t Task) (Task, Move) {
	m.tookOver = true
	return t.end(Finished, "", ledger.TookOver{Epoch: m.Epoch})
}

// Doubts is told to the ledger when a term with decisions on tickets begins, after all were listed. An
// older leader's grant of a pending ticket may be in flight: the ticket keeps its volumes and slots from
// others, and is not decided on, until Renew.
func Doubts(s ledger.Snapshot) []ledger.Event {
	var events []ledger.Event
	for t := range s.Tickets() {
		if t.Phase == ledger.TicketPending {
			events = append(events, ledger.TicketInDoubt{ID: t.ID, UID: t.UID})
		}
	}
	return events
}

// listAnswered follows a list of a take-over, already taken in.
func (m *Memory) listAnswered(t Task, a Answer) (Task, Move) {
	if a.Result != Done {
		return t.fail(a)
	}
	m.listed.add(t.Sent.Object)
	return t.end(Finished, "")
}

// nodeAnswered: the watch may report a deleted Node later, when its unknown volumes must be known, or has
// already reported the next Node.
func (m *Memory) nodeAnswered(t Task, a Answer, s ledger.Snapshot) (Task, Move) {
	if a.Result != Done && a.Result != NotFound {
		return t.fail(a)
	}
	name := ledger.NodeName(t.Sent.Key)
	m.current.add(name)
	if now := s.Node(name); a.Result == NotFound && t.Was != nil && now != nil && now.UID == t.Was.UID {
		return t.end(Finished, "", ledger.NodeGone{Name: name})
	}
	return t.end(Finished, "")
}

// Renew is the task that takes over a ticket in doubt: it writes the term's epoch, so that an older
// leader's grant in flight fails on the version. If the write fails, the ticket stays in doubt and holds up
// claimants.
func Renew(t *ledger.Ticket) Task {
	return Task{Ticket: t, Commit: Request{
		Kind: rules.DecideTicket, Key: t.ID.String(), UID: t.UID, Version: t.Version,
		Phase: t.Phase, EpochOnly: true,
		Epoch: t.Epoch + 1,
	}}
}

// Write is the task that writes a ticket's status by the driver (Satisfied, or its age), at exactly its
// version.
func Write(t *ledger.Ticket) Task {
	return Task{Ticket: t, Commit: decide(t, t.Phase, rules.Verdict{})}
}
