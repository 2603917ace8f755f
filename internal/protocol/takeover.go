// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// TakeOver lists the tasks of a new leader before its first decision; none: it may decide. The tasks of one
// call may run in any order and in parallel; call it again after their end.
//
// It begins when no request of the last leader can be in flight any more, and the first list of each kind
// is taken in. It first lists again the tickets, VolumeAttachments, VolumeHolds and PersistentVolumes:
// caches may be behind. The last grants and attachments stand against this leader's attachments, and the
// holds say what the last leader took by force. A PersistentVolume that the last leader saw may
// make a disk exclusive that an older PersistentVolume shares. If there are volumes without
// VolumeAttachments, the Nodes are listed too: only volumesAttached says where the last leader attached
// them. A Node that seems to differ from a VolumeHold is read: the cache may be behind.
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

// nodesBefore are the tasks that read the Nodes with another machine or boot than a volume's record names,
// as far as this process knows: the holder's Node, or a Node that may still have the volume mounted. Its cache
// may be behind.
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

// Doubts is told to the ledger when a term with decisions on tickets begins and all of them were listed:
// each pending ticket is in doubt, since an older leader's grant may still be in flight. It keeps its
// volumes and slots from others, and is not decided on, until Renew has written the term's epoch into it.
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

// nodeAnswered follows the read of a Node in a take-over, already taken in. The watch may report a deleted
// Node later, and its unknown volumes must be known by then. It may also have reported the next Node since.
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

// Renew is the task that takes over a ticket in doubt: it writes the term's epoch into it, so that an older
// leader's grant in flight fails on the ticket's version. A ticket that can't be written stays in doubt: it
// holds up claimants of its slots, and of its volume if they could not be granted it beside this ticket.
func Renew(t *ledger.Ticket) Task {
	return Task{Ticket: t, Commit: Request{
		Kind: rules.DecideTicket, Key: t.ID.String(), UID: t.UID, Version: t.Version,
		Phase: t.Phase, EpochOnly: true,
		Epoch: t.Epoch + 1,
	}}
}

// Write is the task that writes the driver's own status of a ticket (Satisfied, or its age), at exactly its
// version.
func Write(t *ledger.Ticket) Task {
	return Task{Ticket: t, Commit: decide(t, t.Phase, rules.Verdict{})}
}
