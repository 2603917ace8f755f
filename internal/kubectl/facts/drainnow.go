// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// DrainMove is a pod that may leave its node now, and the node that would suit its volumes best.
type DrainMove struct {
	Pod *corev1.Pod
	To  string
	// Notice says which tickets get time to let go of its volumes before the next pod has them
	// there; empty: none.
	Notice string
}

// DrainStay is a pod that stays for now, and what each node says to it; or why its volumes
// would not leave this node.
type DrainStay struct {
	Pod   *corev1.Pod
	Nodes []NodesVerdict
	Why   string
}

// DrainNow is what a drain may do at this moment.
type DrainNow struct {
	// Moves are pods whose volumes have room elsewhere, in the order in which to evict them:
	// those that the fewest nodes suit come first, then the older. The room is theirs even
	// if all of them are evicted at once.
	Moves []DrainMove
	// Stay are the pods that would find no room if they were evicted now, with why.
	Stay []DrainStay
	// KeptFor are the pods, by namespace/name, that room is kept for first.
	KeptFor []string
	// Down are the components without which no pod gets its volumes elsewhere.
	Down []Cause
}

// DrainAsk is what a drain wants to know of a moment.
type DrainAsk struct {
	Node string
	// Leave are the pods of the node that it evicts, or has evicted, and that need room
	// elsewhere.
	Leave map[types.UID]bool
	// Last are those whose eviction was refused: they keep no room from the others.
	Last map[types.UID]bool
	// Gone are pods that have left, and whose next ones are not made yet.
	Gone []*corev1.Pod
}

// DrainNow says which pods with volumes may be evicted from a node now. Room is found first
// for pods that are about to be placed: those that have no node yet, and those that are leaving
// this node or any other and are made again.
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
		if to, _ := try.place(p); to != "" {
			out.KeptFor = append(out.KeptFor, p.Namespace+"/"+p.Name)
		}
	}
	var staying []*corev1.Pod
	for _, s := range moved {
		pod := w.pods[string(originalUID(s))]
		if pod != nil && pod.DeletionTimestamp == nil {
			staying = append(staying, s)
		} else if to, _ := try.place(s); to != "" {
			out.KeptFor = append(out.KeptFor, s.Namespace+"/"+s.Name)
		}
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
			out.Moves = append(out.Moves, DrainMove{Pod: pod, To: to, Notice: w.noticeBefore(pod, ask.Node, to)})
		} else {
			out.Stay = append(out.Stay, DrainStay{Pod: pod, Nodes: verdicts})
		}
	}
	return out
}

// MadeAgain says whether a controller makes another pod in a pod's place once it is evicted, at
// whichever node has room. A DaemonSet does so at the same node only, and a pod that is another pod's
// goes with that.
func MadeAgain(p *corev1.Pod) bool {
	return metav1.GetControllerOf(p) != nil && !DaemonSet(p) && ofPod(p) == nil
}

// ofPod is the pod that controls a pod, such as the virtual machine's of a pod that plugs a disk in; nil
// where none does.
func ofPod(p *corev1.Pod) *metav1.OwnerReference {
	if owner := metav1.GetControllerOf(p); owner != nil && owner.Kind == "Pod" && owner.APIVersion == "v1" {
		return owner
	}
	return nil
}

// comesBackWithin is for how long a pod that should have ended counts as one that is made again:
// whatever keeps it then is no matter of moments.
const comesBackWithin = 2 * time.Minute

// comesBack says whether a pod is ending, and is made again somewhere: by its controller, which
// has not done so yet. Nobody ends one at a node that is not ready.
func (w *World) comesBack(p *corev1.Pod) bool {
	if p.DeletionTimestamp == nil || p.Spec.NodeName == "" || !MadeAgain(p) || stays(p) || !w.isReady(ledger.NodeName(p.Spec.NodeName)) {
		return false
	}
	if w.Now.Sub(p.DeletionTimestamp.Time) > comesBackWithin {
		return false
	}
	since := p.DeletionTimestamp.Time
	if grace := p.DeletionGracePeriodSeconds; grace != nil {
		since = since.Add(-time.Duration(*grace) * time.Second)
	}
	return w.NextOf(p, since) == nil
}

// waitsForNode says whether a pod with volumes is about to be placed. One that its scheduler refuses for other reasons than
// volumes is not, nor one of which no scheduler has said for long that it has no room: there may
// be none that looks at it, or it waits for something else.
func (w *World) waitsForNode(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 &&
		w.PodFact(p).Phase != ledger.PodFinished && w.NeedsAttachment(p) && w.mayBePlaced(p)
}

// mayBePlaced says whether the scheduler may have refused a pod for want of room for its volumes: its words
// name volumes, or it has said nothing lately.
func (w *World) mayBePlaced(p *corev1.Pod) bool {
	said := podCondition(p, corev1.PodScheduled)
	if said == nil || said.Status != corev1.ConditionFalse || said.Message == "" {
		return w.Now.Sub(p.CreationTimestamp.Time) <= placedWithin
	}
	message, _, _ := strings.Cut(said.Message, " preemption:")
	return said.Reason == v1alpha1.ReasonVolumeWait || slices.ContainsFunc([]string{"olume", "slot", "claim"}, func(word string) bool { return strings.Contains(message, word) })
}

// placedWithin is for how long a pod of which no scheduler has said anything counts as one that
// is about to be placed.
const placedWithin = 2 * time.Minute

// trial places pods one after the other, each beside those before it.
type trial struct {
	world  *World
	placed ledger.Delta
}

// place finds a pod the node that suits its volumes best, and keeps the room for it there. The
// node is empty where none has room; then the verdicts say why.
func (t *trial) place(p *corev1.Pod) (node string, verdicts []NodesVerdict) {
	snapshot := t.world.Snapshot.With(&t.placed)
	request := arbiter.PodRequest(snapshot, t.world.PodFact(p))
	verdicts = t.world.fits(snapshot, request, p)
	if node = t.world.best(snapshot, request, verdicts); node != "" {
		t.placed.Add(string(p.UID), ledger.NodeName(node))
	}
	return node, verdicts
}

// choices is how many nodes have room for a pod.
func (t *trial) choices(p *corev1.Pod) int {
	snapshot, nodes := t.world.Snapshot.With(&t.placed), 0
	for _, v := range t.world.fits(snapshot, arbiter.PodRequest(snapshot, t.world.PodFact(p)), p) {
		if v.Fits && v.Barred == "" {
			nodes += len(v.Nodes)
		}
	}
	return nodes
}

// VolumeThere is a volume that keeps a node from being switched off.
type VolumeThere struct {
	// Volume is its PersistentVolume, or driver^handle.
	Volume string
	// Why is what is known of it, as the end of a sentence.
	Why string
	// Pods are those of the node that use it; empty where none is known.
	Pods []types.UID
	// Ticket is the VolumeTicket by which alone somebody keeps it there, as namespace/name;
	// empty where something else is known of it.
	Ticket string
}

// VolumesThere lists the volumes that may be mounted at a node, whoever had them: which its
// kubelet reports in use, which may have been left there, which are kept there by hand, and
// which moorage-node has found there though nobody knows of them.
func (w *World) VolumesThere(node string) []VolumeThere {
	var list []VolumeThere
	name := ledger.NodeName(node)
	at := w.Snapshot.Node(name)
	if at == nil {
		return nil
	}
	for _, id := range at.At() {
		v := w.Snapshot.Volume(id)
		there := VolumeThere{Volume: id.String(), Why: w.whyThere(v, v.NodeVolume(name))}
		if there.Why == "" {
			ticket := w.keptBy(v.NodeVolume(name))
			if ticket == nil {
				continue
			}
			there.Ticket = ticket.ID.String()
			there.Why = "VolumeTicket " + there.Ticket + whatThen(ticket, at.Draining)
		}
		if names := v.PVs(); len(names) > 0 {
			there.Volume = names[0]
		}
		for _, u := range v.NodeVolume(name).Users {
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

// whyThere says why a volume may be mounted at a node; empty when it is not, as far as its
// kubelet and its pods know.
func (w *World) whyThere(v *ledger.Volume, p *ledger.NodeVolume) string {
	switch {
	case p.InUse && !w.Snapshot.Node(p.Node).Lists(v.ID, p): // in doubt, which counts as in use
		why := "perhaps mounted there, though its kubelet does not report it in use"
		if verdict, _ := w.Arbiter.SafeToDetach(w.Snapshot, v, p, w.Now); verdict.First().Code == arbiter.InUseUnknown && verdict.First().Detail != "" {
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

// keptBy is the granted VolumeTicket that keeps a volume at a node; nil: none. Of several one that a
// drain does not end comes first.
func (w *World) keptBy(p *ledger.NodeVolume) (kept *ledger.Ticket) {
	for _, u := range p.Users {
		t := w.Snapshot.Ticket(u.Ticket)
		if u.Pod == "" && t != nil && t.Phase == ledger.TicketGranted && (kept == nil || t.OnDrain == ledger.StayOnDrain) {
			kept = t
		}
	}
	return kept
}

// whatThen says what becomes of a ticket that keeps a volume at a node, cordoned or not.
func whatThen(t *ledger.Ticket, cordoned bool) string {
	switch {
	case t.OnDrain == ledger.StayOnDrain:
		return " keeps it there"
	case !cordoned && t.OnDrain == ledger.MoveOnDrain:
		return " keeps it there until the cordon"
	case t.OnDrain == ledger.MoveOnDrain:
		return " is moved elsewhere, once it has let go of it"
	case !cordoned:
		return " keeps it there, and ends with the cordon"
	}
	return " ends now, as the node is cordoned"
}

// CordonedSince is when a node was cordoned last, as the API server's field management tells;
// zero where it does not.
func CordonedSince(n *corev1.Node) time.Time {
	written, _ := lastWrite(n, "unschedulable")
	return written.at
}

// OnlyHere says whether a pod with volumes can run at no other node that there is: by its own
// node selector or affinity, or by that of a volume, such as a local disk.
func (w *World) OnlyHere(p *corev1.Pod, node string) bool {
	claims := w.tied(p)
	if len(claims) == 0 && (!w.NeedsAttachment(p) || affinityOf(p) == byAffinity) {
		return false
	}
	own := nodeaffinity.GetRequiredNodeAffinity(p)
	for _, n := range w.Nodes {
		reached := n.Name != node && !slices.ContainsFunc(claims, func(claim string) bool {
			pv := w.pvs[w.Claim(p.Namespace, claim).Spec.VolumeName]
			return !inAffinity(pv, n) || !inZones(pv, n)
		})
		if match, err := own.Match(n); reached && err == nil && match {
			return false
		}
	}
	return true
}

// DaemonSet says whether a pod is one of a DaemonSet's.
func DaemonSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/")
}

// OwnerPod is the pod that controls a pod; nil where none does, or it is gone.
func (w *World) OwnerPod(p *corev1.Pod) *corev1.Pod {
	if owner := ofPod(p); owner != nil {
		return w.ByUID(owner.UID)
	}
	return nil
}

// belongingTo are the pods that a pod controls.
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

// WaitsFor says shortly what a pod that does not run yet waits for.
func WaitsFor(p *corev1.Pod) string {
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

// NextOf is the pod that took a pod's place since a time: the one that runs, if there are
// several, of those with a claim of the pod's. It is nil where there is none.
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
