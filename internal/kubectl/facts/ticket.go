// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
)

// TicketExplanation is a ticket, why it waits, and when it ends.
type TicketExplanation struct {
	Ticket
	Answer string `json:"answer"`
	// Cause is what the ticket waits for first, nil where its volumes are there.
	Cause *Cause `json:"cause,omitempty"`
	// Yields says that the ticket gives its volumes up to pods.
	Yields bool `json:"yields,omitempty"`
	// Interruptions is how often in a row it has lost its volumes.
	Interruptions int64 `json:"interruptions,omitempty"`
	// Left is about how much of its time is left at least, in seconds, and LeftAtMost how much that
	// is at most; 0: it is over, or has none of its own. The controller alone counts it, and one that
	// was restarted goes on from what is written down.
	Left       int64 `json:"leftSeconds,omitempty"`
	LeftAtMost int64 `json:"leftSecondsAtMost,omitempty"`
	// OnDrain is what the cordon of its node does to it: End or Move; empty: nothing.
	OnDrain string `json:"onDrain,omitempty"`
	// Operation is what a driver is to do while the ticket has the volumes, such as Expansion, and
	// OperationOf the object that asks for it: of a ticket that Moorage has made for that. Empty
	// of any other.
	Operation   string `json:"operation,omitempty"`
	OperationOf string `json:"operationOf,omitempty"`
	// Owners are the objects that it ends with, as kind/name.
	Owners []string `json:"owners,omitempty"`

	left timeLeft
}

// ExplainTicket explains a ticket; false: there is none.
func (w *World) ExplainTicket(namespace, name string) (TicketExplanation, bool) {
	now, ok := w.TicketNow(namespace, name)
	if !ok {
		return TicketExplanation{}, false
	}
	x := TicketExplanation{Ticket: now, Yields: ledger.TicketType(now.Type).Yields()}
	for _, t := range w.Tickets {
		if t.Namespace == namespace && t.Name == name {
			x.ends(t, w.timeLeft(t))
		}
	}
	if len(x.Reasons) > 0 {
		first := x.Reasons[0]
		x.Cause = &Cause{Of: OfVolume, Code: first.Code, Message: first.Message, Changes: first.Changes, Do: first.Do, Since: first.Since}
	} else if now.NodeNotReady {
		x.Cause = w.silentNode(now.Node)
	} else if now.State == TicketSatisfied {
		x.Cause = w.nobodyEnds()
	}
	x.Answer = x.answer()
	if leaves := w.LeavesWithPods(&now); leaves != "" && x.Cause == nil {
		x.Answer += "; " + leaves
	}
	return x, true
}

// silentNode is what a ticket that has its volumes has to know of its node that is not ready: they
// are attached there, and who uses them may be gone.
func (w *World) silentNode(node string) *Cause {
	c := &Cause{Of: OfNode, Code: "NodeNotReady", Since: w.notReadySince(ledger.NodeName(node)),
		Message: "that node is not ready: the volumes stay attached there, and nobody can say whether what uses them still runs",
		Do:      "See what helps: kubectl moorage explain node " + node}
	switch n := w.Node(node); {
	case n == nil:
		c.Code, c.Message = string(arbiter.NodeMissing), "there is no such node any more: nobody can say whether its machine still uses them"
	case w.kubeletLives(n):
		c.Message = "that node is not ready, though its kubelet lives: what uses them may run on"
	}
	return c
}

// LeavesWithPods says that a ticket which has its volumes loses one to kube-controller-manager when the last pod
// that uses it there ends: in Cooperative mode that detaches what its pods had. Empty where no pod uses one there.
func (w *World) LeavesWithPods(t *Ticket) string {
	if !w.Arbiter.Cooperative || t.State != TicketSatisfied || t.Node == "" {
		return ""
	}
	for _, need := range t.request.Needs {
		if w.Snapshot.Volume(need.Volume).NodeVolume(ledger.NodeName(t.Node)).UsedByPod() {
			return "kube-controller-manager detaches it when the last pod that uses it there ends (Cooperative mode), and Moorage attaches it again"
		}
	}
	return ""
}

// nobodyEnds is what a ticket that has its volumes has to know of a controller that is down: nobody ends it
// or asks it to yield. Nil where one leads, or that can't be seen.
func (w *World) nobodyEnds() *Cause {
	c := w.nobodyGrants()
	if c != nil {
		c.Message = "moorage-controller is down: until it is back nobody ends the ticket, or asks it to let go of its volumes"
	}
	return c
}

func (x *TicketExplanation) ends(t *v1alpha1.VolumeTicket, left timeLeft) {
	x.Interruptions = t.Status.Interruptions
	if t.Spec.OnDrain != v1alpha1.OnDrainStay {
		x.OnDrain = string(t.Spec.OnDrain)
	}
	x.left, x.Left, x.LeftAtMost = left, left.least, left.most
	if t.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy {
		x.Operation, x.OperationOf = t.Labels[v1alpha1.LabelOperation], t.Annotations[v1alpha1.AnnotationOperationOf]
	}
	for _, o := range t.OwnerReferences {
		x.Owners = append(x.Owners, o.Kind+"/"+o.Name)
	}
}

func (x *TicketExplanation) answer() string {
	message := "moorage-controller has not decided yet"
	if x.Cause != nil {
		message = x.Cause.Message
	}
	if x.Detached {
		return x.answerDetached(message)
	}
	switch x.State {
	case TicketSatisfied:
		if x.Cause != nil && x.Cause.Of == OfNode {
			return fmt.Sprintf("has its volumes at %s, and %s", x.Node, sentence(x.Cause.Message))
		}
		if x.Yielding != "" {
			return fmt.Sprintf("has its volumes at %s, and is asked to %s", x.Node, x.Yielding)
		}
		if x.Cause != nil {
			return fmt.Sprintf("has its volumes at %s. But %s", x.Node, sentence(x.Cause.Message))
		}
		return "has its volumes at " + x.Node
	case TicketGranted:
		if x.Cause != nil && x.Cause.Code == NotVisible {
			return "is granted, and " + message
		}
		return fmt.Sprintf("is granted, and its volumes are not all at %s yet: %s", x.Node, message)
	}
	return "waits: " + message
}

// answerDetached is the answer of a ticket that asks for its volumes to be at no node.
func (x *TicketExplanation) answerDetached(message string) string {
	switch x.State {
	case TicketSatisfied:
		if x.Yielding != "" {
			return "has its volumes attached nowhere, and is asked to " + x.Yielding
		}
		if x.Cause != nil {
			return "has its volumes attached nowhere. But " + sentence(x.Cause.Message)
		}
		return "has its volumes attached nowhere, and no node gets them before it ends"
	case TicketGranted:
		if x.Cause != nil && x.Cause.Code == NotVisible {
			return "is granted, and " + message
		}
		return "keeps its volumes from every node, and they are not all detached yet: " + message
	}
	return "waits: " + message
}

// Ends says in words when a ticket ends.
func (x *TicketExplanation) Ends() string {
	var ends []string
	for _, o := range x.Owners {
		ends = append(ends, "with "+o)
	}
	if x.TTLSeconds > 0 {
		ends = append(ends, x.left.words()+", unless it is renewed")
	}
	if x.OnDrain == string(v1alpha1.OnDrainEnd) {
		ends = append(ends, "when its node is cordoned")
	}
	if len(ends) == 0 {
		return "when it is deleted"
	}
	return strings.Join(ends, ", ") + ", or when it is deleted"
}

// OperationTicket is the ticket that Moorage has made for an operation which an object asks for, as an AttachPolicy
// says; false where there is none. Labels alone make none: anybody may set some of them.
func (w *World) OperationTicket(of ledger.Operation, kind, namespace, name string) (TicketExplanation, bool) {
	for _, t := range w.Tickets {
		own, is := operation.TicketOf(t)
		if is && own.Operation == of && t.Namespace == namespace && t.Annotations[v1alpha1.AnnotationOperationOf] == kind+" "+namespace+"/"+name {
			return w.ExplainTicket(t.Namespace, t.Name)
		}
	}
	return TicketExplanation{}, false
}
