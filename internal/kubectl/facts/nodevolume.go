// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// The states of volumes, and of volumes at nodes, each the strongest that is true.
const (
	stateNotProvisioned = "NotProvisioned" // its claim is not bound yet
	stateFree           = "Free"
	stateAsked          = "Asked"    // somebody asks for it there, and is not granted it
	stateReserved       = "Reserved" // somebody has it granted there, and nothing is done yet
	stateQueued         = "Queued"   // to be attached there, or detached, and all workers of the driver are busy
	stateAttaching      = "Attaching"
	stateAttachFailed   = "AttachFailed"
	stateAttached       = "Attached"
	stateInUse          = "InUse" // attached, and the kubelet reports it in volumesInUse, or nobody can say that it isn't
	stateKept           = "Kept"  // attached, wanted by nobody, and kept by the policy's detachDelay
	stateDetaching      = "Detaching"
	stateDetachFailed   = "DetachFailed"
	stateUnknown        = "Unknown"
	stateDetached       = "Detached" // kept from every node, for a ticket with spec.detached
)

// AtNode says where a node is that a volume goes to, for people: that it is to be at none, where
// it is to stay detached.
func AtNode(node string) string {
	if node == string(ledger.Detached) {
		return "to stay detached"
	}
	return "at " + node
}

// maybeThere says whether the volume is, or may be, at the node, beyond what somebody asks for
// there.
func (n *NodeVolume) maybeThere() bool {
	return n.State != stateReserved && n.State != stateAsked && (n.State != stateQueued || n.Attachment != "")
}

func (w *World) nodeVolume(v *ledger.Volume, p *ledger.NodeVolume) NodeVolume {
	out := NodeVolume{Node: string(p.Node), Users: w.users(p)}
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
	out.State, out.Error = placeState(v, p, va)
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

// takenFrom says whether a volume without an attachment was taken from a node by force: its
// hold says so, or the node is not ready and out of service.
func (w *World) takenFrom(v *ledger.Volume, name ledger.NodeName) bool {
	if hold := w.holds[v.ID]; hold != nil && slices.ContainsFunc(hold.Status.Fenced, func(f v1alpha1.FencedNode) bool { return f.Node == string(name) }) {
		return true
	}
	node := w.nodes[name]
	return node != nil && outOfService(node) && !w.isReady(name)
}

func placeState(v *ledger.Volume, p *ledger.NodeVolume, va *ledger.Attachment) (state, driver string) {
	switch {
	case va == nil && v.ID.NoAttach() && p.Reported:
		return attachedOrInUse(p), ""
	case va == nil && (p.Reported || p.Left || (p.InUse || p.Held) && len(p.Users) == 0):
		return stateUnknown, "" // a kubelet that waits for a volume reports it as in use, too
	case va == nil:
		return stateReserved, ""
	case va.Deleting && !va.DetachError.IsZero():
		return stateDetachFailed, va.DetachError.Message
	case va.Deleting:
		return stateDetaching, ""
	case va.Attached:
		return attachedOrInUse(p), ""
	case !va.AttachError.IsZero():
		return stateAttachFailed, va.AttachError.Message
	}
	return stateAttaching, ""
}

func attachedOrInUse(p *ledger.NodeVolume) string {
	if p.InUse {
		return stateInUse
	}
	return stateAttached
}

// stateOf is a volume in one word: the hold's where it has something to
// report, else that at the node that counts most.
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

// weight orders the states: what binds a volume more weighs more.
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

// users names who uses a volume at a node, or asks for it there. A bound pod's reservation, which ends soon
// after the bind, is not told beside the pod.
func (w *World) users(p *ledger.NodeVolume) []User {
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

// userAsking is the state of a User whose ticket is not decided.
const userAsking = "Asking"

// user names one of them, and says what its use amounts to.
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
