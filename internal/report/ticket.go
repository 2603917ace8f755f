// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// TicketChanged reports lasting changes of Granted, Satisfied and Yielding on a VolumeTicket and its owner,
// within the namespace's quota for changes.
func (e *Events) TicketChanged(old, now *v1alpha1.VolumeTicket) {
	if e == nil {
		return
	}
	for _, kind := range []string{v1alpha1.TicketGranted, v1alpha1.TicketSatisfied, v1alpha1.TicketYielding} {
		c := meta.FindStatusCondition(now.Status.Conditions, kind)
		if c == nil || c.Reason == v1alpha1.ReasonPending || c.Status != metav1.ConditionTrue && rules.Transient(ledger.Code(c.Reason)) {
			continue
		}
		if old != nil {
			if was := meta.FindStatusCondition(old.Status.Conditions, kind); was != nil && was.Status == c.Status && was.Reason == c.Reason {
				continue
			}
		}
		e.log.Info("A ticket has changed", "ticket", klog.KObj(now), "type", now.Spec.Type, "condition", kind, "status", c.Status, "reason", c.Reason, "at", now.Node(), "detached", now.Spec.Detached)
		switch {
		case now.Spec.Detached:
			e.detachedChanged(now, kind, c)
		case kind == v1alpha1.TicketYielding:
			e.tellTicket(now, e.quotas.changes, e.warn, eventYielding, fmt.Sprintf("node %s: %s", now.Node(), c.Message))
		case c.Status != metav1.ConditionTrue:
			e.tellTicket(now, e.quotas.changes, e.warn, c.Reason, fmt.Sprintf("node %s: %s", now.Node(), c.Message))
		case kind == v1alpha1.TicketGranted:
			e.tellTicket(now, e.quotas.changes, e.tell, c.Reason, fmt.Sprintf("its volumes are reserved for it at node %s", now.Node()))
		default:
			e.tellTicket(now, e.quotas.changes, e.tell, c.Reason, fmt.Sprintf("its volumes are attached to node %s", now.Node()))
		}
	}
}

func (e *Events) detachedChanged(t *v1alpha1.VolumeTicket, kind string, c *metav1.Condition) {
	switch {
	case kind == v1alpha1.TicketYielding:
		e.tellTicket(t, e.quotas.changes, e.warn, eventYielding, c.Message)
	case c.Status != metav1.ConditionTrue:
		e.tellTicket(t, e.quotas.changes, e.warn, c.Reason, c.Message)
	case kind == v1alpha1.TicketGranted:
		e.tellTicket(t, e.quotas.changes, e.tell, c.Reason, "its volumes are kept from every node")
	default:
		e.tellTicket(t, e.quotas.changes, e.tell, c.Reason, "its volumes are attached nowhere")
	}
}

// TicketEnded tells a VolumeTicket, and its owner, why the controller has deleted it.
func (e *Events) TicketEnded(t *v1alpha1.VolumeTicket, cause rules.EndCause) {
	if e == nil || t == nil {
		return
	}
	e.log.Info("A ticket ends", "reason", eventTicketEnded, "ticket", klog.KObj(t), "type", t.Spec.Type, "cause", cause, "at", t.Node())
	message := fmt.Sprintf("%s: %s", cause, whyEnded(t, cause))
	if cause == rules.EndTimeOver {
		e.tellTicket(t, e.quotas.ends, e.tell, eventTicketEnded, message)
		return
	}
	e.tellTicket(t, e.quotas.ends, e.warn, eventTicketEnded, message)
}

func whyEnded(t *v1alpha1.VolumeTicket, cause rules.EndCause) string {
	switch cause {
	case rules.EndTimeOver:
		return "its ttlSeconds are over"
	case rules.EndNodeCordoned:
		return fmt.Sprintf("node %s is cordoned, and it says onDrain: End", t.Node())
	case rules.EndNodeDeleted:
		return fmt.Sprintf("node %s does not exist any more", t.Node())
	}
	return string(cause)
}

// tellTicket reports on a ticket and its owner, or on neither beyond the namespace's quota.
func (e *Events) tellTicket(t *v1alpha1.VolumeTicket, left *quota, tell func(of Object, reason, message string), reason, message string) {
	if !left.take(t.Namespace, e.now()) {
		return
	}
	tell(ofTicket(t), reason, message)
	if owner, ok := ownerOf(t); ok {
		tell(owner, reason, "ticket "+t.Name+": "+message)
	}
}

// ownerOf is a ticket's controller, else its first owner; an owner without a namespace has its events in
// the ticket's. False: none, or its name (253 bytes), kind (63), apiVersion (317) or UID (128) is longer
// than a real object's: the recorder keeps thousands of names of any length.
func ownerOf(t *v1alpha1.VolumeTicket) (Object, bool) {
	owner := metav1.GetControllerOfNoCopy(t)
	if owner == nil && len(t.OwnerReferences) > 0 {
		owner = &t.OwnerReferences[0]
	}
	if owner == nil || !convert.RealOwner(owner) {
		return Object{}, false
	}
	return Object{APIVersion: owner.APIVersion, Kind: owner.Kind, Namespace: t.Namespace, Name: owner.Name, UID: string(owner.UID)}, true
}
