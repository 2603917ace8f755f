// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// incomplete says why a pod's group is not tried at all: its PodGroup is unknown, or has too few pods. Its
// reservations would be kept from others for nothing. It is empty for a pod that may be tried.
// kube-scheduler itself keeps Kubernetes' own PodGroups out of the queue.
//
// It looks at no pod and takes only the index's lock: the scheduling queue calls it under its own lock.
func (g *groups) incomplete(pod *corev1.Pod) string { return g.missing(groupOf(pod)) }

// missing is incomplete for all pods of a group.
func (g *groups) missing(key groupKey) string {
	if key.name == "" || key.native {
		return ""
	}
	living, volumes := g.index.counts(key)
	if !volumes {
		return "" // not the plugin's business
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

func (g *groups) pods(key groupKey) []*corev1.Pod { return g.index.pods(key) }

// podSeen takes in a pod's present state.
func (g *groups) podSeen(pod *corev1.Pod) {
	for _, key := range g.index.put(pod) {
		g.recount(key)
	}
}

func (g *groups) podGone(pod *corev1.Pod) {
	for _, key := range g.index.remove(pod.UID) {
		g.recount(key)
	}
}

// recount checks a group's pods again if a change of their number changes what keeps them.
func (g *groups) recount(key groupKey) {
	g.looking.Lock()
	defer g.looking.Unlock()
	if why := g.missing(key); why != g.kept[key] {
		g.look(key, why)
	}
}

// changed checks a group's pods after an event of its PodGroup, also if they are kept for the same reason
// as before: the PodGroup may have differed in between, when one of them was kept.
func (g *groups) changed(key groupKey) {
	if key.name == "" || key.native {
		return
	}
	g.looking.Lock()
	defer g.looking.Unlock()
	g.look(key, g.missing(key))
}

// look lets a group's kept pods through if nothing keeps them any more, or updates their reason; and
// releases a gathering that has become incomplete, or advances it by its PodGroup's new state. looking is
// held.
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
