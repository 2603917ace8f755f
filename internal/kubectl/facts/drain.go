// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// DrainPlan is what a drain of a node would do to the pods with volumes there.
// Volumes, node selectors, affinity to nodes and taints are looked at; CPU,
// memory, pod affinity and disruption budgets are not.
type DrainPlan struct {
	Node string `json:"node"`
	// Answer is the whole in a sentence.
	Answer string `json:"answer"`
	// Waits is how many pods would find no node.
	Waits int        `json:"waits"`
	Pods  []DrainPod `json:"pods,omitempty"`
	// Alone are the pods that no controller makes again, namespace/name, with volumes or
	// without: drain evicts them with --force only.
	Alone []string `json:"alone,omitempty"`
	// Tickets are those that are not pods' and stay there, end or move.
	Tickets []DrainTicket `json:"tickets,omitempty"`
	// Stuck are volumes at the node that nobody there uses, and that do not
	// leave as things are.
	Stuck []Volume `json:"stuck,omitempty"`
	// Dead: the node is not ready, so that nothing is unmounted there. Do is what to
	// do about it, empty where it is out of service.
	Dead bool   `json:"notReady,omitempty"`
	Do   string `json:"do,omitempty"`
	// KubeletLives: the node is not ready, and its kubelet ends pods and unmounts all the same.
	KubeletLives bool `json:"kubeletLives,omitempty"`
	// NotVisible are the resources that may not be listed: whether pods that could go
	// elsewhere by what is seen can do so is not known.
	NotVisible []string `json:"notVisible,omitempty"`
	// Down are the components without which no pod gets its volumes elsewhere.
	Down []Cause `json:"down,omitempty"`
	// NotDetached are the components that are down, and without which the volumes of pods that end
	// stay attached at the node; those of Down are not said again.
	NotDetached []Cause  `json:"notDetached,omitempty"`
	Unseen      []Unseen `json:"unseen,omitempty"`
}

// Clear says whether nothing is known or unseen that stands in the way of the pods.
func (p *DrainPlan) Clear() bool {
	return p.Waits == 0 && !p.Dead && len(p.NotVisible) == 0 && len(p.Down) == 0 && len(p.NotDetached) == 0
}

// Empties says whether nothing stands in the way of the pods, no pod needs --force, and nothing stays: a ticket's volumes,
// or those that can't leave, are at the node when all pods are gone.
func (p *DrainPlan) Empties() bool {
	return p.Clear() && len(p.Alone) == 0 && len(p.Stuck) == 0 && !slices.ContainsFunc(p.Tickets, DrainTicket.stays)
}

// DrainTicket is a VolumeTicket at the node that is not a pod's.
type DrainTicket struct {
	Ticket string `json:"ticket"` // namespace/name
	Type   string `json:"type"`
	// Then is what the cordon does to it: Stay, End or Move.
	Then string `json:"then"`
}

// stays says whether the cordon leaves it there.
func (t DrainTicket) stays() bool { return t.Then == string(v1alpha1.OnDrainStay) }

// drainTickets are the VolumeTickets at a node, by name: those that have volumes there,
// and those that the cordon ends or moves.
func (w *World) drainTickets(node string) []DrainTicket {
	var list []DrainTicket
	for _, t := range w.Tickets {
		then := cmp.Or(t.Spec.OnDrain, v1alpha1.OnDrainStay)
		waits := !meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TicketGranted)
		if t.Node() != node || waits && then == v1alpha1.OnDrainStay {
			continue
		}
		list = append(list, DrainTicket{Ticket: t.Namespace + "/" + t.Name, Type: string(t.Spec.Type), Then: string(then)})
	}
	slices.SortFunc(list, func(a, b DrainTicket) int { return strings.Compare(a.Ticket, b.Ticket) })
	return list
}

// thatStay says which tickets a drain waits for, as a sentence after others; empty: none.
func (p *DrainPlan) thatStay() string {
	var stay, leave []string
	for _, t := range p.Tickets {
		if t.stays() {
			stay = append(stay, t.Ticket)
		} else {
			leave = append(leave, t.Ticket)
		}
	}
	text := ""
	switch n := len(stay); n {
	case 0:
	case 1:
		text += " 1 VolumeTicket there stays until somebody ends it: " + stay[0] + "."
	default:
		text += fmt.Sprintf(" %d VolumeTickets there stay until somebody ends them: %s.", n, strings.Join(stay[:min(n, fewTickets)], ", "))
	}
	switch n := len(leave); n {
	case 0:
	case 1:
		text += " 1 VolumeTicket leaves with the cordon: " + leave[0] + "."
	default:
		text += fmt.Sprintf(" %d VolumeTickets leave with the cordon: %s.", n, strings.Join(leave[:min(n, fewTickets)], ", "))
	}
	return text
}

// asForPods says that nothing that pods need is in the way of a drain.
func (p *DrainPlan) asForPods() string {
	if slices.ContainsFunc(p.Tickets, DrainTicket.stays) {
		return "as for pods, it may be drained."
	}
	return "as for volumes, it may be drained."
}

// fewTickets is how many tickets a sentence names.
const fewTickets = 5

// DrainPod is one pod of the node.
type DrainPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Workload is what makes the pod again, such as statefulset/db; empty where nobody does.
	Workload string   `json:"workload,omitempty"`
	Volumes  []string `json:"volumes"`
	// To is the node that would suit its volumes best; empty when it would wait, and when it
	// would end.
	To string `json:"to,omitempty"`
	// Ends: no controller makes it again, so that its volumes need no room elsewhere.
	Ends bool `json:"ends,omitempty"`
	// NotVisible: whether it would wait can't be told.
	NotVisible bool `json:"notVisible,omitempty"`
	// Note says what else is worth knowing, such as that nobody makes it again, or which tickets
	// get time to let go of its volumes first.
	Note string `json:"note,omitempty"`
	// Nodes are the nodes and why none will do, for one that would wait.
	Nodes []NodesVerdict `json:"nodes,omitempty"`
}

// note adds what else is worth knowing.
func (p *DrainPod) note(text string) {
	if text != "" {
		p.Note = strings.TrimPrefix(p.Note+"; "+text, "; ")
	}
}

// waitsForComponents says whether nothing keeps a pod from the nodes that are a choice but
// components that are down.
func (p *DrainPod) waitsForComponents() bool {
	waits := false
	for i := range p.Nodes {
		if p.Nodes[i].Barred != "" {
			continue
		}
		waits = true
		if slices.ContainsFunc(p.Nodes[i].Reasons, func(r Reason) bool { return r.Code != controllerDown && r.Code != attacherDown }) {
			return false
		}
	}
	return waits
}

// DrainPlan plays a drain through: all pods of the node go, and come back one
// after the other, the older first, each to the node that suits its volumes
// best. Pods of DaemonSets and mirror pods stay, as kubectl drain leaves them.
func (w *World) DrainPlan(node string) DrainPlan {
	out := w.DrainPlanOf(node, func(*corev1.Pod) bool { return true })
	for _, p := range w.Pods {
		if p.Spec.NodeName == node && !stays(p) && !MadeAgain(p) && w.OwnerPod(p) == nil && w.PodFact(p).Phase != ledger.PodFinished && p.DeletionTimestamp == nil {
			out.Alone = append(out.Alone, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(out.Alone)
	out.Answer = answerDrain(&out)
	return out
}

// DrainPlanOf is the plan of a drain of those pods only that leave.
func (w *World) DrainPlanOf(node string, leaves func(*corev1.Pod) bool) DrainPlan {
	leaving := func(p *corev1.Pod) bool { return p.Spec.NodeName == node && !stays(p) && leaves(p) }
	after, moved := w.without(node, leaving, nil)
	out := DrainPlan{Node: node, Unseen: w.Unseen, NotVisible: w.mayNotList()}
	var tried ledger.Delta
	for _, pod := range moved {
		snapshot := after.Snapshot.With(&tried)
		request := arbiter.PodRequest(snapshot, after.PodFact(pod))
		plan := DrainPod{Namespace: pod.Namespace, Name: pod.Name, Workload: workloadOf(pod), Note: w.noteOf(w.pods[string(originalUID(pod))])}
		plan.Volumes = w.roomFor(pod, request)
		plan.Nodes = after.fits(snapshot, request, pod)
		if why := w.doubted(pod, node); why != "" {
			plan.Nodes = nil
			plan.note(why)
			out.Waits++
		} else if to := after.best(snapshot, request, plan.Nodes); to != "" {
			plan.To, plan.Nodes = to, nil
			plan.note(w.noticeBefore(w.pods[string(originalUID(pod))], node, to))
			tried.Add(string(pod.UID), ledger.NodeName(to))
		} else if plan.NotVisible = anyNotVisible(plan.Nodes); !plan.NotVisible {
			out.Waits++
		}
		out.Pods = append(out.Pods, plan)
	}
	end := w.endingPods(leaving)
	out.Pods = append(out.Pods, w.ending(end)...)
	out.Down = w.downFor(moved)
	out.Stuck, out.Tickets = w.keptAt(node), w.drainTickets(node)
	if n := w.Snapshot.Node(ledger.NodeName(node)); n != nil && n.Exists && n.Ready != ledger.ReadyTrue {
		w.keepAtDeadNode(&out)
	} else {
		out.NotDetached = w.notDetached(end, node, out.Down)
	}
	out.Answer = answerDrain(&out)
	return out
}

// endingPods are the pods with volumes that leave and that no controller makes again, the older first.
func (w *World) endingPods(leaves func(*corev1.Pod) bool) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, p := range w.Pods {
		if leaves(p) && !MadeAgain(p) && w.OwnerPod(p) == nil && w.PodFact(p).Phase != ledger.PodFinished && w.needsRoom(p) {
			pods = append(pods, p)
		}
	}
	slices.SortStableFunc(pods, olderFirst)
	return pods
}

// ending are pods that end, as a plan has them.
func (w *World) ending(pods []*corev1.Pod) []DrainPod {
	var list []DrainPod
	for _, p := range pods {
		request := arbiter.PodRequest(w.Snapshot, w.PodFact(p))
		list = append(list, DrainPod{Namespace: p.Namespace, Name: p.Name, Workload: workloadOf(p), Note: w.noteOf(p), Ends: true, Volumes: w.roomFor(p, request)})
	}
	return list
}

// roomFor lists the volumes of a pod, by the names of its claims, that have to be attached or
// that some nodes only can use.
func (w *World) roomFor(p *corev1.Pod, request arbiter.Request) []string {
	var list []string
	for _, need := range request.Needs {
		list = append(list, need.Name)
	}
	for _, claim := range w.tied(p) {
		if !slices.Contains(list, claim) {
			list = append(list, claim)
		}
	}
	return list
}

// workloadOf is the controller of a pod as commands name it; empty without one.
func workloadOf(p *corev1.Pod) string {
	if owner := metav1.GetControllerOf(p); owner != nil {
		return strings.ToLower(owner.Kind) + "/" + owner.Name
	}
	return ""
}

// olderFirst compares pods by their age, then by name.
func olderFirst(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// doubted says why a volume of a pod can't leave a node whatever becomes of the pod: the node may
// have it mounted, since it was taken from there by force, and nobody knows whether its kubelet
// has forgotten it. Empty where that is so of none.
func (w *World) doubted(pod *corev1.Pod, node string) string {
	at := w.Snapshot.Node(ledger.NodeName(node))
	for _, need := range arbiter.PodRequest(w.Snapshot, w.PodFact(pod)).Needs {
		if at.Doubts(need.Volume) {
			return fmt.Sprintf("volume %s would not leave %s: it may be mounted there since a forced detach, until the machine is rebooted", need.Name, node)
		}
	}
	return ""
}

// mayNotList are the resources that may not be listed, in some namespaces or any. Those
// that the cluster does not serve have no objects.
func (w *World) mayNotList() []string {
	var list []string
	for _, u := range w.Unseen {
		if !u.Missing {
			list = append(list, u.Resource)
		}
	}
	return list
}

func anyNotVisible(groups []NodesVerdict) bool {
	return slices.ContainsFunc(groups, func(g NodesVerdict) bool {
		return slices.ContainsFunc(g.Reasons, func(r Reason) bool { return r.Code == NotVisible })
	})
}

// downFor are the components that are down, and without which pods get no node or no
// volumes: their schedulers, the controller, and the attachers.
func (w *World) downFor(pods []*corev1.Pod) []Cause {
	var list []Cause
	add := func(c *Cause) { list = withCause(list, c) }
	for _, p := range pods {
		add(w.schedulerDown(p))
		for _, need := range arbiter.PodRequest(w.Snapshot, w.PodFact(p)).Needs {
			add(w.componentCause(&Reason{Code: string(arbiter.Attaching)}, need.Volume.Driver))
		}
		add(w.nobodyGrants())
	}
	return list
}

// withCause adds a cause to a list, unless it is nil or the list says it already.
func withCause(list []Cause, c *Cause) []Cause {
	if c == nil || slices.ContainsFunc(list, func(o Cause) bool { return o.Message == c.Message }) {
		return list
	}
	return append(list, *c)
}

// notDetached are the components that are down, and without which the volumes that pods have
// attached at a node are not detached once these end; without those that are said already.
func (w *World) notDetached(pods []*corev1.Pod, node string, said []Cause) []Cause {
	list := slices.Clone(said)
	for _, p := range pods {
		for _, need := range arbiter.PodRequest(w.Snapshot, w.PodFact(p)).Needs {
			place := w.Snapshot.Volume(need.Volume).NodeVolume(ledger.NodeName(node))
			if place == nil || !place.HasAttachments() && !place.Reported {
				continue
			}
			list = withCause(list, w.componentCause(&Reason{Code: string(arbiter.Detaching)}, need.Volume.Driver))
		}
	}
	return list[len(said):]
}

// keepAtDeadNode has pods wait whose volumes a node that is not ready does not let
// go of: a drain evicts them, and no kubelet ends and unmounts anything.
func (w *World) keepAtDeadNode(out *DrainPlan) {
	out.Dead = true
	object := w.Node(out.Node)
	if w.givesUp(object) {
		return
	}
	view := w.ExplainNode(object)
	out.Do, out.KubeletLives = view.Cause.Do, view.KubeletLives
	if c := w.detacherDown(); c != nil && !slices.ContainsFunc(out.Down, func(o Cause) bool { return o.Message == c.Message }) {
		out.Down = append(out.Down, *c)
	}
	for i := range out.Pods {
		pod := &out.Pods[i]
		if pod.To == "" || out.KubeletLives || !w.holdsExclusive(pod, out.Node) {
			continue
		}
		note := "its volume may be in use at " + out.Node + " until the machine is known to be off"
		if p := w.Pod(pod.Namespace, pod.Name); p != nil && w.onlyPodHolds(p) {
			note = "no kubelet ends it: it keeps its volume at " + out.Node + " until it is deleted by force"
		}
		pod.To = ""
		pod.note(note)
		out.Waits++
	}
}

// holdsExclusive says whether a pod has a volume at a node that may be at no other.
func (w *World) holdsExclusive(pod *DrainPod, node string) bool {
	p := w.Pod(pod.Namespace, pod.Name)
	if p == nil {
		return false
	}
	for _, need := range arbiter.PodRequest(w.Snapshot, w.PodFact(p)).Needs {
		v := w.Volume(need.Volume)
		if v.Access == accessOf(ledger.AccessMany) {
			continue
		}
		for _, at := range v.Nodes {
			if at.Node == node && at.maybeThere() {
				return true
			}
		}
	}
	return false
}

// without is the cluster after a drain: the node is cordoned, the pods that leave are pods
// without a node, and what was theirs belongs to nobody. So are pods that are gone, and that
// are made again. The pods that are made again and have volumes to find room for are returned,
// the older first.
func (w *World) without(node string, leaves func(*corev1.Pod) bool, gone []*corev1.Pod) (*World, []*corev1.Pod) {
	objects := w.Objects
	objects.Nodes = slices.Clone(w.Nodes)
	for i, n := range objects.Nodes {
		if n.Name == node {
			objects.Nodes[i] = n.DeepCopy()
			objects.Nodes[i].Spec.Unschedulable = true
		}
	}
	objects.Pods = nil
	var moved []*corev1.Pod
	for _, p := range w.Pods {
		if owner := w.OwnerPod(p); !leaves(p) && (owner == nil || !leaves(owner)) {
			objects.Pods = append(objects.Pods, p)
			continue
		}
		if w.PodFact(p).Phase == ledger.PodFinished || !MadeAgain(p) {
			continue
		}
		if next := w.successor(p); w.needsRoom(p) || w.needsRoom(next) {
			moved = append(moved, next)
		}
	}
	for _, p := range gone {
		if w.needsRoom(p) {
			moved = append(moved, w.successor(p))
		}
	}
	slices.SortStableFunc(moved, olderFirst)
	objects.Pods = append(objects.Pods, moved...)
	objects.Tickets = w.ticketsWithout(node)
	after := NewWorld(objects, w.Now)
	after.Unseen = w.Unseen
	after.draining = node
	return after, moved
}

// needsRoom says whether a pod has volumes that have to be attached, or that can be used from
// some nodes only.
func (w *World) needsRoom(p *corev1.Pod) bool { return w.NeedsAttachment(p) || len(w.tied(p)) > 0 }

// ticketsWithout are the VolumeTickets without those that end when a node is cordoned, or move.
func (w *World) ticketsWithout(node string) []*v1alpha1.VolumeTicket {
	return slices.DeleteFunc(slices.Clone(w.Tickets), func(t *v1alpha1.VolumeTicket) bool {
		return t.Node() == node && t.Spec.OnDrain != "" && t.Spec.OnDrain != v1alpha1.OnDrainStay
	})
}

// stays says whether a drain leaves a pod where it is.
func stays(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return DaemonSet(p)
}

// successorSuffix marks the UID of the pod that takes another's place.
const successorSuffix = "/successor"

// successor is the pod that takes a pod's place. Its ephemeral volumes are made
// anew with it. It has the volumes of the pods that belong to it, too, which are made where it is.
func (w *World) successor(p *corev1.Pod) *corev1.Pod {
	next := p.DeepCopy()
	next.UID += successorSuffix
	next.Spec.NodeName, next.DeletionTimestamp = "", nil
	next.Status = corev1.PodStatus{Phase: corev1.PodPending}
	for _, other := range w.belongingTo(p) {
		next.Spec.Volumes = append(next.Spec.Volumes, other.Spec.Volumes...)
	}
	next.Spec.Volumes = slices.DeleteFunc(next.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil })
	return next
}

// byPlan has the message of a reason say what is so only by the plan: that a pod has a volume
// at the node where the plan has placed it.
func byPlan(r arbiter.Reason, message string) string {
	if !strings.HasSuffix(r.Who.UID, successorSuffix) {
		return message
	}
	message = strings.Replace(message, ": "+string(r.Node)+" holds it for ", ": by this plan "+string(r.Node)+" would hold it for ", 1)
	return strings.Replace(message, " and is in use for ", " and by this plan would be in use for ", 1)
}

// fullByPlan has reasons of a node where the plan has placed pods say that their slots are
// counted as taken.
func fullByPlan(reasons []Reason) []Reason {
	for i := range reasons {
		if codeOf(&reasons[i]) == arbiter.NoFreeSlot {
			reasons[i].Message = strings.Replace(reasons[i].Message, " used)", " used, with what this plan has placed there)", 1)
		}
	}
	return reasons
}

// places says whether a plan has placed pods at a node.
func places(plan *ledger.Delta, node ledger.NodeName) bool {
	if plan == nil {
		return false
	}
	for _, at := range plan.Added {
		if at == node {
			return true
		}
	}
	return false
}

func originalUID(p *corev1.Pod) types.UID { return p.UID[:len(p.UID)-len(successorSuffix)] }

// tied lists the claims of a pod whose volumes can be used from some nodes only, whether they
// have to be attached or not: such as local disks.
func (w *World) tied(p *corev1.Pod) []string {
	var list []string
	for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
		if pv := w.pvs[claim.Spec.VolumeName]; pv != nil && (pv.Spec.NodeAffinity != nil || len(zonesOf(pv)) > 0) {
			list = append(list, claim.Name)
		}
	}
	return list
}

func (w *World) noteOf(p *corev1.Pod) string {
	if p == nil {
		return ""
	}
	var notes []string
	if metav1.GetControllerOf(p) == nil {
		notes = append(notes, "no controller makes it again")
	}
	for _, other := range w.belongingTo(p) {
		notes = append(notes, fmt.Sprintf("pod %s belongs to it, ends with it, and is counted with it", other.Name))
	}
	if slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Ephemeral != nil }) {
		notes = append(notes, "its ephemeral volumes are lost, and their slots not counted here")
	}
	return strings.Join(append(notes, w.deletingClaims(p)...), "; ")
}

// deletingClaims says which of a pod's claims are gone once it ends, and with them what.
func (w *World) deletingClaims(p *corev1.Pod) []string {
	var list []string
	for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
		if claim.DeletionTimestamp != nil {
			list = append(list, fmt.Sprintf("its claim %s is being deleted, and is gone once the pod ends%s", claim.Name, w.dataGoesToo(claim)))
		}
	}
	return list
}

// best is the node of those that fit that the scheduler's score prefers.
func (w *World) best(s ledger.Snapshot, r arbiter.Request, groups []NodesVerdict) string {
	best, score := "", int64(-1)
	for _, g := range groups {
		if !g.Fits || g.Barred != "" {
			continue
		}
		for _, n := range g.Nodes {
			if rank := w.Arbiter.Rank(s, r, ledger.NodeName(n), arbiter.Weights{}); rank > score {
				best, score = n, rank
			}
		}
	}
	return best
}

// answerDead is for a node that is not ready.
func answerDead(p *DrainPlan) string {
	switch {
	case p.Do == "":
		return "It is not ready and out of service: its volumes are taken away, and a drain adds nothing."
	case p.KubeletLives:
		return "It is not ready, and its kubelet lives: a drain ends pods there as far as that can."
	case len(p.Down) > 0:
		return "It is not ready: a drain ends nothing there, and nobody takes its volumes away: " + causesSay(p.Down)
	case p.Waits == 0 && len(p.NotVisible) > 0:
		return "It is not ready, so that a drain ends nothing there. Whether a pod there has a volume that would be missed elsewhere " + cantBeTold(p)
	case p.Waits == 0 && len(p.Stuck) > 0:
		return fmt.Sprintf("It is not ready: a drain ends nothing there, and %s can't leave it.", Count(len(p.Stuck), "volume"))
	case p.Waits == 0:
		return "It is not ready, so that a drain ends nothing there; no pod there has a volume that would be missed elsewhere."
	}
	return fmt.Sprintf("It is not ready: a drain ends nothing there, and %d of %s would wait elsewhere for volumes that it does not let go of.", p.Waits, thatMove(p))
}

func answerDrain(p *DrainPlan) string {
	if p.Dead {
		return answerDead(p)
	}
	rest := thatEnd(p) + p.thatStaysAttached() + p.needForce() + p.thatStay()
	if n := len(p.Stuck); n > 0 {
		rest += fmt.Sprintf(" %s there should have left already and can't.", Count(n, "volume"))
	}
	moving := len(p.Pods) - p.ending()
	switch {
	case len(p.Pods) == 0 && len(p.Down) == 0 && len(p.NotVisible) == 0:
		return "None of its pods needs a volume that has to be attached, or that only some nodes can use: " + p.asForPods() + rest
	case len(p.Down) > 0 && !slices.ContainsFunc(p.Pods, func(pod DrainPod) bool { return !pod.Ends && pod.To == "" && !pod.waitsForComponents() }):
		return "Its pods would wait: " + causesSay(p.Down) + rest
	case p.Waits > 0:
		first := ""
		if len(p.Down) > 0 {
			first = "Its pods would wait: " + causesSay(p.Down) + " Besides, "
		}
		return first + fmt.Sprintf("%d of %s would wait: %s.", p.Waits, thatMove(p), whyWait(p)) + rest
	case len(p.NotVisible) > 0:
		return "Whether its pods' volumes can go elsewhere " + cantBeTold(p) + rest
	case moving == 0:
		return strings.TrimSpace(rest)
	case len(p.Pods) == 1:
		return "The volumes of its one pod can go elsewhere." + rest
	case moving == 1:
		return "The volumes of the 1 pod that is made again can go elsewhere." + rest
	case moving < len(p.Pods):
		return fmt.Sprintf("The volumes of the %s can go elsewhere.", thatMove(p)) + rest
	}
	return fmt.Sprintf("The volumes of all %s can go elsewhere.", thatMove(p)) + rest
}

// whyWait says whether volumes keep the pods that would wait from other nodes, or rules that no
// room for a volume changes, such as a node selector.
func whyWait(p *DrainPlan) string {
	whose, them := "their", "them"
	if p.Waits == 1 {
		whose, them = "its", "it"
	}
	byRules := func(pod DrainPod) bool {
		return len(pod.Nodes) > 0 && !slices.ContainsFunc(pod.Nodes, func(n NodesVerdict) bool { return n.Barred == "" })
	}
	if slices.ContainsFunc(p.Pods, byRules) {
		return "no other node will do for " + them + " or has room for " + whose + " volumes"
	}
	return "no other node can take " + whose + " volumes"
}

// thatMove counts the pods of a plan that are made again, and says so where others are not.
func thatMove(p *DrainPlan) string {
	ending := p.ending()
	pods := Count(len(p.Pods)-ending, "pod")
	switch {
	case ending == 0:
		return pods
	case len(p.Pods)-ending == 1:
		return pods + " that is made again"
	}
	return pods + " that are made again"
}

// thatEnd counts the pods of a plan that no controller makes again, as a sentence after others.
func thatEnd(p *DrainPlan) string {
	switch n := p.ending(); n {
	case 0:
		return ""
	case 1:
		return " 1 pod with volumes would end: no controller makes it again."
	default:
		return fmt.Sprintf(" %d pods with volumes would end: no controller makes them again.", n)
	}
}

// thatStaysAttached says what keeps the volumes of pods that end from being detached, as a sentence
// after thatEnd; empty: nothing that is known.
func (p *DrainPlan) thatStaysAttached() string {
	whose := "Their"
	switch {
	case len(p.NotDetached) == 0:
		return ""
	case p.ending() == 1:
		whose = "Its"
	}
	return " " + whose + " volumes would stay attached there: " + causesSay(p.NotDetached)
}

// needForce says which pods drain evicts with --force only, as a sentence after others.
func (p *DrainPlan) needForce() string {
	n := len(p.Alone)
	switch {
	case n == 0:
		return ""
	case n > fewTickets:
		return fmt.Sprintf(" A drain needs --force because of %s and %s without a controller.", strings.Join(p.Alone[:fewTickets], ", "), Count(n-fewTickets, "more pod"))
	}
	return fmt.Sprintf(" A drain needs --force because of %s.", strings.Join(p.Alone, ", "))
}

func (p *DrainPlan) ending() int {
	n := 0
	for i := range p.Pods {
		if p.Pods[i].Ends {
			n++
		}
	}
	return n
}

// causesSay is what causes say, as one sentence.
func causesSay(causes []Cause) string {
	var list []string
	for _, c := range causes {
		list = append(list, c.Message)
	}
	return sentence(strings.Join(list, "; "))
}

func cantBeTold(p *DrainPlan) string {
	return "is not known: you may not list all " + strings.Join(p.NotVisible, ", ") + "."
}
