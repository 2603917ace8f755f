// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// NodeView is a node: whether it serves, what is taken there, and who waits for it.
type NodeView struct {
	Node  string `json:"node"`
	Ready bool   `json:"ready"`
	// Cordoned: no new pod goes there.
	Cordoned bool `json:"cordoned,omitempty"`
	// KubeletLives: it is not ready by its kubelet's own word, which still ends pods.
	KubeletLives bool `json:"kubeletLives,omitempty"`
	// Since is when it was last seen to become not ready.
	Since time.Time `json:"since,omitzero"`
	// Answer is the whole in a sentence that begins after its name.
	Answer string `json:"answer"`
	Cause  *Cause `json:"cause,omitempty"`
	Pods   int    `json:"pods"`
	// PodsNotVisible: pods may not be listed in all namespaces, so that there may be more.
	PodsNotVisible bool `json:"podsNotVisible,omitempty"`
	// Terminating are those of the pods that are being deleted.
	Terminating int     `json:"terminating,omitempty"`
	Slots       []Slots `json:"slots,omitempty"`
	// Kept are volumes that are wanted elsewhere, or by nobody, and can't leave.
	Kept   []Volume `json:"kept,omitempty"`
	Unseen []Unseen `json:"unseen,omitempty"`
}

// ExplainNode says how a node serves its volumes, and who waits for it.
func (w *World) ExplainNode(n *corev1.Node) NodeView {
	name := ledger.NodeName(n.Name)
	out := NodeView{Node: n.Name, Ready: w.isReady(name), Cordoned: n.Spec.Unschedulable, Since: w.notReadySince(name), PodsNotVisible: w.partUnseen("pods"), KubeletLives: kubeletLives(n), Unseen: w.Unseen}
	for _, p := range w.Pods {
		if p.Spec.NodeName == n.Name && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out.Pods++
			if p.DeletionTimestamp != nil {
				out.Terminating++
			}
		}
	}
	for _, s := range w.ListSlots() {
		if s.Node == n.Name {
			out.Slots = append(out.Slots, s)
		}
	}
	for _, v := range w.ListVolumes("") {
		if v.Reason != nil && v.Reason.Node == n.Name {
			out.Kept = append(out.Kept, v)
		}
	}
	out.Cause = w.nodeViewCause(n, &out)
	out.Answer = answerNode(&out)
	return out
}

func (w *World) nodeViewCause(n *corev1.Node, x *NodeView) *Cause {
	if !x.Ready {
		c := &Cause{Of: OfNode, Code: "NodeNotReady", Since: x.Since, Message: "it is not ready", Do: w.safeAdvice("NodeUnreachable", n.Name)}
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Message != "" {
				c.Message += ": " + shortened(condition.Message, "")
			}
		}
		if len(x.Kept) == 0 && x.Terminating == 0 {
			c.Do = "See why: kubectl describe node " + n.Name + ". No volume waits for it"
		}
		return c
	}
	if outOfService(n) {
		return &Cause{Of: OfNode, Code: "OutOfServiceTaint",
			Message: fmt.Sprintf("it still has the taint %s, which keeps every pod away and is never removed by itself", corev1.TaintNodeOutOfService),
			Do:      "When the machine is in order again: " + untaint(n.Name)}
	}
	for _, s := range x.Slots {
		if !s.Registered {
			return &Cause{Of: OfMount, Code: "DriverNotRegistered", Message: "driver " + s.Driver + " is not registered there", Changes: w.advice["DriverNotRegistered"].Changes, Do: w.advice["DriverNotRegistered"].Do}
		}
	}
	if len(x.Kept) > 0 {
		r := x.Kept[0].Reason
		return &Cause{Of: OfVolume, Code: r.Code, Message: r.Message, Changes: r.Changes, Do: r.Do, Since: r.Since}
	}
	return nil
}

func answerNode(x *NodeView) string {
	var full []string
	for _, s := range x.Slots {
		if s.Free != nil && *s.Free == 0 {
			full = append(full, s.Driver)
		}
	}
	switch {
	case !x.Ready && x.Terminating > 0:
		text := fmt.Sprintf("is not ready: %s Terminating there, and a StatefulSet can't replace such a pod", countVerb(x.Terminating, "pod"))
		if x.KubeletLives {
			text = fmt.Sprintf("is not ready, by its kubelet's own word: %s Terminating there, and its kubelet ends such a pod", countVerb(x.Terminating, "pod"))
		}
		if len(x.Kept) > 0 {
			text += fmt.Sprintf("; %s can't leave it", count(len(x.Kept), "volume"))
		}
		return text + "."
	case !x.Ready && len(x.Kept) > 0:
		return fmt.Sprintf("is not ready, and %s can't leave it.", count(len(x.Kept), "volume"))
	case !x.Ready:
		return "is not ready; no volume waits to leave it."
	case x.Cause != nil:
		return "is ready, and not all is well: " + sentence(x.Cause.Message)
	case len(full) > 0:
		return fmt.Sprintf("is ready, with %s, and full for driver %s.", podsOf(x), strings.Join(full, ", "))
	}
	if x.Cordoned {
		return fmt.Sprintf("is ready and cordoned, with %s: no new pod goes there.", podsOf(x))
	}
	return fmt.Sprintf("is ready, with %s, and takes more volumes.", podsOf(x))
}

func podsOf(x *NodeView) string {
	if x.PodsNotVisible {
		return count(x.Pods, "pod") + " of those that may be seen"
	}
	return count(x.Pods, "pod")
}
