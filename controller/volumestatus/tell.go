// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// tell makes events of new reasons and the end of waiting. object is the pod before its write: no process
// reports anything twice.
func (c *Controller) tell(object *corev1.Pod, pod *ledger.Pod, st state) {
	told := toldReasons(object)
	switch {
	case pod.Phase == ledger.PodFinished:
	case !st.safe:
		for _, w := range st.waits {
			// A passing reason is not reported beside a lasting one.
			if told[w.name] == string(w.reason.Code) || st.lasts() && rules.Transient(w.reason.Code) {
				continue
			}
			claim := w.claim
			if w.held == w.reason.Code && !rules.Transient(w.held) {
				claim = nil // its VolumeHold tells it
			}
			c.config.Events.Waits(pod, claim, w.reason)
		}
	case len(told) > 0:
		var claims []*ledger.Claim
		s := c.config.Cache.Snapshot()
		for _, v := range pod.Volumes {
			claim := s.Claim(ledger.ClaimKey{Namespace: pod.Namespace, Name: v.Claim})
			if v.Claim != "" && claim != nil && told[v.Name] != "" {
				claims = append(claims, claim)
			}
		}
		c.config.Events.Ready(pod, pod.Node, claims)
	}
}

// toldReasons are reasons by volume name; the placeholder and the scheduler's reservation have none.
func toldReasons(object *corev1.Pod) map[string]string {
	status, err := v1alpha1.ParseVolumeStatus(object.Annotations[v1alpha1.AnnotationVolumeStatus])
	if err != nil {
		return nil // nothing was told yet
	}
	told := map[string]string{}
	for _, v := range status.Volumes {
		if v.Reason != "" && v.Reason != v1alpha1.ReasonPending && v.Reason != v1alpha1.VolumeReserved {
			told[v.Name] = v.Reason
		}
	}
	return told
}
