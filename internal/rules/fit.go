// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"iter"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Arbiter decides. The zero value is for Standalone mode.
type Arbiter struct {
	// Cooperative: kube-controller-manager's attach/detach controller also runs. It owns volumesAttached,
	// and detaches the volumes of departed pods.
	Cooperative bool
	// StayAttached asks the attacher to leave a volume that its node wants again if its detach is refused.
	// Only moorage-attacher obeys.
	StayAttached bool
	// Hurried: a node is asked for the second look at an unknown volume at once, for tests without time.
	Hurried bool
	// RequireNodeReport: a volume counts as in use at a node until moorage-node has looked there and found
	// nothing of it. For a controller in Standalone mode only: other processes detach nothing, and do not
	// read moorage-node's reports.
	RequireNodeReport bool
}

// Admissible says whether a request can be met at any node at all. Its reasons concern claims and volumes,
// not nodes.
func (a Arbiter) Admissible(s ledger.Snapshot, r Request) Verdict {
	if many := r.tooMany(s); len(many) > 0 {
		return refuse(many)
	}
	var reasons []Reason
	for _, need := range r.Needs {
		reasons = append(reasons, need.broken(s, s.Volume(need.Volume))...)
	}
	return refuse(reasons)
}

// broken says what is wrong with a need of volume v, at any node. Rules about claims and volumes belong
// here: Admissible, Fit and Explain ask it, and a grant that it refuses is taken back (Keeps). Rules about
// a node belong in wherever, rules about slots in the queue.
func (n Need) broken(s ledger.Snapshot, v *ledger.Volume) []Reason {
	reason := Reason{Volume: n.Volume, Claim: n.Name}
	switch {
	case n.Link == ledger.LinkMissing:
		reason.Code = ClaimMissing
		if n.Claim != nil {
			reason.Detail = notTheirs
		}
	case n.Link == ledger.LinkLost:
		reason.Code, reason.Detail = ClaimLost, n.persistentVolume()
	case n.Link == ledger.LinkUnseen:
		reason.Code, reason.Detail = VolumeMissing, n.persistentVolume()
	case n.Claim != nil && n.Claim.Deleting:
		reason.Code = ClaimDeleting
	case n.Link == ledger.LinkUnbound && (n.Bound || !waitsForConsumer(s, n.Claim)):
		reason.Code = ClaimUnbound
	case n.Claim == nil && n.Bound && goesAway(s, v):
		// A ticket that names a PersistentVolume would prevent its deletion. A claim keeps its
		// PersistentVolume anyway, and its attacher may attach it or refuse.
		reason.Code = VolumeDeleting
	default:
		return nil
	}
	return []Reason{reason}
}

// persistentVolume names the PersistentVolume of the claim; empty without a claim.
func (n Need) persistentVolume() string {
	if n.Claim == nil {
		return ""
	}
	return n.Claim.PersistentVolume
}

// notTheirs is the Detail of ClaimMissing for an existing claim of that name that is not the intended
// claim.
const notTheirs = "not theirs"

// madeAgain is the Detail of ClaimMissing for a claim or PersistentVolume that leads to another volume than
// the ticket was granted.
const madeAgain = "made again"

func waitsForConsumer(s ledger.Snapshot, c *ledger.Claim) bool {
	if c == nil {
		return false
	}
	class := s.StorageClass(c.Class)
	return class != nil && class.WaitForFirst
}

// goesAway says whether all PersistentVolumes of a volume are being deleted.
func goesAway(s ledger.Snapshot, v *ledger.Volume) bool {
	pv := source(s, v)
	return pv != nil && pv.Deleting
}

// Fit says whether a request may be placed at a node, as Filter asks. Granted tickets count; pending
// tickets count if they rank before the request. It costs the request's own volumes, however many pods and
// attachments the node has.
func (a Arbiter) Fit(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) Verdict {
	return evaluation{arbiter: a, snapshot: s, request: r, node: n, now: now}.fit()
}

func (w evaluation) fit() Verdict { return w.judge(w.fenced()) }

// judge says whether the request fits the node. lost are the reasons of the volumes for which the node is
// fenced.
func (w evaluation) judge(lost []Reason) Verdict {
	reasons := slices.Concat(lost, w.cutOff(), w.reasonsBesideRoom())
	if w.node != ledger.Detached { // which has unlimited room
		reasons = append(reasons, w.room()...)
	}
	return refuse(reasons).SeenFrom(w.request.Who.Namespace)
}

// reasonsBesideRoom lists the reasons that keep a request from the node, except slots.
func (w evaluation) reasonsBesideRoom() []Reason {
	if many := w.request.tooMany(w.snapshot); len(many) > 0 {
		return many
	}
	var reasons []Reason
	for _, need := range w.request.Needs {
		v := w.snapshot.Volume(need.Volume)
		reasons = append(reasons, need.broken(w.snapshot, v)...)
		if need.Volume.IsZero() || !w.snapshot.AttachRequired(need.Volume.Driver) {
			continue
		}
		if excludes(w.snapshot, v, w.node) {
			reasons = append(reasons, Reason{Code: NodeExcluded, Volume: need.Volume, Claim: need.Name, Node: w.node})
		}
		reasons = append(reasons, w.free(v, need)...)
		reasons = append(reasons, w.incompatible(v, need)...)
		reasons = append(reasons, w.labelledOtherwise(v, need)...)
	}
	return reasons
}

// Nodes narrows a request to the nodes where living users hold its exclusive volumes. It does not (false)
// if only tickets that yield hold them, or if they must stay detached. If the reasons of Fit name more than
// one node, no node fits.
func (a Arbiter) Nodes(s ledger.Snapshot, r Request, now time.Time) (ledger.NodeName, bool) {
	return evaluation{arbiter: a, snapshot: s, request: r, now: now, yielded: true}.nodes()
}

func (w evaluation) nodes() (ledger.NodeName, bool) {
	s := w.snapshot
	for _, need := range w.request.Needs {
		v := s.Volume(need.Volume)
		if v == nil || !exclusive(access(s, v, need.Access)) || !s.AttachRequired(v.ID.Driver) || w.migration(v) || underMigration(s, v) {
			continue
		}
		if n := w.blockedAt(v); n != "" && n != ledger.Detached {
			return n, true
		}
	}
	return "", false
}

// blockedAt is the node of a claim on a volume. Holders come first, then users that live at the holder's
// node, then tickets that ask.
func (w evaluation) blockedAt(v *ledger.Volume) ledger.NodeName {
	if n := w.has(v); n != "" {
		return n
	}
	asked := ledger.NodeName("")
	for i := range v.OnNodes {
		p := &v.OnNodes[i]
		if w.lives(v, p) {
			return p.Node
		}
		if asked == "" && slices.ContainsFunc(p.Users, func(u ledger.User) bool { return w.blocks(v, p, u) }) {
			asked = p.Node
		}
	}
	return asked
}

// excludes says whether the node affinity of a PersistentVolume keeps a volume from a node. Each
// PersistentVolume of the volume has to allow the node. Unknown facts about a node exclude nothing: the
// node is refused because it does not exist.
func excludes(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName) bool {
	if v == nil {
		return false
	}
	return slices.ContainsFunc(v.PVs(), func(pv string) bool {
		p := s.PersistentVolume(pv)
		if p == nil || p.Affinity == (ledger.NodeAffinity{}) {
			return false
		}
		n := s.Node(name)
		return n != nil && n.Exists && !p.Affinity.Matches(name, n.Labels)
	})
}

// FreesSlots says whether a request does not fit a node for want of slots or for SELinux labels, and would
// fit after the detach of all volumes there without users or with ending users only. After an eviction a
// scheduler waits for that: another eviction would be in vain.
//
// It costs the node's attachments.
func (a Arbiter) FreesSlots(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) bool {
	if !There(s, n) || a.Fit(s, r, n, now).Allowed() {
		return false
	}
	w := evaluation{arbiter: a, snapshot: s, request: r, node: n, now: now, detached: true}
	return w.judge(w.fenced()).Allowed()
}

// FitsByEviction says whether a request does not fit a node but would fit without the node's pods of lower
// priority: preemption there is worth a try. It costs the node's attachments.
func (a Arbiter) FitsByEviction(s ledger.Snapshot, r Request, priority int32, n ledger.NodeName, now time.Time) bool {
	v := a.Fit(s, r, n, now)
	if v.Allowed() || slices.ContainsFunc(v.Reasons, func(reason Reason) bool { return !reason.LiftedByEviction(n) }) {
		return false
	}
	without := &ledger.Delta{}
	if d := s.Delta(); d != nil {
		without = d.Clone()
	}
	for uid, other := range usersAt(s, n) {
		if other.Priority < priority {
			without.Remove(uid)
		}
	}
	return len(without.Removed) > 0 && a.Fit(s.With(without), r, n, now).Allowed()
}

// LowestPriority is the lowest priority of the pods that use volumes at a node: up to this priority
// FitsByEviction is false. False: no pod uses a volume there. It costs the node's attachments.
func LowestPriority(s ledger.Snapshot, n ledger.NodeName) (lowest int32, some bool) {
	for _, pod := range usersAt(s, n) {
		if !some || pod.Priority < lowest {
			lowest, some = pod.Priority, true
		}
	}
	return lowest, some
}

// usersAt yields the pods that use or have reserved volumes at a node, once for each volume.
func usersAt(s ledger.Snapshot, n ledger.NodeName) iter.Seq2[string, *ledger.Pod] {
	return func(yield func(string, *ledger.Pod) bool) {
		node := s.Node(n)
		if node == nil {
			return
		}
		for _, id := range node.At() {
			for _, u := range s.Volume(id).OnNode(n).Users {
				if pod := s.Pod(u.Pod); pod != nil && !yield(u.Pod, pod) {
					return
				}
			}
		}
	}
}
