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
	// Cooperative: the attach/detach controller of kube-controller-manager also runs. It owns
	// volumesAttached, and detaches departed pods' volumes.
	Cooperative bool
	// StayAttached asks the attacher, if a detach is refused, to leave a volume that its node wants again.
	// Only moorage-attacher obeys.
	StayAttached bool
	// Hurried: the second look at an unknown volume follows at once, for tests without time.
	Hurried bool
	// RequireNodeReport: a volume counts as in use at a node until moorage-node has looked there and found
	// nothing of it. Only a controller in Standalone mode needs it: other processes detach nothing.
	RequireNodeReport bool
}

// Admissible says whether a request can be met at any node. Its reasons concern claims and volumes.
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

// broken is what is wrong with a need of volume v, at any node. Put rules about claims and volumes here:
// Admissible, Fit, Explain and Keeps ask it. Rules about a node belong in wherever, about slots in the
// queue.
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
		// PersistentVolume anyway, and the attacher decides.
		reason.Code = VolumeDeleting
	default:
		return nil
	}
	return []Reason{reason}
}

// persistentVolume is empty without a claim.
func (n Need) persistentVolume() string {
	if n.Claim == nil {
		return ""
	}
	return n.Claim.PersistentVolume
}

// notTheirs is the Detail of ClaimMissing for another claim of that name.
const notTheirs = "not theirs"

// madeAgain is the Detail of ClaimMissing for a claim or PersistentVolume that leads to another volume than
// was granted.
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

// Fit says whether a request may be placed at a node. Granted tickets count, and pending tickets that rank
// before the request. Its cost grows with the request's volumes only.
func (a Arbiter) Fit(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) Verdict {
	return evaluation{arbiter: a, snapshot: s, request: r, node: n, now: now}.fit()
}

func (w evaluation) fit() Verdict { return w.judge(w.fenced()) }

// judge says whether the request fits the node. lost are the reasons of the volumes for which the node is
// fenced.
func (w evaluation) judge(lost []Reason) Verdict {
	reasons := slices.Concat(lost, w.cutOff(), w.reasonsBesideRoom())
	if w.node != ledger.Detached { // it has unlimited room
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

// Nodes narrows a request to the nodes where living users hold its exclusive volumes. False: only tickets
// that yield hold them, or they must stay detached.
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

// blockedAt prefers holders, then users that live at the holder's node, then tickets that ask.
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

// excludes says whether any PersistentVolume's node affinity excludes a node. Unknown facts exclude
// nothing: a missing node is refused anyway.
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

// FreesSlots says whether a request fits a node only after the detach of all volumes there without staying
// users. After an eviction a scheduler waits for that. It costs the node's attachments.
func (a Arbiter) FreesSlots(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) bool {
	if !There(s, n) || a.Fit(s, r, n, now).Allowed() {
		return false
	}
	w := evaluation{arbiter: a, snapshot: s, request: r, node: n, now: now, detached: true}
	return w.judge(w.fenced()).Allowed()
}

// FitsByEviction says whether preemption of a node's pods of lower priority would make a request fit. It
// costs the node's attachments.
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

// LowestPriority is the lowest priority of the pods that use volumes at a node; up to it FitsByEviction is
// false. False: no such pod. It costs the node's attachments.
func LowestPriority(s ledger.Snapshot, n ledger.NodeName) (lowest int32, some bool) {
	for _, pod := range usersAt(s, n) {
		if !some || pod.Priority < lowest {
			lowest, some = pod.Priority, true
		}
	}
	return lowest, some
}

// usersAt yields a pod once for each volume.
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
