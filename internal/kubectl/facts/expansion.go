// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
)

// The codes of a claim that is to be larger.
const (
	expansionFailed = "ExpansionFailed"
	resizePending   = string(corev1.PersistentVolumeClaimFileSystemResizePending)
)

// expansionCause says what keeps a claim from being larger, and what Moorage says of it; nil where
// nothing does. external-resizer leaves its error on a claim that waits for a node only.
func (w *World) expansionCause(c *corev1.PersistentVolumeClaim, pods []PodNeed) *Cause {
	size := c.Spec.Resources.Requests[corev1.ResourceStorage]
	if failed := claimCondition(c, corev1.PersistentVolumeClaimNodeResizeError); failed != nil {
		return &Cause{Of: OfVolume, Code: expansionFailed, Since: failed.LastTransitionTime.Time,
			Message: fmt.Sprintf("its file system does not grow to %s: %s", size.String(), shortened(failed.Message, "nobody says why")),
			Do:      fmt.Sprintf("Mend what the message names: kubectl describe pvc -n %s %s", c.Namespace, c.Name)}
	}
	if waits := claimCondition(c, corev1.PersistentVolumeClaimFileSystemResizePending); waits != nil {
		if slices.ContainsFunc(pods, func(p PodNeed) bool { return p.Node != "" && p.State != PodFinished }) {
			return nil // whose kubelet does it
		}
		return &Cause{Of: OfVolume, Code: resizePending, Since: waits.LastTransitionTime.Time,
			Message: fmt.Sprintf("its file system grows to %s once a pod uses it; its disk is that large already", size.String()),
			Do:      "Nothing: the kubelet does it before the next pod starts"}
	}
	failed := claimCondition(c, corev1.PersistentVolumeClaimControllerResizeError)
	if failed == nil {
		return nil
	}
	out := &Cause{Of: OfVolume, Code: expansionFailed, Since: failed.LastTransitionTime.Time,
		Message: fmt.Sprintf("its expansion to %s fails and is tried again: %s", size.String(), shortened(failed.Message, "nobody says why")),
		Do: fmt.Sprintf("Mend what the message names: kubectl describe pvc -n %s %s. Where the driver needs the volume attached, or attached nowhere, for it, an AttachPolicy with attachFor or detachFor: [Expansion] has Moorage see to that: docs/operate/tickets.md",
			c.Namespace, c.Name)}
	if t, ok := w.OperationTicket(ledger.OperationExpansion, "PersistentVolumeClaim", c.Namespace, c.Name); ok && t.State != TicketSatisfied {
		out.Message += ". Moorage's ticket for it " + t.Answer
		out.Do = fmt.Sprintf("See what helps: kubectl moorage ticket explain %s -n %s", t.Name, t.Namespace)
		if t.Cause != nil && t.Cause.Do != "" {
			out.Do = t.Cause.Do
		}
	}
	if held := w.Evidence.lastEvent(c.UID, "OperationHeld"); held != nil && eventTime(held).After(failed.LastTransitionTime.Time) {
		out.Message += ". Moorage does not help yet: " + shortened(held.Message, "")
	}
	return out
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

// claimCondition is a claim's condition of a kind that is True; nil without one.
func claimCondition(c *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) *corev1.PersistentVolumeClaimCondition {
	for i := range c.Status.Conditions {
		if is := &c.Status.Conditions[i]; is.Type == kind && is.Status == corev1.ConditionTrue {
			return is
		}
	}
	return nil
}
