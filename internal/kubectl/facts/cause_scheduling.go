// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingcorev1 "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// schedulerPatience is for how long a pod may be unseen by its scheduler before
// that is the answer.
const schedulerPatience = 15 * time.Second

// schedulingCause says why a pod without a node has none, apart from its volumes;
// nil when the scheduler has said nothing and may still be about it.
func (w *World) schedulingCause(p *corev1.Pod) *Cause {
	said := podCondition(p, corev1.PodScheduled)
	if c := w.schedulerDown(p, said); c != nil {
		return c
	}
	if said == nil || said.Status == corev1.ConditionTrue || said.Message == "" {
		return nil
	}
	if node := p.Status.NominatedNodeName; node != "" && (w.Node(node) != nil || w.unseen("nodes")) {
		return &Cause{Of: OfScheduling, Code: "Nominated", Since: said.LastTransitionTime.Time,
			Message: fmt.Sprintf("preemption makes room for it at %s: pods there that give way have not ended yet", node),
			Do:      "Wait until they have: kubectl get pods -A --field-selector spec.nodeName=" + node}
	}
	if c := unwrittenCause(p, said); c != nil {
		return c
	}
	return w.refusedBy(p, said)
}

// unwritten begins what a scheduler of Moorage's says of a reservation that it could not
// write; after the last of untilAgain come the API server's words.
const (
	unwritten  = "the reservation could not be written"
	untilAgain = "will be tried again: "
)

// unwrittenCause is for a pod whose VolumeTicket the API server refuses: nodes are not what it
// lacks. Nil for any other.
func unwrittenCause(p *corev1.Pod, said *corev1.PodCondition) *Cause {
	_, words, ok := strings.Cut(said.Message, unwritten)
	if !ok {
		return nil
	}
	words, _, _ = strings.Cut(words, " preemption: ")
	c := &Cause{Of: OfScheduling, Code: "ReservationFailed", Since: said.LastTransitionTime.Time,
		Do: "Mend what the message names. Its scheduler tries again by itself"}
	why := ""
	if _, after, ok := strings.Cut(words, untilAgain); ok {
		why = ": " + after
	}
	if at := strings.Index(why, "exceeded quota"); at >= 0 {
		c.Code, why = "QuotaExceeded", ": "+why[at:]
		c.Do = "Raise the quota, or end tickets that nobody needs: kubectl describe resourcequota -n " + p.Namespace + "; kubectl moorage tickets -n " + p.Namespace
	}
	c.Message = "its scheduler can't write the VolumeTicket by which it reserves the pod's volumes" + strings.TrimSuffix(shortened(why, ""), ".")
	return c
}

// gatedCause says that no scheduler looks at a pod yet, whatever its volumes; nil where one may.
func gatedCause(p *corev1.Pod) *Cause {
	if len(p.Spec.SchedulingGates) == 0 {
		return nil
	}
	return &Cause{Of: OfScheduling, Code: "SchedulingGated", Since: p.CreationTimestamp.Time,
		Message: "its scheduling gate " + p.Spec.SchedulingGates[0].Name + " keeps it from being scheduled",
		Do:      "Find who set the gate: it is they who take it away"}
}

// schedulerDown says that nobody schedules a pod; nil when somebody may.
func (w *World) schedulerDown(p *corev1.Pod, said *corev1.PodCondition) *Cause {
	name, lease := cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName), schedulerLease(p)
	is, since := w.leads(lease)
	switch {
	case is == lapsed:
		return &Cause{Of: OfComponent, Code: "SchedulerDown", Since: since,
			Message: fmt.Sprintf("its scheduler %s is down: nobody renews the Lease %s", name, lease), Do: lookAtScheduler(lease)}
	case is == never && said == nil && w.createdFor(p) > schedulerPatience && lease != kubeScheduler:
		return w.schedulerMissing(p)
	case said == nil && w.createdFor(p) > schedulerPatience && is != leads:
		return &Cause{Of: OfComponent, Code: "SchedulerSilent", Since: p.CreationTimestamp.Time,
			Message: fmt.Sprintf("its scheduler %s has not looked at it", name), Do: lookAtScheduler(lease)}
	}
	return nil
}

// schedulerMissing is for a pod whose scheduler has no Lease of its name, and has not looked at
// it: there is none, or it is a profile of another one, whose name is not in the API.
func (w *World) schedulerMissing(p *corev1.Pod) *Cause {
	name := p.Spec.SchedulerName
	if is, since := w.leads(kubeScheduler); is == lapsed {
		return &Cause{Of: OfComponent, Code: "SchedulerDown", Since: since,
			Message: fmt.Sprintf("it asks for scheduler %s, which has no Lease of its own; %s, of which it may be a profile, is down: nobody renews its Lease", name, kubeScheduler),
			Do:      lookAtScheduler(kubeScheduler)}
	}
	return &Cause{Of: OfComponent, Code: "SchedulerMissing", Since: p.CreationTimestamp.Time,
		Message: fmt.Sprintf("it asks for scheduler %s, which has no Lease and has not looked at it: none of that name runs, or it is a profile of another scheduler that is behind", name),
		Do:      "See which schedulers run, and their profiles: kubectl get lease -A | grep -i scheduler. If none is meant, correct spec.schedulerName where the pod is made"}
}

func lookAtScheduler(lease string) string {
	if lease == v1alpha1.SchedulerName {
		return "See why: kubectl get pods -A -l app.kubernetes.io/component=scheduler, then the logs"
	}
	return "See why: kubectl get lease -A | grep " + lease + ", and the logs of its pod"
}

// partBegins is how a part of a scheduler's message begins, "3 Insufficient cpu" and the like.
var partBegins = regexp.MustCompile(`(?:^|available: |, )(\d+ \pL)`)

// partsByNodes are the parts of a scheduler's message that say what is wrong with how many nodes, in its
// order. A part may have commas itself: it ends where the next one, which is not in brackets, or the next
// sentence begins.
func partsByNodes(message string) []string {
	open, from := 0, 0
	begins := slices.DeleteFunc(partBegins.FindAllStringSubmatchIndex(message, -1), func(at []int) bool {
		open += strings.Count(message[from:at[0]], "(") - strings.Count(message[from:at[0]], ")")
		from = at[0]
		return open > 0
	})
	var parts []string
	for i, at := range begins {
		end := len(message)
		if i+1 < len(begins) {
			end = begins[i+1][0]
		}
		part, _, _ := strings.Cut(message[at[2]:end], ". ")
		parts = append(parts, strings.TrimSuffix(part, "."))
	}
	return parts
}

// refusal is how a plugin of kube-scheduler refuses nodes.
type refusal struct {
	words []string // any of them in the scheduler's message, of 1.34 to 1.37
	code  string
	do    string // "": what docs/reasons.md says of the code
}

// refusals are those that are known, with the advice for each. Of several in one message the
// first row counts, but for the taints that nodes have by themselves: see refusedBy.
var refusals = []refusal{
	{[]string{"Insufficient "}, "InsufficientResources",
		"Lower the pod's requests, free capacity or add nodes: kubectl describe nodes | grep -A8 'Allocated resources'"},
	{[]string{"Too many pods"}, "InsufficientResources",
		"Their kubelets take no more pods (maxPods): end some there, or add nodes"},
	{[]string{"untolerated taint"}, tainted, tolerate},
	{[]string{"didn't match Pod's node affinity/selector"}, "NodeAffinity",
		"Compare the pod's nodeSelector and affinity with the labels: kubectl get nodes --show-labels"},
	{[]string{"didn't match PersistentVolume's node affinity", "volume node affinity conflict"}, volumeElsewhere,
		"The volume can be reached from other nodes only, such as those of its zone: kubectl get pv -o wide, then spec.nodeAffinity"},
	{[]string{"topology spread constraints"}, "TopologySpread",
		"Loosen the pod's topologySpreadConstraints, or add nodes where it may go"},
	{[]string{"anti-affinity", "pod affinity"}, "PodAffinity",
		"Compare the pod's affinity with where the pods that it names run"},
	{[]string{"free ports"}, "PortTaken",
		"Another pod of the node has that hostPort: use another, or a Service"},
	{[]string{cordonedNodes}, "Cordoned", uncordon},
	{[]string{"max volume count"}, "NoFreeSlot",
		"See who takes the slots: kubectl moorage nodes"},
	{[]string{arbiter.HoldRefusedWords}, string(arbiter.HoldRefused), ""},
	{[]string{"find available persistent volumes to bind", "unbound immediate PersistentVolumeClaims"}, "ClaimUnbound",
		"See why the claim has no volume: kubectl moorage explain pvc NAME"},
}

const (
	tainted         = "Tainted"
	volumeElsewhere = "VolumeElsewhere"
	tolerate        = "Give the pod a toleration, or take the taint away: kubectl get nodes -o custom-columns=NODE:.metadata.name,TAINTS:.spec.taints[*].key"
	cordonedNodes   = "were unschedulable"
	uncordon        = "Let pods go there again when the work is done: kubectl uncordon NODE"
	notTheHolder    = "didn't satisfy plugin(s) [VolumeHold]" // the plugin's PreFilter left only the node that holds the volume
)

func (r *refusal) in(message string) bool {
	return slices.ContainsFunc(r.words, func(words string) bool { return strings.Contains(message, words) })
}

// refusedBy is what the scheduler says of the nodes, with what a person can do about each thing that
// it names. A taint that a node has by itself, because it is not ready or out of service, is no
// pod's to tolerate: what keeps the pod from the other nodes comes first.
func (w *World) refusedBy(p *corev1.Pod, said *corev1.PodCondition) *Cause {
	c := &Cause{Of: OfScheduling, Code: said.Reason, Since: said.LastTransitionTime.Time, Message: shortened(said.Message, "")}
	message, _, _ := strings.Cut(said.Message, " preemption:")
	c.Do = "Read what the scheduler says of each node"
	dead := w.nodesNotReady()
	byThemselves := dead > 0 && !w.taintedByHand(p)
	var answered []string
	if byThemselves {
		answered = append(answered, tolerate)
	}
	for i := range refusals {
		r := &refusals[i]
		if !r.in(message) {
			continue
		}
		c.Code, c.Do = r.code, w.doAbout(r)
		answered = append(answered, c.Do)
		if r.code != tainted || !byThemselves {
			break
		}
		c.Do = "" // unless another row follows
	}
	if parts := countedParts(message); len(parts) > 0 {
		c.Message = "no node can take it: " + strings.Join(parts, ", ")
	}
	if dead > 0 && strings.Contains(message, "untolerated taint") {
		if only := w.allowedAndDown(p); c.Code == "NodeAffinity" && len(only) > 0 {
			c.Message += fmt.Sprintf("; of the nodes that its node selector and affinity allow none is ready: %s", strings.Join(only, ", "))
			c.Do = ""
		} else {
			c.Message += fmt.Sprintf("; %d of %s %s not ready", dead, Count(len(w.Nodes), "node"), areOrIs(dead))
		}
		c.Do = w.bringBack(c.Do)
	}
	if only := w.allowedAndCordoned(p); c.Code == "NodeAffinity" && len(only) > 0 {
		c.Code = "Cordoned"
		answered = append(answered, uncordon)
		c.Message += "; each node that its node selector and affinity allow is cordoned: " + strings.Join(only, ", ")
		c.Do = fmt.Sprintf("Let pods go there again when the work is done: kubectl uncordon %s. Or loosen the pod's node selector or affinity", only[0])
	}
	w.alsoRefused(c, message, answered)
	if over := w.over(c.Code, p); over != "" {
		c.Message += "; " + over
		c.Do = "Wait: its scheduler looks again by itself"
	}
	return c
}

// over says that what a scheduler has said of the nodes is so of none any more; empty where it is, or that
// can't be seen.
func (w *World) over(code string, p *corev1.Pod) string {
	all := func(such func(n *corev1.Node) bool) bool {
		return len(w.Nodes) > 0 && !w.unseen("nodes") && !slices.ContainsFunc(w.Nodes, such)
	}
	switch {
	case code == "Cordoned" && all(func(n *corev1.Node) bool { return n.Spec.Unschedulable }):
		return "no node is cordoned any more"
	case code == tainted && all(func(n *corev1.Node) bool {
		_, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, p.Spec.Tolerations, schedules, false)
		return untolerated
	}):
		return "no node has such a taint any more"
	}
	return ""
}

// refusedHold says of each node that could take a pod's volumes what its scheduler says of a VolumeHold that is
// refused: that is the volume's, at whatever node.
func (w *World) refusedHold(x *Pod, p *corev1.Pod) {
	said := podCondition(p, corev1.PodScheduled)
	if said == nil || said.Status == corev1.ConditionTrue {
		return
	}
	for _, part := range partsByNodes(said.Message) {
		_, why, _ := strings.Cut(part, "refused: ")
		if !strings.Contains(why, arbiter.HoldRefusedWords) {
			continue
		}
		advice := w.adviceOn(arbiter.HoldRefused)
		for i := range x.Nodes {
			if n := &x.Nodes[i]; n.Fits {
				n.Fits, n.Reasons = false, []Reason{{Code: string(arbiter.HoldRefused), Message: why, Since: said.LastTransitionTime.Time, Changes: advice.Changes, Do: advice.Do}}
			}
		}
	}
}

// doAbout is what a person can do about a refusal.
func (w *World) doAbout(r *refusal) string { return cmp.Or(r.do, w.adviceOn(ledger.Code(r.code)).Do) }

// allowedAndDown are the nodes that a pod's node selector and affinity allow, where none of them is
// ready: then these are right, and a node is what is missing.
func (w *World) allowedAndDown(p *corev1.Pod) []string {
	return w.allowed(p, func(n *corev1.Node) bool { return !hasReady(n, corev1.ConditionTrue) })
}

// allowedAndCordoned are the nodes that a pod's node selector and affinity allow, where each is
// ready and cordoned.
func (w *World) allowedAndCordoned(p *corev1.Pod) []string {
	return w.allowed(p, func(n *corev1.Node) bool { return hasReady(n, corev1.ConditionTrue) && n.Spec.Unschedulable })
}

// allowed are the nodes that a pod's node selector and affinity allow, where all of them are such.
func (w *World) allowed(p *corev1.Pod, such func(*corev1.Node) bool) []string {
	var names []string
	own := nodeaffinity.GetRequiredNodeAffinity(p)
	for _, n := range w.Nodes {
		match, err := own.Match(n)
		switch {
		case err != nil || match && !such(n):
			return nil
		case match:
			names = append(names, n.Name)
		}
	}
	return names
}

func (w *World) nodesNotReady() (count int) {
	for _, n := range w.Nodes {
		if !hasReady(n, corev1.ConditionTrue) {
			count++
		}
	}
	return count
}

// taintedByHand says whether a node that is ready has a taint that keeps the pod away, other
// than those that Kubernetes and clouds give to nodes by what happens to them.
func (w *World) taintedByHand(p *corev1.Pod) bool {
	byHand := func(t *corev1.Taint) bool {
		return schedules(t) && !strings.HasPrefix(t.Key, "node.kubernetes.io/") && !strings.HasPrefix(t.Key, "node.cloudprovider.kubernetes.io/")
	}
	return slices.ContainsFunc(w.Nodes, func(n *corev1.Node) bool {
		_, untolerated := schedulingcorev1.FindMatchingUntoleratedTaint(klog.Logger{}, n.Spec.Taints, p.Spec.Tolerations, byHand, false)
		return untolerated && hasReady(n, corev1.ConditionTrue)
	})
}

// bringBack is what to do about nodes that are not ready, before what else there is to do.
func (w *World) bringBack(otherwise string) string {
	do := "See why nodes are not ready, whose taints go by themselves when they are back: kubectl get nodes"
	for _, n := range w.Nodes {
		if outOfService(n) && !hasReady(n, corev1.ConditionTrue) {
			do = fmt.Sprintf("Bring the nodes back that are not ready. The taint %s of %s stays until somebody takes it away, when the machine is back: %s",
				corev1.TaintNodeOutOfService, n.Name, untaint(n.Name))
			break
		}
	}
	if otherwise == "" {
		return do
	}
	return do + ". For the others: " + strings.ToLower(otherwise[:1]) + otherwise[1:]
}

// countedParts are the parts of a scheduler's message with their numbers.
func countedParts(message string) []string {
	var parts []string
	for _, part := range partsByNodes(message) {
		count, text, _ := strings.Cut(part, " ")
		text = strings.TrimPrefix(strings.TrimPrefix(text, "node(s) "), "had ")
		switch text {
		case cordonedNodes:
			text = "cordoned"
		case notTheHolder:
			text = "its volume is held at another node"
		}
		nodes := " nodes"
		if count == "1" {
			nodes = " node"
		}
		parts = append(parts, text+" ("+count+nodes+")")
	}
	return parts
}
