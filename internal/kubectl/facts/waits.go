// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// PodWait is a pod with volumes that waits: for them, for a node that can take them, or for
// its own node, which is dead.
type PodWait struct {
	Who  Requester `json:"who"`
	Node string    `json:"node,omitempty"`
	// State is that of the Pod, or AtDeadNode.
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
	case x.State != PodWaitsForVolumes && x.State != PodWaitsForNode && x.State != PodWaitsForGrant:
		return PodWait{}, false
	}
	if x.Cause != nil {
		wait.Code, wait.Since = x.Cause.Code, cmp.Or(x.Cause.Since, wait.Since)
	}
	return wait, true
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
