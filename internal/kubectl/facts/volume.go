// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Volume describes a volume's place, users and queue.
type Volume struct {
	// PersistentVolume is the volume's first by name, Claim (namespace/name) its owner; both empty if
	// inline.
	PersistentVolume string `json:"persistentVolume,omitempty"`
	Claim            string `json:"claim,omitempty"`
	Driver           string `json:"driver"`
	Handle           string `json:"handle"`
	// Access is how many users it may serve: "one node", "one pod", "many nodes", "unknown" or "conflict".
	Access string `json:"access"`
	// State is its state at the main node, or NotProvisioned, Free, Detached, DetachPending, Unknown.
	State string `json:"state"`
	// Holder is the node of a granted exclusive volume.
	Holder *Holder `json:"holder,omitempty"`
	// Next gets it when the holder lets go.
	Next    *Waiter  `json:"next,omitempty"`
	Waiting []Waiter `json:"waiting,omitempty"`
	// Nodes are all nodes bound to the volume.
	Nodes       []VolumeOnNode `json:"nodes,omitempty"`
	Reason      *Reason        `json:"reason,omitempty"`
	Transitions int64          `json:"transitions,omitempty"`
	// NodesSay is the nodes' own report, if any.
	NodesSay []NodeHas `json:"nodesSay,omitempty"`
}

// Holder has an exclusive volume.
type Holder struct {
	// Node is "(detached)" for a volume that is kept from every node.
	Node string `json:"node"`
	// For are its users there; empty: none any more.
	For   []Requester `json:"for,omitempty"`
	Since time.Time   `json:"since,omitzero"`
}

// Detached: the volume is kept from every node.
func (h *Holder) Detached() bool { return h.Node == string(ledger.Detached) }

// Waiter wants a volume that it lacks.
type Waiter struct {
	Who Requester `json:"who"`
	// Node is empty for an unplaced pod, and "(detached)" for a ticket for no node.
	Node  string    `json:"node,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// VolumeOnNode is a volume at a node.
type VolumeOnNode struct {
	Node string `json:"node"`
	// State is Asked, Reserved, Queued, Attaching, AttachFailed, Attached, InUse, Kept,
	// Detaching, DetachFailed or Unknown.
	State      string `json:"state"`
	Attachment string `json:"attachment,omitempty"`
	// Attached is its status; Reported and InUse are volumesAttached and volumesInUse. Both are absent if
	// no Node is seen. InUse is also absent while the volume is not there: a waiting kubelet already lists
	// it.
	Attached bool      `json:"attached"`
	Reported *bool     `json:"reported,omitempty"`
	InUse    *bool     `json:"inUse,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Error    string    `json:"error,omitempty"` // the driver's
	// Taken: a forced detach took it, and the kubelet has not yet reported the unmount. It keeps its slot
	// until then.
	Taken bool   `json:"taken,omitempty"`
	Users []User `json:"users,omitempty"`
}

// User is a pod or ticket that uses or requests a volume at a node.
type User struct {
	Requester
	// State is Bound, Terminating or Finished for a pod; Granted or Asking (undecided) for a ticket.
	State string `json:"state"`
}

// Key is the PersistentVolume, else driver^handle; empty: not provisioned yet.
func (v *Volume) Key() string {
	switch {
	case v.PersistentVolume != "":
		return v.PersistentVolume
	case v.Handle == "":
		return ""
	}
	return ledger.VolumeID{Driver: v.Driver, Handle: v.Handle}.String()
}

// Asked says whether the volume is only requested, without a holder or a place.
func (v *Volume) Asked() bool { return v.State == stateAsked }

// Places may have the volume; without such nodes, they are nodes that want it.
func (v *Volume) Places() []VolumeOnNode {
	var list []VolumeOnNode
	for i := range v.Nodes {
		if v.Nodes[i].maybeThere() {
			list = append(list, v.Nodes[i])
		}
	}
	if len(list) == 0 {
		return v.Nodes
	}
	return list
}

// VolumeOf is false if the volume is not known any more.
func (w *World) VolumeOf(key string) (Volume, bool) {
	id := ledger.VolumeID{}
	if pv := w.Snapshot.PersistentVolume(key); pv != nil {
		id = pv.Volume
	} else if driver, handle, ok := strings.Cut(key, "^"); ok {
		id = ledger.VolumeID{Driver: driver, Handle: handle}
	}
	if w.Snapshot.Volume(id) == nil {
		return Volume{}, false
	}
	return w.Volume(id), true
}

// Volume describes a volume; the zero value: unknown.
func (w *World) Volume(id ledger.VolumeID) Volume {
	v := w.Snapshot.Volume(id)
	out := Volume{Driver: id.Driver, Access: accessUnknown, State: stateFree}
	if id.IsReal() {
		out.Handle = id.Handle
	}
	if v != nil {
		out.Access = accessOf(v.Access)
	}
	if id.IsClaim() {
		out.State = stateNotProvisioned
	}
	if v == nil {
		return out
	}
	if names := v.PVs(); len(names) > 0 {
		out.PersistentVolume, out.Claim = names[0], w.claimOf(names[0])
	}
	for i := range v.OnNodes {
		if v.OnNodes[i].Node != ledger.Detached {
			out.Nodes = append(out.Nodes, w.volumeOnNode(v, &v.OnNodes[i]))
		}
	}
	w.describeHold(&out, v)
	if out.Reason == nil {
		w.describeWaiters(&out, v)
	}
	w.describeWaiting(&out, v)
	out.State, out.NodesSay = w.stateOf(&out, v), w.nodesSaying(id)
	return out
}

func (w *World) named(v *ledger.Volume) (key, claim string) {
	if names := v.PVs(); len(names) > 0 {
		return names[0], w.claimOf(names[0])
	}
	return v.ID.String(), ""
}

// claimOf is empty if the claim is missing or was made again.
func (w *World) claimOf(name string) string {
	pv := w.Snapshot.PersistentVolume(name)
	if pv == nil || pv.Claim.Name == "" || w.ofEarlierClaim(w.pvs[name]) {
		return ""
	}
	return pv.Claim.String()
}

func (w *World) ofEarlierClaim(pv *corev1.PersistentVolume) bool {
	if pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == "" {
		return false
	}
	claim := w.Claim(pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name)
	return claim != nil && claim.UID != "" && claim.UID != pv.Spec.ClaimRef.UID
}

const accessUnknown = "unknown"

func accessOf(a ledger.Access) string {
	switch a {
	case ledger.AccessNode:
		return "one node"
	case ledger.AccessPod:
		return "one pod"
	case ledger.AccessMany:
		return "many nodes"
	case ledger.AccessUnknown:
	}
	return accessUnknown
}

func (w *World) describeHold(out *Volume, v *ledger.Volume) {
	h := v.Record()
	out.Transitions = h.Transitions
	if h.Node != "" {
		out.Holder = &Holder{Node: string(h.Node), For: w.holders(out, &h)}
		if va := w.attachment(v.ID, h.Node); va != nil {
			out.Holder.Since = va.CreationTimestamp.Time
		}
	}
	if !h.Next.To.IsZero() && !w.gone(h.Next.To) {
		out.Next = &Waiter{Who: requester(h.Next.To), Node: string(h.Next.Node), Since: waitsSince(w.pods[h.Next.To.UID])}
	}
	if h.Reason != "" {
		out.Reason = w.reasonOfHold(v)
	}
}

// holders are the hold's users there, without pods that are gone or bound elsewhere. Without a current
// hold, the users at the node count.
func (w *World) holders(out *Volume, h *ledger.Hold) []Requester {
	var list []Requester
	if !w.holdsKept || h.Version == "" {
		for _, nv := range out.Nodes {
			for _, u := range nv.Users {
				if nv.Node == string(h.Node) && u.State == "Bound" {
					list = append(list, u.Requester)
				}
			}
		}
		return list
	}
	for _, r := range h.Requesters {
		if pod := w.pods[r.UID]; !w.gone(r) && (pod == nil || pod.Spec.NodeName == "" || pod.Spec.NodeName == string(h.Node)) {
			list = append(list, requester(r))
		}
	}
	return list
}

// reasonOfHold may be about another node than the holder's. A reason without facts counts only in an up to
// date hold.
func (w *World) reasonOfHold(v *ledger.Volume) *Reason {
	h := v.Hold
	if r, ok := w.Arbiter.Concern(w.Snapshot, v, w.Now); ok && r.Code == h.Reason {
		reason := w.reason(r, nil)
		return &reason
	}
	if !w.holdsKept {
		return nil
	}
	if resource := w.hidden(h.Reason); resource != "" {
		unseen := notVisible(h.Reason, "", resource)
		return &unseen
	}
	return &Reason{Of: OfVolume, Code: string(h.Reason), Node: string(h.Node), Message: h.Message, Since: w.sinceOfHold(v.ID, h.Reason), Changes: w.adviceOn(h.Reason).Changes, Do: w.safeAdvice(h.Reason, "")}
}

// describeWaiters serves bound waiters without a hold's reason: without Moorage there are no holds.
func (w *World) describeWaiters(out *Volume, v *ledger.Volume) {
	for i := range v.OnNodes {
		at := &v.OnNodes[i]
		for _, u := range at.Users {
			pod := w.pods[u.Pod]
			if pod == nil || pod.DeletionTimestamp != nil || w.Arbiter.SafeToMount(w.Snapshot, v.ID, at.Node) {
				continue
			}
			r := w.awayReason(v, at.Node, pod)
			if r == nil {
				r = w.leavingReason(v, at.Node, pod)
			}
			if r != nil {
				out.Reason = r
				if out.Next == nil {
					out.Next = &Waiter{Who: Requester{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, Node: string(at.Node), Since: waitsSince(pod)}
				}
				return
			}
		}
	}
	for i := range v.OnNodes {
		at := &v.OnNodes[i]
		if va := at.Canonical(); va != nil && va.Deleting && !va.DetachError.IsZero() {
			out.Reason = w.leavingReason(v, "", nil)
			return
		}
	}
}

// leavingReason says that a one-node volume still leaves another node; without a node, that a detach fails.
// Nil: neither. An error at the pod's node may follow from that.
func (w *World) leavingReason(v *ledger.Volume, node ledger.NodeName, pod *corev1.Pod) *Reason {
	if v.Access == ledger.AccessMany && node != "" {
		return nil
	}
	var at *ledger.VolumeOnNode // a failing detach first
	for i := range v.OnNodes {
		va := v.OnNodes[i].Canonical()
		failing := va != nil && !va.DetachError.IsZero()
		if va != nil && va.Deleting && v.OnNodes[i].Node != node && (failing || node != "" && at == nil) {
			at = &v.OnNodes[i]
		}
	}
	if at == nil {
		return nil
	}
	va := at.Canonical()
	r := rules.Reason{Code: rules.Detaching, Volume: v.ID, Node: at.Node}
	if !va.DetachError.IsZero() {
		r.Code, r.Detail, r.GRPC = rules.DetachFailed, va.DetachError.Message, va.DetachError.Code
	}
	_, claim := w.named(v)
	_, r.Claim, _ = strings.Cut(claim, "/")
	reason := w.reason(r, pod)
	return &reason
}

// awayReason is nil if the pod does not wait for another node.
func (w *World) awayReason(v *ledger.Volume, node ledger.NodeName, pod *corev1.Pod) *Reason {
	for _, need := range rules.PodRequest(w.Snapshot, w.PodFact(pod)).Needs {
		if need.Volume != v.ID {
			continue
		}
		for _, r := range w.Arbiter.Explain(w.Snapshot, need, node, w.Now).Reasons {
			if r.Node != "" && r.Node != node && r.Code != rules.HeldElsewhere && r.Code != rules.UsedByOtherPod {
				reason := w.reason(r, pod)
				return &reason
			}
		}
	}
	return nil
}

func (w *World) gone(r ledger.Requester) bool {
	return !r.Ticket && w.pods[r.UID] == nil && !w.partUnseen("pods")
}

// describeWaiting adds pods without a node, unknown to the hold.
func (w *World) describeWaiting(out *Volume, v *ledger.Volume) {
	known := map[Requester]bool{}
	if out.Next != nil {
		known[out.Next.Who] = true
	}
	add := func(who ledger.Requester, node string, since time.Time) {
		if r := requester(who); !known[r] {
			known[r] = true
			out.Waiting = append(out.Waiting, Waiter{Who: r, Node: node, Since: since})
		}
	}
	if out.Holder != nil {
		for _, r := range out.Holder.For {
			known[r] = true
		}
	}
	if v.Hold != nil {
		for _, r := range v.Hold.Waiting {
			node := ""
			if p := w.pods[r.UID]; p != nil {
				node = p.Spec.NodeName
			}
			add(r, node, waitsSince(w.pods[r.UID]))
		}
	}
	asking := func(node string, users []User) {
		for _, u := range users {
			if u.State == userAsking && !known[u.Requester] {
				known[u.Requester] = true
				out.Waiting = append(out.Waiting, Waiter{Who: u.Requester, Node: node, Since: w.askedSince(u.Requester)})
			}
		}
	}
	for _, nv := range out.Nodes {
		asking(nv.Node, nv.Users)
	}
	if kept := v.KeptDetached(); kept != nil {
		asking(string(kept.Node), w.users(kept))
	}
	for _, pod := range w.unboundPods(v) {
		add(ledger.Requester{Namespace: pod.Namespace, Name: pod.Name}, "", waitsSince(pod))
	}
	slices.SortFunc(out.Waiting, longerFirst)
}

func longerFirst(a, b Waiter) int {
	return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Who.String(), b.Who.String()))
}

func (w *World) askedSince(r Requester) time.Time {
	if t := w.Ticket(r.Namespace, r.Name); t != nil {
		return t.CreationTimestamp.Time
	}
	return time.Time{}
}

// unboundPods exclude gated pods: no scheduler looks at these yet.
func (w *World) unboundPods(v *ledger.Volume) []*corev1.Pod {
	var list []*corev1.Pod
	for _, name := range v.PVs() {
		pv := w.Snapshot.PersistentVolume(name)
		if pv == nil || w.ofEarlierClaim(w.pvs[name]) {
			continue
		}
		for _, uid := range w.Snapshot.ClaimPods(pv.Claim) {
			pod, fact := w.pods[uid], w.Snapshot.Pod(uid)
			if pod != nil && fact != nil && fact.Node == "" && fact.Phase == ledger.PodLive && len(pod.Spec.SchedulingGates) == 0 && w.needs(fact, v.ID) {
				list = append(list, pod)
			}
		}
	}
	return list
}

// needs: another claim may have a generic ephemeral volume's name.
func (w *World) needs(p *ledger.Pod, id ledger.VolumeID) bool {
	return slices.ContainsFunc(rules.PodRequest(w.Snapshot, p).Needs, func(n rules.Need) bool { return n.Volume == id })
}

// The strongest true states of volumes, at nodes and overall.
const (
	stateNotProvisioned = "NotProvisioned" // its claim is not bound yet
	stateFree           = "Free"
	stateAsked          = "Asked"    // asked for, not granted
	stateReserved       = "Reserved" // granted, nothing done yet
	stateQueued         = "Queued"   // waits for a busy driver's worker
	stateAttaching      = "Attaching"
	stateAttachFailed   = "AttachFailed"
	stateAttached       = "Attached"
	stateInUse          = "InUse" // attached, and in volumesInUse or unknown
	stateKept           = "Kept"  // unwanted, kept by detachDelay
	stateDetaching      = "Detaching"
	stateDetachFailed   = "DetachFailed"
	stateUnknown        = "Unknown"
	stateDetached       = "Detached" // for a ticket with spec.detached
)

// AtNode says for people where a volume goes: a node, or detached.
func AtNode(node string) string {
	if node == string(ledger.Detached) {
		return "to stay detached"
	}
	return "at " + node
}

// maybeThere ignores mere requests.
func (n *VolumeOnNode) maybeThere() bool {
	return n.State != stateReserved && n.State != stateAsked && (n.State != stateQueued || n.Attachment != "")
}

func (w *World) volumeOnNode(v *ledger.Volume, p *ledger.VolumeOnNode) VolumeOnNode {
	out := VolumeOnNode{Node: string(p.Node), Users: w.users(p)}
	va := p.Canonical()
	if va != nil {
		out.Attachment, out.Attached = va.Name, va.Attached
		if object := w.vas[va.Name]; object != nil {
			out.Since = object.CreationTimestamp.Time
			if object.DeletionTimestamp != nil {
				out.Since = object.DeletionTimestamp.Time
			}
		}
	}
	out.State, out.Error = w.placeState(v, p, va)
	out.Taken = out.State == stateUnknown && va == nil && !p.Reported && w.takenFrom(v, p.Node)
	switch {
	case out.State == stateReserved && !wanted(out.Users):
		out.State = stateAsked
	case out.State == stateAttached && len(out.Users) == 0 && w.kept(v, p):
		out.State = stateKept
	case (out.State == stateReserved || out.State == stateAttached && !wanted(out.Users)) && w.Arbiter.AwaitsWorker(w.Snapshot, v, p.Node, w.Now):
		out.State = stateQueued
	}
	if w.nodes[p.Node] != nil {
		out.Reported = new(p.Reported)
		if out.maybeThere() {
			out.InUse = new(p.InUse)
		}
	}
	return out
}

// takenFrom: the hold says so, or the node is not ready and out of service.
func (w *World) takenFrom(v *ledger.Volume, name ledger.NodeName) bool {
	if hold := w.holds[v.ID]; hold != nil && slices.ContainsFunc(hold.Status.Fenced, func(f v1alpha1.FencedNode) bool { return f.Node == string(name) }) {
		return true
	}
	node := w.nodes[name]
	return node != nil && outOfService(node) && !w.isReady(name)
}

func (w *World) placeState(v *ledger.Volume, p *ledger.VolumeOnNode, va *ledger.Attachment) (state, driver string) {
	inUse := p.InUse || w.Snapshot.IsUnknown(v, p)
	switch {
	case va == nil && v.ID.NoAttach() && p.Reported:
		return attachedOrInUse(inUse), ""
	case va == nil && (p.Reported || p.Left || (inUse || p.Held) && len(p.Users) == 0):
		return stateUnknown, "" // a waiting kubelet also reports a volume in use
	case va == nil:
		return stateReserved, ""
	case va.Deleting && !va.DetachError.IsZero():
		return stateDetachFailed, va.DetachError.Message
	case va.Deleting:
		return stateDetaching, ""
	case va.Attached:
		return attachedOrInUse(inUse), ""
	case !va.AttachError.IsZero():
		return stateAttachFailed, va.AttachError.Message
	}
	return stateAttaching, ""
}

func attachedOrInUse(inUse bool) string {
	if inUse {
		return stateInUse
	}
	return stateAttached
}

// stateOf is the hold's state if any, else that at the main node.
func (w *World) stateOf(out *Volume, v *ledger.Volume) string {
	if v.Hold != nil && w.holdsKept && (v.Hold.State == ledger.HoldDetachPending || v.Hold.State == ledger.HoldUnknown) {
		return string(v.Hold.State)
	}
	if v.Hold != nil && w.holdsKept && v.Hold.Node == ledger.Detached {
		return stateDetached
	}
	best := out.State // Free, or NotProvisioned
	for i := range out.Nodes {
		p := &out.Nodes[i]
		if out.Holder != nil && out.Holder.Node == p.Node {
			return p.State
		}
		if weight(p.State) > weight(best) {
			best = p.State
		}
	}
	return best
}

func weight(state string) int {
	for i, s := range []string{
		stateNotProvisioned, stateFree, stateAsked, stateReserved, stateQueued, stateUnknown, stateAttaching, stateAttachFailed,
		stateDetaching, stateDetachFailed, stateKept, stateAttached, stateInUse,
	} {
		if s == state {
			return i
		}
	}
	return 0
}

// users omits a bound pod's reservation: it ends soon.
func (w *World) users(p *ledger.VolumeOnNode) []User {
	var list []User
	bound := map[Requester]bool{}
	for _, u := range p.Users {
		if user := w.user(u); u.Pod != "" {
			bound[user.Requester] = true
			list = append(list, user)
		}
	}
	for _, u := range p.Users {
		if user := w.user(u); u.Pod == "" && !bound[user.Requester] {
			list = append(list, user)
		}
	}
	return list
}

const userAsking = "Asking"

func (w *World) user(u ledger.User) User {
	if u.Pod != "" {
		out := User{Requester: Requester{Kind: "Pod", Name: u.Pod}, State: "Bound"}
		if p := w.Snapshot.Pod(u.Pod); p != nil {
			out.Namespace, out.Name = p.Namespace, p.Name
			out.State = map[ledger.PodPhase]string{
				ledger.PodLive: "Bound", ledger.PodTerminating: "Terminating", ledger.PodFinished: "Finished",
			}[p.Phase]
		}
		return out
	}
	out := User{Requester: Requester{Kind: "VolumeTicket", Namespace: u.Ticket.Namespace, Name: u.Ticket.Name}, State: userAsking}
	t := w.Snapshot.Ticket(u.Ticket)
	if t == nil {
		return out
	}
	if t.Phase == ledger.TicketGranted {
		out.State = "Granted"
	}
	return out
}
