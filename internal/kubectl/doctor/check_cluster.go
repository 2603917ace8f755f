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
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// quickTick is a status interval no worse than the rest of the path.
const quickTick = 2 * time.Second

// lowerTick: a kubelet writes only changes at each tick, so a lower nodeStatusUpdateFrequency costs little.
// Without an explicit nodeStatusReportFrequency, that follows it (kubelet's v1beta1/defaults.go), and every
// node reports all the time.
const lowerTick = "In the kubelets' configuration: nodeStatusUpdateFrequency: 1s, and with it nodeStatusReportFrequency: 5m, which would otherwise follow it."

// checkKubelets looks for the largest avoidable latency: a kubelet's next status report.
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
		why := "no kubelet was asked"
		if e.Kubelets.Err != nil {
			why = e.Kubelets.Err.Error()
		}
		list = append(list, found(Unknown, why, "Look at a kubelet's own configuration, or run doctor with the right to get nodes/proxy. To shorten the interval: i"+lowerTick[1:],
			"the kubelets' status interval (nodeStatusUpdateFrequency) is not known; by default it is 10 s, and half of that is added to every mount and detach"))
	case len(list) == 0:
		list = append(list, ok("%d of %d kubelets asked report their status every %s or sooner", len(e.Kubelets.Items), e.Asked, quickTick))
	}
	return list
}

// isFenced: the condition means that the machine writes no more.
func isFenced(c corev1.NodeCondition) bool {
	return strings.HasPrefix(string(c.Type), v1alpha1.FencedConditionPrefix) && c.Status == corev1.ConditionTrue
}

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

func behind(w *facts.World) map[string][]string {
	list := map[string][]string{}
	for _, wait := range w.ListWaits() {
		if wait.Behind != "" {
			list[wait.Behind] = append(list[wait.Behind], wait.Who.String())
		}
	}
	return list
}

func checkInvariants(e *Evidence) []Finding {
	var list []Finding
	for _, v := range e.World.Arbiter.Audit(e.World.Snapshot, e.now()) {
		if e.World.Arbiter.Cooperative && v.Invariant == "I1" {
			list = append(list, found(Warning, v.String(), "See what the first node's detach waits for: `kubectl moorage volumes -A -o wide`. Data is safe as long as the driver refuses the second attach.",
				"%skube-controller-manager has asked to attach a volume to a second node before the detach from the first is over", claimed(e.World, v.Volume)))
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

func claimed(w *facts.World, id ledger.VolumeID) string {
	if claim := w.Volume(id).Claim; claim != "" {
		return claim + ": "
	}
	return ""
}

func checkAttachPolicies(e *Evidence) []Finding {
	var list []Finding
	for _, p := range e.World.Policies {
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.PolicyInEffect); c != nil && c.Status == metav1.ConditionFalse {
			said, do := c.Reason+": "+c.Message, "docs/reasons.md says what "+c.Reason+" means."
			list = append(list, found(Warning, said, do, "AttachPolicy %s is not in effect, or one of its fields is not", p.Name))
		}
	}
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
	if len(list) == 0 {
		list = append(list, ok("AttachPolicies in effect: %d", len(e.World.Policies)))
	}
	return list
}

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

// stockChecks show what Moorage would change in a cluster without it.
func stockChecks() []check {
	return []check{
		{name: "slots", find: checkSlots, world: true},
		{name: "attachers", find: checkAttachers, world: true},
		{name: "rollouts", find: checkRollouts, world: true},
		{name: "kubelets", find: checkKubelets},
	}
}

func readStock(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	fill(ctx, &e.Deployments, metav1.ListOptions{}, c.Kube.AppsV1().Deployments(metav1.NamespaceAll).List, func(l *appsv1.DeploymentList) []appsv1.Deployment { return l.Items })
}

// checkRollouts finds Deployments that make a new pod beside the old one, with a one-node claim.
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

// checkTaints finds Ready nodes with marks or mounts from when they were not Ready.
func checkTaints(e *Evidence) []Finding {
	var list []Finding
	for _, mark := range []struct {
		is        func(*corev1.Node, *ledger.Node) bool
		what, fix string
	}{
		{func(_ *corev1.Node, n *ledger.Node) bool { return len(n.CutOff) > 0 },
			"nodes that are ready, and that the storage of a driver has cut off: their pods can't read or write its volumes",
			"Reboot the machine, or delete its pods with volumes of the driver. What keeps it out: `kubectl get events --field-selector involvedObject.name=NODE`, docs/operate/dead-nodes.md."},
		{func(_ *corev1.Node, n *ledger.Node) bool { return n.OutOfService },
			"nodes that are ready and still have the taint " + corev1.TaintNodeOutOfService + ", so that no pod goes there",
			"When the machine is in order again: `kubectl taint node NODE " + corev1.TaintNodeOutOfService + "-`"},
		{func(n *corev1.Node, _ *ledger.Node) bool { return slices.ContainsFunc(n.Status.Conditions, isFenced) },
			"nodes that are ready and still have a condition " + v1alpha1.FencedConditionPrefix + "…, which counts for nothing until it is set anew",
			"Have what set the condition take it away: `kubectl patch node NODE --subresource=status`, docs/operate/dead-nodes.md."},
		{func(_ *corev1.Node, n *ledger.Node) bool { return n.Shutdown },
			"nodes that are ready and have the taint " + convert.TaintShutdown + ", which says that their machines are off",
			"See that the cloud's node controller runs, which removes the taint from nodes that are ready."},
		{func(n *corev1.Node, _ *ledger.Node) bool { return e.World.FencedAt(n) > 0 },
			"nodes that are ready and may have volumes mounted that were taken from them while they were not",
			"Drain the node and reboot the machine: its mounts are of no use, and a volume that is attached there again can't leave before that."},
	} {
		var names []string
		for _, n := range e.World.Nodes {
			if fact := e.World.Snapshot.Node(ledger.NodeName(n.Name)); fact != nil && fact.Ready == ledger.ReadyTrue && mark.is(n, fact) {
				names = append(names, n.Name)
			}
		}
		if len(names) > 0 {
			list = append(list, found(Warning, some(names), mark.fix, "%s: %d", mark.what, len(names)))
		}
	}
	if len(list) == 0 {
		list = append(list, ok("no node that is ready has the taint %s, or mounts of before a forced detach", corev1.TaintNodeOutOfService))
	}
	return list
}

// checkSlots: without a stated limit or a free slot, a pod can hang at its node.
func checkSlots(e *Evidence) []Finding {
	unlimited, missing := map[string][]string{}, map[string][]string{}
	var near []string
	var taken, limits int32
	limited := 0
	for _, s := range e.World.ListSlots() {
		switch {
		case s.Missing: // nothing is registered where there is no node
		case !s.Registered:
			missing[s.Driver] = append(missing[s.Driver], s.Node)
		case s.Limit == nil:
			unlimited[s.Driver] = append(unlimited[s.Driver], s.Node)
		}
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
	var list []Finding
	for _, driver := range sortedKeys(unlimited) {
		list = append(list, found(Warning, "CSINode has no allocatable.count at "+some(unlimited[driver]), "Have the driver report its limit, or set slots.max in an AttachPolicy for it.",
			"driver %s states no limit: pods can hang where its real one is reached", driver))
	}
	for _, driver := range sortedKeys(missing) {
		list = append(list, found(Warning, some(missing[driver]), "Look at the driver's DaemonSet there.",
			"driver %s has volumes at %s where it is not registered", driver, facts.Count(len(missing[driver]), "node")))
	}
	switch {
	case len(near) > 0 && e.absent():
		list = append(list, found(Warning, some(near), "With Moorage a pod is placed only where a slot is free or becomes free, which it reserves until the pod runs.",
			"%d of %d slots are taken; nodes near their limit, where a pod that is placed too early hangs: %d of %d", taken, limits, len(near), limited))
	case len(near) > 0:
		list = append(list, found(Info, some(near), "Add nodes before new pods wait. `kubectl moorage nodes` shows each.",
			"%d of %d slots are taken; nodes near their limit: %d of %d", taken, limits, len(near), limited))
	case len(list) == 0:
		list = append(list, ok("%d of %d slots are taken, and no node is near its limit", taken, limits))
	}
	return list
}

// checkNodeMountReports finds nodes without moorage-node's report of today, and reported leftovers. Volumes
// that the kubelet lists don't count: they are about to be staged or taken down.
func checkNodeMountReports(e *Evidence) []Finding {
	if e.Agents.Err != nil {
		return unchecked("daemonsets.apps", e.Agents.Err)
	}
	if unseen := e.World.WordsUnseen; unseen != nil && !unseen.Missing {
		return unchecked(unseen.Resource, errors.New(unseen.Message))
	}
	var list []Finding
	for i := range e.Agents.Items {
		d := &e.Agents.Items[i]
		if d.Status.NumberReady < d.Status.DesiredNumberScheduled {
			list = append(list, found(Warning, "DaemonSet "+d.Namespace+"/"+d.Name,
				"See why it lacks pods: `kubectl -n "+d.Namespace+" describe daemonset "+d.Name+"`. Its namespace has to admit privileged pods. Without it volumes leave by the kubelet's report, unless node.required is set: docs/operate/modes.md#moorage-node.",
				"moorage-node is ready at %d of %s", d.Status.NumberReady, facts.Count(int(d.Status.DesiredNumberScheduled), "node")))
		}
	}
	list = append(list, requiredWords(e)...)
	if len(e.World.NodeMountReports) == 0 {
		return list
	}
	speak := 0
	for _, n := range e.World.Nodes {
		word := e.World.NodeWordOf(ledger.NodeName(n.Name))
		if word.State == facts.WordSpeaks {
			speak++
		}
		list = append(list, ofWord(n.Name, &word)...)
	}
	if len(list) == 0 {
		list = append(list, ok("nodes that say what they have staged, of which their kubelets know: %d", speak))
	}
	return list
}

// requiredWords finds nodes with drivers, without the report that volumes need to leave.
func requiredWords(e *Evidence) []Finding {
	if !e.World.ReportRequired() {
		return nil
	}
	var silent []string
	for _, n := range e.World.NodeDrivers {
		if word := e.World.NodeWordOf(ledger.NodeName(n.Name)); len(n.Spec.Drivers) > 0 && !word.OfToday() {
			silent = append(silent, n.Name)
		}
	}
	if len(silent) == 0 {
		return nil
	}
	return []Finding{found(Error, some(silent), "Have moorage-node run at these nodes, or install the chart with node.required=false: docs/operate/modes.md#moorage-node.",
		"moorage-node's report is required (node.required), and it says nothing of today at %s with drivers: no volume leaves them, but by force", facts.Count(len(silent), "node"))}
}

func ofWord(node string, word *facts.NodeWord) []Finding {
	var list []Finding
	for i := range word.Has {
		if has := &word.Has[i]; word.State != facts.WordSilent && (has.Leaked || has.NoAttachment || !has.KubeletKnows) { // a silent word may be old
			list = append(list, found(Warning, node+": "+has.Path, "Unless a pod there uses it, take it down as docs/operate/runbook.md#moorageforgottenstagingpath says, which has block volumes and subpaths, too.",
				"node %s, volume %s of driver %s: %s", node, cmp.Or(has.Volume, "(unknown)"), cmp.Or(has.Driver, "(unknown)"), has.Oddity()))
		}
	}
	const fix = "See that moorage-node runs there, and what its log says: `kubectl get pods -A -o wide -l app.kubernetes.io/component=node`. docs/operate/modes.md#moorage-node has what depends on it."
	switch word.State {
	case facts.WordSpeaks:
	case facts.WordAbsent:
		list = append(list, found(Info, "nodemountreports "+node, fix, "moorage-node says nothing at %s, and elsewhere it does", node))
	case facts.WordPartial:
		list = append(list, found(Unknown, strings.Join(word.Unread, "; "), fix, "moorage-node at %s can't read all of what the node has", node))
	default:
		list = append(list, found(Warning, "nodemountreports "+node, fix, "node %s: %s", node, word.Note))
	}
	return list
}

// checkWaits lists long waits. Volumes at a node with the same reason share a finding.
func checkWaits(e *Evidence) []Finding {
	incidents, groups, order := behind(e.World), map[string][]facts.Volume{}, []string{}
	for _, v := range e.World.ListVolumes("") {
		if v.Reason == nil || v.Reason.Since.IsZero() || e.now().Sub(v.Reason.Since) < facts.LongWait || len(incidents[v.Reason.Node]) > 0 {
			continue
		}
		key := v.Reason.Node + " " + v.Reason.Code
		if v.Reason.Node == "" {
			key = v.Key()
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], v)
	}
	var list []Finding
	for _, key := range order {
		first, more := groups[key][0], ""
		if n := len(groups[key]) - 1; n > 0 {
			more = fmt.Sprintf(" (and %s more at %s)", facts.Count(n, "volume"), first.Reason.Node)
		}
		list = append(list, found(Warning, "VolumeHold of "+first.Driver+"^"+first.Handle, first.Reason.Do, "%s%s: %s for %s: %s",
			cmp.Or(first.Claim, first.PersistentVolume), more, first.Reason.Code, e.now().Sub(first.Reason.Since).Round(time.Second), first.Reason.Message))
	}
	for _, t := range e.World.ListTickets("") {
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

// checkFencing finds shared machines, and drivers without an AttachPolicy about a dead node's volumes.
func checkFencing(e *Evidence) []Finding {
	list := sharedMachines(e)
	if e.World.Arbiter.Cooperative {
		return append(list, ok("Cooperative mode: kube-controller-manager frees the volumes of a dead node, by the taint node.kubernetes.io/out-of-service, or six minutes after their pods are gone"))
	}
	var silent []string
	for _, d := range e.World.Drivers {
		needed := d.Spec.AttachRequired == nil || *d.Spec.AttachRequired
		if needed && !slices.ContainsFunc(e.World.Policies, func(p *v1alpha1.AttachPolicy) bool { return saysWhatFences(p, d.Name) }) {
			silent = append(silent, d.Name)
		}
	}
	if len(silent) == 0 {
		return append(list, ok("of each driver an AttachPolicy says what its detach does to a dead node's access"))
	}
	return append(list, found(Info, some(silent),
		"Ask the vendor whether ControllerUnpublishVolume takes a running machine's access away, and set unpublishFences to true or false; charts/moorage/examples has the answer for some. If the driver has csi-addons' NETWORK_FENCE, set forceDetach.networkFence: docs/operate/dead-nodes.md.",
		"drivers of which no AttachPolicy says whether their detach takes a dead node's access away: %d. With unpublishFences: true their volumes leave a dead node with proof, when the cloud says that it is off, or after forceDetach.afterUnreachable; without it they wait for a person, or for a time that proves nothing", len(silent)))
}

// saysWhatFences: the policy covers all the driver's volumes, and names the evidence that a dead node
// writes no more.
func saysWhatFences(p *v1alpha1.AttachPolicy, driver string) bool {
	force := p.Spec.ForceDetach
	evidence := p.Spec.UnpublishFences != nil || force != nil && (force.NetworkFence != nil || force.FencedCondition != nil && *force.FencedCondition != "")
	return p.Spec.Driver == driver && p.Spec.StorageClassName == "" && evidence && !meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.PolicyInEffect)
}
