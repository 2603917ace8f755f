// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// worksWithout says whether a component was at work after its Lease ran out: it runs without one, and the
// Lease is left from a time before.
func (w *World) worksWithout(l *coordinationv1.Lease) bool {
	last := w.lastDeed(l.Name)
	return last.After(renewedAt(l)) && Lapsed(l, last) > 0
}

// lastDeed is when an object last shows a component at work that may run without a Lease; zero where
// none shows it.
func (w *World) lastDeed(lease string) (last time.Time) {
	count := func(at metav1.Time) {
		if at.After(last) {
			last = at.Time
		}
	}
	if lease == kubeControllerManager {
		for _, n := range w.Nodes {
			if at, _ := lastWrite(n, "volumesAttached"); strings.HasPrefix(at.manager, kubeControllerManager) {
				count(metav1.NewTime(at.at))
			}
		}
		return last
	}
	for _, va := range w.Attachments {
		if attacherLease(va.Spec.Attacher) != lease {
			continue
		}
		if va.Status.Attached {
			count(va.CreationTimestamp) // its attacher has answered since
		}
		if e := va.Status.AttachError; e != nil {
			count(e.Time)
		}
		if e := va.Status.DetachError; e != nil {
			count(e.Time)
		}
	}
	for _, p := range w.Pods {
		if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror || schedulerLease(p) != lease {
			continue
		}
		if c := podCondition(p, corev1.PodScheduled); c != nil && p.Spec.NodeName != "" {
			count(c.LastTransitionTime)
		}
	}
	return last
}

// schedulerLease is the name of the Lease of a pod's scheduler.
func schedulerLease(p *corev1.Pod) string {
	if name := p.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
		return name
	}
	return kubeScheduler
}
