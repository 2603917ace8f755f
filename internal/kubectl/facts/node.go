// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Slots are a driver's slots at a node. Used, Kept, Leaving, Unknown and Reserved add up to the
// controller's count.
type Slots struct {
	NodeState
	Driver string `json:"driver"`
	// Registered: the node's CSINode lists the driver; otherwise nothing is placed there.
	Registered bool `json:"registered"`
	// Limit is the CSINode's limit after the policy; absent: none.
	Limit     *int32 `json:"limit,omitempty"`
	Stated    *int32 `json:"stated,omitempty"`
	Exhausted bool   `json:"exhausted,omitempty"`
	// Used are wanted, and attached or attaching.
	Used int32 `json:"used"`
	// Kept are unwanted and kept by the policy's detachDelay.
	Kept int32 `json:"kept"`
	// Leaving are unwanted and not detached yet.
	Leaving int32 `json:"leaving"`
	// Unknown volumes were taken without the kubelet's report, or were last reported in use by a not ready
	// node and are not being detached.
	Unknown int32 `json:"unknown"`
	// Reserved are requested or promised, and not attached yet.
	Reserved int32 `json:"reserved"`
	// Free is 0 at a node that is not ready or gone; otherwise absent without a limit.
	Free    *int32       `json:"free,omitempty"`
	Volumes []SlotVolume `json:"volumes,omitempty"`
	// Leftovers counts volumes that need a person's attention by the node's report. Word is that report's
	// state, if not current.
	Leftovers int32  `json:"leftovers,omitempty"`
	Word      string `json:"word,omitempty"`
}

// Taken counts the slots that are not free.
func (s Slots) Taken() int32 { return s.Used + s.Kept + s.Leaving + s.Unknown + s.Reserved }

// SlotVolume is a volume that takes a slot.
type SlotVolume struct {
	Volume string `json:"volume"` // PersistentVolume, or driver^handle
	Claim  string `json:"claim,omitempty"`
	// Slot is Used, Kept, Leaving, Unknown or Reserved.
	Slot  string `json:"slot"`
	State string `json:"state"`
	Users []User `json:"users,omitempty"`
}

// ListSlots lists every node's drivers, sorted, except drivers that need no attachment.
func (w *World) ListSlots() []Slots {
	byDriver := w.slotVolumes()
	var list []Slots
	for n := range w.Snapshot.Nodes() {
		if w.onlyAsked(n) {
			continue
		}
		for _, d := range n.Drivers {
			id := ledger.VolumeID{Driver: d.Name}
			if !w.Snapshot.AttachRequired(d.Name) || id.NoAttach() {
				continue
			}
			slots := w.slots(n, d, byDriver[slotKey{n.Name, d.Name}])
			word := w.NodeWordOf(n.Name)
			if word.State == WordPartial || word.State == WordSilent || word.State == WordOld {
				slots.Word = word.State
			}
			for i := range word.Has {
				if word.Has[i].Driver == d.Name {
					slots.Leftovers++
				}
			}
			list = append(list, slots)
		}
	}
	slices.SortFunc(list, func(a, b Slots) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Driver, b.Driver)) })
	return list
}

// NodeState decides whether volumes come and go at a node.
type NodeState struct {
	Node  string    `json:"node"`
	Ready bool      `json:"ready"`
	Since time.Time `json:"since,omitzero"` // when it became not ready
	// NotVisible: nodes may not be listed, and Ready is true.
	NotVisible bool `json:"notVisible,omitempty"`
	// Missing: the Node is gone, but its machine may have volumes. Its free slots serve no pod.
	Missing bool `json:"missing,omitempty"`
	// Cordoned (spec.unschedulable) and OutOfService (the taint node.kubernetes.io/out-of-service) keep new
	// pods away.
	Cordoned     bool   `json:"cordoned,omitempty"`
	OutOfService bool   `json:"outOfService,omitempty"`
	Zone         string `json:"zone,omitempty"`
}

// ListNodes lists the nodes, and missing nodes with volumes.
func (w *World) ListNodes() []NodeState {
	var list []NodeState
	for n := range w.Snapshot.Nodes() {
		if n.Exists || len(n.Drivers) > 0 && !w.onlyAsked(n) {
			list = append(list, w.nodeState(n.Name))
		}
	}
	slices.SortFunc(list, func(a, b NodeState) int { return cmp.Compare(a.Node, b.Node) })
	return list
}

func (w *World) onlyAsked(n *ledger.Node) bool {
	if n.Exists || w.unseen("nodes") || slices.ContainsFunc(n.Drivers, func(d ledger.NodeDriver) bool { return d.Registered }) {
		return false
	}
	return !slices.ContainsFunc(n.At(), func(id ledger.VolumeID) bool {
		p := w.Snapshot.Volume(id).OnNode(n.Name)
		return p.HasAttachments() || p.MayBeMounted() || p.Reported || p.InUse || slices.ContainsFunc(p.Users, func(u ledger.User) bool { return u.Pod != "" })
	})
}

func (w *World) nodeState(name ledger.NodeName) NodeState {
	out := NodeState{Node: string(name), Ready: w.isReady(name), Since: w.notReadySince(name), Zone: w.NodeLabels(string(name))[corev1.LabelTopologyZone]}
	object := w.nodes[name]
	if object == nil {
		out.NotVisible = w.unseen("nodes")
		out.Ready, out.Missing = out.NotVisible, !out.NotVisible
		return out
	}
	out.Cordoned, out.OutOfService = object.Spec.Unschedulable, outOfService(object)
	return out
}

type slotKey struct {
	node   ledger.NodeName
	driver string
}

func (w *World) slotVolumes() map[slotKey][]SlotVolume {
	all := map[slotKey][]SlotVolume{}
	for v := range w.Snapshot.Volumes() {
		for i := range v.OnNodes {
			if !v.OnNodes[i].TakesSlot() {
				continue
			}
			key := slotKey{v.OnNodes[i].Node, v.ID.Driver}
			all[key] = append(all[key], w.slotVolume(v, &v.OnNodes[i]))
		}
	}
	return all
}

func (w *World) slotVolume(v *ledger.Volume, p *ledger.VolumeOnNode) SlotVolume {
	nv := w.volumeOnNode(v, p)
	out := SlotVolume{State: nv.State, Users: nv.Users, Slot: slotUsed}
	out.Volume, out.Claim = w.named(v)
	switch {
	case nv.State == stateReserved, nv.State == stateAsked, nv.State == stateQueued && nv.Attachment == "":
		out.Slot = slotReserved
	case nv.State == stateKept:
		out.Slot = slotKept
	case nv.State == stateUnknown, nv.State == stateInUse && !wanted(nv.Users) && w.silent(p.Node):
		out.Slot = slotUnknown
	case !wanted(nv.Users), nv.State == stateDetaching, nv.State == stateDetachFailed:
		out.Slot = slotLeaving
	}
	return out
}

const (
	slotUsed     = "Used"
	slotKept     = "Kept"
	slotLeaving  = "Leaving"
	slotUnknown  = "Unknown"
	slotReserved = "Reserved"
)

// silent says whether a node is seen not ready or gone, without a reporting kubelet.
func (w *World) silent(name ledger.NodeName) bool {
	return w.knownNotReady(string(name)) && (w.nodes[name] == nil || !w.kubeletLives(w.nodes[name]))
}

// wanted says whether a volume has a lasting user. A terminating pod uses the volume, but claims nothing.
func wanted(users []User) bool {
	return slices.ContainsFunc(users, func(u User) bool { return u.State == "Bound" || u.State == "Granted" })
}

// kept: an unwanted volume waits for detachDelay by its hold, or its plan only looks again.
func (w *World) kept(v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	if v.Hold != nil && v.Hold.Reason == rules.DetachDelayed && v.Hold.Node == p.Node {
		return true
	}
	plan := w.Arbiter.Plan(w.Snapshot, v.ID, w.Now)
	for _, step := range plan.Steps {
		if step.Node == p.Node && step.Kind != rules.WriteHold {
			return false
		}
	}
	verdict, _ := w.Arbiter.SafeToDetach(w.Snapshot, v, p, w.Now)
	return verdict.Allowed() && !plan.Recheck.IsZero()
}

func (w *World) slots(n *ledger.Node, d ledger.NodeDriver, volumes []SlotVolume) Slots {
	slices.SortFunc(volumes, func(a, b SlotVolume) int { return cmp.Compare(a.Volume, b.Volume) })
	out := Slots{NodeState: w.nodeState(n.Name), Driver: d.Name, Registered: d.Registered, Exhausted: d.Exhausted, Volumes: volumes}
	for _, v := range volumes {
		switch v.Slot {
		case slotUsed:
			out.Used++
		case slotKept:
			out.Kept++
		case slotLeaving:
			out.Leaving++
		case slotUnknown:
			out.Unknown++
		case slotReserved:
			out.Reserved++
		}
	}
	if d.Limit != ledger.NoLimit {
		out.Stated = &d.Limit
	}
	if limit := rules.Limit(d, rules.PolicyFor(w.Snapshot, d.Name, "")); limit != ledger.NoLimit {
		free := max(0, limit-d.Taken())
		out.Limit, out.Free = &limit, &free
	}
	if !out.Ready {
		out.Free = new(int32)
	}
	return out
}

// NodeView explains a node.
type NodeView struct {
	Node     string `json:"node"`
	Ready    bool   `json:"ready"`
	Cordoned bool   `json:"cordoned,omitempty"`
	// Taint keeps new pods away, beside the cordon's.
	Taint    string `json:"taint,omitempty"`
	NoDriver bool   `json:"noDriver,omitempty"`
	// KubeletLives: the kubelet reports not ready, but still ends pods.
	KubeletLives bool      `json:"kubeletLives,omitempty"`
	Since        time.Time `json:"since,omitzero"`
	Answer       string    `json:"answer"`
	Cause        *Reason   `json:"cause,omitempty"`
	Pods         int       `json:"pods"`
	// PodsNotVisible: there may be more pods.
	PodsNotVisible bool `json:"podsNotVisible,omitempty"`
	// Terminating counts deleted pods; a StatefulSet can't replace Blocking pods.
	Terminating int `json:"terminating,omitempty"`
	Blocking    int `json:"blocking,omitempty"`
	// Held are its other pods with volumes: these can't leave while the node is not ready.
	Held  int     `json:"podsWithVolumes,omitempty"`
	Slots []Slots `json:"slots,omitempty"`
	// Fenced counts volumes that are or were taken without the kubelet's report, and may be there.
	Fenced int `json:"fenced,omitempty"`
	// Kept are volumes that can't leave, but are wanted elsewhere or nowhere.
	Kept []Volume `json:"kept,omitempty"`
	// Waiting are pods and tickets without their volumes, the longest wait first.
	Waiting []Wait `json:"waiting,omitempty"`
	// Word is moorage-node's report; nil where Moorage is not installed.
	Word   *NodeWord `json:"word,omitempty"`
	Unseen []Unseen  `json:"unseen,omitempty"`
	// holds is why the first Terminating pod with volumes does not end.
	holds *Reason
}

// ExplainNode says how a node serves its volumes, and names its waiters.
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
	out.Kept, out.Fenced = w.keptAt(n.Name), w.FencedAt(n)
	if w.Served() {
		word := w.NodeWordOf(name)
		out.Word = &word
	}
	if out.Ready {
		for _, wait := range w.waitsAt(func(node string) bool { return node == n.Name }) {
			if wait.Reason != nil || wait.State == PodWaitsForVolumes {
				out.Waiting = append(out.Waiting, wait)
			}
		}
	}
	out.Cause = w.nodeViewCause(n, &out)
	out.Answer = answerNode(&out)
	return out
}

// LongWait is how long a passing wait lasts before it is worth a finding.
const LongWait = 5 * time.Minute

// keptAt omits failed attaches, short moves, and volumes that a fenced node does not get.
func (w *World) keptAt(node string) []Volume {
	var list []Volume
	for _, v := range w.ListVolumes("") {
		if v.Reason != nil && v.Reason.Node == node && codeOf(v.Reason) != rules.NodeFenced && rules.CallOf(codeOf(v.Reason)) != rules.CallAttach && !w.passes(&v) {
			list = append(list, v)
		}
	}
	return list
}

// LeftBehind lists the volumes that may be at a node, even without its Node.
func (w *World) LeftBehind(node string) []Volume {
	var list []Volume
	for _, v := range w.ListVolumes("") {
		if slices.ContainsFunc(v.Nodes, func(at VolumeOnNode) bool { return at.Node == node && at.maybeThere() }) {
			list = append(list, v)
		}
	}
	return list
}

// passes says whether an obstacle is new and ends by itself. Without a start, the next waiter's wait
// counts.
func (w *World) passes(v *Volume) bool {
	since := v.Reason.Since
	if since.IsZero() && v.Next != nil {
		since = v.Next.Since
	}
	return rules.Transient(codeOf(v.Reason)) && w.Now.Sub(since) < LongWait
}

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

func (w *World) nodeViewCause(n *corev1.Node, x *NodeView) *Reason {
	if !x.Ready {
		return w.notReadyCause(n, x)
	}
	if outOfService(n) {
		return &Reason{Of: OfNode, Code: "OutOfServiceTaint",
			Message: fmt.Sprintf("it still has the taint %s, which keeps every pod away and is never removed by itself", corev1.TaintNodeOutOfService),
			Do:      "When the machine is in order again: " + untaint(n.Name)}
	}
	for _, s := range x.Slots {
		if !s.Registered {
			return &Reason{Of: OfMount, Code: "DriverNotRegistered", Message: "driver " + s.Driver + " is not registered there", Changes: w.adviceOn("DriverNotRegistered").Changes, Do: w.adviceOn("DriverNotRegistered").Do}
		}
	}
	if len(x.Kept) > 0 {
		return x.Kept[0].Reason
	}
	return nil
}

// notReadyCause omits the remedy if nothing waits for the node.
func (w *World) notReadyCause(n *corev1.Node, x *NodeView) *Reason {
	c := &Reason{Of: OfNode, Code: "NodeNotReady", Since: x.Since, Message: "it is not ready" + kubeletsWords(n, corev1.ConditionFalse, corev1.ConditionUnknown)}
	failing := slices.IndexFunc(x.Kept, func(v Volume) bool { return codeOf(v.Reason) == rules.DetachFailed })
	switch {
	case failing >= 0 && w.givesUp(n):
		c.Do = x.Kept[failing].Reason.Do
	case len(x.Kept) > 0 || x.Blocking > 0 || x.Held > 0 || outOfService(n):
		c.Do = w.adviceOnDead(n)
	case x.holds != nil:
		c.Do = x.holds.Do
	case x.PodsNotVisible:
		c.Do = "See why: `kubectl describe node " + n.Name + "`"
	default:
		c.Do = "See why: `kubectl describe node " + n.Name + "`. No volume waits for it"
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
		return "is ready, but " + Sentence(x.Cause.Message)
	case len(full) > 0 && x.Cordoned:
		return fmt.Sprintf("is ready and cordoned, with %s, and full for driver %s: no new pod goes there.", podsOf(x), strings.Join(full, ", "))
	case len(full) > 0:
		return fmt.Sprintf("is ready, with %s, and full for driver %s.", podsOf(x), strings.Join(full, ", "))
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

func answerNotReady(x *NodeView) string {
	var parts []string
	if x.Terminating > 0 && x.KubeletLives {
		parts = append(parts, CountVerb(x.Terminating, "pod")+" Terminating there, and its kubelet ends such a pod")
	} else if x.Blocking > 0 {
		parts = append(parts, fmt.Sprintf("%s Terminating there, and a StatefulSet can't replace %d of them", CountVerb(x.Terminating, "pod"), x.Blocking))
	} else if x.Terminating > 0 {
		parts = append(parts, CountVerb(x.Terminating, "pod")+" Terminating there")
	}
	if len(x.Kept) > 0 {
		parts = append(parts, Count(len(x.Kept), "volume")+" can't leave it")
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

func (w *World) anyDriver(name ledger.NodeName) bool {
	n := w.Snapshot.Node(name)
	return n != nil && slices.ContainsFunc(n.Drivers, func(d ledger.NodeDriver) bool { return d.Registered })
}

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

// isAt ignores mere requests.
func (w *World) isAt(id ledger.VolumeID, name ledger.NodeName) bool {
	v := w.Snapshot.Volume(id)
	p := v.OnNode(name)
	if p == nil {
		return false
	}
	at := w.volumeOnNode(v, p)
	return at.maybeThere()
}

// FencedAt counts volumes that were taken by force and may still be there.
func (w *World) FencedAt(n *corev1.Node) int {
	count, machine := 0, convert.Node(n).SystemUUID
	for _, h := range w.Holds {
		if slices.ContainsFunc(h.Status.Fenced, func(f v1alpha1.FencedNode) bool {
			other := f.NodeUID != "" && f.NodeUID != n.UID || f.SystemUUID != "" && f.SystemUUID != ledger.OtherMachine && f.SystemUUID != machine
			left := f.Rule != "" && !w.isAt(ledger.VolumeID{Driver: h.Spec.Driver, Handle: h.Spec.Handle}, ledger.NodeName(n.Name))
			return f.Node == n.Name && !other && !left
		}) {
			count++
		}
	}
	return count
}
