// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// NodeView is a node: whether it serves, what is taken there, and who waits for it.
type NodeView struct {
	Node  string `json:"node"`
	Ready bool   `json:"ready"`
	// Cordoned: no new pod goes there.
	Cordoned bool `json:"cordoned,omitempty"`
	// Taint is one that keeps new pods away, but for the cordon's.
	Taint string `json:"taint,omitempty"`
	// NoDriver: no CSI driver is registered there.
	NoDriver bool `json:"noDriver,omitempty"`
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
	// Terminating are those of the pods that are being deleted, and Blocking those of them
	// that a StatefulSet can't replace.
	Terminating int `json:"terminating,omitempty"`
	Blocking    int `json:"blocking,omitempty"`
	// Held are pods there that have volumes, and are not being deleted yet: of a node that is
	// not ready, their volumes go nowhere.
	Held int `json:"podsWithVolumes,omitempty"`
	// Staying is how many volumes can't leave, of a node that is not ready: those of Kept,
	// and those of the pods there.
	Staying int     `json:"volumesStaying,omitempty"`
	Slots   []Slots `json:"slots,omitempty"`
	// Fenced are volumes that are taken from it without its kubelet's report, or were.
	Fenced []Fenced `json:"fenced,omitempty"`
	// TimeHeld says for which nodes forceDetach.afterUnreachable takes nothing, of which this
	// is one; empty: its time runs, or there is none.
	TimeHeld string `json:"timeHeld,omitempty"`
	// Kept are volumes that are wanted elsewhere, or by nobody, and can't leave.
	Kept []Volume `json:"kept,omitempty"`
	// Waiting are those that wait for the node: pods and tickets that are to have their volumes
	// there and don't, and pods without a node that lack nothing there but a free slot. The
	// longest come first.
	Waiting []NodeWaiter `json:"waiting,omitempty"`
	// Word is what moorage-node says there; nil where Moorage is not installed.
	Word   *NodeWord `json:"word,omitempty"`
	Unseen []Unseen  `json:"unseen,omitempty"`
	// holds is why the first pod with volumes that is Terminating there does not end.
	holds *Cause
}

// ExplainNode says how a node serves its volumes, and who waits for it.
func (w *World) ExplainNode(n *corev1.Node) NodeView {
	name := ledger.NodeName(n.Name)
	out := NodeView{Node: n.Name, Ready: w.isReady(name), Cordoned: n.Spec.Unschedulable, Since: w.notReadySince(name), PodsNotVisible: w.partUnseen("pods"), Unseen: w.Unseen}
	out.Taint, out.NoDriver = barringTaint(n), !w.anyDriver(name) && !w.unseen("csinodes.storage.k8s.io")
	out.KubeletLives = !out.Ready && w.kubeletLives(n)
	for _, p := range w.Pods {
		if p.Spec.NodeName == n.Name && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			out.add(w, p)
		}
	}
	for _, s := range w.ListSlots() {
		if s.Node == n.Name {
			out.Slots = append(out.Slots, s)
		}
	}
	out.Kept, out.Fenced, out.TimeHeld = w.keptAt(n.Name), w.FencedAt(n), w.timeHeld(name)
	if !out.Ready {
		out.Staying = w.staying(n.Name, out.Kept)
	}
	if w.Served() {
		word := w.NodeWordOf(name)
		out.Word = &word
	}
	if out.Ready {
		out.Waiting = w.waitingFor(n, &out)
	}
	out.Cause = w.nodeViewCause(n, &out)
	out.Answer = answerNode(&out)
	return out
}

// timeHeld says for which nodes the time of afterUnreachable does not run, of which a node that
// is not ready is one: that of the first driver by name whose volumes may be there.
func (w *World) timeHeld(name ledger.NodeName) string {
	n := w.Snapshot.Node(name)
	if n == nil || w.isReady(name) || !w.moorageDetaches() {
		return ""
	}
	for _, id := range n.At() {
		if v := w.Snapshot.Volume(id); v != nil {
			if b := arbiter.Braked(w.Snapshot, v, n); !b.IsZero() {
				return b.String()
			}
		}
	}
	return ""
}

// LongWait is for how long something may wait, where that passes by itself, before it is worth
// a finding.
const LongWait = 5 * time.Minute

// keptAt lists the volumes that can't leave a node. One whose attach there failed does not
// count, nor one that is on its way, as long as that does not last, nor one that whoever asks for
// it there does not get, since the node is fenced.
func (w *World) keptAt(node string) []Volume {
	var list []Volume
	for _, v := range w.ListVolumes("") {
		if v.Reason != nil && v.Reason.Node == node && codeOf(v.Reason) != arbiter.NodeFenced && arbiter.CallOf(codeOf(v.Reason)) != arbiter.CallAttach && !w.passes(&v) {
			list = append(list, v)
		}
	}
	return list
}

// staying counts the volumes of a node that can't leave it, and those that a pod there has.
func (w *World) staying(node string, kept []Volume) int {
	n := len(kept)
	for _, v := range w.ListVolumes("") {
		for _, at := range v.Places() {
			isKept := slices.ContainsFunc(kept, func(k Volume) bool { return k.Key() == v.Key() })
			if at.Node == node && !isKept && at.maybeThere() && slices.ContainsFunc(at.Users, func(u User) bool { return u.State == "Bound" }) {
				n++
			}
		}
	}
	return n
}

// LeftBehind lists the volumes that are, or may be, at a node, whether there is a Node of that
// name or not.
func (w *World) LeftBehind(node string) []Volume {
	var list []Volume
	for _, v := range w.ListVolumes("") {
		if slices.ContainsFunc(v.Nodes, func(at NodeVolume) bool { return at.Node == node && at.maybeThere() }) {
			list = append(list, v)
		}
	}
	return list
}

// passes says whether what keeps a volume ends by itself, and has not lasted for long: where no
// object tells since when, not longer than who waits for it.
func (w *World) passes(v *Volume) bool {
	since := v.Reason.Since
	if since.IsZero() && v.Next != nil {
		since = v.Next.Since
	}
	return arbiter.Transient(codeOf(v.Reason)) && w.Now.Sub(since) < LongWait
}

// add counts a pod of the node.
func (x *NodeView) add(w *World, p *corev1.Pod) {
	x.Pods++
	switch {
	case p.DeletionTimestamp == nil && w.NeedsAttachment(p):
		x.Held++
	case p.DeletionTimestamp == nil:
	default:
		x.Terminating++
		if ofStatefulSet(p) {
			x.Blocking++
		} else if x.holds == nil && w.NeedsAttachment(p) {
			x.holds = w.terminatingCause(p)
		}
	}
}

func (w *World) nodeViewCause(n *corev1.Node, x *NodeView) *Cause {
	if !x.Ready {
		return w.notReadyCause(n, x)
	}
	if outOfService(n) {
		return &Cause{Of: OfNode, Code: "OutOfServiceTaint",
			Message: fmt.Sprintf("it still has the taint %s, which keeps every pod away and is never removed by itself", corev1.TaintNodeOutOfService),
			Do:      "When the machine is in order again: " + untaint(n.Name)}
	}
	for _, s := range x.Slots {
		if !s.Registered {
			return &Cause{Of: OfMount, Code: "DriverNotRegistered", Message: "driver " + s.Driver + " is not registered there", Changes: w.adviceOn("DriverNotRegistered").Changes, Do: w.adviceOn("DriverNotRegistered").Do}
		}
	}
	if len(x.Kept) > 0 {
		r := x.Kept[0].Reason
		if c := w.componentCause(r, x.Kept[0].Driver); c != nil {
			return c
		}
		return r.Cause()
	}
	return nil
}

// notReadyCause is for a node that is not ready. What to do about a dead one is said where
// something waits for it.
func (w *World) notReadyCause(n *corev1.Node, x *NodeView) *Cause {
	c := &Cause{Of: OfNode, Code: "NodeNotReady", Since: x.Since, Message: "it is not ready"}
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Message != "" {
			c.Message += ": " + shortened(condition.Message, "")
		}
	}
	failing := slices.IndexFunc(x.Kept, func(v Volume) bool { return codeOf(v.Reason) == arbiter.DetachFailed })
	switch {
	case failing >= 0 && w.givesUp(n):
		c.Do = x.Kept[failing].Reason.Do
	case len(x.Kept) > 0 || x.Blocking > 0 || x.Held > 0 || outOfService(n):
		c.Do = w.adviceOnDead(n)
	case x.holds != nil:
		c.Do = x.holds.Do
	case x.PodsNotVisible:
		c.Do = "See why: kubectl describe node " + n.Name
	default:
		c.Do = "See why: kubectl describe node " + n.Name + ". No volume waits for it"
	}
	return c
}

func answerNode(x *NodeView) string {
	if !x.Ready {
		return answerNotReady(x)
	}
	var full []string
	for _, s := range x.Slots {
		if s.Free != nil && *s.Free == 0 || s.Exhausted {
			full = append(full, s.Driver)
		}
	}
	switch {
	case x.Cause != nil:
		return "is ready, but " + sentence(x.Cause.Message)
	case len(full) > 0 && x.Cordoned:
		return fmt.Sprintf("is ready and cordoned, with %s, and full for driver %s: no new pod goes there.", podsOf(x), strings.Join(full, ", "))
	case len(full) > 0:
		return fmt.Sprintf("is ready, with %s, and full for driver %s%s.", podsOf(x), strings.Join(full, ", "), x.waitForSlots())
	case x.Cordoned:
		return fmt.Sprintf("is ready and cordoned, with %s: no new pod goes there.", podsOf(x))
	case x.Taint != "":
		return fmt.Sprintf("is ready, with %s; its taint %s keeps pods away that don't tolerate it.", podsOf(x), x.Taint)
	case x.NoDriver:
		return fmt.Sprintf("is ready, with %s. No CSI driver is registered there: it takes no volume of one.", podsOf(x))
	case len(x.Slots) == 0:
		return fmt.Sprintf("is ready, with %s.", podsOf(x))
	}
	return fmt.Sprintf("is ready, with %s, and takes more volumes.", podsOf(x))
}

// answerNotReady is for a node that is not ready.
func answerNotReady(x *NodeView) string {
	var parts []string
	if x.Blocking > 0 && x.Blocking < x.Terminating && !x.KubeletLives {
		parts = append(parts, fmt.Sprintf("%s Terminating there, and a StatefulSet can't replace %d of them", CountVerb(x.Terminating, "pod"), x.Blocking))
	} else if x.Blocking > 0 && !x.KubeletLives {
		parts = append(parts, CountVerb(x.Blocking, "pod")+" Terminating there, and a StatefulSet can't replace such a pod")
	} else if x.Terminating > 0 && !x.KubeletLives {
		parts = append(parts, CountVerb(x.Terminating, "pod")+" Terminating there")
	} else if x.Terminating > 0 {
		parts = append(parts, CountVerb(x.Terminating, "pod")+" Terminating there, and its kubelet ends such a pod")
	}
	if len(x.Kept) > 0 && x.KubeletLives {
		parts = append(parts, Count(len(x.Kept), "volume")+" can't leave it")
	} else if len(x.Kept) > 0 {
		text := Count(x.Staying, "volume") + " can't leave it"
		if used := x.Staying - len(x.Kept); used > 0 { // those are not listed: nobody waits for them
			text += fmt.Sprintf(", of which pods there use %d", used)
		}
		parts = append(parts, text)
	} else if x.Held > 0 && !x.KubeletLives {
		parts = append(parts, "the volumes of "+Count(x.Held, "pod")+" there can't leave it")
	}
	text := "is not ready"
	if x.KubeletLives {
		text += ", and its kubelet lives"
	}
	if len(parts) == 0 {
		return text + "; no volume waits to leave it."
	}
	return text + ": " + strings.Join(parts, "; ") + "."
}

// anyDriver says whether a CSI driver is registered at a node.
func (w *World) anyDriver(name ledger.NodeName) bool {
	n := w.Snapshot.Node(name)
	return n != nil && slices.ContainsFunc(n.Drivers, func(d ledger.NodeDriver) bool { return d.Registered })
}

// barringTaint is a taint of a node that keeps new pods away, apart from a cordon's.
func barringTaint(n *corev1.Node) string {
	for i := range n.Spec.Taints {
		if t := &n.Spec.Taints[i]; schedules(t) && t.Key != corev1.TaintNodeUnschedulable {
			return t.ToString()
		}
	}
	return ""
}

func podsOf(x *NodeView) string {
	if x.PodsNotVisible {
		return Count(x.Pods, "pod") + " of those that may be seen"
	}
	return Count(x.Pods, "pod")
}
