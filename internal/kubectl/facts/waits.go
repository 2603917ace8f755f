// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// PodWait is a pod with volumes that waits: for them, for a node that can take them, for its own
// node, which is dead, or for something else that keeps it from starting there.
type PodWait struct {
	Who  Requester `json:"who"`
	Node string    `json:"node,omitempty"`
	// State is that of the Pod, or AtDeadNode or NotStarting.
	State  string    `json:"state"`
	Code   string    `json:"code,omitempty"` // the cause's, else the first reason's
	Answer string    `json:"answer"`
	Since  time.Time `json:"since,omitzero"`
	// Explained is all that is known of the pod.
	Explained Pod `json:"-"`
}

// PodAtDeadNode is the state of a PodWait at a node that is gone, or not ready and without a
// live kubelet: nobody starts the pod, ends it, or takes its volumes down there.
const PodAtDeadNode = "AtDeadNode"

// PodNotStarting is the state of a PodWait whose volumes may be mounted, and that something else
// keeps from starting, such as a missing ConfigMap.
const PodNotStarting = "NotStarting"

// ListWaits lists the pods with volumes that wait, the longest first. A pod at a dead node
// waits whatever its phase is: its volumes go nowhere, and a StatefulSet makes no other pod
// while this one is Terminating.
func (w *World) ListWaits() []PodWait {
	var list []PodWait
	for _, p := range w.Pods {
		if wait, ok := w.podWait(p); ok {
			list = append(list, wait)
		}
	}
	slices.SortFunc(list, func(a, b PodWait) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Who.String(), b.Who.String()))
	})
	return list
}

// podWait is what a pod waits for; false where it does not wait, or has no volume that needs
// an attachment.
func (w *World) podWait(p *corev1.Pod) (PodWait, bool) {
	dead := w.atDeadNode(p)
	if !dead && p.Status.Phase != corev1.PodPending || !w.NeedsAttachment(p) || len(p.Spec.SchedulingGates) > 0 {
		return PodWait{}, false
	}
	x := w.ExplainPod(p)
	if x.State == PodFinished {
		return PodWait{}, false
	}
	wait := PodWait{
		Who: Requester{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}, Node: p.Spec.NodeName, State: x.State,
		Code: firstCode(&x), Answer: x.Answer, Since: waitsSince(p), Explained: x,
	}
	switch {
	case dead && x.Cause != nil && x.Cause.Of == OfNode:
		wait.State = PodAtDeadNode
	case x.State == PodReady && x.Cause != nil:
		wait.State = PodNotStarting
	case x.State != PodWaitsForVolumes && x.State != PodWaitsForNode:
		return PodWait{}, false
	}
	if x.Cause != nil {
		wait.Code, wait.Since = x.Cause.Code, becauseSince(x.Cause, p)
	}
	return wait, true
}

// startPatience is for how long a bound pod may take before its events are asked for.
const startPatience = 10 * time.Second

// Starting lists the pods with volumes that could have started by now as far as these are
// concerned, and have not: their events may say why. The oldest come first.
func (w *World) Starting() []*corev1.Pod {
	var list []*corev1.Pod
	for _, p := range w.Pods {
		if p.Spec.NodeName == "" || p.Status.Phase != corev1.PodPending || p.DeletionTimestamp != nil || w.Now.Sub(waitsSince(p)) < startPatience {
			continue
		}
		if w.NeedsAttachment(p) && w.ExplainPod(p).State == PodReady {
			list = append(list, p)
		}
	}
	slices.SortStableFunc(list, olderFirst)
	return list
}

// becauseSince is since when a pod waits because of a cause: what keeps it may be older than its
// wait, such as a node that has been down for long.
func becauseSince(c *Cause, p *corev1.Pod) time.Time {
	since := c.Since
	if waits := waitsSince(p); since.IsZero() || c.Of != OfNode && waits.After(since) {
		since = waits
	}
	return since
}

// atDeadNode says whether a pod is bound to a node that is gone, or that is not ready and has
// no live kubelet. It is not where nodes may not be listed.
func (w *World) atDeadNode(p *corev1.Pod) bool {
	name := p.Spec.NodeName
	if name == "" || w.unseen("nodes") || w.isReady(ledger.NodeName(name)) {
		return false
	}
	node := w.Node(name)
	return node == nil || !w.kubeletLives(node)
}

// firstCode is the code of the reason that matters most: of a volume, else of
// the nodes that are a choice.
func firstCode(x *Pod) string {
	for _, v := range x.Volumes {
		if len(v.Reasons) > 0 {
			return v.Reasons[0].Code
		}
	}
	for _, n := range x.Nodes {
		if n.Barred == "" && len(n.Reasons) > 0 {
			return n.Reasons[0].Code
		}
	}
	return ""
}

// AwaitWorkers lists the volumes, by driver, that pods and tickets wait for because as many attaches and
// detaches of the driver are under way as its AttachPolicy allows: by claim, or by PersistentVolume.
func (w *World) AwaitWorkers() map[string][]string {
	waiting := map[string][]string{}
	look := func(needs []arbiter.Need, n ledger.NodeName) {
		for _, need := range needs {
			v := w.Volume(need.Volume)
			name := cmp.Or(v.Claim, v.PersistentVolume, need.Name)
			for _, r := range w.Arbiter.Explain(w.Snapshot, need, n, w.Now).Reasons {
				if r.Code == arbiter.NoFreeWorker && !slices.Contains(waiting[r.Driver], name) {
					waiting[r.Driver] = append(waiting[r.Driver], name)
				}
			}
		}
	}
	for p := range w.Snapshot.Pods() {
		if p.Node != "" && p.Phase != ledger.PodFinished {
			look(arbiter.PodRequest(w.Snapshot, p).Needs, p.Node)
		}
	}
	for t := range w.Snapshot.Tickets() {
		if t.Phase == ledger.TicketGranted && t.Node != ledger.Detached {
			look(arbiter.TicketRequest(w.Snapshot, t).Needs, t.Node)
		}
	}
	for _, names := range waiting {
		slices.Sort(names)
	}
	return waiting
}
