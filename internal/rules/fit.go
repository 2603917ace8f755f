// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Arbiter decides. The zero value is for Standalone mode.
type Arbiter struct {
	// Cooperative: kube-controller-manager's attach/detach controller runs
	// too. It owns volumesAttached and detaches what bound pods leave.
	Cooperative bool
	// StayAttached asks the attacher to leave a volume whose detach is refused
	// and that is wanted again at its node. It is for moorage-attacher; others do
	// not listen.
	StayAttached bool
	// Hurried: an order to unstage a volume that led to nothing is given again at once, where
	// no time passes.
	Hurried bool
	// HearsNoNodes: this process does not observe what moorage-node says, so that it can't
	// tell that a word is missing which a policy requires. It detaches nothing.
	HearsNoNodes bool
}

// Admissible says whether a request can be met at any node at all. Its
// reasons concern claims and volumes, not nodes.
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

// broken says what is wrong with a need, which is for v, wherever it is to be met. A rule about claims and volumes
// belongs here: Admissible, Fit and Explain ask it, and a grant that it refuses is taken back (Keeps). One about a
// node belongs in wherever, and one about slots in the queue.
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
		// A ticket that names a PersistentVolume would keep it from being deleted. A claim keeps its
		// PersistentVolume anyway, and its attacher may attach it or refuse to.
		reason.Code = VolumeDeleting
	default:
		return nil
	}
	return []Reason{reason}
}

// persistentVolume names the PersistentVolume of the claim; empty where there is no claim.
func (n Need) persistentVolume() string {
	if n.Claim == nil {
		return ""
	}
	return n.Claim.PersistentVolume
}

// notTheirs as the Detail of ClaimMissing says that there is a claim of that name,
// which is not the one meant.
const notTheirs = "not theirs"

// madeAgain as the Detail of ClaimMissing says that the claim, or its PersistentVolume, leads
// to another volume than the one that the ticket was granted.
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

// Fit says whether a request may be placed at a node: what Filter asks. A ticket that is
// granted counts; one that only asks counts if it ranks before the request. It costs the request's own
// volumes, however many pods and attachments the node has.
func (a Arbiter) Fit(s ledger.Snapshot, r Request, n ledger.NodeName, now time.Time) Verdict {
	return view{arbiter: a, snapshot: s, request: r, node: n, now: now}.fit()
}

func (w view) fit() Verdict { return w.judge(w.fenced()) }

// judge says whether the request fits the node, of which it is known for which volumes it
// is fenced.
func (w view) judge(lost []Reason) Verdict {
	reasons := slices.Concat(lost, w.cutOff(), w.reasonsBesideRoom())
	if w.node != ledger.Detached { // which has room for all
		reasons = append(reasons, w.room()...)
	}
	return refuse(reasons).SeenFrom(w.request.Who.Namespace)
}

// reasonsBesideRoom says what keeps a request from the node that is not a matter of
// slots.
func (w view) reasonsBesideRoom() []Reason {
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

// Nodes narrows the nodes a request may go to: those where somebody living
// holds its exclusive volumes. Not narrowed when nobody does but tickets that yield, or when they are to stay
// detached (false). More
// than one node in the reasons of Fit means that none will do.
func (a Arbiter) Nodes(s ledger.Snapshot, r Request, now time.Time) (ledger.NodeName, bool) {
	return view{arbiter: a, snapshot: s, request: r, now: now, yielded: true}.nodes()
}

func (w view) nodes() (ledger.NodeName, bool) {
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

// blockedAt is where somebody claims a volume: those who have it before those who only
// live at their node, and these before those who ask.
func (w view) blockedAt(v *ledger.Volume) ledger.NodeName {
	if n := w.has(v); n != "" {
		return n
	}
	asked := ledger.NodeName("")
	for i := range v.NodeVolumes {
		p := &v.NodeVolumes[i]
		if w.lives(v, p) {
			return p.Node
		}
		if asked == "" && slices.ContainsFunc(p.Users, func(u ledger.User) bool { return w.blocks(v, p, u) }) {
			asked = p.Node
		}
	}
	return asked
}

// excludes says whether the node affinity of a PersistentVolume keeps a volume from a
// node. Of several PersistentVolumes of one volume each has to allow the node. What is
// not known of a node excludes nothing: it is refused for not being there.
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
