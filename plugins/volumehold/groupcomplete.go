// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// incomplete says why a pod's group is not tried at all: its PodGroup is not known, or
// has fewer pods than it needs. What such a group reserved would be kept from others
// for nothing. It is empty for a pod that may be tried. Kubernetes' own PodGroups are
// kept from the queue by kube-scheduler.
//
// It takes no lock: the scheduling queue calls it with its own held.
func (g *groups) incomplete(pod *corev1.Pod) string {
	key := groupOf(pod)
	if key.name == "" || key.native {
		return ""
	}
	pods := g.pods(key)
	if !slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return len(factOf(p).Volumes) > 0 }) {
		return "" // none of the plugin's business
	}
	group, err := g.source.get(key)
	if err != nil {
		return err.Error()
	}
	living := 0
	for _, p := range pods {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			living++
		}
	}
	if living < group.minMember {
		return fmt.Sprintf("PodGroup %s has %d of the %d pods that it needs", key, living, group.minMember)
	}
	return ""
}

// pods lists a group's pods.
func (g *groups) pods(key groupKey) []*corev1.Pod {
	selector := labels.Everything()
	if !key.native {
		selector = labels.SelectorFromSet(labels.Set{PodGroupLabel: key.name})
	}
	// The lister fails for no selector of this form.
	pods, _ := g.core.pods.Pods(key.namespace).List(selector)
	return slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return groupOf(p) != key })
}

// changed has the pods of a group that are kept from being tried looked at again, since
// a pod of it or its PodGroup has come, changed or gone; and releases a gathering that
// has become incomplete.
func (g *groups) changed(key groupKey) {
	if key.name == "" || key.native {
		return
	}
	why := ""
	for _, pod := range g.pods(key) {
		if pod.Spec.NodeName != "" {
			continue
		}
		why = g.incomplete(pod)
		if idle, gated := g.core.requeuer.Idle(pod.UID); idle && gated && why == "" {
			g.core.requeuer.RetryAfter(pod.UID, 0)
		}
		g.core.conditions.enqueue(pod)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := g.gatherings[key]; at != nil && why != "" && !at.asking {
		g.release(at, why)
	}
}
