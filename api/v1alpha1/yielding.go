// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Yielding is the condition that asks the ticket to let go of its volumes; nil: it is not asked to.
func (t *VolumeTicket) Yielding() *metav1.Condition {
	if c := meta.FindStatusCondition(t.Status.Conditions, TicketYielding); c != nil && c.Status == metav1.ConditionTrue {
		return c
	}
	return nil
}

// LetsGo says whether the ticket's user has let go of its volumes, as it is asked to now.
func (t *VolumeTicket) LetsGo() bool {
	asked := t.Yielding()
	return asked != nil && t.Annotations[AnnotationLetsGo] == LetsGoValue(asked)
}

// LetsGoValue is the value of the annotation AnnotationLetsGo that answers a condition Yielding.
func LetsGoValue(asked *metav1.Condition) string {
	return asked.LastTransitionTime.UTC().Format(time.RFC3339)
}
