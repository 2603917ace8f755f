// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
	"github.com/moorage-dev/moorage/internal/rules"
)

// bearableSkew is a difference of clocks that shows in ages and nowhere else.
const bearableSkew = 5 * time.Second

// checkClock compares clocks as far as they show. Moorage never compares times of different machines: a
// wrong clock harms certificates, other programs' Leases and the ages that people read.
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

// skewOf is by how much the clock of a Lease's writer is ahead of the API server's. The writer sets
// renewTime; the server notes the time of the write in managedFields, to the second.
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

// lowerTick is how to lower the interval. A kubelet checks its status at each tick and writes a change: a
// lower nodeStatusUpdateFrequency costs writes only where something changes. Without an explicit
// nodeStatusReportFrequency, that setting follows it (kubelet's v1beta1/defaults.go), and every node would
// report all the time.
const lowerTick = "In the kubelets' configuration: nodeStatusUpdateFrequency: 1s, and with it nodeStatusReportFrequency: 5m, which would otherwise follow it."

// checkKubelets looks for the largest avoidable latency: a volume is mounted, and let go of, only at a
// kubelet's next status report.
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

// measured estimates the interval by its effect, where no kubelet may be asked: by the pods' times between
// safe to mount and running.
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

// checkTaints finds nodes that are back and still have the taint that put them out of service: only a
// person removes it. It also finds nodes that the cloud reports as shut down, and nodes that may have
// volumes mounted since a forced detach.
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
		list = append(list, found(Warning, some(sortedKeys(left)), "When the machine is in order again: `kubectl taint node NODE "+corev1.TaintNodeOutOfService+"-`",
			"nodes that are ready and still have the taint %s, so that no pod goes there: %d", corev1.TaintNodeOutOfService, len(left)))
	}
	if len(fenced) > 0 {
		list = append(list, found(Warning, some(sortedKeys(fenced)), "Have what set the condition take it away: `kubectl patch node NODE --subresource=status`, docs/operate/dead-nodes.md.",
			"nodes that are ready and still have a condition %s, which counts for nothing until it is set anew: %d", v1alpha1.FencedConditionPrefix+"…", len(fenced)))
	}
	if len(off) > 0 {
		list = append(list, found(Warning, some(sortedKeys(off)), "See that the cloud's node controller runs, which removes the taint from nodes that are ready.",
			"nodes that are ready and have the taint %s, which says that their machines are off: %d", convert.TaintShutdown, len(off)))
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

// checkCutOff finds Ready nodes that the storage of a driver has cut off.
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
		"Reboot the machine, or delete its pods with volumes of the driver. What keeps it out: `kubectl get events --field-selector involvedObject.name=NODE`, docs/operate/dead-nodes.md.",
		"nodes that are ready, and that the storage of a driver has cut off: their pods can't read or write its volumes: %d", len(cut))}
}

// isFenced says whether a condition of a Node means that its machine writes no more.
func isFenced(c corev1.NodeCondition) bool {
	return strings.HasPrefix(string(c.Type), v1alpha1.FencedConditionPrefix) && c.Status == corev1.ConditionTrue
}

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

const (
	forgottenFix  = "Unless a pod there uses it, take it down as docs/operate/runbook.md#moorageforgottenstagingpath says, which has block volumes and subpaths, too."
	podlessFix    = "Look at the kubelet's log there, which says what it could not unmount, and unmount it at the node: docs/operate/runbook.md#mooragemountwithoutpod."
	unattachedFix = "Unmount it at the node before anything else: docs/operate/runbook.md#mooragemountedwithoutattachment."
	unansweredFix = "See in the log of the driver's node plugin there why it does not answer. If it never will, drain the node and reboot its machine: docs/operate/modes.md#moorage-node has why nothing else ends the call."
	bootFix       = "Without it no word of moorage-node counts there: volumes leave by the kubelet's report, and none where an AttachPolicy has requireNodeWord. A kubelet reads /proc/sys/kernel/random/boot_id when it starts: see that it can, and restart it. Then this has it: `kubectl get node NODE -o jsonpath='{.status.nodeInfo.bootID}'`. A kubelet that runs no machine has none: keep moorage-node off such nodes (by an affinity in node.podTemplate)."
	ownBootFix    = "Without it no word of moorage-node counts there: volumes leave by the kubelet's report, and none where an AttachPolicy has requireNodeWord. See that nothing masks /proc/sys/kernel/random/boot_id in its container."
	wordFix       = "See that moorage-node runs there, and what its log says: `kubectl get pods -A -o wide -l app.kubernetes.io/component=node`. docs/operate/modes.md#moorage-node has what depends on it."
)

// failedCreate is the reason of a controller's events on pods that it can't make.
const failedCreate = "FailedCreate"

// checkNodeVolumes looks for leftovers at nodes with moorage-node: volumes that the kubelet has forgotten,
// mounts for pods that are gone, and volumes without a VolumeAttachment there. It also finds old reports,
// and nodes without their moorage-node. Volumes that the kubelet lists are about to be staged or taken
// down, and don't count.
func checkNodeVolumes(e *Evidence) []Finding {
	lacking := agentsLacking(e)
	said := ofWords(e)
	if len(lacking) > 0 {
		// A good report of some nodes makes it no better.
		said = slices.DeleteFunc(said, func(f Finding) bool { return f.Severity == OK })
	}
	return slices.Concat(lacking, requiredWords(e), said)
}

// requiredWords finds AttachPolicies that let no volume leave a node without moorage-node's report, where
// there are such nodes.
func requiredWords(e *Evidence) []Finding {
	if e.World.WordsUnseen != nil && !e.World.WordsUnseen.Missing {
		return nil
	}
	var list []Finding
	for _, p := range e.World.Policies {
		if p.Spec.RequireNodeWord == nil || !*p.Spec.RequireNodeWord {
			continue
		}
		var silent []string
		for _, n := range e.World.NodeDrivers {
			registered := slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == p.Spec.Driver })
			switch word := e.World.NodeWordOf(ledger.NodeName(n.Name)); word.State {
			case facts.WordAbsent, facts.WordSilent, facts.WordOfBoot, facts.WordOfNode, facts.WordNoKubeletBoot, facts.WordNoBoot:
				if registered {
					silent = append(silent, n.Name)
				}
			}
		}
		if len(silent) > 0 {
			slices.Sort(silent)
			list = append(list, found(Error, some(silent), "Have moorage-node run at these nodes (node.enabled=true), or take requireNodeWord out of the policy: docs/operate/modes.md#moorage-node.",
				"AttachPolicy %s has requireNodeWord, and moorage-node says nothing of today at %s with driver %s: no volume of the driver leaves them, but by force", p.Name, facts.Count(len(silent), "node"), p.Spec.Driver))
		}
	}
	return list
}

// agentsLacking says at how many nodes moorage-node should run and does not, and why.
func agentsLacking(e *Evidence) []Finding {
	if e.Agents.Err != nil {
		return unchecked("daemonsets.apps", e.Agents.Err)
	}
	var list []Finding
	for i := range e.Agents.Items {
		d := &e.Agents.Items[i]
		if d.Status.NumberReady >= d.Status.DesiredNumberScheduled {
			continue
		}
		name := d.Namespace + "/" + d.Name
		evidence, fix := "DaemonSet "+name, "Look at its pods: `kubectl -n "+d.Namespace+" get pods -o wide -l app.kubernetes.io/component=node`. Where it does not run all is as without it, unless an AttachPolicy has requireNodeWord."
		if refused := refusal(e.AgentEvents, d.UID); refused != "" && d.Status.CurrentNumberScheduled < d.Status.DesiredNumberScheduled {
			evidence = "DaemonSet " + name + ": " + refused
			if strings.Contains(refused, "violates PodSecurity") {
				fix = "Let the namespace admit privileged pods: `kubectl label --overwrite namespace " + d.Namespace +
					" pod-security.kubernetes.io/enforce=privileged`. Or go without it, as before: node.enabled=false (docs/operate/modes.md#moorage-node)."
			}
		}
		list = append(list, found(Warning, evidence, fix, "moorage-node is ready at %d of %s", d.Status.NumberReady, facts.Count(int(d.Status.DesiredNumberScheduled), "node")))
	}
	return list
}

// refusal is the last refusal to make an owner's pods; empty: none.
func refusal(events []corev1.Event, owner types.UID) string {
	var last corev1.Event
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID == owner && e.Reason == failedCreate && !e.LastTimestamp.Before(&last.LastTimestamp) {
			last = *e
		}
	}
	return last.Message
}

func ofWords(e *Evidence) []Finding {
	if unseen := e.World.WordsUnseen; unseen != nil {
		if unseen.Missing {
			return nil // the installed definition is too old, which another check reports
		}
		return unchecked(unseen.Resource, errors.New(unseen.Message))
	}
	if len(e.World.NodeVolumes) == 0 {
		return nil
	}
	var list []Finding
	var absent, noKubeletBoot, noBoot []string
	for _, n := range e.World.Nodes {
		word := e.World.NodeWordOf(ledger.NodeName(n.Name))
		switch word.State {
		case facts.WordAbsent:
			absent = append(absent, n.Name)
			continue
		case facts.WordNoKubeletBoot:
			noKubeletBoot = append(noKubeletBoot, n.Name)
		case facts.WordNoBoot:
			noBoot = append(noBoot, n.Name)
		}
		list = append(list, ofWord(n.Name, &word)...)
	}
	if len(noKubeletBoot) > 0 {
		list = append(list, found(Warning, some(noKubeletBoot), bootFix, "the kubelets of %s report no bootID, so that nobody can tell of which boot the word of moorage-node is", facts.Count(len(noKubeletBoot), "node")))
	}
	if len(noBoot) > 0 {
		list = append(list, found(Warning, some(noBoot), ownBootFix, "moorage-node can't read which boot it is of at %s", facts.Count(len(noBoot), "node")))
	}
	if len(list) == 0 {
		list = append(list, ok("nodes that say what they have staged, of which their kubelets know: %d", len(e.World.Nodes)-len(absent)))
	}
	if len(absent) > 0 {
		list = append(list, found(Info, strings.Join(absent, ", "), wordFix, "moorage-node says nothing at %s, and elsewhere it does", facts.Count(len(absent), "node")))
	}
	return list
}

func ofWord(node string, word *facts.NodeWord) []Finding {
	var list []Finding
	for i := range word.Has {
		if word.State == facts.WordSilent {
			break // it may be old
		}
		has := &word.Has[i]
		at := node + ": " + has.Path
		if has.Leaked {
			list = append(list, found(Warning, at, forgottenFix,
				"node %s has volume %s of driver %s staged or mounted, and its kubelet does not know of it", node, has.Volume, has.Driver))
		}
		if len(has.PodsGone) > 0 && !has.KubeletKnows {
			list = append(list, found(Warning, at+", pod "+strings.Join(has.PodsGone, ", "), podlessFix,
				"node %s has volume %s of driver %s mounted for a pod that is not there, and its kubelet does not list it in volumesInUse", node, has.Volume, has.Driver))
		}
		if has.NoAttachment {
			list = append(list, found(Warning, at, unattachedFix,
				"node %s has volume %s of driver %s staged or mounted, and no VolumeAttachment attaches it there: another node may be given it", node, has.Volume, has.Driver))
		}
	}
	for _, call := range word.Unanswered {
		list = append(list, found(Warning, cmp.Or(call.Message, node+": no message"), unansweredFix,
			"driver %s has not answered the call to unstage volume %s at node %s: the volume neither leaves that node nor goes back to it", call.Driver, call.Volume, node))
	}
	switch word.State {
	case facts.WordPartial:
		evidence := "a volume whose driver or handle could not be read, or more volumes than are listed"
		if len(word.Unread) > 0 {
			evidence = word.Unread[0]
		}
		list = append(list, found(Unknown, evidence, "docs/operate/modes.md#moorage-node says what moorage-node has to be able to read, and docs/operate/runbook.md#moorageforgottenstagingpath what to do about a record that is empty or cut off, and about a subpath that is left.",
			"moorage-node at %s can't read all of what the node has", node))
	case facts.WordSilent, facts.WordOfBoot, facts.WordOfNode:
		list = append(list, found(Warning, "nodevolumes "+node, wordFix, "the word of moorage-node at %s is not of today: %s", node, word.Note))
	}
	return list
}

func checkAttachments(e *Evidence) []Finding {
	var list []Finding
	total := 0
	for _, o := range e.World.Orphans() {
		list = append(list, found(Warning, "VolumeAttachment "+o.Attachment+" of "+o.Volume+" at "+o.Node, o.Fix, "%s", o.Message))
	}
	total = len(e.World.Attachments)
	if len(list) == 0 {
		list = append(list, ok("each of %d VolumeAttachments has a node, a volume and its own name", total))
	}
	return list
}

// checkWaits lists volumes that should have left or reached a node long ago, and tickets that have waited
// for long. Volumes at a node with the same reason share a finding.
func checkWaits(e *Evidence) []Finding {
	var list []Finding
	for _, g := range waitingVolumes(e) {
		list = append(list, g.finding(e.now()))
	}
	for _, t := range e.World.ListTickets("", false) {
		if t.State != facts.TicketPending || e.now().Sub(t.Created) < facts.LongWait || len(t.Reasons) == 0 {
			continue
		}
		list = append(list, found(Info, "VolumeTicket "+t.Namespace+"/"+t.Name, t.Reasons[0].Do,
			"a ticket of type %s waits for %s: %s", t.Type, e.now().Sub(t.Created).Round(time.Second), t.Reasons[0].Message))
	}
	if len(list) == 0 {
		list = append(list, ok("no volume and no ticket has waited for longer than %s", facts.LongWait))
	}
	return list
}

// checkIncidents finds nodes, not ready or gone, that pods or tickets wait for.
func checkIncidents(e *Evidence) []Finding {
	waits := behind(e.World)
	if len(waits) == 0 {
		return []Finding{ok("nothing waits for a node that is not ready")}
	}
	var list []Finding
	for _, name := range sortedKeys(waits) {
		says, fix := "is gone from the API.", e.World.NodeGone(name)
		if n := e.World.Node(name); n != nil {
			x := e.World.ExplainNode(n)
			says, fix = x.Answer, x.Cause.Do
		}
		list = append(list, found(Error, fmt.Sprintf("%d waiting: %s", len(waits[name]), some(waits[name])), fix, "node %s %s", name, says))
	}
	return list
}

// behind are the pods and tickets that wait for each node that is not ready, or gone.
func behind(w *facts.World) map[string][]string {
	list := map[string][]string{}
	for _, p := range w.ListWaits() {
		if p.Behind != "" {
			list[p.Behind] = append(list[p.Behind], p.Who.String())
		}
	}
	for _, t := range w.ListTickets("", false) {
		if node := w.Behind(&t); node != "" {
			list[node] = append(list[node], "ticket "+t.Namespace+"/"+t.Name)
		}
	}
	return list
}

// waitGroup are volumes at a node with the same reason; all reasons without a node share a group.
type waitGroup struct {
	first facts.Reason
	since time.Time // the earliest
	// names are claims, or PersistentVolumes without a claim; holds are driver^handle.
	names, holds []string
}

func waitingVolumes(e *Evidence) []*waitGroup {
	var list []*waitGroup
	incidents := behind(e.World)
	for _, v := range e.World.ListVolumes("") {
		if v.Reason == nil || v.Reason.Since.IsZero() || e.now().Sub(v.Reason.Since) < facts.LongWait || len(incidents[v.Reason.Node]) > 0 {
			continue
		}
		same := func(g *waitGroup) bool {
			return v.Reason.Node != "" && g.first.Node == v.Reason.Node && g.first.Code == v.Reason.Code
		}
		i := slices.IndexFunc(list, same)
		if i < 0 {
			i, list = len(list), append(list, &waitGroup{first: *v.Reason, since: v.Reason.Since})
		}
		g := list[i]
		if v.Reason.Since.Before(g.since) {
			g.since = v.Reason.Since
		}
		g.names = append(g.names, cmp.Or(v.Claim, v.PersistentVolume))
		g.holds = append(g.holds, v.Driver+"^"+v.Handle)
	}
	return list
}

func (g *waitGroup) finding(now time.Time) Finding {
	since := now.Sub(g.since).Round(time.Second)
	if len(g.names) == 1 {
		return found(Warning, "VolumeHold of "+g.holds[0], g.first.Do, "%s: %s for %s: %s", g.names[0], g.first.Code, since, g.first.Message)
	}
	first := g.names[0]
	return found(Warning, "VolumeHolds of "+some(g.holds), g.first.Do, "%d volumes at %s: %s for up to %s: %s. Of %s: %s",
		len(g.names), g.first.Node, g.first.Code, since, some(g.names), first, g.first.Message)
}

func checkInvariants(e *Evidence) []Finding {
	var list []Finding
	for _, v := range e.World.Arbiter.Audit(e.World.Snapshot, e.now()) {
		if at, early := e.attachedEarly(v); early {
			list = append(list, found(Warning, v.String(), "See what the first node's detach waits for: "+explains(e.World, v.Volume)+". Data is safe as long as the driver refuses the second attach.",
				"%skube-controller-manager has asked to attach a volume to a second node before the detach from the first is over; it is attached at %s", claimed(e.World, v.Volume), at))
			continue
		}
		list = append(list, found(Error, v.String(), "Stop the pods that use the volume, and report it: docs/internals/invariants.md says what it means.",
			"%sinvariant %s is broken: %s", claimed(e.World, v.Volume), v.Invariant, v.Message))
	}
	if len(list) == 0 {
		list = append(list, ok("no invariant is seen broken"))
	}
	return list
}

// attachedEarly says whether a volume has attachments at two nodes because kube-controller-manager, in
// Cooperative mode, does not wait for a failing detach; and the node where it is or may be attached.
func (e *Evidence) attachedEarly(v rules.Violation) (at string, early bool) {
	if !e.World.Arbiter.Cooperative || v.Invariant != "I1" {
		return "", false
	}
	var attached []string
	for _, n := range e.World.Volume(v.Volume).Nodes {
		if n.Attached {
			attached = append(attached, n.Node)
		}
	}
	switch len(attached) {
	case 0:
		return "no node for certain", true
	case 1:
		return attached[0], true
	}
	return "", false
}

func claimed(w *facts.World, id ledger.VolumeID) string {
	if claim := w.Volume(id).Claim; claim != "" {
		return claim + ": "
	}
	return ""
}

// explains is the command that explains a volume.
func explains(w *facts.World, id ledger.VolumeID) string {
	namespace, claim, ok := strings.Cut(w.Volume(id).Claim, "/")
	if !ok {
		return "`kubectl moorage volumes -A`"
	}
	return fmt.Sprintf("`kubectl moorage explain pvc %s -n %s`", claim, namespace)
}

func components() []string {
	return []string{v1alpha1.ControllerName, v1alpha1.SchedulerName}
}

func checkRBAC(e *Evidence) []Finding {
	if e.Roles.Err != nil {
		return unchecked("clusterroles.rbac.authorization.k8s.io", e.Roles.Err)
	}
	if e.RoleBinds.Err != nil {
		return unchecked("clusterrolebindings.rbac.authorization.k8s.io", e.RoleBinds.Err)
	}
	var list []Finding
	names := components()
	for _, name := range names {
		role := e.role(name)
		switch {
		case role == nil:
			list = append(list, found(Error, "there is no ClusterRole "+name, "Install the chart again.", "ClusterRole %s is missing", name))
		case !e.bound(name):
			list = append(list, found(Error, "no ClusterRoleBinding names it with a service account "+name, "Install the chart again.", "ClusterRole %s is bound to nobody", name))
		}
	}
	if len(list) == 0 {
		list = append(list, ok("the roles of %d components are there and bound", len(names)))
	}
	return list
}

func (e *Evidence) role(name string) *rbacv1.ClusterRole {
	for i := range e.Roles.Items {
		if e.Roles.Items[i].Name == name {
			return &e.Roles.Items[i]
		}
	}
	return nil
}

func (e *Evidence) bound(name string) bool {
	for _, b := range e.RoleBinds.Items {
		if b.RoleRef.Name != name {
			continue
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Name == name {
				return true
			}
		}
	}
	return false
}

// checkAttachPolicies finds AttachPolicies that do nothing, leave a node without a slot, or leave fewer
// slots than an autoscaler knows.
func checkAttachPolicies(e *Evidence) []Finding {
	var list []Finding
	for _, p := range e.World.Policies {
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect); c != nil && c.Status == metav1.ConditionFalse {
			said, do := c.Reason+": "+c.Message, "docs/reasons.md says what "+c.Reason+" means."
			if counts(p) {
				list = append(list, found(Warning, said, do, "AttachPolicy %s is in effect but for one of its fields", p.Name))
			} else {
				list = append(list, found(Warning, said, do, "AttachPolicy %s is not in effect", p.Name))
			}
		}
	}
	list = append(list, unservedSnapshots(e)...)
	full := map[string][]string{}
	for _, s := range e.World.ListSlots() {
		if s.Limit != nil && *s.Limit == 0 && s.Stated != nil && *s.Stated > 0 {
			full[s.Driver] = append(full[s.Driver], fmt.Sprintf("%s (%d)", s.Node, *s.Stated))
		}
	}
	for _, driver := range sortedKeys(full) {
		list = append(list, found(Error, "the CSINode's own number of slots: "+some(full[driver]), "Lower slots.headroom, or raise slots.max: `kubectl get attachpolicies`",
			"AttachPolicy %s leaves driver %s no slot at %s: no pod gets a volume there", rules.PolicyFor(e.World.Snapshot, driver, "").Name, driver, facts.Count(len(full[driver]), "node")))
	}
	list = append(list, unknownToAutoscalers(e)...)
	if len(list) == 0 {
		list = append(list, ok("AttachPolicies in effect: %d", len(e.World.Policies)))
	}
	return list
}

// counts says whether a policy counts for its driver and class, even if some of its fields do not.
func counts(p *v1alpha1.AttachPolicy) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect)
	if c == nil || c.Status != metav1.ConditionFalse {
		return true
	}
	return c.Reason == v1alpha1.ReasonNetworkFencesOff || c.Reason == v1alpha1.ReasonOperationTicketsOff || c.Reason == v1alpha1.ReasonWorkersNotCounted
}

// unknownToAutoscalers finds drivers with a policy that leaves fewer slots than their CSINodes state, where
// an autoscaler runs: it reads the CSINode, assumes room on such a node, and adds none.
func unknownToAutoscalers(e *Evidence) []Finding {
	names := autoscalers(e)
	if len(names) == 0 {
		return nil
	}
	fewer := map[string][]string{}
	for _, s := range e.World.ListSlots() {
		if s.Limit == nil || *s.Limit == 0 || s.Stated != nil && *s.Limit >= *s.Stated {
			continue
		}
		stated := "no limit"
		if s.Stated != nil {
			stated = fmt.Sprint(*s.Stated)
		}
		fewer[s.Driver] = append(fewer[s.Driver], fmt.Sprintf("%s (%d of %s)", s.Node, *s.Limit, stated))
	}
	var list []Finding
	for _, driver := range sortedKeys(fewer) {
		list = append(list, found(Warning, "slots by the policy, of those that the CSINode states: "+some(fewer[driver]),
			"Have the driver state the lower number, by its own flags: docs/operate/limits.md.",
			"AttachPolicy %s leaves driver %s fewer slots than its CSINode states at %s: %s adds no node when they are full",
			rules.PolicyFor(e.World.Snapshot, driver, "").Name, driver, facts.Count(len(fewer[driver]), "node"), strings.Join(names, " and ")))
	}
	return list
}

// autoscalers names the autoscalers that have a Lease with their default name. An autoscaler outside the
// cluster, run by a cloud, is not seen.
func autoscalers(e *Evidence) []string {
	var names []string
	for _, known := range []struct{ lease, name string }{{"cluster-autoscaler", "cluster-autoscaler"}, {"karpenter-leader-election", "Karpenter"}} {
		if slices.ContainsFunc(e.Leases.Items, func(l coordinationv1.Lease) bool { return l.Name == known.lease }) {
			names = append(names, known.name)
		}
	}
	return names
}

func unservedSnapshots(e *Evidence) []Finding {
	if e.ServedErr != nil || slices.ContainsFunc(operation.SnapshotVersions, func(v schema.GroupVersion) bool {
		return slices.Contains(e.Served[v.String()], operation.SnapshotResource)
	}) {
		return nil
	}
	var names []string
	for _, p := range e.World.Policies {
		if slices.Contains(p.Spec.AttachFor, v1alpha1.OperationSnapshot) || slices.Contains(p.Spec.DetachFor, v1alpha1.OperationSnapshot) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []Finding{found(Warning, some(names), "Install external-snapshotter's definitions and its snapshot controller, or take Snapshot out of attachFor and detachFor.",
		"AttachPolicies name the operation Snapshot, and the API server does not serve %s: no ticket is made for a snapshot", operation.SnapshotResource+"."+operation.SnapshotVersions[0].Group)}
}

// checkFencing checks that conditions which free volumes are guarded, and names evidence that could be
// switched on.
func checkFencing(e *Evidence) []Finding {
	return slices.Concat(unguardedFences(e), heldTimes(e), sharedMachines(e), couldFence(e))
}

// sharedMachines finds nodes that report the same systemUUID, as cloned machines do.
func sharedMachines(e *Evidence) []Finding {
	nodes := map[string][]string{}
	for _, n := range e.World.Nodes {
		if id := n.Status.NodeInfo.SystemUUID; id != "" {
			nodes[id] = append(nodes[id], n.Name)
		}
	}
	var list []Finding
	for _, id := range slices.Sorted(maps.Keys(nodes)) {
		if names := nodes[id]; len(names) > 1 {
			list = append(list, found(Warning, "systemUUID "+id,
				"Give each virtual machine a UUID of its own: until then a volume that a machine had mounted is not free when the machine boots, and one that a NetworkFence has cut off is let in by moorage-node's word only.",
				"nodes that report the same systemUUID, so that another boot of one is no proof: %s", some(names)))
		}
	}
	return list
}

// heldTimes finds zones with so many unreachable nodes that no time takes volumes from them.
func heldTimes(e *Evidence) []Finding {
	var held []string
	for p := range e.World.Snapshot.Policies() {
		for _, z := range rules.HeldZones(e.World.Snapshot, p.Driver, p.Class) {
			text := fmt.Sprintf("%s (%d of %d)", z.Brake, z.Unreachable, z.Nodes)
			if !slices.Contains(held, text) {
				held = append(held, text)
			}
		}
	}
	if len(held) == 0 {
		return nil
	}
	slices.Sort(held)
	return []Finding{found(Warning, some(held),
		"See whether the machines or the network between them and the API server have failed. If it is the machines, give their nodes the taint "+corev1.TaintNodeOutOfService+": docs/operate/dead-nodes.md.",
		"so many nodes are unreachable at once that afterUnreachable, of forceDetach and of its networkFence, takes nothing from them (maxUnreachable): evidence still does")}
}

// unguardedFences finds AttachPolicies that accept a condition as proof though any writer of a Node's
// status, such as its kubelet, can set it.
func unguardedFences(e *Evidence) []Finding {
	var names []string
	for _, p := range e.World.Policies {
		if f := p.Spec.ForceDetach; f != nil && (f.FencedCondition != nil && *f.FencedCondition != "" || f.NetworkFence != nil) {
			names = append(names, p.Name)
		}
	}
	if len(names) == 0 || e.Policies.Err != nil || e.Bindings.Err != nil || e.policy(fencedGuard) != nil && e.denies(fencedGuard) {
		return nil
	}
	slices.Sort(names)
	return []Finding{found(Error, some(names), policyFix,
		"AttachPolicies with a fencedCondition or a networkFence, while policy %s is missing or not bound: a kubelet can set the condition on its own node: %d", fencedGuard, len(names))}
}

// policyOfChart are the chart's example files with a policy for a driver, which knows its detach.
var policyOfChart = map[string]string{"ebs.csi.aws.com": "ebs-policy.yaml", "pd.csi.storage.gke.io": "gce-pd-policy.yaml", "rbd.csi.ceph.com": "ceph-rbd-policy.yaml"}

// saysWhatFences says whether a policy for all of a driver's volumes names the evidence that a dead node
// writes no more.
func saysWhatFences(p *v1alpha1.AttachPolicy, driver string) bool {
	if p.Spec.Driver != driver || p.Spec.StorageClassName != "" {
		return false
	}
	force := p.Spec.ForceDetach
	if force == nil {
		force = &v1alpha1.ForceDetachPolicy{}
	}
	fenced := force.FencedCondition != nil && *force.FencedCondition != ""
	switch c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect); {
	case c == nil || c.Status != metav1.ConditionFalse:
		return p.Spec.UnpublishFences != nil || fenced || force.NetworkFence != nil
	case c.Reason == v1alpha1.ReasonNetworkFencesOff:
		return p.Spec.UnpublishFences != nil || fenced
	}
	return counts(p) && (p.Spec.UnpublishFences != nil || fenced || force.NetworkFence != nil)
}

// couldFence names evidence, still switched off, that a dead node writes no more.
func couldFence(e *Evidence) []Finding {
	var silent, files []string
	known := 0
	for _, d := range e.World.Drivers {
		if d.Spec.AttachRequired != nil && !*d.Spec.AttachRequired {
			continue
		}
		known++
		if !slices.ContainsFunc(e.World.Policies, func(p *v1alpha1.AttachPolicy) bool { return saysWhatFences(p, d.Name) }) {
			silent = append(silent, d.Name)
			if file := policyOfChart[d.Name]; file != "" {
				files = append(files, "charts/moorage/examples/"+file)
			}
		}
	}
	switch {
	case known == 0:
		return []Finding{ok("no CSIDriver needs attachments")}
	case e.World.Arbiter.Cooperative:
		return []Finding{ok("Cooperative mode: kube-controller-manager frees the volumes of a dead node, by the taint node.kubernetes.io/out-of-service, or six minutes after their pods are gone")}
	case len(silent) == 0:
		return []Finding{ok("drivers of which an AttachPolicy says what their detach does to a dead node's access: %d", known)}
	}
	slices.Sort(silent)
	chart := ""
	if len(files) > 0 {
		slices.Sort(files)
		chart = "The chart has the answer for some: " + some(files) + ". "
	}
	return []Finding{found(Info, some(silent),
		chart+"Ask the vendor whether ControllerUnpublishVolume takes a running machine's access away, and set unpublishFences to true or false. If the driver has csi-addons' NETWORK_FENCE, set forceDetach.networkFence: docs/operate/dead-nodes.md.",
		"drivers of which no AttachPolicy says whether their detach takes a dead node's access away: %d. With unpublishFences: true their volumes leave a dead node with proof, when the cloud says that it is off, or after forceDetach.afterUnreachable; without it they wait for a person, or for a time that proves nothing", len(silent))}
}

func checkAttachers(e *Evidence) []Finding {
	if e.Leases.Err != nil {
		return unchecked("leases.coordination.k8s.io", e.Leases.Err)
	}
	drivers := slices.Clone(e.World.Drivers)
	slices.SortFunc(drivers, func(a, b *storagev1.CSIDriver) int { return strings.Compare(a.Name, b.Name) })
	var list []Finding
	var silent []string
	for _, d := range drivers {
		if c := e.World.AttacherDown(d.Name); c != nil {
			list = append(list, found(Error, "its Lease was renewed last at "+c.Since.UTC().Format("2006-01-02T15:04:05Z"), c.Do+".", "%s", c.Message))
		} else if (d.Spec.AttachRequired == nil || *d.Spec.AttachRequired) && !e.World.AttacherSeen(d.Name) {
			silent = append(silent, d.Name)
		}
	}
	if len(silent) > 0 {
		list = append(list, found(Info, "there is no Lease of theirs", "An attacher that runs with --leader-election has a Lease.",
			"whether the attachers of these drivers run is not known: %s", some(silent)))
	}
	if len(list) == 0 {
		list = append(list, ok("the attacher of each driver renews its Lease"))
	}
	return list
}

// stockChecks are for a cluster without Moorage: they show what Moorage would change there.
func stockChecks() []check {
	return []check{
		{name: "slots", find: checkSlots, world: true},
		{name: "attachers", find: checkAttachers, world: true},
		{name: "attachments", find: checkAttachments, world: true},
		{name: "rollouts", find: checkRollouts, world: true},
		{name: "forced", find: checkForcedDetaches, world: true},
		{name: "kubelets", find: checkStockKubelets, world: true},
	}
}

func readStock(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	if list, err := c.Kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err != nil {
		e.Deployments.Err = err
	} else {
		e.Deployments.Items = list.Items
	}
}

// checkSlots counts the nodes with their last slots taken: where kube-scheduler's count and the driver's
// differ, as on nodes that have just joined, a pod hangs there.
func checkSlots(e *Evidence) []Finding {
	var near []string
	var taken, limits int32
	limited := 0
	for _, s := range e.World.ListSlots() {
		if s.Limit == nil {
			continue
		}
		limited++
		used := s.Taken()
		taken, limits = taken+used, limits+*s.Limit
		if *s.Limit > 0 && used*10 >= *s.Limit*9 {
			near = append(near, fmt.Sprintf("%s %s %d/%d", s.Node, s.Driver, used, *s.Limit))
		}
	}
	switch {
	case limited == 0:
		return []Finding{found(Info, "no CSINode states a limit", "", "no driver states how many volumes a node takes")}
	case len(near) == 0:
		return []Finding{ok("%d of %d slots are taken, and no node is near its limit", taken, limits)}
	}
	if !e.absent() {
		return []Finding{found(Info, some(near), "Add nodes before new pods wait. `kubectl moorage nodes` shows each.",
			"%d of %d slots are taken; nodes near their limit: %d of %d", taken, limits, len(near), limited)}
	}
	return []Finding{found(Warning, some(near), "With Moorage a pod is placed only where a slot is free or becomes free, which it reserves until the pod runs.",
		"%d of %d slots are taken; nodes near their limit, where a pod that is placed too early hangs: %d of %d", taken, limits, len(near), limited)}
}

// checkRollouts finds Deployments that make a new pod beside the old one, with a claim for one node only.
func checkRollouts(e *Evidence) []Finding {
	if e.Deployments.Err != nil {
		return unchecked("deployments.apps", e.Deployments.Err)
	}
	var hang []string
	for i := range e.Deployments.Items {
		d := &e.Deployments.Items[i]
		if surges(d) && slices.ContainsFunc(e.World.ClaimsOf(d.Namespace, d.Spec.Template.Spec.Volumes), ofOneNode) {
			hang = append(hang, d.Namespace+"/"+d.Name)
		}
	}
	if len(hang) == 0 {
		return []Finding{ok("none of %d Deployments makes a new pod beside an old one with a ReadWriteOnce volume", len(e.Deployments.Items))}
	}
	return []Finding{found(Warning, some(hang), "With Moorage the new pod goes to the node where the volume is. Without it: strategy Recreate, or maxSurge: 0.",
		"Deployments with a ReadWriteOnce volume that make the new pod before the old one ends: %d of %d. On another node it waits forever", len(hang), len(e.Deployments.Items))}
}

func surges(d *appsv1.Deployment) bool {
	if d.Spec.Replicas != nil && *d.Spec.Replicas == 0 || d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return false
	}
	surge := intstr.FromString("25%") // the API's default
	if r := d.Spec.Strategy.RollingUpdate; r != nil && r.MaxSurge != nil {
		surge = *r.MaxSurge
	}
	replicas := 1
	if d.Spec.Replicas != nil {
		replicas = int(*d.Spec.Replicas)
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(&surge, replicas, true)
	return err == nil && n > 0
}

func ofOneNode(c *corev1.PersistentVolumeClaim) bool {
	return !slices.ContainsFunc(c.Spec.AccessModes, func(m corev1.PersistentVolumeAccessMode) bool {
		return m == corev1.ReadWriteMany || m == corev1.ReadOnlyMany
	})
}

// checkForcedDetaches gathers the API's traces of forced detaches: they have only a metric and a log line,
// but no event and no field of their own.
func checkForcedDetaches(e *Evidence) []Finding {
	away, refused := map[string]bool{}, 0
	nodes := map[string]facts.NodeState{}
	for _, n := range e.World.ListNodes() {
		nodes[n.Node] = n
	}
	for _, va := range e.World.Attachments {
		if va.Status.DetachError != nil {
			refused++
		}
		n, known := nodes[va.Spec.NodeName]
		if known && !n.Ready && !n.Since.IsZero() && e.now().Sub(n.Since) > rules.DefaultAfterPodGone {
			away[va.Spec.NodeName] = true
		}
	}
	evidence := fmt.Sprintf("VolumeAttachments whose detach was refused: %d", refused)
	const fix = "kube-controller-manager's metric attachdetach_controller_forced_detaches counts them: take its increase over a day. " +
		"Moorage detaches by force only by proof or by a policy of yours, and says so on the volume."
	if len(away) > 0 {
		return []Finding{found(Warning, some(sortedKeys(away))+"; "+evidence, fix,
			"nodes with volumes that have not been ready for more than %d minutes: %d. kube-controller-manager detaches by force what pods there leave behind",
			rules.DefaultAfterPodGone/time.Minute, len(away))}
	}
	return []Finding{found(Unknown, evidence, fix, "how many volumes were detached by force in the last day is not in the API")}
}

// checkStockKubelets is checkKubelets. Where no kubelet was asked, it reports the delays that the kubelets'
// interval is part of.
func checkStockKubelets(e *Evidence) []Finding {
	if len(e.Kubelets.Items) > 0 {
		return checkKubelets(e)
	}
	why := "no kubelet was asked"
	if e.Kubelets.Err != nil {
		why = e.Kubelets.Err.Error()
	}
	evidence := why
	if starts := e.starts(); len(starts) > 0 {
		evidence += fmt.Sprintf("; median from bind to the first container's start over %s with volumes: %s", facts.Count(len(starts), "pod"), starts[len(starts)/2].Round(time.Second))
	}
	return []Finding{found(Unknown, evidence, lowerTick,
		"how often kubelets look at their status (nodeStatusUpdateFrequency) is not in the API; by default it is every 10 s, and half of that is added to every mount and detach")}
}

// starts are the times from bind to the first container's start, sorted, for pods with volumes that need an
// attachment.
func (e *Evidence) starts() []time.Duration {
	var list []time.Duration
	for _, p := range e.World.Pods {
		if len(p.Status.ContainerStatuses) == 0 || !e.World.NeedsAttachment(p) {
			continue
		}
		running, restarts := p.Status.ContainerStatuses[0].State.Running, p.Status.ContainerStatuses[0].RestartCount
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && running != nil && restarts == 0 {
				list = append(list, max(0, running.StartedAt.Sub(c.LastTransitionTime.Time)))
			}
		}
	}
	slices.Sort(list)
	return list
}
