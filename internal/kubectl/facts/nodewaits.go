// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// NodeWaiter is who waits for a node, and for what.
type NodeWaiter struct {
	Who   Requester `json:"who"`
	Code  string    `json:"code"`
	Since time.Time `json:"since,omitzero"`
}

// waitingFor lists who waits for a node that is ready, the longest first.
func (w *World) waitingFor(n *corev1.Node, x *NodeView) []NodeWaiter {
	var list []NodeWaiter
	add := func(who Requester, code string, since time.Time) {
		if !slices.ContainsFunc(list, func(other NodeWaiter) bool { return other.Who == who }) {
			list = append(list, NodeWaiter{who, code, since})
		}
	}
	full := slices.ContainsFunc(x.Slots, func(s Slots) bool { return s.Free != nil && *s.Free == 0 || s.Exhausted })
	for _, p := range w.Pods {
		who := Requester{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}
		switch {
		case p.Spec.NodeName == n.Name:
			if wait, ok := w.podWait(p); ok && wait.State == PodWaitsForVolumes {
				add(who, wait.Code, wait.Since)
			}
		case full && w.lacksOnlySlots(p, n):
			add(who, string(arbiter.NoFreeSlot), waitsSince(p))
		}
	}
	queues := map[ledger.NodeName]*arbiter.Queue{}
	for _, t := range w.Tickets {
		if t.Node() != n.Name {
			continue
		}
		ticket := w.ticket(t, queues)
		who := Requester{Kind: "VolumeTicket", Namespace: t.Namespace, Name: t.Name}
		if len(ticket.Reasons) > 0 {
			add(who, ticket.Reasons[0].Code, ticket.Since)
		}
	}
	slices.SortFunc(list, func(a, b NodeWaiter) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Who.String(), b.Who.String()))
	})
	return list
}

// lacksOnlySlots says whether a pod waits for a node, and one that is full would take it but for
// that.
func (w *World) lacksOnlySlots(p *corev1.Pod, n *corev1.Node) bool {
	if p.Spec.NodeName != "" || p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil || len(p.Spec.SchedulingGates) > 0 || !w.NeedsAttachment(p) || w.barred(p, n) != "" {
		return false
	}
	v := w.Arbiter.Fit(w.Snapshot, arbiter.PodRequest(w.Snapshot, w.PodFact(p)), ledger.NodeName(n.Name), w.Now)
	return len(v.Reasons) > 0 && !slices.ContainsFunc(v.Reasons, func(r arbiter.Reason) bool { return r.Code != arbiter.NoFreeSlot })
}

// waitForSlots says how many of those that wait for a node lack a free slot there; empty for none.
func (x *NodeView) waitForSlots() string {
	n := 0
	for _, waiter := range x.Waiting {
		if waiter.Code == string(arbiter.NoFreeSlot) {
			n++
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return "; 1 waits for a slot there"
	}
	return fmt.Sprintf("; %d wait for a slot there", n)
}
