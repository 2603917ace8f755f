// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// incomplete says why a pod's group is not tried at all: its PodGroup is not known, or
// has fewer pods than it needs. What such a group reserved would be kept from others
// for nothing. It is empty for a pod that may be tried. Kubernetes' own PodGroups are
// kept from the queue by kube-scheduler.
//
// It looks at no pod and takes no lock but the index's: the scheduling queue calls it with
// its own held.
func (g *groups) incomplete(pod *corev1.Pod) string { return g.missing(groupOf(pod)) }

// missing is incomplete for all pods of a group.
func (g *groups) missing(key groupKey) string {
	if key.name == "" || key.native {
		return ""
	}
	living, volumes := g.index.counts(key)
	if !volumes {
		return "" // none of the plugin's business
	}
	group, err := g.source.get(key)
	if err != nil {
		return err.Error()
	}
	if living < group.minMember {
		return fmt.Sprintf("PodGroup %s has %d of the %d pods that it needs", key, living, group.minMember)
	}
	return ""
}

// pods lists a group's pods.
func (g *groups) pods(key groupKey) []*corev1.Pod { return g.index.pods(key) }

// podSeen takes in a pod as it is now.
func (g *groups) podSeen(pod *corev1.Pod) {
	for _, key := range g.index.put(pod) {
		g.recount(key)
	}
}

// podGone takes in that there is a pod no more.
func (g *groups) podGone(pod *corev1.Pod) {
	for _, key := range g.index.remove(pod.UID) {
		g.recount(key)
	}
}

// recount looks at a group's pods again if what keeps them from being tried has changed
// with their number.
func (g *groups) recount(key groupKey) {
	g.looking.Lock()
	defer g.looking.Unlock()
	if why := g.missing(key); why != g.kept[key] {
		g.look(key, why)
	}
}

// changed looks at a group's pods again, since its PodGroup has come, changed or gone. It does
// so even if what keeps them is the same as before: the PodGroup may have been another
// in between, when one of them was kept.
func (g *groups) changed(key groupKey) {
	if key.name == "" || key.native {
		return
	}
	g.looking.Lock()
	defer g.looking.Unlock()
	g.look(key, g.missing(key))
}

// look has the pods of a group that are kept from being tried let through if nothing keeps
// them any more, or else told why; and releases a gathering that has become
// incomplete, or takes one as far as it goes by what its PodGroup says now. looking is held.
func (g *groups) look(key groupKey, why string) {
	delete(g.kept, key)
	if why != "" {
		g.kept[key] = why
	}
	for _, pod := range g.pods(key) {
		if pod.Spec.NodeName != "" {
			continue
		}
		if idle, gated := g.core.requeuer.Idle(pod.UID); idle && gated && why == "" {
			g.core.requeuer.RetryAfter(pod.UID, 0)
		}
		g.core.conditions.enqueue(pod)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	at := g.gatherings[key]
	if at == nil {
		return
	}
	if why != "" {
		g.release(at, why)
	} else if group, err := g.group(key); err == nil {
		at.group = group
		g.step(at)
	}
}
