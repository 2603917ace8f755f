// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// TicketExplanation explains a ticket's wait and its end.
type TicketExplanation struct {
	Ticket
	Answer string `json:"answer"`
	// Cause is the ticket's first obstacle; nil: its volumes are there.
	Cause *Reason `json:"cause,omitempty"`
	// Yields: the ticket gives its volumes up to pods.
	Yields bool `json:"yields,omitempty"`
	// Interruptions counts the losses of its volumes in a row.
	Interruptions int64 `json:"interruptions,omitempty"`
	// Left is roughly the remaining seconds; 0: over, or unlimited. Stopped: the controller is down.
	Left    int64 `json:"leftSeconds,omitempty"`
	Stopped bool  `json:"stopped,omitempty"`
	// OnDrain is the cordon's effect on the ticket, End or Move, or empty.
	OnDrain string `json:"onDrain,omitempty"`
	// Operation is the driver's work, like Expansion; OperationOf is its object. Empty unless Moorage made
	// the ticket for it.
	Operation   string `json:"operation,omitempty"`
	OperationOf string `json:"operationOf,omitempty"`
	// Owners are kind/name; the ticket ends with them.
	Owners []string `json:"owners,omitempty"`
}

// ExplainTicket is false if there is no ticket.
func (w *World) ExplainTicket(namespace, name string) (TicketExplanation, bool) {
	now, ok := w.TicketNow(namespace, name)
	if !ok {
		return TicketExplanation{}, false
	}
	x := TicketExplanation{Ticket: now, Yields: ledger.TicketType(now.Type).Yields(), Stopped: w.nobodyEnds() != nil}
	x.ends(w.Ticket(namespace, name), w.Now)
	if len(x.Reasons) > 0 {
		x.Cause = &x.Reasons[0]
	} else if now.NodeNotReady {
		x.Cause = w.silentNode(now.Node)
	} else if now.State == TicketSatisfied {
		x.Cause = w.nobodyEnds()
	}
	x.Answer = x.answer()
	return x, true
}

// silentNode: the ticket's volumes are attached to a not ready node, perhaps without users.
func (w *World) silentNode(node string) *Reason {
	c := &Reason{Of: OfNode, Code: "NodeNotReady", Since: w.notReadySince(ledger.NodeName(node)),
		Message: "that node is not ready: the volumes stay attached there, and nobody can say whether what uses them still runs",
		Do:      "See what helps: `kubectl moorage explain node " + node + "`"}
	switch n := w.Node(node); {
	case n == nil:
		c.Code, c.Message = string(rules.NodeMissing), "there is no such node any more: nobody can say whether its machine still uses them"
	case w.kubeletLives(n):
		c.Message = "that node is not ready, though its kubelet lives: what uses them may run on"
	}
	return c
}

// nobodyEnds is nil if a controller leads, or that can't be seen.
func (w *World) nobodyEnds() *Reason {
	return w.controllerIsDown("until it is back nobody ends the ticket")
}

func (x *TicketExplanation) ends(t *v1alpha1.VolumeTicket, now time.Time) {
	x.Interruptions = t.Status.Interruptions
	if t.Spec.OnDrain != v1alpha1.OnDrainStay {
		x.OnDrain = string(t.Spec.OnDrain)
	}
	x.Left = int64(timeLeft(t, now) / time.Second)
	if t.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy {
		x.Operation, x.OperationOf = t.Labels[v1alpha1.LabelOperation], t.Annotations[v1alpha1.AnnotationOperationOf]
	}
	for _, o := range t.OwnerReferences {
		x.Owners = append(x.Owners, o.Kind+"/"+o.Name)
	}
}

func (x *TicketExplanation) answer() string {
	message := "moorage-scheduler has not decided yet"
	if x.Cause != nil {
		message = x.Cause.Message
	}
	has, comes := "has its volumes at "+x.Node, fmt.Sprintf("is granted, and its volumes are not all at %s yet: ", x.Node)
	if x.Detached {
		has, comes = "has its volumes attached nowhere", "keeps its volumes from every node, and they are not all detached yet: "
	}
	switch {
	case x.State == TicketSatisfied && x.Cause != nil && x.Cause.Of == OfNode:
		return has + ", and " + Sentence(message)
	case x.State == TicketSatisfied && x.Yielding != "":
		return has + ", and is asked to " + x.Yielding
	case x.State == TicketSatisfied && x.Cause != nil:
		return has + ". But " + Sentence(message)
	case x.State == TicketSatisfied && x.Detached:
		return has + ", and no node gets them before it ends"
	case x.State == TicketSatisfied:
		return has
	case x.State == TicketGranted && x.Cause != nil && x.Cause.Code == NotVisible:
		return "is granted, and " + message
	case x.State == TicketGranted:
		return comes + message
	}
	return "waits: " + message
}

// Ends says when a ticket ends.
func (x *TicketExplanation) Ends() string {
	var ends []string
	for _, o := range x.Owners {
		ends = append(ends, "with "+o)
	}
	if x.TTLSeconds > 0 && x.Stopped {
		ends = append(ends, "not before moorage-controller is back")
	} else if x.TTLSeconds > 0 {
		ends = append(ends, endsIn(time.Duration(x.Left)*time.Second)+", unless it is renewed")
	}
	if x.OnDrain == string(v1alpha1.OnDrainEnd) {
		ends = append(ends, "when its node is cordoned")
	}
	if len(ends) == 0 {
		return "when it is deleted"
	}
	return strings.Join(ends, ", ") + ", or when it is deleted"
}

// timeLeft is approximate: a controller counts by its own clock, in steps, and resumes after a restart.
func timeLeft(t *v1alpha1.VolumeTicket, now time.Time) time.Duration {
	ttl := convert.TTLSeconds(t)
	begun, written := t.CreationTimestamp.Time, time.Duration(t.Status.TTLElapsedSeconds)*time.Second
	if renewed := t.Annotations[v1alpha1.AnnotationRenewed]; renewed != "" {
		if at, err := time.Parse(time.RFC3339Nano, renewed); err == nil && at.After(begun) {
			begun = at
		}
		if renewed != t.Status.Renewed {
			written = 0 // counted before its renewal
		}
	}
	counted := max(written, min(now.Sub(begun), written+rules.TTLStep(ttl)))
	return max(0, time.Duration(ttl)*time.Second-counted.Truncate(time.Second))
}

func endsIn(left time.Duration) string {
	if left == 0 {
		return "any moment"
	}
	return "in about " + duration.HumanDuration(left)
}

// ListVolumes lists the volumes that may need an attachment by claim, then name, of a namespace or of all.
func (w *World) ListVolumes(namespace string) []Volume {
	var list []Volume
	for v := range w.Snapshot.Volumes() {
		if !v.ID.IsReal() || !w.Snapshot.AttachRequired(v.ID.Driver) {
			continue
		}
		described := w.Volume(v.ID)
		if namespace != "" && !strings.HasPrefix(described.Claim, namespace+"/") {
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

// ListUnbound lists, by name, a namespace's claims (empty: all) that lack a readable volume and may need an
// attachment.
func (w *World) ListUnbound(namespace string) []Volume {
	var list []Volume
	for _, c := range w.Claims {
		bound := c.Spec.VolumeName != ""
		if namespace != "" && c.Namespace != namespace || bound && !w.unseen("persistentvolumes") || c.Status.Phase == corev1.ClaimLost {
			continue
		}
		key := ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}
		out := Volume{PersistentVolume: c.Spec.VolumeName, Claim: key.String(), Access: accessUnknown, State: stateNotProvisioned}
		if bound {
			out.State = stateUnknown
		}
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
		slices.SortFunc(out.Waiting, longerFirst)
		out.Reason = w.claimCause(c)
		list = append(list, out)
	}
	slices.SortFunc(list, func(a, b Volume) int { return cmp.Compare(a.Claim, b.Claim) })
	return list
}

// Ticket is a request for volumes at a node.
type Ticket struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Type      string `json:"type"`
	Node      string `json:"node"`
	// Wherever lets Moorage choose the node; Node is empty until then.
	Wherever bool `json:"wherever,omitempty"`
	// Detached: the ticket keeps the volumes from every node; Node is empty.
	Detached bool `json:"detached,omitempty"`
	// Parameters are in the integrator's words.
	Parameters map[string]string `json:"parameters,omitempty"`
	Priority   int               `json:"priority"`
	// State is Pending, Granted or Satisfied.
	State      string    `json:"state"`
	Reasons    []Reason  `json:"reasons,omitempty"`
	Since      time.Time `json:"since,omitzero"` // of State
	Created    time.Time `json:"created"`
	TTLSeconds int64     `json:"ttlSeconds,omitempty"`
	Volumes    []string  `json:"volumes,omitempty"` // as the ticket names them
	// NodeNotReady: Node is not ready or gone, and volumes stay attached, perhaps in use.
	NodeNotReady bool `json:"nodeNotReady,omitempty"`
	// Yielding is the request to let go, or empty.
	Yielding string `json:"yielding,omitempty"`

	request rules.Request
}

const (
	TicketPending   = "Pending"
	TicketGranted   = "Granted"
	TicketSatisfied = "Satisfied"
)

func (w *World) knownNotReady(node string) bool {
	return node != "" && !w.unseen("nodes") && !w.isReady(ledger.NodeName(node))
}

// ListTickets lists the VolumeTickets in the order of grants.
func (w *World) ListTickets(namespace string) []Ticket {
	var list []Ticket
	queues := map[ledger.NodeName]*rules.Queue{}
	for _, t := range w.Tickets {
		if namespace == "" || t.Namespace == namespace {
			list = append(list, w.ticket(t, queues))
		}
	}
	slices.SortFunc(list, func(a, b Ticket) int { return rules.CompareRequests(a.request, b.request) })
	return list
}

func (w *World) waits(t *ledger.Ticket, queues map[ledger.NodeName]*rules.Queue) rules.Verdict {
	if t.Node == "" {
		_, v := w.Arbiter.Place(w.Snapshot, t, w.Now)
		return v
	}
	if queues[t.Node] == nil {
		queues[t.Node] = w.Arbiter.Queue(w.Snapshot, t.Node, w.Now)
	}
	return queues[t.Node].Grant(t)
}

// queues hold the decisions for the nodes' other tickets.
func (w *World) ticket(t *v1alpha1.VolumeTicket, queues map[ledger.NodeName]*rules.Queue) Ticket {
	fact := convert.Ticket(t)
	out := Ticket{
		Namespace: t.Namespace, Name: t.Name, Type: string(t.Spec.Type), Node: t.Node(), Wherever: t.Spec.Wherever,
		Detached: t.Spec.Detached, Parameters: t.Spec.Parameters,
		Priority: fact.Type.Priority(), State: TicketPending, Created: t.CreationTimestamp.Time, Since: t.CreationTimestamp.Time,
		TTLSeconds: fact.TTLSeconds, request: rules.TicketRequest(w.Snapshot, &fact),
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
		if told := w.refusal(t); rules.PauseLeft(w.Snapshot, &fact, w.Now) > 0 || w.blind() && len(told) > 0 {
			out.Reasons = told // only the controller knows pauses and all objects
			break
		}
		out.Reasons = w.reasonsIn(t.Namespace, w.waits(&fact, queues), nil)
		if told := w.refusal(t); len(told) > 0 && (len(out.Reasons) == 0 || out.Reasons[0].Code == string(rules.NotGranted)) {
			out.Reasons = told // the controller knows its own mode and flags
		}
		if c := w.nobodyGrants(); c != nil && !slices.ContainsFunc(out.Reasons, func(r Reason) bool { return r.Code == c.Code }) {
			first := 0
			if len(out.Reasons) > 0 && (out.Reasons[0].Code == string(rules.ClaimUnbound) || out.Reasons[0].Code == string(rules.ClaimMissing)) {
				first = 1 // only the claim's maker or provisioner can end this
			}
			out.Reasons = slices.Insert(out.Reasons, first, *c)
		}
	}
	kind := v1alpha1.TicketGranted
	if out.State == TicketSatisfied {
		kind = v1alpha1.TicketSatisfied
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, kind); c != nil {
		out.Since = c.LastTransitionTime.Time
	}
	return out
}

// toldSatisfied is the controller's answer for users of a single namespace; no reasons: satisfied. False:
// no answer, or the user sees more.
func (w *World) toldSatisfied(t *v1alpha1.VolumeTicket) ([]Reason, bool) {
	c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied)
	told := w.toldIn(t, c)
	return told, w.blind() && c != nil && (len(told) > 0 || c.Status == metav1.ConditionTrue)
}

// refusal may be outdated.
func (w *World) refusal(t *v1alpha1.VolumeTicket) []Reason {
	return w.toldIn(t, meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted))
}

// toldIn is empty for a true, absent or unchecked condition.
func (w *World) toldIn(t *v1alpha1.VolumeTicket, c *metav1.Condition) []Reason {
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason == v1alpha1.ReasonPending {
		return nil
	}
	advice := w.adviceOn(ledger.Code(c.Reason))
	do := ofNode(advice.Do, cmp.Or(t.Spec.NodeName, t.Status.NodeName))
	if len(t.Spec.Volumes) == 1 && t.Spec.Volumes[0].Claim != nil {
		do = describing(do, t.Namespace, t.Spec.Volumes[0].Claim.Name)
	}
	return []Reason{{Of: OfVolume, Code: c.Reason, Message: c.Message, Since: c.LastTransitionTime.Time, Changes: advice.Changes, Do: do}}
}

// ClaimLabels are empty for a volume without a claim.
func (w *World) ClaimLabels(claim string) map[string]string {
	namespace, name, _ := strings.Cut(claim, "/")
	if c := w.Claim(namespace, name); c != nil {
		return c.Labels
	}
	return nil
}

// TicketLabels are the labels of a VolumeTicket.
func (w *World) TicketLabels(t Ticket) map[string]string {
	if o := w.Ticket(t.Namespace, t.Name); o != nil {
		return o.Labels
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

// ManualName lets the same command find the ticket again.
func ManualName(persistentVolume, node string) string {
	digest := sha256.Sum256([]byte(persistentVolume + "\x00" + node))
	return "manual-" + hex.EncodeToString(digest[:10])
}

// ManualTicket names the claim, in its namespace. Without a claim it names the PersistentVolume, in
// Moorage's namespace, as an administrator's ticket.
func (w *World) ManualTicket(persistentVolume, node, ownNamespace string, ttlSeconds int64) (*v1alpha1.VolumeTicket, error) {
	if w.PersistentVolume(persistentVolume) == nil {
		return nil, fmt.Errorf("persistentvolumes %q not found", persistentVolume)
	}
	if w.Node(node) == nil && !w.unseen("nodes") {
		return nil, fmt.Errorf("nodes %q not found", node)
	}
	fact := w.Snapshot.PersistentVolume(persistentVolume)
	if fact == nil || fact.Volume.IsZero() || !w.Snapshot.AttachRequired(fact.Volume.Driver) {
		return nil, fmt.Errorf("persistentvolumes %q needs no attachment: any node may mount it", persistentVolume)
	}
	namespace, volume := ownNamespace, v1alpha1.TicketVolume{PersistentVolume: persistentVolume}
	if key, uid, ok := w.claimedBy(fact); ok {
		namespace, volume = key.Namespace, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: key.Name, UID: types.UID(uid)}}
	}
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ManualName(persistentVolume, node)},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: node, TTLSeconds: &ttlSeconds,
			Volumes: []v1alpha1.TicketVolume{volume}},
	}, nil
}

// claimedBy is the existing, bound claim for a ticket, and its UID. A Released volume's claimRef names a
// gone or replaced claim. It decides only if claims may not be listed.
func (w *World) claimedBy(pv *ledger.PersistentVolume) (ledger.ClaimKey, string, bool) {
	if w.partUnseen("persistentvolumeclaims") {
		return pv.Claim, pv.ClaimUID, pv.Claim != (ledger.ClaimKey{})
	}
	c := w.Snapshot.Claim(pv.Claim)
	if c == nil || !c.Bound || c.Lost || c.PersistentVolume != pv.Name || pv.IsAnothers(*c) {
		return ledger.ClaimKey{}, "", false
	}
	return c.Key, c.UID, true
}

// TicketNow describes a ticket's present state; false: there is none.
func (w *World) TicketNow(namespace, name string) (Ticket, bool) {
	if t := w.Ticket(namespace, name); t != nil {
		return w.ticket(t, map[ledger.NodeName]*rules.Queue{}), true
	}
	return Ticket{}, false
}

// Import is a ticket for the user of an attached volume before Moorage attaches there.
type Import struct {
	// From is the ticket's source for people, on one line.
	From string
	// Ticket may be nil; Note says why, or names its gaps.
	Ticket *v1alpha1.VolumeTicket
	Note   string
}

// UnusedAttachments are attached volumes without a pod or ticket, by volume and node, each with a Manual
// ticket. Without it a controller would detach them.
func (w *World) UnusedAttachments(ownNamespace string, ttlSeconds int64) []Import {
	var list []Import
	for v := range w.Snapshot.Volumes() {
		for i := range v.OnNodes {
			at := &v.OnNodes[i]
			if len(at.Users) > 0 {
				continue
			}
			for _, a := range at.Attachments() {
				if a.Attached && !a.Deleting {
					list = append(list, w.importUnused(a, ownNamespace, ttlSeconds))
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b Import) int { return cmp.Compare(a.From, b.From) })
	return list
}

func (w *World) importUnused(a *ledger.Attachment, ownNamespace string, ttlSeconds int64) Import {
	out := Import{From: fmt.Sprintf("VolumeAttachment %q", a.Name)}
	if a.PersistentVolume == "" {
		out.Note = "it names no PersistentVolume, and a ticket can't name an inline volume"
		return out
	}
	ticket, err := w.ManualTicket(a.PersistentVolume, string(a.Node), ownNamespace, ttlSeconds)
	if err != nil {
		out.Note = err.Error()
		return out
	}
	out.Ticket, out.Note = ticket, w.waitsNote(ticket)
	return out
}

// waitsNote says why a PersistentVolume's ticket would not be granted beside claims' users, or is empty.
func (w *World) waitsNote(ticket *v1alpha1.VolumeTicket) string {
	if ticket.Spec.Volumes[0].PersistentVolume == "" {
		return ""
	}
	fact := convert.Ticket(ticket)
	fact.Created = w.Now.Unix() // it is not written yet
	reasons := w.reasons(w.Arbiter.Fit(w.Snapshot, rules.TicketRequest(w.Snapshot, &fact), fact.Node, w.Now), nil)
	if len(reasons) == 0 {
		return ""
	}
	return fmt.Sprintf("as things are its ticket is not granted, and keeps the volume nowhere: %s (%s). See to that before Moorage attaches here, or the volume may be detached", reasons[0].Message, reasons[0].Code)
}
