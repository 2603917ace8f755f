// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// incomplete says why a pod's group is not tried: its PodGroup is unknown, or has too few pods; its
// reservations would be useless. Empty: it may be tried. kube-scheduler itself keeps Kubernetes' own
// PodGroups out of the queue.
//
// It takes only the index's lock: the scheduling queue calls it under its own lock.
func (g *groups) incomplete(pod *corev1.Pod) string { return g.missing(groupOf(pod)) }

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

func (g *groups) recount(key groupKey) {
	g.looking.Lock()
	defer g.looking.Unlock()
	if why := g.missing(key); why != g.kept[key] {
		g.look(key, why)
	}
}

// changed checks a group's pods even with an equal reason: the PodGroup may have differed when a pod was
// kept.
func (g *groups) changed(key groupKey) {
	if key.name == "" || key.native {
		return
	}
	g.looking.Lock()
	defer g.looking.Unlock()
	g.look(key, g.missing(key))
}

// looking is held.
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
