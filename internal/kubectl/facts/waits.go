// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodWait is a pod that its volumes keep waiting.
type PodWait struct {
	Who    Requester `json:"who"`
	Node   string    `json:"node,omitempty"`
	State  string    `json:"state"`
	Code   string    `json:"code,omitempty"` // the cause's, else the first reason's
	Answer string    `json:"answer"`
	Since  time.Time `json:"since,omitzero"`
	// Explained is all that is known of the pod.
	Explained Pod `json:"-"`
}

// ListWaits lists the pods that their volumes keep waiting, the longest first.
func (w *World) ListWaits() []PodWait {
	var list []PodWait
	for _, p := range w.Pods {
		if p.Status.Phase != corev1.PodPending || !w.NeedsAttachment(p) || len(p.Spec.SchedulingGates) > 0 {
			continue
		}
		x := w.ExplainPod(p)
		if x.State != PodWaitsForVolumes && x.State != PodWaitsForNode && x.State != PodWaitsForGrant {
			continue
		}
		wait := PodWait{
			Who: Requester{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}, Node: p.Spec.NodeName, State: x.State,
			Code: firstCode(&x), Answer: x.Answer, Since: waitsSince(p), Explained: x,
		}
		if x.Cause != nil {
			wait.Code, wait.Since = x.Cause.Code, cmp.Or(x.Cause.Since, wait.Since)
		}
		list = append(list, wait)
	}
	slices.SortFunc(list, func(a, b PodWait) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Who.String(), b.Who.String()))
	})
	return list
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
