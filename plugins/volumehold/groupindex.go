// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// groupIndex counts the pods of each PodGroup at each pod event: a tenant may label many pods with one
// group, and PreEnqueue holds the scheduling queue's lock.
//
// Safe for parallel use. No other lock is taken while mu is held.
type groupIndex struct {
	mu     sync.Mutex
	groups map[groupKey]*indexedGroup
	of     map[types.UID]groupKey
}

type indexedGroup struct {
	pods        map[types.UID]indexedPod
	living      int // not terminating, finished or gated
	withVolumes int // with possibly attachable volumes
}

type indexedPod struct {
	pod             *corev1.Pod
	living, volumes bool
}

func newGroupIndex() *groupIndex {
	return &groupIndex{groups: map[groupKey]*indexedGroup{}, of: map[types.UID]groupKey{}}
}

func (x *groupIndex) put(pod *corev1.Pod) []groupKey {
	key := groupOf(pod)
	x.mu.Lock()
	defer x.mu.Unlock()
	var changed []groupKey
	if former, ok := x.of[pod.UID]; ok && former != key {
		changed = x.drop(pod.UID) // its label has changed
	}
	if key.name == "" {
		return changed
	}
	group := x.groups[key]
	if group == nil {
		group = &indexedGroup{pods: map[types.UID]indexedPod{}}
		x.groups[key] = group
	}
	before, known := group.pods[pod.UID]
	now := indexedPod{pod: pod, living: mayRun(pod), volumes: before.volumes}
	if !known {
		now.volumes = len(factOf(pod).Volumes) > 0 // never changes
	}
	group.pods[pod.UID], x.of[pod.UID] = now, key
	group.living += count(now.living) - count(before.living)
	group.withVolumes += count(now.volumes) - count(before.volumes)
	if !known || now.living != before.living {
		changed = append(changed, key)
	}
	return changed
}

func (x *groupIndex) remove(uid types.UID) []groupKey {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.drop(uid)
}

// mu is held.
func (x *groupIndex) drop(uid types.UID) []groupKey {
	key, ok := x.of[uid]
	if !ok {
		return nil
	}
	group := x.groups[key]
	gone := group.pods[uid]
	delete(group.pods, uid)
	delete(x.of, uid)
	group.living -= count(gone.living)
	group.withVolumes -= count(gone.volumes)
	if len(group.pods) == 0 {
		delete(x.groups, key)
	}
	return []groupKey{key}
}

func (x *groupIndex) counts(key groupKey) (living int, volumes bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	group := x.groups[key]
	if group == nil {
		return 0, false
	}
	return group.living, group.withVolumes > 0
}

func (x *groupIndex) pods(key groupKey) []*corev1.Pod {
	x.mu.Lock()
	defer x.mu.Unlock()
	group := x.groups[key]
	if group == nil {
		return nil
	}
	list := make([]*corev1.Pod, 0, len(group.pods))
	for _, p := range group.pods {
		list = append(list, p.pod)
	}
	return list
}

// mayRun: a pod with scheduling gates is not tried, and the others would wait for it with their slots.
func mayRun(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0 && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
