// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The rules by which a volume may be detached without its kubelet's word. The
// node is not Ready in any of them.
const (
	OutOfService     = "OutOfService"
	AfterPodGone     = "AfterPodGone"
	AfterUnreachable = "AfterUnreachable"
)

// The progress of a forced detach is told and kept in twelve steps, none
// shorter than half a minute: finer would be a write for every tick, and after
// a failover at most one step is waited for again.
const (
	forceSteps   = 12
	minForceStep = 30 * time.Second
)

// forcing is how far a rule for a forced detach has come.
type forcing struct {
	Rule    string // empty: no rule applies
	Elapsed time.Duration
	Left    time.Duration // 0: its time is over
	Step    time.Duration // in which it is told
}

func (f forcing) over() bool { return f.Rule != "" && f.Left <= 0 }

// ready says whether a node exists and is Ready. Only such a node is never
// forced.
func ready(n *ledger.Node) bool { return n != nil && n.Exists && n.Ready == ledger.ReadyTrue }

// force says which rule would detach the volume from a place by force, and
// when: the one whose time is over first.
func force(s ledger.Snapshot, v *ledger.Volume, p *ledger.Place, now time.Time) forcing {
	n := s.Node(p.Node)
	if ready(n) {
		return forcing{}
	}
	if n != nil && n.Exists && n.OutOfService {
		return forcing{Rule: OutOfService}
	}
	policy := policyOf(s, v)
	var best forcing
	if d := afterUnreachable(policy); d >= 0 && n != nil {
		best = timing{AfterUnreachable, d, n.NotReady, !n.SawFail}.run(v, p.Node, n, now)
	}
	if since, idle := s.Idle(p); idle && unused(s, p) && afterPodGone(policy) >= 0 {
		f := timing{AfterPodGone, afterPodGone(policy), since, !p.SawLeave}.run(v, p.Node, n, now)
		if best.Rule == "" || f.Left < best.Left {
			best = f
		}
	}
	return best
}

// timing is a rule's time for a volume at a node.
type timing struct {
	rule      string
	limit     time.Duration
	since     time.Time // when this process saw it begin, or came to see it
	continues bool      // this process has not seen the beginning
}

// run says how long it has lasted since this process saw it begin, or, when it
// has not seen the beginning, since an earlier process did: what that one had
// measured, plus the time since this one has read it. An outage that began at
// another time is another one: the node was Ready in between, and what was
// measured counts no more. Nor does it where nothing tells outages apart: a Node
// that is gone may have been there, and Ready, in between.
func (t timing) run(v *ledger.Volume, name ledger.NodeName, n *ledger.Node, now time.Time) forcing {
	seen, outage := now.Sub(t.since), readySince(n)
	if earlier, read := v.Earlier(); t.continues && outage != 0 && earlier.Rule == t.rule && earlier.Node == name && earlier.Since == outage {
		seen = max(seen, earlier.Elapsed+now.Sub(read))
	}
	return forcing{
		Rule: t.rule, Elapsed: seen, Left: max(0, t.limit-seen),
		Step: max(minForceStep, (t.limit / forceSteps).Truncate(time.Second)),
	}
}

// readySince tells outages of a node apart; 0 where nothing does: there is no Node
// object, or it does not say.
func readySince(n *ledger.Node) int64 {
	if n == nil || !n.Exists {
		return 0
	}
	return n.ReadySince
}

// unused says whether a place has no user but tickets that were never granted.
func unused(s ledger.Snapshot, p *ledger.Place) bool {
	for _, u := range p.Users {
		if stand(s, u) >= leaving {
			return false
		}
	}
	return true
}

// fenced says whether what runs at a node no longer counts: the node is not
// Ready and is out of service, or has been unreachable for as long as the
// volume's policy says.
func fenced(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName, now time.Time) bool {
	n := s.Node(name)
	if ready(n) || n == nil {
		return false
	}
	if n.Exists && n.OutOfService {
		return true
	}
	d := afterUnreachable(policyOf(s, v))
	return d >= 0 && timing{AfterUnreachable, d, n.NotReady, !n.SawFail}.run(v, name, n, now).over()
}

// SafeToDetach says whether the volume may leave a node where nobody wants it
// any more, and by which rule of force; none when the kubelet's own word will
// do. Allow is not yet a licence to delete the VolumeAttachment: the steps of
// Plan prove it against the API first.
func (a Arbiter) SafeToDetach(s ledger.Snapshot, v *ledger.Volume, p *ledger.Place, now time.Time) (Verdict, string) {
	n := s.Node(p.Node)
	reason := Reason{Volume: v.ID, Claim: claimOf(s, v), Node: p.Node}
	if n != nil && n.Exists && !n.Managed {
		reason.Code = NodeUnmanaged
		return refuse([]Reason{reason}), ""
	}
	if va := p.Own(); replaced(n, va) {
		reason.Code, reason.Detail = NodeReplaced, va.NodeID
		return refuse([]Reason{reason}), ""
	}
	f := force(s, v, p, now)
	switch {
	case f.over():
		return allow(), f.Rule
	case n == nil || !n.Exists:
		reason.Code, reason.Seconds = NodeUnreachable, untilForced(s, v, p, f)
	case !n.Reporting && n.Ready == ledger.ReadyTrue:
		reason.Code = InUseUnknown
	case !p.InUse && n.Reporting:
		return allow(), ""
	case n.Ready == ledger.ReadyTrue:
		reason.Code = InUse
	default:
		reason.Code, reason.Seconds = NodeUnreachable, untilForced(s, v, p, f)
	}
	return refuse([]Reason{reason}), ""
}

// untilForced is what a Reason says of the time until a rule of force is over:
// nothing while pods of the node hold it up, noTimeForces when the policy has
// no time for it.
func untilForced(s ledger.Snapshot, v *ledger.Volume, p *ledger.Place, f forcing) int64 {
	if f.Rule == "" && unused(s, p) && afterPodGone(policyOf(s, v)) < 0 {
		return noTimeForces
	}
	return secondsLeft(f)
}

// secondsLeft is told in steps, so that it does not change with every look.
func secondsLeft(f forcing) int64 {
	if f.Rule == "" {
		return 0
	}
	step := int64(f.Step / time.Second)
	left := int64((f.Left + time.Second - 1) / time.Second)
	return (left + step - 1) / step * step
}

// SafeToMount says whether the volume may be mounted at a node: its
// VolumeAttachment is attached, and the node's volumesAttached, which the
// kubelet obeys, says so.
func (a Arbiter) SafeToMount(s ledger.Snapshot, id ledger.VolumeID, n ledger.NodeName) bool {
	p := s.Volume(id).Place(n)
	switch {
	case !s.AttachRequired(id.Driver):
		return true
	case p == nil || !p.Reported:
		return false
	case id.NoAttach():
		return true
	}
	va := p.Own()
	return va != nil && va.Attached && !va.Deleting
}

// claimOf names a volume for people: the claim of its first PersistentVolume,
// or that PersistentVolume. Empty for an inline volume.
func claimOf(s ledger.Snapshot, v *ledger.Volume) string {
	for _, name := range v.PVs() {
		if pv := s.PersistentVolume(name); pv != nil && pv.Claim.Name != "" {
			return pv.Claim.Name
		}
	}
	if len(v.PVs()) > 0 {
		return v.PVs()[0]
	}
	return ""
}
