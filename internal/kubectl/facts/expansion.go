// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// expansionFailed is the code of a claim that is to be larger, which the driver refuses.
const expansionFailed = "ExpansionFailed"

// expansionCause says that a claim's expansion has failed and is tried again, and what Moorage says
// of it; nil where that is not so.
func (w *World) expansionCause(c *corev1.PersistentVolumeClaim) *Cause {
	for _, kind := range []corev1.PersistentVolumeClaimConditionType{corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError} {
		for i := range c.Status.Conditions {
			failed := &c.Status.Conditions[i]
			if failed.Type != kind || failed.Status != corev1.ConditionTrue {
				continue
			}
			size := c.Spec.Resources.Requests[corev1.ResourceStorage]
			out := &Cause{Of: OfVolume, Code: expansionFailed, Since: failed.LastTransitionTime.Time,
				Message: fmt.Sprintf("its expansion to %s fails and is tried again: %s", size.String(), shortened(failed.Message, "nobody says why")),
				Do: fmt.Sprintf("Mend what the message names: kubectl describe pvc -n %s %s. Where the driver needs the volume attached, or attached nowhere, for it, an AttachPolicy with attachFor or detachFor: [Expansion] has Moorage see to that: docs/operate/tickets.md",
					c.Namespace, c.Name)}
			if held := w.Evidence.lastEvent(c.UID, "OperationHeld"); held != nil && eventTime(held).After(failed.LastTransitionTime.Time) {
				out.Message += ". Moorage does not help yet: " + shortened(held.Message, "")
			}
			return out
		}
	}
	return nil
}
