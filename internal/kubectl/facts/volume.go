// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Volume is where one volume is, who has it and who waits for it.
type Volume struct {
	// PersistentVolume is the first of those that name the volume, Claim
	// (namespace/name) who it belongs to; both empty for an inline volume.
	PersistentVolume string `json:"persistentVolume,omitempty"`
	Claim            string `json:"claim,omitempty"`
	Driver           string `json:"driver"`
	Handle           string `json:"handle"`
	// Access is how many it may serve at once: "one node", "one pod", "many
	// nodes", "unknown" or "conflict".
	Access string `json:"access"`
	// State is the volume in one word: that at the node that counts, or
	// NotProvisioned, Free, DetachPending, Unknown.
	State string `json:"state"`
	// Holder is the node that an exclusive volume is granted to.
	Holder *Holder `json:"holder,omitempty"`
	// Next is to whom it goes when the holder has let go.
	Next *Waiter `json:"next,omitempty"`
	// Waiting are the others who want it and don't have it.
	Waiting []Waiter `json:"waiting,omitempty"`
	// Nodes are those that anything binds the volume to.
	Nodes []NodeVolume `json:"nodes,omitempty"`
	// Reason is what keeps it at a node that it is to leave.
	Reason *Reason `json:"reason,omitempty"`
	// Transitions counts its changes of node.
	Transitions int64 `json:"transitions,omitempty"`
}

// Holder is who has an exclusive volume.
type Holder struct {
	Node string `json:"node"`
	// For is who uses it there; empty when nobody does any more.
	For []Requester `json:"for,omitempty"`
	// Since is when its attachment at the node was made.
	Since time.Time `json:"since,omitzero"`
}

// Waiter is who wants a volume and does not have it.
type Waiter struct {
	Who Requester `json:"who"`
	// Node is where; empty for a pod without a node.
	Node  string    `json:"node,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// NodeVolume is a volume at a node.
type NodeVolume struct {
	Node string `json:"node"`
	// State is Asked, Reserved, Attaching, AttachFailed, Attached, InUse, Kept,
	// Detaching, DetachFailed or Unknown.
	State string `json:"state"`
	// Attachment is the VolumeAttachment's name.
	Attachment string `json:"attachment,omitempty"`
	// Attached is its status; Reported and InUse are the node's
	// volumesAttached and volumesInUse.
	Attached bool      `json:"attached"`
	Reported bool      `json:"reported"`
	InUse    bool      `json:"inUse"`
	Since    time.Time `json:"since,omitzero"`
	Error    string    `json:"error,omitempty"` // the driver's
	Users    []User    `json:"users,omitempty"`
}

// User is who uses a volume at a node, or asks for it there.
type User struct {
	Requester
	// State is Bound, Terminating or Finished for a pod, Reserved for the
	// granted ticket of a pod that is not bound, Granted for any other, and
	// Asking for one that is not decided.
	State string `json:"state"`
}

// Key names a volume as SlotVolume.Volume does: its PersistentVolume, else driver^handle;
// empty for one that is not provisioned yet.
func (v *Volume) Key() string {
	switch {
	case v.PersistentVolume != "":
		return v.PersistentVolume
	case v.Handle == "":
		return ""
	}
	return ledger.VolumeID{Driver: v.Driver, Handle: v.Handle}.String()
}

// VolumeOf finds a volume by its key; false for one that is not known any more.
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

// Volume describes a volume. The zero value stands for one that is not known.
func (w *World) Volume(id ledger.VolumeID) Volume {
	v := w.Snapshot.Volume(id)
	out := Volume{Driver: id.Driver, Handle: handleOf(id), Access: accessUnknown, State: stateFree}
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
		out.PersistentVolume = names[0]
		if pv := w.Snapshot.PersistentVolume(names[0]); pv != nil && pv.Claim.Name != "" {
			out.Claim = pv.Claim.String()
		}
	}
	for i := range v.NodeVolumes {
		out.Nodes = append(out.Nodes, w.nodeVolume(v, &v.NodeVolumes[i]))
	}
	w.describeHold(&out, v)
	w.describeWaiting(&out, v)
	out.State = w.stateOf(&out, v)
	return out
}

// handleOf is the handle, unless it stands for a volume that is not there yet.
func handleOf(id ledger.VolumeID) string {
	if id.IsReal() {
		return id.Handle
	}
	return ""
}

const accessUnknown = "unknown"

func accessOf(a ledger.Access) string {
	switch a {
	case ledger.AccessNode:
		return "one node"
	case ledger.AccessPod:
		return "one pod"
	case ledger.AccessMany, ledger.AccessUnset:
		return "many nodes"
	case ledger.AccessConflict:
		return "conflict"
	case ledger.AccessUnknown:
	}
	return accessUnknown
}

func (w *World) describeHold(out *Volume, v *ledger.Volume) {
	h := v.Hold
	if h == nil {
		return
	}
	out.Transitions = h.Transitions
	if h.Node != "" {
		out.Holder = &Holder{Node: string(h.Node)}
		for _, r := range h.Requesters {
			if w.gone(r) {
				continue // a hold may name for a while those who have just left
			}
			out.Holder.For = append(out.Holder.For, requester(r))
		}
		if va := w.attachment(v.ID, h.Node); va != nil {
			out.Holder.Since = va.CreationTimestamp.Time
		}
	}
	if !h.Next.To.IsZero() {
		out.Next = &Waiter{Who: requester(h.Next.To), Node: string(h.Next.Node), Since: waitsSince(w.pods[h.Next.To.UID])}
	}
	if h.Reason != "" {
		node, until := w.concern(v)
		if resource := w.hidden(h.Reason); resource != "" {
			unseen := notVisible(h.Reason, ledger.NodeName(node), resource)
			out.Reason = &unseen
			return
		}
		out.Reason = &Reason{Code: string(h.Reason), Message: h.Message, Node: node, Until: until, Changes: w.advice[h.Reason].Changes, Do: w.safeAdvice(h.Reason, node)}
		for _, c := range w.holds[v.ID].Status.Conditions {
			if c.Reason == string(h.Reason) {
				out.Reason.Since = c.LastTransitionTime.Time
			}
		}
	}
}

// concern is the node that a hold's reason is about, which is not always the holder, and
// when the time that it waits for ends; empty when the facts don't show that reason any more.
func (w *World) concern(v *ledger.Volume) (node string, until time.Time) {
	r, ok := w.Arbiter.Concern(w.Snapshot, v, w.Now)
	if ok && r.Code == v.Hold.Reason {
		return string(r.Node), w.until(r)
	}
	return "", time.Time{}
}

// gone says whether a pod that a hold names is known not to exist any more.
func (w *World) gone(r ledger.Requester) bool {
	return !r.Ticket && w.pods[r.UID] == nil && !w.partUnseen("pods")
}

// describeWaiting lists who wants the volume and is neither holder nor next:
// whom the hold names, and pods without a node, of which it knows nothing.
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
	for _, nv := range out.Nodes {
		for _, u := range nv.Users {
			if u.State == "Asking" && !known[u.Requester] {
				known[u.Requester] = true
				out.Waiting = append(out.Waiting, Waiter{Who: u.Requester, Node: nv.Node, Since: w.askedSince(u.Requester)})
			}
		}
	}
	for _, pod := range w.unboundPods(v) {
		add(ledger.Requester{Namespace: pod.Namespace, Name: pod.Name}, "", waitsSince(pod))
	}
	slices.SortFunc(out.Waiting, func(a, b Waiter) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Who.String(), b.Who.String()))
	})
}

// askedSince is when a ticket was made.
func (w *World) askedSince(r Requester) time.Time {
	for _, t := range w.Tickets {
		if t.Namespace == r.Namespace && t.Name == r.Name {
			return t.CreationTimestamp.Time
		}
	}
	return time.Time{}
}

// unboundPods are the pods that refer to the volume, have no node, and no
// reservation of it at one.
func (w *World) unboundPods(v *ledger.Volume) []*corev1.Pod {
	var list []*corev1.Pod
	for _, name := range v.PVs() {
		pv := w.Snapshot.PersistentVolume(name)
		if pv == nil {
			continue
		}
		for _, uid := range w.Snapshot.ClaimPods(pv.Claim) {
			pod, fact := w.pods[uid], w.Snapshot.Pod(uid)
			if pod != nil && fact != nil && fact.Node == "" && fact.Phase == ledger.PodLive && w.needs(fact, v.ID) && !w.hasTicket(v, uid) {
				list = append(list, pod)
			}
		}
	}
	return list
}

// needs says whether a volume is one of a pod's own: of a generic ephemeral volume's
// claim there may be another of that name.
func (w *World) needs(p *ledger.Pod, id ledger.VolumeID) bool {
	return slices.ContainsFunc(arbiter.PodRequest(w.Snapshot, p).Needs, func(n arbiter.Need) bool { return n.Volume == id })
}

func (w *World) hasTicket(v *ledger.Volume, pod string) bool {
	for i := range v.NodeVolumes {
		for _, u := range v.NodeVolumes[i].Users {
			if t := w.Snapshot.Ticket(u.Ticket); t != nil && t.Pod == pod {
				return true
			}
		}
	}
	return false
}
