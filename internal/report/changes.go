// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// An event is the difference between an object's former content and the present write, so that a change is
// reported once. The usual course (granted, attached, detached) makes no event on pods, claims and holds:
// it would cost a write for each attach.

// concern is a lasting state of a volume that may need a person; zero: none.
type concern struct{ reason, message string }

func concernOf(h *v1alpha1.VolumeHold) concern {
	if h == nil {
		return concern{}
	}
	c := meta.FindStatusCondition(h.Status.Conditions, v1alpha1.HoldDetachPending)
	if c == nil || c.Status != metav1.ConditionTrue {
		c = meta.FindStatusCondition(h.Status.Conditions, v1alpha1.HoldAttached)
	}
	if c == nil || c.Status == metav1.ConditionFalse || rules.Transient(ledger.Code(c.Reason)) {
		return concern{}
	}
	return concern{c.Reason, c.Message}
}

// HoldChanged reports on its VolumeHold and claim that a volume enters or leaves a lasting state. old is
// nil for a new hold, and claim without one.
func (e *Events) HoldChanged(old, now *v1alpha1.VolumeHold, claim *ledger.Claim) {
	was, is := concernOf(old), concernOf(now)
	if e == nil || was.reason == is.reason {
		return
	}
	volume := now.Spec.Driver + "^" + now.Spec.Handle
	log := []any{"volume", volume, "hold", now.Name}
	if now.Status.Holder != nil && now.Status.Holder.Node != "" {
		log = append(log, "node", now.Status.Holder.Node)
	}
	if is.reason == "" {
		e.log.Info("A volume waits no more", append(log, "reason", eventResolved, "was", was.reason)...)
		message := fmt.Sprintf("%s is over: volume %s %s", was.reason, volume, whereabouts(now))
		e.tell(ofHold(now), eventResolved, message)
		e.tellClaim(claim, eventResolved, message)
		return
	}
	e.log.Info("A volume waits", append(log, "reason", is.reason)...)
	e.warn(ofHold(now), is.reason, is.message)
	if claim != nil {
		e.warn(OfClaim(claim), is.reason, is.message)
	}
}

func whereabouts(h *v1alpha1.VolumeHold) string {
	switch {
	case h.Status.Holder == nil:
		return "is at no node"
	case h.Status.Holder.Node == "":
		return "is kept detached"
	}
	return "is held by " + h.Status.Holder.Node
}
