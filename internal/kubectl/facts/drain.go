// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// DrainPlan considers volumes, node selectors, node affinity and taints, but not CPU, memory, pod affinity
// and disruption budgets.
type DrainPlan struct {
	Node   string `json:"node"`
	Answer string `json:"answer"`
	// AsksBudgets: the caller also tries the evictions, against the disruption budgets.
	AsksBudgets bool       `json:"-"`
	Waits       int        `json:"waits"`
	Pods        []DrainPod `json:"pods,omitempty"`
	// Alone are all pods without a controller, as namespace/name: drain evicts them only with --force.
	Alone []string `json:"alone,omitempty"`
	// Tickets are tickets of no pod, with the cordon's effect.
	Tickets []DrainTicket `json:"tickets,omitempty"`
	// Stuck are volumes that have no user there, and can't leave now.
	Stuck []Volume `json:"stuck,omitempty"`
	// Dead: the node is not ready, and the plan names no pods. Do is the remedy; empty: out of service.
	Dead bool   `json:"notReady,omitempty"`
	Do   string `json:"do,omitempty"`
	// NotVisible resources leave room for pods elsewhere unsure.
	NotVisible []string `json:"notVisible,omitempty"`
	// Down are down components that the pods need.
	Down   []Reason `json:"down,omitempty"`
	Unseen []Unseen `json:"unseen,omitempty"`
}

// Clear says whether no known or hidden fact obstructs the pods.
func (p *DrainPlan) Clear() bool {
	return p.Waits == 0 && !p.Dead && len(p.NotVisible) == 0 && len(p.Down) == 0
}

// Empties: nothing obstructs the pods, none needs --force, and no volume stays.
func (p *DrainPlan) Empties() bool {
	return p.Clear() && len(p.Alone) == 0 && len(p.Stuck) == 0 && !slices.ContainsFunc(p.Tickets, DrainTicket.stays)
}

// DrainTicket is a VolumeTicket of no pod at the node.
type DrainTicket struct {
	Ticket string `json:"ticket"` // namespace/name
	Type   string `json:"type"`
	// Then is the cordon's effect: Stay, End or Move.
	Then string `json:"then"`
}

func (t DrainTicket) stays() bool { return t.Then == string(v1alpha1.OnDrainStay) }

// drainTickets are sorted by name.
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

const fewTickets = 5

// DrainPod is a pod of the node.
type DrainPod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Workload is the pod's controller, like statefulset/db, or empty.
	Workload string   `json:"workload,omitempty"`
	Volumes  []string `json:"volumes"`
	// To is the best node for its volumes; empty when the pod would wait or end.
	To string `json:"to,omitempty"`
	// Ends: no controller makes the pod again, and its volumes need no room.
	Ends       bool `json:"ends,omitempty"`
	NotVisible bool `json:"notVisible,omitempty"`
	// Note has further facts.
	Note string `json:"note,omitempty"`
	// Nodes say why no node suits a pod that would wait.
	Nodes []NodesVerdict `json:"nodes,omitempty"`
}

// DrainPlan simulates a drain: pods go and come back, the older first, each to its best node. Pods of
// DaemonSets and mirror pods stay, as with kubectl drain.
func (w *World) DrainPlan(node string) DrainPlan {
	out := w.DrainPlanOf(node, func(*corev1.Pod) bool { return true })
	if out.Dead {
		return out
	}
	for _, p := range w.Pods {
		if p.Spec.NodeName == node && !stays(p) && !MadeAgain(p) && w.OwnerPod(p) == nil && w.PodFact(p).Phase != ledger.PodFinished && p.DeletionTimestamp == nil {
			out.Alone = append(out.Alone, p.Namespace+"/"+p.Name)
		}
	}
	slices.Sort(out.Alone)
	out.Answer = answerDrain(&out)
	return out
}

// deadPlan is for a node that is not ready: no kubelet ends pods or unmounts.
func (w *World) deadPlan(n *corev1.Node) DrainPlan {
	out := DrainPlan{Node: n.Name, Dead: true, Unseen: w.Unseen, NotVisible: w.mayNotList()}
	switch {
	case w.givesUp(n):
		out.Answer = "It is not ready and out of service: its volumes are taken away, and a drain adds nothing."
		return out
	case w.kubeletLives(n):
		out.Answer = "It is not ready, and its kubelet lives: a drain ends pods there as far as that can."
	default:
		out.Answer = "It is not ready: a drain ends nothing there."
	}
	out.Do = w.ExplainNode(n).Cause.Do
	return out
}

// DrainPlanOf is the plan for only the pods that leave.
func (w *World) DrainPlanOf(node string, leaves func(*corev1.Pod) bool) DrainPlan {
	if n := w.Node(node); n != nil && !w.isReady(ledger.NodeName(node)) {
		return w.deadPlan(n)
	}
	leaving := func(p *corev1.Pod) bool { return p.Spec.NodeName == node && !stays(p) && leaves(p) }
	after, moved := w.without(node, leaving, nil)
	out := DrainPlan{Node: node, Unseen: w.Unseen, NotVisible: w.mayNotList()}
	try := trial{world: after}
	for _, pod := range moved {
		plan := DrainPod{Namespace: pod.Namespace, Name: pod.Name, Workload: workloadOf(pod), Note: w.noteOf(w.pods[string(originalUID(pod))])}
		plan.Volumes = w.roomFor(pod, rules.PodRequest(after.Snapshot, after.PodFact(pod)))
		if why := w.doubted(pod, node); why != "" {
			plan.Note = strings.TrimPrefix(plan.Note+"; "+why, "; ")
			out.Waits++
		} else if to, verdicts := try.place(pod); to != "" {
			plan.To = to
		} else {
			plan.Nodes, plan.NotVisible = verdicts, anyNotVisible(verdicts)
			if !plan.NotVisible {
				out.Waits++
			}
		}
		out.Pods = append(out.Pods, plan)
	}
	out.Pods = append(out.Pods, w.ending(leaving)...)
	out.Down = w.downFor(moved)
	out.Stuck, out.Tickets = w.keptAt(node), w.drainTickets(node)
	out.Answer = answerDrain(&out)
	return out
}

func (w *World) ending(leaves func(*corev1.Pod) bool) []DrainPod {
	pods := slices.DeleteFunc(slices.Clone(w.Pods), func(p *corev1.Pod) bool {
		return !leaves(p) || MadeAgain(p) || w.OwnerPod(p) != nil || w.PodFact(p).Phase == ledger.PodFinished || !w.needsRoom(p)
	})
	slices.SortStableFunc(pods, olderFirst)
	var list []DrainPod
	for _, p := range pods {
		request := rules.PodRequest(w.Snapshot, w.PodFact(p))
		list = append(list, DrainPod{Namespace: p.Namespace, Name: p.Name, Workload: workloadOf(p), Note: w.noteOf(p), Ends: true, Volumes: w.roomFor(p, request)})
	}
	return list
}

// roomFor lists a pod's volumes, by claim name, that need room or certain nodes.
func (w *World) roomFor(p *corev1.Pod, request rules.Request) []string {
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

func workloadOf(p *corev1.Pod) string {
	if owner := metav1.GetControllerOf(p); owner != nil {
		return strings.ToLower(owner.Kind) + "/" + owner.Name
	}
	return ""
}

func olderFirst(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// doubted says why a pod's volume can't leave a node even without the pod, or is empty: it was taken by
// force, and the node may still have it mounted.
func (w *World) doubted(pod *corev1.Pod, node string) string {
	for _, need := range rules.PodRequest(w.Snapshot, w.PodFact(pod)).Needs {
		v := w.Snapshot.Volume(need.Volume)
		if w.Snapshot.IsUnknown(v, v.OnNode(ledger.NodeName(node))) {
			return fmt.Sprintf("volume %s would not leave %s: it may be mounted there since a forced detach, until the machine is rebooted", need.Name, node)
		}
	}
	return ""
}

// mayNotList omits resources that the cluster does not serve.
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

func (w *World) downFor(pods []*corev1.Pod) []Reason {
	var list []Reason
	add := func(c *Reason) {
		if c != nil && !slices.ContainsFunc(list, func(o Reason) bool { return o.Message == c.Message }) {
			list = append(list, *c)
		}
	}
	for _, p := range pods {
		add(w.schedulerDown(p))
		for _, need := range rules.PodRequest(w.Snapshot, w.PodFact(p)).Needs {
			add(w.componentCause(&Reason{Code: string(rules.Attaching)}, need.Volume.Driver))
		}
		add(w.detacherDown())
	}
	return list
}

// without cordons the node, and takes the node from leaving pods and the user from their volumes, and
// likewise for gone pods. It returns the pods that are made again and need room, the older first.
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
		if w.isOver(p) || !MadeAgain(p) {
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

// isOver says whether a pod has ended for good. A deleted pod ends just before its object is gone, and a
// StatefulSet waits for that.
func (w *World) isOver(p *corev1.Pod) bool {
	restarts := p.Spec.RestartPolicy != corev1.RestartPolicyNever && p.Spec.RestartPolicy != corev1.RestartPolicyOnFailure
	return w.PodFact(p).Phase == ledger.PodFinished && (p.DeletionTimestamp == nil || !restarts)
}

func (w *World) needsRoom(p *corev1.Pod) bool { return w.NeedsAttachment(p) || len(w.tied(p)) > 0 }

func (w *World) ticketsWithout(node string) []*v1alpha1.VolumeTicket {
	return slices.DeleteFunc(slices.Clone(w.Tickets), func(t *v1alpha1.VolumeTicket) bool {
		return t.Node() == node && t.Spec.OnDrain != "" && t.Spec.OnDrain != v1alpha1.OnDrainStay
	})
}

func stays(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return DaemonSet(p)
}

const successorSuffix = "/successor"

// successor has new ephemeral volumes, and the volumes of pods that the pod controls, since these are made
// at its node.
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

func originalUID(p *corev1.Pod) types.UID { return p.UID[:len(p.UID)-len(successorSuffix)] }

// tied lists claims whose volumes only some nodes can use.
func (w *World) tied(p *corev1.Pod) []string {
	var list []string
	for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
		if pv := w.pvs[claim.Spec.VolumeName]; pv != nil && pv.Spec.NodeAffinity != nil {
			list = append(list, claim.Name)
		}
	}
	return list
}

func (w *World) noteOf(p *corev1.Pod) string {
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

func (w *World) deletingClaims(p *corev1.Pod) []string {
	var list []string
	for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
		if claim.DeletionTimestamp != nil {
			list = append(list, fmt.Sprintf("its claim %s is being deleted, and is gone once the pod ends%s", claim.Name, w.dataGoesToo(claim)))
		}
	}
	return list
}

func (w *World) best(s ledger.Snapshot, r rules.Request, groups []NodesVerdict) string {
	best, score := "", int64(-1)
	for _, g := range groups {
		if !g.Fits || g.Barred != "" {
			continue
		}
		for _, n := range g.Nodes {
			if rank := w.Arbiter.Rank(s, r, ledger.NodeName(n), rules.Weights{}); rank > score {
				best, score = n, rank
			}
		}
	}
	return best
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

// DrainStay is a pod that stays for now, and why.
type DrainStay struct {
	Pod   *corev1.Pod
	Nodes []NodesVerdict
	Why   string
}

// DrainNow says what a drain may do now.
type DrainNow struct {
	// Moves are pods with room elsewhere, in eviction order: fewest suitable nodes first, then the older.
	// All fit at once.
	Moves []*corev1.Pod
	// Stay are the pods without room elsewhere now.
	Stay []DrainStay
	// Kept: pods that are about to be placed get room first.
	Kept bool
	// Down are down components that the pods need.
	Down []Reason
}

// DrainAsk is a drain's question at one moment.
type DrainAsk struct {
	Node string
	// Leave are the node's pods that the drain evicts or has evicted, and that need room.
	Leave map[types.UID]bool
	// Last are pods with a refused eviction: others get room first.
	Last map[types.UID]bool
	// Gone are pods that have left and lack a successor.
	Gone []*corev1.Pod
}

// DrainNow says which pods may be evicted now. Pods without a node, and leaving pods that are made again,
// get room first.
func (w *World) DrainNow(ask DrainAsk) DrainNow {
	after, moved := w.without(ask.Node, func(p *corev1.Pod) bool {
		return ask.Leave[p.UID] || w.comesBack(p)
	}, ask.Gone)
	var out DrainNow
	try := trial{world: after}
	for _, p := range w.Pods {
		if !w.waitsForNode(p) {
			continue
		}
		to, _ := try.place(p)
		out.Kept = out.Kept || to != ""
	}
	var staying []*corev1.Pod
	for _, s := range moved {
		pod := w.pods[string(originalUID(s))]
		if pod != nil && pod.DeletionTimestamp == nil {
			staying = append(staying, s)
			continue
		}
		to, _ := try.place(s)
		out.Kept = out.Kept || to != ""
	}
	rank := map[*corev1.Pod]int{}
	for _, s := range staying {
		if rank[s] = try.choices(s); ask.Last[originalUID(s)] {
			rank[s] = math.MaxInt
		}
	}
	slices.SortStableFunc(staying, func(a, b *corev1.Pod) int { return cmp.Compare(rank[a], rank[b]) })
	out.Down = w.downFor(staying)
	for _, s := range staying {
		pod := w.pods[string(originalUID(s))]
		if why := w.doubted(pod, ask.Node); why != "" {
			out.Stay = append(out.Stay, DrainStay{Pod: pod, Why: why})
		} else if to, verdicts := try.place(s); to != "" {
			out.Moves = append(out.Moves, pod)
		} else {
			out.Stay = append(out.Stay, DrainStay{Pod: pod, Nodes: verdicts})
		}
	}
	return out
}

// MadeAgain says whether a controller replaces an evicted pod at any node. A DaemonSet uses the same node,
// and a pod that another pod controls goes with its owner.
func MadeAgain(p *corev1.Pod) bool {
	return metav1.GetControllerOf(p) != nil && !DaemonSet(p) && ofPod(p) == nil
}

// ofPod is the pod that controls a pod, or nil.
func ofPod(p *corev1.Pod) *metav1.OwnerReference {
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "Pod" && owner.APIVersion == "v1" {
		return owner
	}
	return nil
}

// comesBackWithin limits how long an ending pod counts as about to be made again: longer, something lasting
// keeps it.
const comesBackWithin = 2 * time.Minute

// comesBack says whether an ending pod still lacks its replacement. No pod ends at a node that is not
// ready.
func (w *World) comesBack(p *corev1.Pod) bool {
	if p.DeletionTimestamp == nil || p.Spec.NodeName == "" || !MadeAgain(p) || stays(p) || !w.isReady(ledger.NodeName(p.Spec.NodeName)) {
		return false
	}
	if w.Now.Sub(p.DeletionTimestamp.Time) > comesBackWithin {
		return false
	}
	return w.NextOf(p, deletedAt(p)) == nil
}

// waitsForNode is false if the scheduler refuses a pod for other reasons than volumes, or has not reported
// for long.
func (w *World) waitsForNode(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
		w.PodFact(p).Phase != ledger.PodFinished && w.NeedsAttachment(p) && w.mayBePlaced(p)
}

// mayBePlaced: the scheduler's message names volumes, or there is no recent message.
func (w *World) mayBePlaced(p *corev1.Pod) bool {
	said := podCondition(p, corev1.PodScheduled)
	if said == nil || said.Status != corev1.ConditionFalse || said.Message == "" {
		return w.Now.Sub(p.CreationTimestamp.Time) <= placedWithin
	}
	message, _, _ := strings.Cut(said.Message, " preemption:")
	return said.Reason == v1alpha1.ReasonVolumeWait || slices.ContainsFunc([]string{"olume", "slot", "claim"}, func(word string) bool { return strings.Contains(message, word) })
}

const placedWithin = 2 * time.Minute

// trial places each pod beside the earlier pods.
type trial struct {
	world  *World
	placed ledger.Delta
}

// place keeps the room at the best node. Without room, node is empty and the verdicts say why.
func (t *trial) place(p *corev1.Pod) (node string, verdicts []NodesVerdict) {
	snapshot := t.world.Snapshot.With(&t.placed)
	request := rules.PodRequest(snapshot, t.world.PodFact(p))
	verdicts = t.world.fits(snapshot, request, p)
	if node = t.world.best(snapshot, request, verdicts); node != "" {
		t.placed.Add(string(p.UID), ledger.NodeName(node))
	}
	return node, verdicts
}

func (t *trial) choices(p *corev1.Pod) int {
	snapshot, nodes := t.world.Snapshot.With(&t.placed), 0
	for _, v := range t.world.fits(snapshot, rules.PodRequest(snapshot, t.world.PodFact(p)), p) {
		if v.Fits && v.Barred == "" {
			nodes += len(v.Nodes)
		}
	}
	return nodes
}

// VolumeThere is a volume that keeps a node from being switched off.
type VolumeThere struct {
	Volume string
	Why    string
	// Pods are its known users at the node.
	Pods []types.UID
	// Ticket is the VolumeTicket, as namespace/name, that alone keeps it there, or empty.
	Ticket string
}

// VolumesThere lists the volumes that may be mounted at a node, with or without a user.
func (w *World) VolumesThere(node string) []VolumeThere {
	var list []VolumeThere
	name := ledger.NodeName(node)
	at := w.Snapshot.Node(name)
	if at == nil {
		return nil
	}
	for _, id := range at.At() {
		v := w.Snapshot.Volume(id)
		there := VolumeThere{Why: w.whyThere(v, v.OnNode(name))}
		there.Volume, _ = w.named(v)
		if there.Why == "" {
			ticket := w.keptBy(v.OnNode(name))
			if ticket == nil {
				continue
			}
			there.Ticket = ticket.ID.String()
			there.Why = "VolumeTicket " + there.Ticket + " keeps it there"
		}
		for _, u := range v.OnNode(name).Users {
			if u.Pod != "" {
				there.Pods = append(there.Pods, types.UID(u.Pod))
			}
		}
		list = append(list, there)
	}
	for _, has := range w.NodeWordOf(name).Has {
		known := slices.ContainsFunc(list, func(v VolumeThere) bool { return v.Volume == has.Volume })
		if (has.Leaked || len(has.PodsGone) > 0) && !known {
			list = append(list, VolumeThere{Volume: cmp.Or(has.Volume, has.Path), Why: has.Oddity()})
		}
	}
	return list
}

// whyThere is empty if the kubelet and its pods know of no mount.
func (w *World) whyThere(v *ledger.Volume, p *ledger.VolumeOnNode) string {
	switch {
	case !p.InUse && w.Snapshot.IsUnknown(v, p):
		why := "perhaps mounted there, though its kubelet does not report it in use"
		if verdict, _ := w.Arbiter.SafeToDetach(w.Snapshot, v, p, w.Now); verdict.First().Code == rules.InUseUnknown && verdict.First().Detail != "" {
			why += ": " + verdict.First().Detail
		}
		return why
	case p.InUse:
		return "in use by the kubelet"
	case p.Left:
		return "perhaps left there without an attachment"
	case p.Held && len(p.Users) > 0:
		return "granted there, and needs no attachment"
	}
	return ""
}

// keptBy is the granted VolumeTicket that keeps a volume at a node, or nil. A ticket that outlasts a drain
// comes first.
func (w *World) keptBy(p *ledger.VolumeOnNode) (kept *ledger.Ticket) {
	for _, u := range p.Users {
		t := w.Snapshot.Ticket(u.Ticket)
		if u.Pod == "" && t != nil && t.Phase == ledger.TicketGranted && (kept == nil || t.OnDrain == ledger.StayOnDrain) {
			kept = t
		}
	}
	return kept
}

// CordonedSince is the time of a node's last cordon, by the API server's field management; zero: unknown.
func CordonedSince(n *corev1.Node) time.Time {
	written, _ := lastWrite(n, "unschedulable")
	return written.at
}

// OnlyHere says whether node rules keep a pod with volumes from all other nodes.
func (w *World) OnlyHere(p *corev1.Pod, node string) bool {
	claims := w.tied(p)
	if len(claims) == 0 && (!w.NeedsAttachment(p) || affinityOf(p) == byAffinity) {
		return false
	}
	own := nodeaffinity.GetRequiredNodeAffinity(p)
	for _, n := range w.Nodes {
		reached := n.Name != node && !slices.ContainsFunc(claims, func(claim string) bool {
			return !inAffinity(w.pvs[w.Claim(p.Namespace, claim).Spec.VolumeName], n)
		})
		if match, err := own.Match(n); reached && err == nil && match {
			return false
		}
	}
	return true
}

// DaemonSet says whether a pod belongs to a DaemonSet.
func DaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/")
}

// OwnerPod is the pod that controls a pod; nil: none, or gone.
func (w *World) OwnerPod(p *corev1.Pod) *corev1.Pod {
	if owner := ofPod(p); owner != nil {
		return w.ByUID(owner.UID)
	}
	return nil
}

func (w *World) belongingTo(p *corev1.Pod) []*corev1.Pod {
	var list []*corev1.Pod
	for _, other := range w.Pods {
		if owner := ofPod(other); owner != nil && owner.UID == p.UID {
			list = append(list, other)
		}
	}
	return list
}

// ByUID finds a pod, or nil.
func (w *World) ByUID(uid types.UID) *corev1.Pod { return w.pods[string(uid)] }

// WaitsFor says briefly why a pod does not run yet.
func (w *World) WaitsFor(p *corev1.Pod) string {
	if c := w.ExplainPod(p).Cause; c != nil && c.Of != OfScheduling {
		return fmt.Sprintf("%s: %s", c.Code, strings.TrimSuffix(c.Message, "."))
	}
	said := podCondition(p, corev1.PodScheduled)
	switch {
	case p.Spec.NodeName != "":
		return "starting at " + p.Spec.NodeName
	case said != nil && said.Status == corev1.ConditionFalse && said.Message != "":
		message, _, _ := strings.Cut(said.Message, " preemption:")
		return "no node: " + strings.TrimSuffix(message, ".")
	}
	return "no node yet"
}

// NextOf is the pod that took a pod's place and claim since a time, or nil; a running pod comes first.
func (w *World) NextOf(p *corev1.Pod, since time.Time) *corev1.Pod {
	var next *corev1.Pod
	for _, claim := range claimNames(p) {
		for _, uid := range w.Snapshot.ClaimPods(ledger.ClaimKey{Namespace: p.Namespace, Name: claim}) {
			other := w.pods[uid]
			if other == nil || other.UID == p.UID || other.CreationTimestamp.Time.Before(since.Truncate(time.Second)) {
				continue
			}
			if next == nil || other.Status.Phase == corev1.PodRunning {
				next = other
			}
		}
	}
	return next
}

func claimNames(p *corev1.Pod) []string {
	var list []string
	for _, v := range p.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			list = append(list, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return list
}

func answerDrain(p *DrainPlan) string {
	var parts []string
	say := func(n int, format string, args ...any) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	ends, moves := p.ending(), len(p.Pods)-p.ending()
	for _, c := range p.Down {
		say(1, "Its pods would wait: %s.", strings.TrimSuffix(c.Message, "."))
	}
	say(len(p.NotVisible), "Whether its pods' volumes can go elsewhere is not known: you may not list all %s.", strings.Join(p.NotVisible, ", "))
	say(p.Waits, "%d of %s that %s made again would wait: no other node will do for %s or has room for %s volumes.",
		p.Waits, Count(moves, "pod"), verb(moves, "is", "are"), verb(p.Waits, "it", "them"), verb(p.Waits, "its", "their"))
	if len(parts) == 0 && moves > 0 {
		say(1, "The volumes of the %s that %s made again can go elsewhere.", Count(moves, "pod"), verb(moves, "is", "are"))
	}
	say(ends, "%s with volumes would end: no controller makes %s again.", Count(ends, "pod"), verb(ends, "it", "them"))
	say(len(p.Alone), "A drain needs --force because of %s.", Some(p.Alone, fewTickets))
	var stay, leave []string
	for _, t := range p.Tickets {
		if t.stays() {
			stay = append(stay, t.Ticket)
		} else {
			leave = append(leave, t.Ticket)
		}
	}
	say(len(stay), "%s there %s until somebody ends %s: %s.", Count(len(stay), "VolumeTicket"), verb(len(stay), "stays", "stay"), verb(len(stay), "it", "them"), Some(stay, fewTickets))
	say(len(leave), "%s %s with the cordon: %s.", Count(len(leave), "VolumeTicket"), verb(len(leave), "leaves", "leave"), Some(leave, fewTickets))
	say(len(p.Stuck), "%s there should have left already and can't.", Count(len(p.Stuck), "volume"))
	if len(p.Pods) == 0 && p.Clear() {
		parts = append([]string{"None of its pods needs a volume that has to be attached, or that only some nodes can use."}, parts...)
	}
	return strings.Join(parts, " ")
}
