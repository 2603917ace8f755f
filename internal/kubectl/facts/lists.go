// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// ListVolumes lists every volume that may need an attachment, by claim, then name.
// namespace leaves out those of claims elsewhere, and those of none.
func (w *World) ListVolumes(namespace string) []Volume {
	var list []Volume
	for v := range w.Snapshot.Volumes() {
		if !v.ID.IsReal() || !w.Snapshot.AttachRequired(v.ID.Driver) {
			continue
		}
		described := w.Volume(v.ID)
		if namespace != "" && !inNamespace(described.Claim, namespace) {
			continue
		}
		list = append(list, described)
	}
	slices.SortFunc(list, func(a, b Volume) int {
		return cmp.Or(cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.PersistentVolume, b.PersistentVolume),
			cmp.Compare(a.Driver, b.Driver), cmp.Compare(a.Handle, b.Handle))
	})
	return list
}

// ListUnbound lists the claims of a namespace, or of all where it is empty, that have no volume
// yet, as volumes without one, by their names. Claims whose volumes would need no attachment are
// left out, as far as their StorageClass tells.
func (w *World) ListUnbound(namespace string) []Volume {
	var list []Volume
	for _, c := range w.Claims {
		if namespace != "" && c.Namespace != namespace || c.Spec.VolumeName != "" || c.Status.Phase == corev1.ClaimLost {
			continue
		}
		key := ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}
		out := Volume{Claim: key.String(), Access: accessUnknown, State: stateNotProvisioned}
		if class := w.class(c); class != nil {
			out.Driver = class.Provisioner
		}
		if out.Driver != "" && !w.Snapshot.AttachRequired(out.Driver) {
			continue
		}
		if fact := w.Snapshot.Claim(key); fact != nil {
			out.Access = accessOf(fact.Access)
		}
		for _, p := range w.UsersOf(c) {
			if w.PodFact(p).Phase != ledger.PodFinished {
				out.Waiting = append(out.Waiting, Waiter{Who: Requester{Kind: "Pod", Namespace: p.Namespace, Name: p.Name}, Node: p.Spec.NodeName, Since: waitsSince(p)})
			}
		}
		slices.SortFunc(out.Waiting, func(a, b Waiter) int {
			return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Who.String(), b.Who.String()))
		})
		if cause := w.claimCause(c); cause != nil {
			reason := cause.asReason()
			out.Reason = &reason
		}
		list = append(list, out)
	}
	slices.SortFunc(list, func(a, b Volume) int { return cmp.Compare(a.Claim, b.Claim) })
	return list
}

func inNamespace(claim, namespace string) bool {
	return len(claim) > len(namespace) && claim[:len(namespace)] == namespace && claim[len(namespace)] == '/'
}

// Ticket is a request that volumes be at a node.
type Ticket struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	// For is the pod that is its own ticket.
	For string `json:"for,omitempty"`
	// Derived says that there is no object: the bound pod is the ticket.
	Derived bool   `json:"derived,omitempty"`
	Node    string `json:"node"`
	// Wherever: the controller chooses the node; Node is empty until it has.
	Wherever bool `json:"wherever,omitempty"`
	// Detached: the volumes are to be at no node, and Node is empty.
	Detached bool `json:"detached,omitempty"`
	// Parameters are how the volumes are to be attached, in its integrator's words.
	Parameters map[string]string `json:"parameters,omitempty"`
	Priority   int               `json:"priority"`
	// State is Pending, Granted or Satisfied.
	State string `json:"state"`
	// Reasons are why it is not granted, or not satisfied.
	Reasons    []Reason  `json:"reasons,omitempty"`
	Since      time.Time `json:"since,omitzero"` // of State
	Created    time.Time `json:"created"`
	TTLSeconds int64     `json:"ttlSeconds,omitempty"`
	Volumes    []string  `json:"volumes,omitempty"` // as the ticket names them
	// NodeNotReady: Node is not ready, or gone. What is attached there stays attached, and nobody
	// can say whether what uses it still runs.
	NodeNotReady bool `json:"nodeNotReady,omitempty"`
	// Yielding is what the ticket is asked: until when to let go of its volumes, and for whom.
	// Empty: it is not asked to.
	Yielding string `json:"yielding,omitempty"`

	request arbiter.Request
}

// The states of a Ticket.
const (
	TicketPending   = "Pending"
	TicketGranted   = "Granted"
	TicketSatisfied = "Satisfied"
)

// knownNotReady says whether a node is seen to be not ready, or not to exist.
func (w *World) knownNotReady(node string) bool {
	return node != "" && !w.unseen("nodes") && !w.isReady(ledger.NodeName(node))
}

// ListTickets lists the VolumeTickets, and with derived the bound pods, which are
// their own. Those that rank before others come first, as the controller
// grants them.
func (w *World) ListTickets(namespace string, derived bool) []Ticket {
	var list []Ticket
	queues := map[ledger.NodeName]*arbiter.Queue{}
	for _, p := range w.Pods {
		if derived && p.Spec.NodeName != "" && (namespace == "" || p.Namespace == namespace) {
			if t, ok := w.derived(p); ok {
				list = append(list, t)
			}
		}
	}
	for _, t := range w.Tickets {
		if namespace == "" || t.Namespace == namespace {
			list = append(list, w.ticket(t, queues))
		}
	}
	slices.SortFunc(list, func(a, b Ticket) int { return arbiter.CompareRequests(a.request, b.request) })
	return list
}

// waits says why a ticket is not granted, at its node or for want of one.
func (w *World) waits(t *ledger.Ticket, queues map[ledger.NodeName]*arbiter.Queue) arbiter.Verdict {
	if t.Node == "" {
		_, v := w.Arbiter.Place(w.Snapshot, t, w.Now)
		return v
	}
	if queues[t.Node] == nil {
		queues[t.Node] = w.Arbiter.Queue(w.Snapshot, t.Node, w.Now)
	}
	v, _ := queues[t.Node].Grant(t)
	return v
}

// ticket is a ticket as it is. queues are those that others of its nodes were decided by.
func (w *World) ticket(t *v1alpha1.VolumeTicket, queues map[ledger.NodeName]*arbiter.Queue) Ticket {
	fact := translate.Ticket(t)
	out := Ticket{
		Namespace: t.Namespace, Name: t.Name, Type: string(t.Spec.Type), Node: t.Node(), Wherever: t.Spec.Wherever,
		Detached: t.Spec.Detached, Parameters: t.Spec.Parameters,
		Priority: fact.Type.Priority(), State: TicketPending, Created: t.CreationTimestamp.Time, Since: t.CreationTimestamp.Time,
		TTLSeconds: fact.TTLSeconds, request: arbiter.TicketRequest(w.Snapshot, &fact),
	}
	for _, v := range fact.Volumes {
		out.Volumes = append(out.Volumes, v.Claim+v.PersistentVolume)
	}
	out.NodeNotReady = w.knownNotReady(t.Node())
	if asked := t.Yielding(); asked != nil {
		out.Yielding = asked.Message
	}
	switch fact.Phase {
	case ledger.TicketGranted:
		out.State = TicketGranted
		told, isTold := w.toldSatisfied(t)
		if v := w.Arbiter.Satisfied(w.Snapshot, &fact, w.Now); isTold && len(told) == 0 || !isTold && v.Allowed() {
			out.State = TicketSatisfied
		} else if isTold {
			out.Reasons = told
		} else {
			out.Reasons = w.reasonsIn(t.Namespace, v, nil)
		}
	default:
		if told := w.refusal(t); arbiter.PauseLeft(w.Snapshot, &fact, w.Now) > 0 || w.blind() && len(told) > 0 {
			out.Reasons = told // for how long, and what this user may not see, is the controller's to know
			break
		}
		out.Reasons = w.reasonsIn(t.Namespace, w.waits(&fact, queues), nil)
		if told := w.refusal(t); len(told) > 0 && (len(out.Reasons) == 0 || out.Reasons[0].Code == string(arbiter.NotGranted)) {
			out.Reasons = told // the controller knows its own mode and flags
		}
		if c := w.nobodyGrants(); c != nil && !slices.ContainsFunc(out.Reasons, func(r Reason) bool { return r.Code == c.Code }) {
			first := 0
			if len(out.Reasons) > 0 && (out.Reasons[0].Code == string(arbiter.ClaimUnbound) || out.Reasons[0].Code == string(arbiter.ClaimMissing)) {
				first = 1 // which nobody but the claim's maker or provisioner ends
			}
			out.Reasons = slices.Insert(out.Reasons, first, c.asReason())
		}
	}
	kind := v1alpha1.TicketGranted
	if out.State == TicketSatisfied {
		kind = v1alpha1.TicketSatisfied
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, kind); c != nil {
		out.Since = c.LastTransitionTime.Time
	}
	w.adviseByHand(&out)
	return out
}

// adviseByHand has the reasons of a ticket that somebody has made say what its maker can do:
// the page's words are about pods.
func (w *World) adviseByHand(t *Ticket) {
	for i := range t.Reasons {
		r := &t.Reasons[i]
		switch {
		case codeOf(r) == arbiter.ClaimMissing:
			r.Do = fmt.Sprintf("Create the claim, or end the ticket and make it anew for one that exists: kubectl get pvc -n %s", t.Namespace)
		case codeOf(r) == arbiter.HeldElsewhere && t.Detached && !givesWay(r) && !heldByTicket(r):
			r.Do = "End what uses the volume, such as by scaling its workload down, or wait until it is done: the ticket is granted then by itself"
		case codeOf(r) == arbiter.NoFreeSlot && !t.Wherever && t.Node != "":
			r.Changes = "A confirmed detach at the node, the end of a ticket there, or a higher limit in its CSINode or in the AttachPolicy"
			r.Do = fmt.Sprintf("See what has the slots, and what could end: kubectl moorage explain node %s -o wide. A ticket names one node for good: to have it at another one, kubectl moorage ticket end %s -n %s ends this one", t.Node, t.Name, t.Namespace)
		case codeOf(r) == arbiter.NodeMissing && !t.Wherever:
			r.Do = fmt.Sprintf("Look whether the name is right: kubectl get nodes. A ticket names one node for good: kubectl moorage ticket end %s -n %s ends this one", t.Name, t.Namespace)
		case codeOf(r) == arbiter.NodeFenced:
			r.Do = fmt.Sprintf("Wait until %s is back, or end the ticket and make it at another node: kubectl moorage ticket end %s -n %s", cmp.Or(r.Node, t.Node), t.Name, t.Namespace)
		case codeOf(r) == arbiter.HeldElsewhere && !t.Wherever && !givesWay(r) && r.Node != t.Node && (r.Node == "" || w.Node(r.Node) != nil):
			r.Do = fmt.Sprintf("Make the ticket at %s, which has the volume; or wait until whoever has it is done. A ticket names one node for good: kubectl moorage ticket end %s -n %s ends this one", cmp.Or(r.Node, "the node that is named"), t.Name, t.Namespace)
		}
	}
}

// heldByTicket says whether what is in the way is a ticket: what to do about it is said already.
func heldByTicket(r *Reason) bool {
	return r.Holder != nil && r.Holder.Kind == string(v1alpha1.TicketKindVolumeTicket)
}

// toldSatisfied is what the controller has written of whether a granted ticket has its volumes, with
// no reason where it has: all that somebody can know who may read nothing but their own namespace.
// False where nothing is written, or more is seen.
func (w *World) toldSatisfied(t *v1alpha1.VolumeTicket) ([]Reason, bool) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied)
	told := w.toldIn(t, c)
	return told, w.blind() && c != nil && (len(told) > 0 || c.Status == metav1.ConditionTrue)
}

// refusal is the reason that the controller gave when it refused or interrupted a ticket: the
// facts may have changed since.
func (w *World) refusal(t *v1alpha1.VolumeTicket) []Reason {
	return w.toldIn(t, meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted))
}

// toldIn is the reason in a ticket's condition; none where that is true, or not there, or says that
// the controller has not looked yet.
func (w *World) toldIn(t *v1alpha1.VolumeTicket, c *metav1.Condition) []Reason {
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonPending {
		return nil
	}
	advice := w.adviceOn(ledger.Code(c.Reason))
	do := ofNode(advice.Do, cmp.Or(t.Spec.NodeName, t.Status.NodeName))
	if len(t.Spec.Volumes) == 1 && t.Spec.Volumes[0].Claim != nil {
		do = describing(do, t.Namespace, t.Spec.Volumes[0].Claim.Name)
	}
	return []Reason{{Code: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time, Changes: advice.Changes, Do: do}}
}

// derived is the ticket that a bound pod is; false when it has no volume that
// needs an attachment, or has finished.
func (w *World) derived(p *corev1.Pod) (Ticket, bool) {
	fact := w.PodFact(p)
	request := arbiter.PodRequest(w.Snapshot, fact)
	if fact.Phase == ledger.PodFinished || !request.Attachable(w.Snapshot) {
		return Ticket{}, false
	}
	out := Ticket{
		Namespace: p.Namespace, Name: p.Name, Type: "Pod", For: p.Name, Derived: true, Node: p.Spec.NodeName,
		Priority: ledger.PodPriority, State: TicketSatisfied, Created: p.CreationTimestamp.Time, request: request,
		NodeNotReady: w.knownNotReady(p.Spec.NodeName),
	}
	for _, need := range request.Needs {
		out.Volumes = append(out.Volumes, need.Name)
		if v := w.Arbiter.Explain(w.Snapshot, need, fact.Node, w.Now); !v.Allowed() {
			out.State = TicketGranted
			out.Reasons = append(out.Reasons, w.reasons(v, p)...)
		}
	}
	if c := podCondition(p, v1alpha1.PodSafeToMount); c != nil {
		out.Since = c.LastTransitionTime.Time
	}
	return out, true
}

// ClaimLabels are a claim's labels; none for a volume without one.
func (w *World) ClaimLabels(claim string) map[string]string {
	namespace, name, _ := strings.Cut(claim, "/")
	if c := w.Claim(namespace, name); c != nil {
		return c.Labels
	}
	return nil
}

// TicketLabels are those of a VolumeTicket, or of the pod that is its own.
func (w *World) TicketLabels(t Ticket) map[string]string {
	if t.Derived {
		if p := w.Pod(t.Namespace, t.Name); p != nil {
			return p.Labels
		}
		return nil
	}
	for _, o := range w.Tickets {
		if o.Namespace == t.Namespace && o.Name == t.Name {
			return o.Labels
		}
	}
	return nil
}

// NodeLabels are a node's labels.
func (w *World) NodeLabels(node string) map[string]string {
	if n := w.Node(node); n != nil {
		return n.Labels
	}
	return nil
}
