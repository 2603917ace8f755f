// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// DrainMove is a pod that may leave its node now, and the node that would suit its volumes best.
type DrainMove struct {
	Pod *corev1.Pod
	To  string
}

// DrainNow is what a drain may do at this moment.
type DrainNow struct {
	// Moves are pods whose volumes have room elsewhere, in the order in which to evict them:
	// those that the fewest nodes suit come first, then the older. The room is theirs even
	// if all of them are evicted at once.
	Moves []DrainMove
	// Stay are the pods that would find no room if they were evicted now, with why.
	Stay []DrainPod
	// Down are the components without which no pod gets its volumes elsewhere.
	Down []Cause
}

// DrainNow says which pods with volumes may be evicted from a node now. Room is found first
// for pods that have no node yet, and for those that are leaving this one already; last for
// those whose eviction was refused, so that they keep no room from the others.
func (w *World) DrainNow(node string, refused map[types.UID]bool) DrainNow {
	after, successors := w.drained(node)
	try := trial{world: after}
	for _, p := range w.Pods {
		if w.waitsForNode(p) {
			try.place(p)
		}
	}
	leaving := func(successor *corev1.Pod) bool {
		return w.pods[string(originalUID(successor))].DeletionTimestamp != nil
	}
	for _, s := range successors {
		if leaving(s) {
			try.place(s)
		}
	}
	staying := slices.DeleteFunc(slices.Clone(successors), leaving)
	rank := map[*corev1.Pod]int{}
	for _, s := range staying {
		if rank[s] = try.choices(s); refused[originalUID(s)] {
			rank[s] = math.MaxInt
		}
	}
	slices.SortStableFunc(staying, func(a, b *corev1.Pod) int { return cmp.Compare(rank[a], rank[b]) })
	out := DrainNow{Down: w.downFor(staying)}
	for _, s := range staying {
		pod := w.pods[string(originalUID(s))]
		if to, verdicts := try.place(s); to != "" {
			out.Moves = append(out.Moves, DrainMove{Pod: pod, To: to})
		} else {
			out.Stay = append(out.Stay, DrainPod{Namespace: pod.Namespace, Name: pod.Name, Nodes: verdicts})
		}
	}
	return out
}

// waitsForNode says whether a pod with volumes is about to be placed, and no room is reserved
// for it yet: a ticket counts by itself.
func (w *World) waitsForNode(p *corev1.Pod) bool {
	ticket := ledger.TicketID{Namespace: p.Namespace, Name: v1alpha1.PodTicketName(p.UID)}
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
		w.PodFact(p).Phase != ledger.PodFinished && w.NeedsAttachment(p) && w.Snapshot.Ticket(ticket) == nil
}

// trial places pods one after the other, each beside those before it.
type trial struct {
	world  *World
	placed ledger.Delta
}

// place finds a pod the node that suits its volumes best, and keeps the room for it there. The
// node is empty where none has room; then the verdicts say why.
func (t *trial) place(p *corev1.Pod) (node string, verdicts []NodesVerdict) {
	snapshot := t.world.Snapshot.With(&t.placed)
	request := arbiter.PodRequest(snapshot, t.world.PodFact(p))
	verdicts = t.world.fits(snapshot, request, p)
	if node = t.world.best(snapshot, request, verdicts); node != "" {
		t.placed.Add(string(p.UID), ledger.NodeName(node))
	}
	return node, verdicts
}

// choices is how many nodes have room for a pod.
func (t *trial) choices(p *corev1.Pod) int {
	snapshot, nodes := t.world.Snapshot.With(&t.placed), 0
	for _, v := range t.world.fits(snapshot, arbiter.PodRequest(snapshot, t.world.PodFact(p)), p) {
		if v.Fits && v.Barred == "" {
			nodes += len(v.Nodes)
		}
	}
	return nodes
}

// InUseBy lists the PersistentVolumes that a node's kubelet reports in use, of those that the
// pods have: it may not have unmounted them yet.
func (w *World) InUseBy(node string, pods []*corev1.Pod) []string {
	var list []string
	for _, p := range pods {
		for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
			pv := w.Snapshot.PersistentVolume(claim.Spec.VolumeName)
			if pv == nil || slices.Contains(list, pv.Name) {
				continue
			}
			if at := w.Snapshot.Volume(pv.Volume).NodeVolume(ledger.NodeName(node)); at != nil && at.InUse {
				list = append(list, pv.Name)
			}
		}
	}
	return list
}

// NextOf is the pod that took a pod's place since a time: the one that runs, if there are
// several, of those with a claim of the pod's. It is nil where there is none.
func (w *World) NextOf(p *corev1.Pod, since time.Time) *corev1.Pod {
	var next *corev1.Pod
	for _, claim := range claimNames(p) {
		for _, uid := range w.Snapshot.ClaimPods(ledger.ClaimKey{Namespace: p.Namespace, Name: claim}) {
			other := w.pods[uid]
			if other == nil || other.UID == p.UID || other.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
				continue
			}
			if next == nil || other.Status.Phase == corev1.PodRunning {
				next = other
			}
		}
	}
	return next
}

func claimNames(p *corev1.Pod) []string {
	var list []string
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			list = append(list, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return list
}
