// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Waiter is a pod without a node that Fit has refused.
type Waiter struct {
	Request
	// Nodes are where the pod waits for slots. For exclusive volumes it waits at any node.
	Nodes map[ledger.NodeName]bool
}

// Line holds all pending tickets and waiting pods in the order of CompareRequests, for decisions on the
// same facts. A ticket gets nothing that an earlier waiter could use. Pods get nothing: their share is kept
// from later tickets. Not safe for parallel use.
type Line struct {
	arbiter  Arbiter
	snapshot ledger.Snapshot
	now      time.Time
	pods     []Waiter
	wanting  map[ledger.VolumeID][]*Waiter // the pods that want a volume, in the order of their rank
	queues   map[ledger.NodeName]*Queue
	kept     map[string]bool
}

// Line returns the line of the pending tickets and these pods.
func (a Arbiter) Line(s ledger.Snapshot, pods []Waiter, now time.Time) *Line {
	l := &Line{arbiter: a, snapshot: s, now: now, pods: slices.Clone(pods), queues: map[ledger.NodeName]*Queue{}, kept: map[string]bool{}}
	slices.SortFunc(l.pods, func(a, b Waiter) int { return CompareRequests(a.Request, b.Request) })
	l.wanting = make(map[ledger.VolumeID][]*Waiter, len(l.pods))
	for i := range l.pods {
		for _, need := range l.pods[i].Needs {
			l.wanting[need.Volume] = append(l.wanting[need.Volume], &l.pods[i])
		}
	}
	return l
}

// At returns a node's pending tickets.
func (l *Line) At(n ledger.NodeName) *Queue {
	q := l.queues[n]
	if q == nil {
		q = l.queue(n)
		l.queues[n] = q
	}
	return q
}

// Kept says whether the decisions so far have kept something free for a pod, by UID.
func (l *Line) Kept(uid string) bool { return l.kept[uid] }

// first returns the earlier waiter, a pod or a ticket, that could use one of the ticket's volumes in its
// place.
func (q *Queue) first(w evaluation) Verdict {
	var reasons []Reason
	for _, need := range w.request.Needs {
		v := q.snapshot.Volume(need.Volume)
		if need.Volume.IsZero() || !q.snapshot.AttachRequired(need.Volume.Driver) {
			continue
		}
		// A live migration has the volume beside others, but not beside a ticket that keeps it detached.
		beside := v != nil && (w.migration(v) || w.target(v))
		exclusive := exclusive(access(q.snapshot, v, need.Access)) && !beside
		if exclusive || q.node == ledger.Detached {
			reasons = append(reasons, q.keptForPods(w.request, need)...)
		}
		if v != nil && len(reasons) == 0 {
			reasons = append(reasons, q.firstElsewhereOf(w, v, need, exclusive)...)
		}
	}
	return refuse(reasons).SeenFrom(w.request.Who.Namespace)
}

// keptForPods names the first pod. The volume is kept for all at the same time, so that their minutes don't
// add up.
func (q *Queue) keptForPods(r Request, need Need) []Reason {
	var first []Reason
	for _, pod := range q.line.wanting[need.Volume] {
		if CompareRequests(pod.Request, r) > 0 {
			break
		}
		q.line.kept[pod.Pod] = true
		if first == nil {
			first = []Reason{{Code: Outranked, Volume: need.Volume, Claim: need.Name, Who: pod.Who}}
		}
	}
	return first
}

// firstElsewhereOf names an earlier ticket that gets a volume at another node, or here in its place. Here
// evaluation.contends counts a ticket that was not told yet.
func (q *Queue) firstElsewhereOf(w evaluation, v *ledger.Volume, need Need, exclusive bool) []Reason {
	var before []Request
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		elsewhere := p.Node != q.node && (exclusive || p.Node == ledger.Detached || q.node == ledger.Detached)
		onePod := p.Node == q.node && access(q.snapshot, v, need.Access) == ledger.AccessPod
		for _, u := range p.Users {
			t := q.snapshot.Ticket(u.Ticket)
			if !elsewhere && !onePod && (p.Node != q.node || parametersOf(q.snapshot, u) == w.request.Parameters) {
				continue
			}
			if t == nil || claimStateOf(q.snapshot, u) != requested || !elsewhere && contends(t) || t.Type.SharesVolume() && migratable(q.snapshot, v) {
				continue
			}
			if r := ticketAsks(t); CompareRequests(r, w.request) < 0 {
				before = append(before, r)
			}
		}
	}
	slices.SortFunc(before, CompareRequests)
	for _, r := range before {
		t := q.snapshot.Ticket(r.Ticket)
		if _, gets := q.line.At(t.Node).decision(t); gets {
			q.waitsElsewhere = true
			return []Reason{{Code: HeldElsewhere, Volume: v.ID, Claim: need.Name, Node: t.Node, Who: r.Who}}
		}
	}
	return nil
}

// keepForPods keeps slots for the pods that rank before a request.
func (q *Queue) keepForPods(r Request) {
	for ; q.served < len(q.line.pods) && CompareRequests(q.line.pods[q.served].Request, r) < 0; q.served++ {
		if pod := &q.line.pods[q.served]; pod.Nodes[q.node] {
			q.keep(pod.Request)
			q.keeping = append(q.keeping, pod)
		}
	}
}

// keptSlots notes the pods for which slots are kept that a ticket lacks.
func (q *Queue) keptSlots(v Verdict) {
	node := q.snapshot.Node(q.node)
	for _, reason := range v.Reasons {
		if reason.Code != NoFreeSlot || q.slots.used(node.Driver(reason.Driver))-q.slots.handed[reason.Driver].kept >= reason.Limit {
			continue
		}
		for _, pod := range q.keeping {
			if slices.ContainsFunc(pod.Needs, func(n Need) bool { return n.Volume.Driver == reason.Driver }) {
				q.line.kept[pod.Pod] = true
			}
		}
	}
}

// Yielding lists the tickets that alone keep a pod from a node.
func (a Arbiter) Yielding(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) []ledger.TicketID {
	w := evaluation{arbiter: a, snapshot: s, request: r, node: n, now: now, yielded: true}
	if !r.ofPod() || !w.fit().Allowed() {
		return nil
	}
	w.yielded = false
	var list []ledger.TicketID
	for _, need := range r.Needs {
		v := s.Volume(need.Volume)
		if v == nil || !s.AttachRequired(v.ID.Driver) {
			continue
		}
		for i := range v.OnNodes {
			p := &v.OnNodes[i]
			for _, u := range p.Users {
				keeps := p.Node != n && exclusive(access(s, v, need.Access)) || p.Node == n && parametersOf(s, u) != r.Parameters || p.Node == ledger.Detached
				if keeps && claimStateOf(s, u) == active && yields(s, u, r) && w.blocks(v, p, u) && !slices.Contains(list, u.Ticket) {
					list = append(list, u.Ticket)
				}
			}
		}
	}
	return list
}
