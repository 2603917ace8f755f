// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"cmp"
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The rules by which a volume may be detached without its kubelet's word: the node is not Ready, or another
// machine has its name (former). The first five prove that the machine does not write to the volume after
// an attach elsewhere. The others are a policy's time, and prove nothing.
const (
	// OutOfService: a taint vouches that nothing runs at the node.
	OutOfService = "OutOfService"
	// FencedCondition: an authorized actor vouches by the policy's condition that the machine does not
	// write to the driver's volumes.
	FencedCondition = "FencedCondition"
	// NetworkFence: the driver's storage has cut the machine off.
	NetworkFence = "NetworkFence"
	// NodeShutdown: the cloud says that the machine is off. Unpublishing takes its access away in case it
	// starts again.
	NodeShutdown = "NodeShutdown"
	// UnpublishFences: the time of AfterUnreachable is over, and unpublishing takes the machine's access
	// away.
	UnpublishFences  = "UnpublishFences"
	AfterPodGone     = "AfterPodGone"
	AfterUnreachable = "AfterUnreachable"
)

// Proves says whether a rule proves that the machine no longer writes. A time alone proves nothing.
func Proves(rule string) bool {
	return rule == OutOfService || rule == FencedCondition || rule == NetworkFence || byUnpublish(rule)
}

// The progress of a forced detach is reported in twelve steps of half a minute or more: each costs a write.
// After a failover at most one step is repeated.
const (
	forceSteps   = 12
	minForceStep = 30 * time.Second
)

// leaseGrace is how long a node's Lease must stand still under any rule, if condition Ready comes from the
// kubelet or the kubelet was heard since. Then the node controller calls a node Unknown
// (kube-controller-manager, --node-monitor-grace-period).
const leaseGrace = 50 * time.Second

// minWait is the shortest time to a check that depends on the last read of the Lease.
const minWait = time.Second

// forcing is the progress of a rule for a forced detach.
type forcing struct {
	Rule    string // empty: none applies
	Elapsed time.Duration
	Left    time.Duration // 0: its time is over
	Limit   time.Duration // the whole time; 0: none
	Step    time.Duration // of the reported progress
	Former  bool          // another machine has the node's name now
	Brake   Brake         // stops AfterUnreachable
}

func (f forcing) over() bool { return f.Rule != "" && f.Left <= 0 }

// sooner returns the rule with the earlier end.
func (f forcing) sooner(other forcing) forcing {
	first := f
	if f.Rule == "" || other.Rule != "" && other.Left < f.Left {
		first = other
	}
	if !first.Brake.On {
		first.Brake = f.Brake
	}
	return first
}

// No rule forces a ready node.
func ready(n *ledger.Node) bool { return n != nil && n.Exists && n.Ready == ledger.ReadyTrue }

// force returns the rule that would detach the volume from a node by force first, and when.
func force(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) forcing {
	return fence(s, v, p.Node, now).sooner(podGone(s, v, p, now)).sooner(former(s, v, p, now))
}

// fence is the rule that would end all users' rights at a node, and when. The policy's time, or a cloud's
// word that the machine is off, is proof if unpublishing the volume cuts the machine off.
func fence(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName, now time.Time) forcing {
	n := s.Node(name)
	if n == nil || name == ledger.Detached || ready(n) {
		return forcing{}
	}
	if f, kept := keptFence(s, v, name); kept && f.Rule != AfterPodGone && !(byUnpublish(f.Rule) && v.OnNode(name).MayBeLeft()) {
		return forcing{Rule: f.Rule}
	}
	taint, policy := outOfService(n, now), policyOf(s, v)
	taint = taint.sooner(fencedBy(s, v, policy.FencedCondition, n, now)).sooner(networkFenced(s, v, policy, n))
	rule := AfterUnreachable
	if policy.UnpublishFences && unpublishCuts(s, v, v.OnNode(name), n) {
		taint, rule = taint.sooner(shutdown(n, now)), UnpublishFences
	}
	limit := afterUnreachable(policy)
	if taint.over() || limit < 0 {
		return taint
	}
	return taint.sooner(unreachable(s, v, n, timing{rule: rule, limit: limit, silence: silenceOf(n, now)}, now))
}

// byUnpublish says whether a rule is proof only with the volume's unpublish.
func byUnpublish(rule string) bool { return rule == NodeShutdown || rule == UnpublishFences }

// unpublishCuts says whether the unpublish of a volume's attachment leaves nothing of it at a node. Nothing
// unpublishes a volume that was left there without an attachment (VolumeOnNode.Left), has a request in
// flight, or needs no attachment. A driver also can't tell a machine from an earlier one of the same name.
func unpublishCuts(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, n *ledger.Node) bool {
	switch {
	case v.ID.NoAttach() || p.MayBeLeft() || p != nil && ofAnotherMachine(s, v, p):
		return false
	case p == nil || p.HasOwn():
		return true
	case attachedAt(p):
		return false
	}
	f, found := v.Hold.Fence(p.Node)
	return !p.MayBeInUse() || found && byUnpublish(f.Rule) && !outageOver(outageOf(f), n)
}

// fenced says whether users at a node no longer count.
func fenced(s ledger.Snapshot, v *ledger.Volume, name ledger.NodeName, now time.Time) bool {
	return fence(s, v, name, now).over()
}

// outOfService is the taint's rule. A later write of the kubelet contradicts the taint, until its Lease has
// stood still for leaseGrace.
func outOfService(n *ledger.Node, now time.Time) forcing {
	if !n.Exists || !n.OutOfService {
		return forcing{}
	}
	return vouched(OutOfService, n, n.OutOfServiceAt, now)
}

// shutdown is the rule of a cloud's shutdown taint, under the conditions of outOfService.
func shutdown(n *ledger.Node, now time.Time) forcing {
	if !n.Exists || !n.Shutdown {
		return forcing{}
	}
	return vouched(NodeShutdown, n, n.ShutdownAt, now)
}

// fencedBy is the rule of a policy's condition, about the Node's present machine only. It counts only if
// neither this process nor a read Lease heard the kubelet since it was set (docs/decisions/0054).
func fencedBy(s ledger.Snapshot, v *ledger.Volume, condition string, n *ledger.Node, now time.Time) forcing {
	f, found := n.FencedBy(condition)
	switch {
	case condition == "" || !found || f.Void:
		return forcing{}
	case leaseUnread(n) || n.Renewed >= f.Since*1e6:
		return forcing{}
	case mayBeAtAnother(s, v, n):
		return forcing{}
	}
	return vouched(FencedCondition, n, f.At, now)
}

// networkFenced holds also while the kubelet writes to the API. It says nothing of an earlier machine of
// the node's name (docs/decisions/0062).
func networkFenced(s ledger.Snapshot, v *ledger.Volume, policy ledger.Policy, n *ledger.Node) forcing {
	if policy.NetworkFence.Class == "" || !s.BelievesCutOff() || !n.ProvesCutOff(v.ID.Driver) || mayBeAtAnother(s, v, n) {
		return forcing{}
	}
	return forcing{Rule: NetworkFence}
}

// mayBeAtAnother says whether a volume may be mounted at an earlier machine of a node's name.
func mayBeAtAnother(s ledger.Snapshot, v *ledger.Volume, n *ledger.Node) bool {
	return slices.ContainsFunc(s.Unknown(v, v.OnNode(n.Name)), func(b ledger.Boot) bool {
		return b.SystemUUID != "" && b.SystemUUID != n.SystemUUID
	})
}

// vouched is a rule with a statement, made at a time, that a machine is dead.
func vouched(rule string, n *ledger.Node, since, now time.Time) forcing {
	if n.Ready == ledger.ReadyUnknown && !n.Heard.After(since) {
		return forcing{Rule: rule}
	}
	quiet := silenceOf(n, now)
	quiet.since = later(quiet.since, since)
	return timing{rule, leaseGrace, quiet, false}.run(nil, n, now)
}

// podGone counts from when the place has no users and the node is not Ready.
func podGone(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) forcing {
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

// Forces says whether a step frees a volume without its kubelet's word: it ends the VolumeAttachment, or
// without one, the entry in volumesAttached.
func (s Step) Forces() bool {
	return s.Rule != "" && (s.Kind == DeleteAttachment || s.Kind == Unreport && s.Volume.NoAttach())
}

// Taken says whether a hold's forced detach was carried out.
func Taken(v *ledger.Volume, f ledger.Fence) bool {
	place := v.OnNode(f.Node)
	switch {
	case f.Rule == "":
		return false
	case v.ID.NoAttach():
		return place == nil || !place.Reported
	}
	va := place.Own()
	return f.Attachment != "" && (va == nil || va.UID != f.Attachment || va.Deleting)
}

// former is the rule of an earlier machine of a node's name, while the present machine is Ready. The
// policy's times run since the Node ceased to name the earlier machine: its kubelet, if alive, would write
// to that Node. They prove nothing, even with unpublish: a driver with one name for both machines can't
// tell them apart (docs/decisions/0042).
//
// If the driver has different names for them, the volume can't be detached from the earlier machine
// (NodeReplaced), and no time runs.
//
// The present machine is never forced: its kubelet does not list the volume, and the node has no user of
// it; or its Node does not name it as attached, so that nothing is mounted, even if a pod waits (bars).
func former(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode, now time.Time) forcing {
	n := s.Node(p.Node)
	if !ready(n) || !n.Reporting || n.MachineAt.IsZero() || n.BootID == "" || replaced(n, p.Own()) {
		return forcing{}
	}
	boots := s.Unknown(v, p)
	if len(boots) == 0 || slices.ContainsFunc(boots, func(b ledger.Boot) bool {
		return !b.IsOfAnother(n) || b.SystemUUID == ledger.OtherMachine || b.BootID == n.BootID
	}) {
		return forcing{}
	}
	since, idle := s.Idle(p)
	switch {
	case bars(s, v, p):
		since = n.MachineAt // the present machine's users
	case !idle || !unused(s, p) || p.InUse:
		return forcing{}
	}
	var f forcing
	policy := policyOf(s, v)
	if limit := afterUnreachable(policy); limit >= 0 {
		f = f.sooner(timing{AfterUnreachable, limit, silence{since: n.MachineAt, until: now, least: leaseGrace}, false}.run(v, n, now))
	}
	if limit := afterPodGone(s, policy); limit >= 0 {
		f = f.sooner(timing{AfterPodGone, limit, silence{since: later(n.MachineAt, since), until: now, least: leaseGrace}, false}.run(v, n, now))
	}
	f.Former = f.Rule != ""
	return f
}

// bars says whether an exclusive volume must stay out of volumesAttached: the earlier machine may have it
// mounted, and the present one would be a second writer.
func bars(s ledger.Snapshot, v *ledger.Volume, p *ledger.VolumeOnNode) bool {
	return !p.Reported && mayBeOfAnotherMachine(s, v, p) && exclusive(access(s, v, v.Access))
}

// takeBack plans the detach from the earlier machine, for a user at that node, once a rule of force holds.
func (p *attachPlan) takeBack(node *ledger.Node, place *ledger.VolumeOnNode) {
	f := former(p.snapshot, p.volume, place, p.now)
	p.awaits(f)
	va := place.Own()
	switch {
	case !f.over():
		return
	case va == nil:
		// A volume left there is attached again to be detached. Its hold is for the present machine
		// (holderNode).
		if !p.volume.ID.NoAttach() && p.mayCreate(node, place) && p.gone(place) {
			p.create(node, place)
		}
		return
	}
	if verdict, rule := p.safeToDetach(p.snapshot, p.volume, place, va, p.now); verdict.Allowed() && rule != "" && p.fenceWritten(place, va, rule) {
		p.detach(node, place, va, rule)
	}
}

// Abandoned lists a removal step for each terminating pod of an out-of-service node that is not Ready,
// sorted by name. Pod garbage collection does it every 20 s (pkg/controller/podgc, gcTerminating), and in
// Cooperative mode kube-controller-manager alone. Plan covers later pods.
func (a Arbiter) Abandoned(s ledger.Snapshot, name ledger.NodeName) []Step {
	if a.Cooperative || !abandoned(s.Node(name)) {
		return nil
	}
	var pods []*ledger.Pod
	for p := range s.Pods() {
		if p.Node == name && p.Phase == ledger.PodTerminating {
			pods = append(pods, p)
		}
	}
	slices.SortFunc(pods, func(a, b *ledger.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
	})
	var steps []Step
	for _, p := range pods {
		steps = append(steps, Step{Kind: RemovePod, Node: name, UID: p.UID})
	}
	return steps
}

// abandoned: a Ready node contradicts the out-of-service taint.
func abandoned(n *ledger.Node) bool {
	return n != nil && n.Exists && n.OutOfService && !ready(n)
}
