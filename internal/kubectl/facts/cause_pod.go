// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// cause says what keeps a pod from running, whatever it is: the node first, since
// nothing happens on one that is not ready, then volumes, then what the kubelet
// says. Nil when nothing does.
func (w *World) cause(x *Pod, p *corev1.Pod) *Cause {
	if c := w.finalizerCause(x, p); c != nil {
		return c
	}
	if x.State == PodFinished {
		return finishedCause(p)
	}
	if p.Spec.NodeName == "" {
		return w.unplacedCause(x, p)
	}
	if p.DeletionTimestamp != nil {
		return w.terminatingCause(p)
	}
	if c := w.nodeCause(p); c != nil {
		return c
	}
	if p.Status.Phase == corev1.PodRunning {
		return w.runningCause(x, p)
	}
	if x.State == PodWaitsForVolumes {
		return w.volumeCause(x)
	}
	if c := w.containerCause(p); c != nil {
		return c
	}
	if c := w.mountCause(p); c != nil {
		return c
	}
	return w.silentCause(x, p)
}

// runningCause is for a pod whose containers have been started: what ails them comes before
// what is said of its volumes, which are mounted.
func (w *World) runningCause(x *Pod, p *corev1.Pod) *Cause {
	if c := w.containerCause(p); c != nil {
		return c
	}
	if x.State != PodWaitsForVolumes {
		return nil
	}
	c := w.volumeCause(x)
	if c != nil && c.Code == string(arbiter.HeldElsewhere) {
		// It runs without the volume, so that nobody else is to be ended for it.
		c.Do = "Nothing, if the pod can do without it. What has the volume: kubectl moorage explain pvc " + x.heldVolume() + " -n " + x.Namespace
	}
	return c
}

// heldVolume is the first claim that somebody else has.
func (x *Pod) heldVolume() string {
	for i := range x.Volumes {
		if v := &x.Volumes[i]; !v.SafeToMount && len(v.Reasons) > 0 {
			return v.Name
		}
	}
	return "NAME"
}

// finalizerCause says that a pod is being deleted and only its finalizers keep it: nothing of
// it runs any more. Nil where that is not so.
func (w *World) finalizerCause(x *Pod, p *corev1.Pod) *Cause {
	if p.DeletionTimestamp == nil || len(p.Finalizers) == 0 || p.Spec.NodeName != "" && x.State != PodFinished {
		return nil
	}
	c := &Cause{Of: OfWorkload, Code: "Finalizer", Since: deletedAt(p),
		Message: fmt.Sprintf("it is being deleted, nothing of it runs, and its finalizer %s keeps it", p.Finalizers[0]),
		Do:      "Find who set the finalizer, and why they don't take it away: kubectl get pod -n " + p.Namespace + " " + p.Name + " -o yaml"}
	if ofStatefulSet(p) {
		c.Message += ": its StatefulSet can't replace it before it is gone"
	}
	return c
}

// finishedCause says why a pod failed; nil when it succeeded.
func finishedCause(p *corev1.Pod) *Cause {
	if p.Status.Phase != corev1.PodFailed {
		return nil
	}
	c := &Cause{Of: OfContainer, Code: "Failed", Message: "it has failed", Do: fmt.Sprintf("Read what it said: kubectl logs -n %s %s", p.Namespace, p.Name)}
	if p.Status.Reason != "" {
		c.Of, c.Code, c.Message = OfNode, p.Status.Reason, fmt.Sprintf("it has failed (%s): %s", p.Status.Reason, shortened(p.Status.Message, "the kubelet ended it"))
		c.Do = whoMakesAnother(p) + "; what is left of it can be deleted"
	}
	for _, s := range p.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			c.Since = t.FinishedAt.Time
			if p.Status.Reason == "" {
				c.Message = fmt.Sprintf("container %s has failed with exit code %d", s.Name, t.ExitCode)
			}
		}
	}
	return c
}

// unplacedCause says why a pod has no node: claims first, which its scheduler
// waits for, then the scheduler itself, then what volumes and nodes say.
func (w *World) unplacedCause(x *Pod, p *corev1.Pod) *Cause {
	if c := gatedCause(p); c != nil {
		return c
	}
	if c := w.tooManyCause(p); c != nil {
		return c
	}
	if c := w.claimsCause(p); c != nil {
		return c
	}
	for i := range x.Volumes {
		if len(x.Volumes[i].Reasons) > 0 {
			return w.volumeCause(x)
		}
	}
	scheduling := w.schedulingCause(p)
	if scheduling != nil && scheduling.Of == OfComponent {
		return scheduling
	}
	if c := w.fitCause(x, p); c != nil {
		return w.withLeftTaints(c, x)
	}
	if scheduling != nil {
		return w.withLeftTaints(w.onlyAtHolder(scheduling, x), x)
	}
	if w.createdFor(p) > schedulerPatience {
		return &Cause{Of: OfScheduling, Code: "NotScheduled", Since: p.CreationTimestamp.Time,
			Message: "its scheduler " + p.Spec.SchedulerName + " has not said why it has no node", Do: fmt.Sprintf("kubectl describe pod -n %s %s: its events may say", p.Namespace, p.Name)}
	}
	return nil
}

// tooManyCause says that a pod asks for more volumes than Moorage places with one, whatever
// becomes of its claims; nil where it does not.
func (w *World) tooManyCause(p *corev1.Pod) *Cause {
	if !w.Served() || p.Spec.SchedulerName == corev1.DefaultSchedulerName {
		return nil
	}
	v := w.Arbiter.Admissible(w.Snapshot, arbiter.PodRequest(w.Snapshot, w.PodFact(p)))
	if v.First().Code != arbiter.TooManyVolumes {
		return nil
	}
	r := w.reason(v.First(), p)
	return r.Cause()
}

// volumeCause is the first reason of the first volume that keeps a pod waiting, with what to do about
// the others.
func (w *World) volumeCause(x *Pod) *Cause {
	var first *PodVolume
	var waiting []*PodVolume
	for i := range x.Volumes {
		v := &x.Volumes[i]
		if v.SafeToMount || v.NotMounted || len(v.Reasons) == 0 {
			continue
		}
		waiting = append(waiting, v)
		if first == nil || transient(first.Reasons[0]) && !transient(v.Reasons[0]) {
			first = v
		}
	}
	if first == nil {
		return nil
	}
	r := first.Reasons[0]
	if claim := w.Claim(x.Namespace, first.Name); r.Code == string(arbiter.ClaimUnbound) && claim != nil {
		if c := w.claimCause(claim, x.Node != ""); c != nil {
			return c
		}
	}
	if r.Code == NotVisible && x.Phase == string(corev1.PodRunning) {
		return nil // it runs: nothing is known to be wrong
	}
	if c := w.componentCause(&r, first.Driver); c != nil {
		return c
	}
	if away := first.Volume.Reason; r.Code == string(arbiter.AttachFailed) && away != nil && away.Node != "" && away.Node != x.Node {
		attach := r.Message
		r = *away // what the driver says of the attach follows from that
		r.Message += "; and meanwhile " + attach
	}
	c := r.Cause()
	if len(waiting) > 1 {
		c.Message = fmt.Sprintf("%d of %d volumes are not ready, the first: %s", len(waiting), len(x.Volumes), r.Message)
	}
	c.alsoOfVolumes(waiting, first)
	return c
}

// fitCause says what the volumes of a pod lack at the nodes that are a choice;
// nil when one of them fits, or none is a choice.
func (w *World) fitCause(x *Pod, p *corev1.Pod) *Cause {
	var parts []string
	var first *Reason
	for _, n := range x.Nodes {
		if n.Barred != "" {
			continue
		}
		if n.Fits || len(n.Reasons) == 0 {
			return nil
		}
		if first == nil {
			first = &n.Reasons[0]
		}
		parts = append(parts, fmt.Sprintf("%s: %s", Count(len(n.Nodes), "node"), messages(n.Reasons)))
	}
	if first == nil {
		return nil
	}
	if first.Code == controllerDown || first.Code == attacherDown {
		return &Cause{Of: OfComponent, Code: first.Code, Message: first.Message, Since: first.Since, Do: first.Do}
	}
	message := "no node can take its volumes. " + strings.Join(parts, "; ")
	if barred := barredNodes(x); barred > 0 {
		message += fmt.Sprintf(". %s no choice %s", CountVerb(barred, "node"), barredBy(x))
	}
	c := first.Cause()
	if r := w.newNodeReason(p); r != nil {
		c = r.Cause()
		message += ". No new node would help"
		if !strings.Contains(message, r.Message) {
			message += ": " + r.Message
		}
		if r.Code == string(arbiter.NoFreeSlot) && r.Policy != "" {
			c.Do = policyAdvice(r.Policy)
		}
	} else if first.Code == string(arbiter.NoFreeSlot) {
		c.Do = w.stuckSlot(x) + w.slotsOfTickets(x, p) + roomAdvice(x, first)
	}
	c.Message = message
	c.alsoAtNodes(x)
	return c
}

// barredBy says what keeps a pod from the nodes that are no choice, where that is one thing or
// two.
func barredBy(x *Pod) string {
	if list := bars(x); len(list) <= 2 {
		return "(" + strings.Join(list, "; ") + ")"
	}
	return "for other reasons"
}

// stuckSlot says which volume keeps a slot of a full node that it should have left already;
// empty where none is seen at the first nodes of those that are a choice.
func (w *World) stuckSlot(x *Pod) string {
	looked := 0
	for i := range x.Nodes {
		for _, name := range x.Nodes[i].Nodes {
			n := w.Snapshot.Node(ledger.NodeName(name))
			if x.Nodes[i].Barred != "" || n == nil || looked == fewNodes {
				continue
			}
			looked++
			for _, id := range n.At() {
				v := w.Snapshot.Volume(id)
				if va := v.NodeVolume(n.Name).Canonical(); va == nil || !va.Deleting || va.DetachError.IsZero() {
					continue
				}
				what := id.String()
				if names := v.PVs(); len(names) > 0 {
					what = names[0]
				}
				return fmt.Sprintf("At %s volume %s keeps a slot, since its detach fails: kubectl moorage explain pv %s. Otherwise: ", name, what, what)
			}
		}
	}
	return ""
}

// slotsOfTickets names a VolumeTicket that is no pod's and alone has a slot of a driver that a pod needs, at one of the
// first nodes which are a choice for the pod and have none left: it keeps that until somebody ends it. Empty where none is
// seen.
func (w *World) slotsOfTickets(x *Pod, p *corev1.Pod) string {
	var drivers []string
	for _, need := range arbiter.PodRequest(w.Snapshot, w.PodFact(p)).Needs {
		drivers = append(drivers, need.Volume.Driver)
	}
	count, looked, first := 0, 0, ""
	for _, group := range x.Nodes {
		full := func(r Reason) bool { return codeOf(&r) == arbiter.NoFreeSlot }
		if group.Barred != "" || !slices.ContainsFunc(group.Reasons, full) {
			continue
		}
		for _, name := range group.Nodes[:min(len(group.Nodes), fewNodes-looked)] {
			looked++
			for _, t := range w.onlyTicketsAt(ledger.NodeName(name), drivers) {
				if count++; count == 1 {
					first = fmt.Sprintf("%s/%s at %s: kubectl moorage ticket end %s -n %s", t.Namespace, t.Name, name, t.Name, t.Namespace)
				}
			}
		}
	}
	switch count {
	case 0:
		return ""
	case 1:
		return "A VolumeTicket that is no pod's has a slot there; end it if it is not wanted any more, " + first + ". Otherwise: "
	}
	return fmt.Sprintf("%d volumes have slots there for VolumeTickets that are no pods'; end those that are not wanted any more, such as %s. Otherwise: ", count, first)
}

// onlyTicketsAt are the VolumeTickets that are no pods', one for each volume of some drivers at a node that nobody else
// uses there.
func (w *World) onlyTicketsAt(node ledger.NodeName, drivers []string) []ledger.TicketID {
	n := w.Snapshot.Node(node)
	if n == nil {
		return nil
	}
	var list []ledger.TicketID
	for _, id := range n.At() {
		if !slices.Contains(drivers, id.Driver) {
			continue
		}
		at := w.Snapshot.Volume(id).NodeVolume(node)
		if at == nil || !at.TakesSlot() || len(at.Users) != 1 {
			continue
		}
		if t := w.Snapshot.Ticket(at.Users[0].Ticket); t != nil && t.Phase == ledger.TicketGranted {
			list = append(list, t.ID)
		}
	}
	return list
}

// newNodeReason is what would keep a pod's volumes from a node that is new to the cluster, and
// lasts; nil where one would help.
func (w *World) newNodeReason(p *corev1.Pod) *Reason {
	for _, r := range w.Arbiter.NewNode(w.Snapshot, arbiter.PodRequest(w.Snapshot, w.PodFact(p)), w.Now).Reasons {
		if !arbiter.Transient(r.Code) {
			reason := w.reason(r, p)
			return &reason
		}
	}
	return nil
}

// fewNodes is how many nodes are named where a pod can go to no others.
const fewNodes = 3

// policyAdvice is what to do about a policy that limits the slots of nodes.
func policyAdvice(policy string) string {
	return fmt.Sprintf("AttachPolicy %s sets that limit. If the nodes can take more, raise its slots.max, or lower its slots.headroom: kubectl get attachpolicy %s -o yaml", policy, policy)
}

// roomAdvice is what to do about a pod whose nodes are full: about the policy that limits them,
// and about those nodes where the pod can go to no others.
func roomAdvice(x *Pod, full *Reason) string {
	var list, choice []string
	barred := map[string]bool{}
	for _, n := range x.Nodes {
		if n.Barred == "" {
			choice = append(choice, n.Nodes...)
		} else {
			barred[n.Barred] = true
		}
	}
	if full.Policy != "" {
		list = append(list, policyAdvice(full.Policy))
	}
	switch {
	case slices.ContainsFunc(slices.Collect(maps.Keys(barred)), func(by string) bool { return strings.HasPrefix(by, byAffinity) }) && len(choice) <= fewNodes:
		free := fmt.Sprintf("free a slot at %s, the only choice for the pod; or loosen its node selector or affinity. Who has the slots: kubectl moorage explain node %s -o wide", strings.Join(choice, ", "), choice[0])
		if len(list) > 0 {
			list = append(list, "Or "+free)
		} else {
			list = append(list, strings.ToUpper(free[:1])+free[1:])
		}
	default:
		list = append(list, full.Do)
	}
	return strings.Join(list, ". ")
}

// onlyAtHolder adds to what the scheduler says that only one node can take a pod at all, since
// somebody has a volume of its there: new nodes don't help.
func (w *World) onlyAtHolder(c *Cause, x *Pod) *Cause {
	var fit []string
	var held *Reason
	for i := range x.Nodes {
		n := &x.Nodes[i]
		switch {
		case n.Barred != "":
		case n.Fits:
			fit = append(fit, n.Nodes...)
		default:
			for j := range n.Reasons {
				if n.Reasons[j].Code == string(arbiter.HeldElsewhere) && n.Reasons[j].Holder != nil {
					held = &n.Reasons[j]
				}
			}
		}
	}
	if held == nil || len(fit) != 1 || c.Of != OfScheduling {
		return c
	}
	out := *c
	out.Also = nil // which is for other nodes
	out.Message = fmt.Sprintf("only %s can take it, since %s has its volume there; and the scheduler says: %s", fit[0], held.Holder, c.Message)
	if strings.Contains(c.Message, "anti-affinity") {
		out.Do = fmt.Sprintf("The pod may not be where %s is, by an anti-affinity, and its volume can be nowhere else. Pods that share a claim with ReadWriteOnce run at one node: "+
			"give each its own claim (a StatefulSet's volumeClaimTemplates), share one with ReadWriteMany, or loosen the anti-affinity", held.Holder)
		return &out
	}
	out.Do = fmt.Sprintf("Free room at %s, or end %s: more nodes don't help. A Deployment whose pods share such a volume needs the strategy Recreate, or maxSurge: 0", fit[0], held.Holder)
	return &out
}

// withLeftTaints adds to what to do about a pod that finds no node that one of the nodes is
// ready and has been left out of service.
func (w *World) withLeftTaints(c *Cause, x *Pod) *Cause {
	for i := range x.Nodes {
		for _, name := range x.Nodes[i].Nodes {
			if n := w.Node(name); n != nil && x.Nodes[i].Barred != "" && outOfService(n) && w.isReady(ledger.NodeName(name)) {
				out := *c
				out.Do = fmt.Sprintf("%s is ready and still has the taint %s; when its machine is in order, have it take pods again: %s. Otherwise: %s",
					name, corev1.TaintNodeOutOfService, untaint(name), c.Do)
				return &out
			}
		}
	}
	return c
}

func barredNodes(x *Pod) int {
	n := 0
	for _, group := range x.Nodes {
		if group.Barred != "" {
			n += len(group.Nodes)
		}
	}
	return n
}

func transient(r Reason) bool { return arbiter.Transient(codeOf(&r)) }
