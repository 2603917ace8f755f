// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The rules by which a volume may be detached without its kubelet's word. The
// node is not Ready, or another machine has its name by now (former). The first five are proof that the machine does not
// write to the volume when it is attached elsewhere; the others are a time that a policy
// sets, and prove nothing.
const (
	// OutOfService: somebody vouches for it that nothing runs at the node.
	OutOfService = "OutOfService"
	// FencedCondition: somebody who may do so has set the condition that the policy names,
	// and so vouches for it that the machine does not write to the driver's volumes.
	FencedCondition = "FencedCondition"
	// NetworkFence: the driver's storage has cut the machine off.
	NetworkFence = "NetworkFence"
	// NodeShutdown: the cloud says that the machine is off, and unpublishing the volume
	// takes its access away should it be on again.
	NodeShutdown = "NodeShutdown"
	// UnpublishFences: the node was unreachable for the time of AfterUnreachable, and
	// unpublishing the volume takes the machine's access away.
	UnpublishFences  = "UnpublishFences"
	AfterPodGone     = "AfterPodGone"
	AfterUnreachable = "AfterUnreachable"
)

// Proves says whether a rule is proof that the machine does not write to the volume when
// it is attached elsewhere, and not only a time.
func Proves(rule string) bool {
	return rule == OutOfService || rule == FencedCondition || rule == NetworkFence || byUnpublish(rule)
}

// The progress of a forced detach is told and kept in twelve steps, none
// shorter than half a minute: finer would be a write for every tick, and after
// a failover at most one step is waited for again.
const (
	forceSteps   = 12
	minForceStep = 30 * time.Second
)

// leaseGrace is for how long the Lease of a node must stand still, whatever the rule, where
// its condition Ready is a kubelet's word, or the kubelet was heard since it is not Ready:
// the time after which the node controller itself calls a node Unknown
// (kube-controller-manager, --node-monitor-grace-period).
const leaseGrace = 50 * time.Second

// minWait is how soon a rule's time is looked at again at the earliest, where how
// much of it is over depends on when the Lease was last read.
const minWait = time.Second

// forcing is how far a rule for a forced detach has come.
type forcing struct {
	Rule    string // empty: no rule applies
	Elapsed time.Duration
	Left    time.Duration // 0: its time is over
	Limit   time.Duration // how long it takes; 0 where it takes no time
	Step    time.Duration // in which it is told
	Former  string        // the machine that it is about, where another one has its node's name
	Brake   Brake         // holds the time of AfterUnreachable; zero: nothing does
}

func (f forcing) over() bool { return f.Rule != "" && f.Left <= 0 }

// sooner returns which of two rules' times is over first.
func (f forcing) sooner(other forcing) forcing {
	first := f
	if f.Rule == "" || other.Rule != "" && other.Left < f.Left {
		first = other
	}
	if first.Brake.IsZero() {
		first.Brake = f.Brake
	}
	return first
}

// ready says whether a node exists and is Ready. Only such a node is never
// forced.
func ready(n *ledger.Node) bool { return n != nil && n.Exists && n.Ready == ledger.ReadyTrue }

// force says which rule would detach the volume from a node by force, and
// when: the one whose time is over first.
func force(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) forcing {
	return fence(s, v, p.Node, now).sooner(podGone(s, v, p, now)).sooner(former(s, v, p, now))
}

// fence says which rule would end the rights of everything that runs at a node,
// and when: the node is out of service, or has been silent for as long as the
// volume's policy says. Where unpublishing the volume cuts the machine off, that time is
// proof, and so is a cloud's word that the machine is off.
func fence(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName, now time.Time) forcing {
	n := s.Node(name)
	if n == nil || name == ledger.Detached || ready(n) {
		return forcing{}
	}
	if f, kept := keptFence(s, v, name); kept && f.Rule != AfterPodGone && !(byUnpublish(f.Rule) && v.NodeVolume(name).MayBeLeft()) {
		return forcing{Rule: f.Rule}
	}
	taint, policy := outOfService(n, now), policyOf(s, v)
	taint = taint.sooner(fencedBy(v, policy.FencedCondition, n, now)).sooner(networkFenced(s, v, policy, n))
	rule := AfterUnreachable
	if policy.UnpublishFences && unpublishCuts(s, v, v.NodeVolume(name), n) {
		taint, rule = taint.sooner(shutdown(n, now)), UnpublishFences
	}
	limit := afterUnreachable(policy)
	if taint.over() || limit < 0 {
		return taint
	}
	return taint.sooner(unreachable(s, v, n, policy, timing{rule: rule, limit: limit, silence: silenceOf(n, now)}, now))
}

// byUnpublish says whether a rule is proof only because a volume is unpublished.
func byUnpublish(rule string) bool { return rule == NodeShutdown || rule == UnpublishFences }

// unpublishCuts says whether nothing is left of a volume at a node once its attachment has
// been unpublished: there is one to unpublish, or nothing says that the volume is there, but
// for the last list of a kubelet from which it was taken so in this outage. What may have
// been left there without one (NodeVolume.Left), or is under way, nobody unpublishes; nor
// what needs no attachment. Nor does a driver tell a machine from another one that had its
// name before.
func unpublishCuts(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, n *ledger.Node) bool {
	switch {
	case v.ID.NoAttach() || p.MayBeLeft() || p != nil && Doubted(s, v, p) && ofAnotherMachine(n, v, p):
		return false
	case p == nil || p.HasOwn():
		return true
	case attachedAt(p):
		return false
	}
	f, found := v.Hold.Fence(p.Node)
	return !p.InUse || found && byUnpublish(f.Rule) && !outageOver(outageOf(f), n)
}

// fenced says whether what runs at a node no longer counts.
func fenced(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName, now time.Time) bool {
	return fence(s, v, name, now).over()
}

// outOfService is the rule of the out-of-service taint, of a node that is not Ready.
// Somebody vouches for it that
// nothing runs at the node; a kubelet that writes after that says otherwise, until
// its Lease has stood still for leaseGrace.
func outOfService(n *ledger.Node, now time.Time) forcing {
	if !n.Exists || !n.OutOfService {
		return forcing{}
	}
	return vouched(OutOfService, n, n.OutOfServiceAt, now)
}

// shutdown is the rule of a cloud's taint, of a node that is not Ready: the cloud says that
// the machine is off. It is believed as the taint of a node that is out of service is.
func shutdown(n *ledger.Node, now time.Time) forcing {
	if !n.Exists || !n.Shutdown {
		return forcing{}
	}
	return vouched(NodeShutdown, n, n.ShutdownAt, now)
}

// fencedBy is the rule of the condition that a policy names, of a node that is not Ready. It is
// believed as the taint of a node that is out of service is, but of less: only of the machine
// that the Node names, and only if the kubelet was not heard of since the condition was set,
// neither by this process nor by its Lease. A Lease that nobody has read says nothing, and
// then nor does the condition (docs/decisions/0054).
func fencedBy(v *ledger.Volume, condition string, n *ledger.Node, now time.Time) forcing {
	f, found := n.FencedBy(condition)
	switch {
	case condition == "" || !found || f.Void:
		return forcing{}
	case leaseUnread(n) || n.Renewed >= f.Since*1e6:
		return forcing{}
	case mayBeAtAnother(v, n):
		return forcing{}
	}
	return vouched(FencedCondition, n, f.At, now)
}

// networkFenced is the rule of a storage that has cut the machine off. A kubelet that goes on
// writing to the API does not void it: what is cut is the machine's way to the storage. It says
// nothing of another machine that had the node's name before (docs/decisions/0062).
func networkFenced(s ledger.Snapshot, v *ledger.Volume, policy ledger.Policy, n *ledger.Node) forcing {
	if policy.NetworkFence.Class == "" || !s.BelievesCutOff() || !n.ProvesCutOff(v.ID.Driver) || mayBeAtAnother(v, n) {
		return forcing{}
	}
	return forcing{Rule: NetworkFence}
}

// mayBeAtAnother says whether a volume may be mounted at another machine than the one that a
// node's name has now, as this process has seen or as the hold says.
func mayBeAtAnother(v *ledger.Volume, n *ledger.Node) bool {
	machine, _ := n.DoubtedAt(v.ID)
	if machine != "" && machine != n.SystemUUID {
		return true
	}
	h := v.Hold
	if h == nil {
		return false
	}
	fence, fenced := h.Fence(n.Name)
	return h.Node == n.Name && h.SystemUUID != "" && h.SystemUUID != n.SystemUUID || fenced && fence.SystemUUID != "" && fence.SystemUUID != n.SystemUUID
}

// vouched is a rule by which somebody has vouched since a time that a machine is dead.
func vouched(rule string, n *ledger.Node, since, now time.Time) forcing {
	if n.Ready == ledger.ReadyUnknown && !n.Heard.After(since) {
		return forcing{Rule: rule}
	}
	quiet := silenceOf(n, now)
	quiet.since = later(quiet.since, since)
	return timing{rule, leaseGrace, quiet, false}.run(nil, n, now)
}

// podGone is the rule of a NodeVolume that nobody uses any more, at a node that is not
// Ready. Its time counts from when both are so.
func podGone(s ledger.Snapshot, v *ledger.Volume, p *ledger.NodeVolume, now time.Time) forcing {
	n := s.Node(p.Node)
	since, idle := s.Idle(p)
	limit := afterPodGone(s, policyOf(s, v))
	if n == nil || !idle || limit < 0 || p.Node == ledger.Detached || ready(n) || !unused(s, p) {
		return forcing{}
	}
	if f, kept := keptFence(s, v, p.Node); kept && f.Rule == AfterPodGone {
		return forcing{Rule: f.Rule}
	}
	quiet := silenceOf(n, now)
	continues := !quiet.whole && !p.SawLeave
	quiet.since = later(quiet.since, since)
	return timing{AfterPodGone, limit, quiet, continues}.run(v, n, now)
}
