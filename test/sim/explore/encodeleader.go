// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// An equal encoding is not computed again, since it determines the decisions.
func (s *state) settle(room *scratch) {
	l, e := s.leader, &room.part
	e.reset()
	e.leader(s, l)
	k := e.hash()
	left, decided := room.left[k]
	if decided {
		l.queue, l.retry = left[0], left[1]
	} else {
		s.rest()
		if l.fault = l.audit(s.w.Now); l.fault == "" && room.left != nil {
			room.left[k] = [2]queue{l.queue, l.retry}
		}
	}
	copy(e.out[len(e.out)-queueBytes:], l.queues())
	l.code = &encoder{out: bytes.Clone(e.out), refs: slices.Clone(e.refs), shifts: slices.Clone(e.shifts)}
}

func (l *leader) queues() []byte {
	return []byte{l.queue.volumes, l.queue.nodes, l.queue.tickets, l.retry.volumes, l.retry.nodes, l.retry.tickets}
}

const queueBytes = 6

func (e *encoder) known(l *leader) {
	for _, r := range l.code.refs {
		e.refs = append(e.refs, newRef(r.at()+len(e.out), r.value()))
	}
	for _, r := range l.code.shifts {
		e.shifts = append(e.shifts, newRef(r.at()+len(e.out), r.value()))
	}
	e.out = append(e.out, l.code.out...)
}

// The queues come last.
func (e *encoder) leader(s *state, l *leader) {
	snapshot := l.ledger.Snapshot()
	for i := range s.config.Pods {
		p := snapshot.Pod(pod(i + 1))
		if e.bool(p != nil); p != nil {
			e.pod(*p)
		}
	}
	for i := range s.config.Asks {
		id := askID(i)
		t := snapshot.Ticket(id)
		if e.bool(t != nil); t != nil {
			e.ticket(*t)
		}
		e.uid(ticketObject(id), l.tickets[id])
		e.uid(ticketObject(id), l.ledger.Deleted(id))
	}
	for i := range l.nodes {
		e.node(l.nodes[i])
		if n := snapshot.Node(node(i + 1)); n != nil {
			e.nodeRecord(s, snapshot, n)
		}
	}
	for i := range s.config.Access {
		e.volume(s, snapshot, snapshot.Volume(volume(i+1)))
	}
	if s.config.Vanished > 0 {
		e.sources(s, snapshot)
	}
	e.byte(byte(len(l.wires)))
	for _, w := range l.wires {
		e.request(w.request)
		e.ops(l, w.ops)
	}
	e.ops(l, l.waiting)
	e.byte(l.queues()...)
}

func (e *encoder) nodeRecord(s *state, snapshot ledger.Snapshot, n *ledger.Node) {
	o := nodeObject(n.Name)
	e.version(o, n.Version)
	e.uid(o, n.UID)
	e.byte(byte(n.Ready))
	e.text(n.BootID)
	e.bool(n.OutOfService, n.SawFail, n.Driver(driver).Exhausted, n.Exists, n.Reporting, n.ReadySince == 0)
	e.bool(n.NotReady.IsZero(), n.Heard.IsZero(), n.OutOfServiceAt.IsZero(), n.RenewedAt.IsZero(), n.LeaseRead.IsZero(), n.UnreadSince.IsZero(), n.ReadAgain.IsZero(), n.Unread == 0)
	e.lease(n.Name, n.Renewed)
	e.fenced(n.Name, n.Fenced)
	for _, f := range n.FencedAt {
		e.bool(f.Void)
	}
	e.word(n.Word)
	e.bool(n.AskedAt.IsZero())
	e.look(n.Name, n.NextNumber())
	for i := range s.config.Access {
		if v := snapshot.Volume(volume(i + 1)); v != nil {
			for _, b := range v.OnNode(n.Name).SawUnknown() {
				e.text(b.BootID)
			}
		}
		e.text(n.LastBoot().BootID)
	}
}

func (e *encoder) sources(s *state, snapshot ledger.Snapshot) {
	for i := range s.config.Access {
		for _, again := range []bool{false, true} {
			claim := snapshot.Claim(ledger.ClaimKey{Namespace: namespace, Name: claimName(i+1, again)})
			e.bool(snapshot.PersistentVolume(pvName(i+1, again)) != nil, claim != nil, claim != nil && claim.Bound)
		}
	}
	for v := range snapshot.Volumes() {
		if !v.ID.IsReal() {
			e.text(v.ID.Handle)
			e.volume(s, snapshot, v)
		}
	}
}

func (e *encoder) volume(s *state, snapshot ledger.Snapshot, v *ledger.Volume) {
	e.bool(v != nil)
	if v == nil {
		return
	}
	e.byte(byte(v.Access))
	e.bool(v.Hold != nil)
	e.byte(byte(v.HoldUnanswered))
	if v.Hold != nil {
		e.hold(v.ID, *v.Hold)
	}
	e.version(holdObject(v.ID), v.Dropped())
	earlier, read := v.Earlier()
	e.force(earlier)
	e.bool(read.IsZero())
	for n := 1; n <= nodes; n++ {
		_, left := v.Left(node(n))
		e.bool(left)
	}
	e.byte(byte(len(v.OnNodes)))
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		_, idle := snapshot.Idle(p)
		e.text(string(p.Node))
		e.bool(p.Reported, p.InUse, p.Lapsed, p.SawLeave, p.Sent, p.Left, p.Held, p.ReportSent, p.UnreportSent, p.CreateFailed, idle)
		e.bool(p.Unlisted)
		if by := p.UnlistedBy(); by != nil {
			e.text(by.Name)
		}
		e.bool(p.Proof.Forced, p.Proof.Named, p.Proof.Unstaged, p.Proof.Again, snapshot.Vacant(p).IsZero())
		e.look(p.Node, int64(p.Proof.Look))
		e.byte(byte(p.Proof.Stage), byte(len(p.Users)))
		e.users(p.Users)
		a := p.Own()
		e.bool(a != nil)
		if a != nil {
			e.attachment(s, *a)
		}
	}
}

func (e *encoder) users(list []ledger.User) {
	names := make([]string, 0, len(list))
	for _, u := range list {
		names = append(names, u.Pod+"/"+u.Ticket.Name)
	}
	slices.Sort(names)
	for _, name := range names {
		e.text(name)
	}
}

func (e *encoder) ops(l *leader, list []op) {
	e.byte(byte(len(list)))
	for _, o := range list {
		e.text(o.key)
		e.bool(o.late != nil, o.waits)
		if o.late != nil {
			e.request(*o.late)
		}
		e.task(o.task)
	}
}

func (e *encoder) task(t protocol.Task) {
	e.step(t.Step)
	if t.Ticket != nil {
		e.ticket(*t.Ticket)
	}
	e.byte(byte(t.Sent.Kind), byte(t.Sent.Object), byte(len(t.Proofs)), byte(len(t.Listed)), byte(len(t.Read)))
	e.text(t.Sent.Key)
	e.bool(t.Announced, t.TookOver, t.Outlasted)
	e.byte(byte(t.Unanswered))
	e.bool(t.Known...)
	for _, r := range t.Proofs {
		e.byte(byte(r.Kind), byte(r.Object))
		e.text(r.Key)
	}
	if t.Sent.Kind == rules.ListPods { // in flight: the pods known to be bound
		for _, uid := range uids[1:] {
			p := t.Before.Pod(uid)
			e.bool(p != nil && p.Node != "")
		}
	}
	for _, p := range t.Listed {
		e.pod(p)
	}
	for _, r := range t.Read {
		e.byte(byte(r.Object))
		e.bool(r.All)
		e.text(r.Key)
	}
	if t.Commit.Kind != 0 {
		e.request(world.Sent(t.Commit, true))
	}
}

func (e *encoder) step(s rules.Step) {
	e.byte(byte(s.Kind))
	if s.Kind == 0 {
		return
	}
	e.text(s.Volume.Handle)
	e.text(string(s.Node))
	e.text(s.Rule)
	e.bool(s.Unknown, s.WhileReady, s.Vacant.IsZero())
	e.byte(byte(s.Limit))
	e.text(s.PV)
	e.transitions(podIndex(s.Volume.Handle), s.Transitions)
	e.note(s.Node, s.Note)
	e.text(s.UID[:min(2, len(s.UID))]) // a pod's UID; otherwise a UID's constant beginning
	if s.Attachment != "" {
		e.uid(attachmentObject(s.Attachment), s.UID)
		e.version(attachmentObject(s.Attachment), s.Version)
	}
	if s.NodeUID != "" {
		e.uid(nodeObject(s.Node), s.NodeUID)
	}
	if s.Rule != "" {
		e.version(nodeObject(s.Node), s.NodeVersion)
	}
	e.look(s.Node, s.Number)
	if s.Kind == rules.AskNode {
		e.version(theWord+object(nodeIndex(s.Node)), s.Word.Version)
		e.look(s.Node, max(s.Word.Look, s.Word.Looked))
	}
	if s.Kind == rules.WriteHold {
		e.version(holdObject(s.Volume), s.Expect)
		hold := s.Hold
		hold.Version = ""
		e.hold(s.Volume, hold)
	}
}

func (e *encoder) requests(list []*world.Request) {
	e.byte(byte(len(list)))
	for _, r := range sortedRequests(list) {
		e.request(*r)
	}
}

func sortedRequests(list []*world.Request) []*world.Request {
	if len(list) < 2 {
		return list
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *world.Request) int { return strings.Compare(requestName(a), requestName(b)) })
	return sorted
}

func (e *encoder) request(r world.Request) {
	e.byte(byte(r.Do))
	switch r.Do {
	case world.PutHold, world.DropHold:
		e.version(holdObject(r.Volume), r.Version)
		if h, ok := r.Fact.(ledger.HoldSeen); ok {
			h.Hold.Version = ""
			e.hold(r.Volume, h.Hold)
		}
	case world.AskNode:
		e.text(string(r.Node))
		e.version(theWord+object(nodeIndex(r.Node)), r.Version)
		e.look(r.Node, r.Look)
	case world.CreateAttachment:
		a, _ := r.Fact.(ledger.Attachment)
		e.transitions(volumeAt(e.named(a.Name)), a.Transitions)
		e.text(a.PersistentVolume)
		e.note(a.Node, a.Note)
		e.bool(r.Stamp)
	case world.ConfirmAttachment, world.MarkWanted:
		e.uid(e.named(r.Key), r.UID)
	case world.DropAttachment:
		o := e.named(r.Key)
		if r.UID != "" {
			e.uid(o, r.UID)
		}
		if r.Version != "" {
			e.version(o, r.Version)
		}
	case world.PatchNode:
		e.patch(r)
	case world.DecideTicket, world.DropTicket:
		o := ticketObject(world.TicketKey(r.Key))
		e.byte(byte(o), byte(r.Phase), byte(r.Epoch))
		status, written := r.Fact.(ledger.Ticket)
		e.bool(r.EpochOnly, written, status.SatisfiedSince != 0, r.YieldingSince != 0)
		e.text(r.Reason)
		e.volumes(r.Granted)
		e.version(o, r.Version)
		e.uid(o, r.UID)
	default:
		e.byte(byte(r.Kind))
		e.text(r.Key)
		e.text(r.UID)
		e.text(string(r.Node))
	}
}

func (e *encoder) named(attachment string) object {
	o := attachmentObject(attachment)
	e.byte(byte(o))
	return o
}

func (e *encoder) patch(r world.Request) {
	e.text(string(r.Node))
	e.uid(nodeObject(r.Node), r.Read.UID)
	e.volumes(r.Read.Reported)
	if e.bool(r.Patch.InUse); r.Patch.InUse {
		e.volumes(r.Read.InUse)
	}
	e.version(nodeObject(r.Node), r.Patch.Version)
	e.byte(byte(len(r.Patch.Changes)))
	for _, c := range r.Patch.Changes {
		e.bool(c.Add)
		e.text(c.Volume.Handle)
		e.text(c.Rule)
		e.bool(c.WhileReady)
	}
}
