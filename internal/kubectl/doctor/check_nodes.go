// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// bearableSkew is a difference of clocks that shows in ages and nowhere else.
const bearableSkew = 5 * time.Second

// checkClock compares clocks as far as they show. Moorage never compares times
// of different machines, so that a wrong clock harms certificates, Leases of
// others and the ages that people read.
func checkClock(e *Evidence) []Finding {
	var list []Finding
	if skew := e.Skew.Abs(); skew > bearableSkew {
		list = append(list, found(Warning, "HTTP Date of the API server's answers", "Set this machine's clock.",
			"this machine's clock differs from the API server's by %s", skew.Round(time.Second)))
	}
	if e.Leases.Err != nil {
		return append(list, unchecked("leases.coordination.k8s.io", e.Leases.Err)...)
	}
	var off []string
	for i := range e.Leases.Items {
		l := &e.Leases.Items[i]
		if l.Namespace != corev1.NamespaceNodeLease && !slices.Contains(components(), l.Name) {
			continue
		}
		if skew, known := skewOf(l); known && skew.Abs() > bearableSkew {
			off = append(off, fmt.Sprintf("%s by %s", l.Name, skew.Round(time.Second)))
		}
	}
	if len(off) > 0 {
		list = append(list, found(Warning, "renewTime of their Leases against the API server's time of the same write: "+some(off), "Run a time service on the nodes.",
			"the clocks of %s differ from the API server's", facts.Count(len(off), "node or component")))
	}
	if len(list) == 0 {
		list = append(list, ok("clocks agree as far as they show"))
	}
	return list
}

// skewOf is by how much the clock of a Lease's writer is ahead of the API
// server's: the one writes renewTime, and the other notes in managedFields when
// that came in, to the second.
func skewOf(l *coordinationv1.Lease) (time.Duration, bool) {
	if l.Spec.RenewTime == nil {
		return 0, false
	}
	if seen, noted := facts.RenewalSeen(l); noted {
		return l.Spec.RenewTime.Sub(seen), true
	}
	return 0, false
}

// quickTick is a status interval that is no worse than the rest of the path.
const quickTick = 2 * time.Second

// lowerTick is how to lower the interval. A kubelet writes its status when it
// has changed, at each tick, so that a lower nodeStatusUpdateFrequency costs
// writes only where something changes; without an explicit
// nodeStatusReportFrequency that one follows it (kubelet's
// v1beta1/defaults.go), and every node would report all the time.
const lowerTick = "In the kubelets' configuration: nodeStatusUpdateFrequency: 1s, and with it nodeStatusReportFrequency: 5m, which would otherwise follow it."

// checkKubelets looks for the largest latency that can be avoided: a volume is
// mounted, and let go of, only at a kubelet's next status report.
func checkKubelets(e *Evidence) []Finding {
	var list []Finding
	var slow, busy, unmanaged []string
	longest := time.Duration(0)
	for _, k := range e.Kubelets.Items {
		if k.NodeStatusUpdateFrequency > quickTick {
			slow = append(slow, k.Node)
			longest = max(longest, k.NodeStatusUpdateFrequency)
		}
		if k.NodeStatusReportFrequency > 0 && k.NodeStatusReportFrequency <= quickTick {
			busy = append(busy, k.Node)
		}
		if !k.EnableControllerAttachment {
			unmanaged = append(unmanaged, k.Node)
		}
	}
	if len(slow) > 0 {
		list = append(list, found(Warning, fmt.Sprintf("nodeStatusUpdateFrequency of up to %s at %s", longest, some(slow)), lowerTick,
			"kubelets mount and let go at their next status report: up to %s each, %s on average, whatever Moorage does", longest, longest/2))
	}
	if len(busy) > 0 {
		list = append(list, found(Warning, fmt.Sprintf("nodeStatusReportFrequency of %s or less at %s", quickTick, some(busy)), lowerTick,
			"kubelets that write their whole status at every tick, changed or not: %d. nodeStatusReportFrequency follows nodeStatusUpdateFrequency", len(busy)))
	}
	if len(unmanaged) > 0 {
		list = append(list, found(Error, some(unmanaged), "enableControllerAttachDetach: true, which is the default.",
			"kubelets that attach by themselves, so that no controller may detach there: %d", len(unmanaged)))
	}
	switch {
	case len(e.Kubelets.Items) == 0:
		list = append(list, e.measured())
	case len(list) == 0:
		list = append(list, ok("%d of %d kubelets asked report their status every %s or sooner", len(e.Kubelets.Items), e.Asked, quickTick))
	}
	return list
}

// measured tells the interval by its effect, where no kubelet may be asked: how
// long pods have waited between safe to mount and running.
func (e *Evidence) measured() Finding {
	var waits []time.Duration
	for _, p := range e.World.Pods {
		for _, c := range p.Status.Conditions {
			if c.Type != v1alpha1.PodSafeToMount || c.Status != corev1.ConditionTrue || len(p.Status.ContainerStatuses) == 0 {
				continue
			}
			if r := p.Status.ContainerStatuses[0]; r.State.Running != nil && r.RestartCount == 0 {
				waits = append(waits, max(0, r.State.Running.StartedAt.Sub(c.LastTransitionTime.Time)))
			}
		}
	}
	why := "no kubelet was asked"
	if e.Kubelets.Err != nil {
		why = e.Kubelets.Err.Error()
	}
	if len(waits) == 0 {
		return found(Unknown, why, "Look at a kubelet's own configuration, or run doctor with the right to get nodes/proxy. To shorten the interval: i"+lowerTick[1:], "the kubelets' status interval is not known; by default it is 10 s, and half of that is added to every mount and detach")
	}
	slices.Sort(waits)
	median := waits[len(waits)/2]
	evidence := fmt.Sprintf("median from SafeToMount to the first container's start over %s: %s (%s)", facts.Count(len(waits), "pod"), median.Round(time.Second), why)
	if median > quickTick {
		return found(Warning, evidence, lowerTick, "pods wait for their kubelet after their volumes are safe to mount; the largest part is usually its status interval, 10 s by default")
	}
	return Finding{Severity: OK, Message: "pods start soon after their volumes are safe to mount", Evidence: evidence}
}

// checkTaints finds nodes that are back and still have the taint by which they were
// put out of service: nothing removes it but a person. So it does with nodes that the cloud
// calls off, and with those that may have volumes mounted since a forced detach.
func checkTaints(e *Evidence) []Finding {
	left, off, mounted, fenced := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range e.World.Nodes {
		fact := e.World.Snapshot.Node(ledger.NodeName(n.Name))
		if fact == nil || fact.Ready != ledger.ReadyTrue {
			continue
		}
		if fact.OutOfService {
			left[n.Name] = true
		}
		if slices.ContainsFunc(n.Status.Conditions, isFenced) {
			fenced[n.Name] = true
		}
		if fact.Shutdown {
			off[n.Name] = true
		}
		if len(e.World.FencedAt(n)) > 0 {
			mounted[n.Name] = true
		}
	}
	list := checkCutOff(e)
	if len(left) > 0 {
		list = append(list, found(Warning, some(sortedKeys(left)), "When the machine is in order again: kubectl taint node NODE "+corev1.TaintNodeOutOfService+"-",
			"nodes that are ready and still have the taint %s, so that no pod goes there: %d", corev1.TaintNodeOutOfService, len(left)))
	}
	if len(fenced) > 0 {
		list = append(list, found(Warning, some(sortedKeys(fenced)), "Have what set the condition take it away: kubectl patch node NODE --subresource=status, docs/operate/dead-nodes.md.",
			"nodes that are ready and still have a condition %s, which counts for nothing until it is set anew: %d", v1alpha1.FencedConditionPrefix+"…", len(fenced)))
	}
	if len(off) > 0 {
		list = append(list, found(Warning, some(sortedKeys(off)), "See that the cloud's node controller runs, which removes the taint from nodes that are ready.",
			"nodes that are ready and have the taint %s, which says that their machines are off: %d", translate.TaintShutdown, len(off)))
	}
	if len(mounted) > 0 {
		list = append(list, found(Warning, some(sortedKeys(mounted)), "Drain the node and reboot the machine: its mounts are of no use, and a volume that is attached there again can't leave before that.",
			"nodes that are ready and may have volumes mounted that were taken from them while they were not: %d", len(mounted)))
	}
	if len(list) == 0 {
		return []Finding{ok("no node that is ready has the taint %s, or mounts of before a forced detach", corev1.TaintNodeOutOfService)}
	}
	return list
}

// checkCutOff finds nodes that are Ready and that the storage of a driver has cut off.
func checkCutOff(e *Evidence) []Finding {
	cut := map[string]bool{}
	for n := range e.World.Snapshot.Nodes() {
		for _, driver := range n.CutOff {
			if n.Ready == ledger.ReadyTrue {
				cut[fmt.Sprintf("%s (%s)", n.Name, driver)] = true
			}
		}
	}
	if len(cut) == 0 {
		return nil
	}
	return []Finding{found(Warning, some(sortedKeys(cut)),
		"Reboot the machine, or delete its pods with volumes of the driver. kubectl get events --field-selector involvedObject.name=NODE says what keeps it out: docs/operate/dead-nodes.md.",
		"nodes that are ready, and that the storage of a driver has cut off: their pods can't read or write its volumes: %d", len(cut))}
}

// isFenced says whether a condition of a Node says that its machine writes no more.
func isFenced(c corev1.NodeCondition) bool {
	return strings.HasPrefix(string(c.Type), v1alpha1.FencedConditionPrefix) && c.Status == corev1.ConditionTrue
}

// checkLimits finds drivers that state no limit where Moorage counts slots.
func checkLimits(e *Evidence) []Finding {
	unlimited := map[string][]string{}
	missing := map[string][]string{}
	drivers := map[string]bool{}
	for _, s := range e.World.ListSlots() {
		drivers[s.Driver] = true
		switch {
		case s.Missing: // nothing is registered where there is no node
		case !s.Registered:
			missing[s.Driver] = append(missing[s.Driver], s.Node)
		case s.Limit == nil:
			unlimited[s.Driver] = append(unlimited[s.Driver], s.Node)
		}
	}
	var list []Finding
	for _, driver := range sortedKeys(unlimited) {
		list = append(list, found(Warning, "CSINode has no allocatable.count at "+some(unlimited[driver]), "Have the driver report its limit, or set slots.max in an AttachPolicy for it.",
			"driver %s states no limit: pods can hang where its real one is reached", driver))
	}
	for _, driver := range sortedKeys(missing) {
		list = append(list, found(Warning, some(missing[driver]), "Look at the driver's DaemonSet there.",
			"driver %s has volumes at %s where it is not registered", driver, facts.Count(len(missing[driver]), "node")))
	}
	if len(list) == 0 && len(drivers) > 0 {
		list = append(list, ok("drivers that state their limits: %d", len(drivers)))
	}
	return list
}
