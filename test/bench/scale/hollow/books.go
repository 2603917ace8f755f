// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

type Volume struct {
	Handle string
	Name   corev1.UniqueVolumeName
}

// books are one node's pods and volumes. They do no I/O, and are serial.
type books struct {
	pods    map[types.UID]*podEntry
	volumes map[corev1.UniqueVolumeName]*volumeEntry
}

type podEntry struct {
	pod     *corev1.Pod
	volumes []Volume
	// told and running: the first and second status are written; gone: the object is gone.
	told, running, leaving, gone bool
}

type volumeEntry struct {
	Volume
	users map[types.UID]bool
	// Invariant: a volume is staged only after the API server has answered a write of volumesInUse with it.
	reported, staged bool
}

func newBooks() *books {
	return &books{pods: map[types.UID]*podEntry{}, volumes: map[corev1.UniqueVolumeName]*volumeEntry{}}
}

func (b *books) see(pod *corev1.Pod, volumes []Volume) {
	entry := b.pods[pod.UID]
	if entry == nil {
		if pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded) {
			return
		}
		entry = &podEntry{volumes: volumes}
		b.pods[pod.UID] = entry
	}
	entry.pod = pod
	if pod.DeletionTimestamp != nil {
		entry.leaving = true
	}
	if entry.leaving {
		b.release(pod.UID)
		return
	}
	for _, v := range entry.volumes {
		held := b.volumes[v.Name]
		if held == nil {
			held = &volumeEntry{Volume: v, users: map[types.UID]bool{}}
			b.volumes[v.Name] = held
		}
		held.users[pod.UID] = true
	}
}

func (b *books) lose(uid types.UID) {
	if entry := b.pods[uid]; entry != nil {
		entry.leaving, entry.gone = true, true
		b.release(uid)
	}
}

// A volume that is not staged is forgotten at once.
func (b *books) release(uid types.UID) {
	for name, v := range b.volumes {
		delete(v.users, uid)
		if len(v.users) == 0 && !v.staged {
			delete(b.volumes, name)
		}
	}
}

func (b *books) inUse() []corev1.UniqueVolumeName { return slices.Sorted(maps.Keys(b.volumes)) }

func (b *books) report(names []corev1.UniqueVolumeName) {
	for _, name := range names {
		if v := b.volumes[name]; v != nil {
			v.reported = true
		}
	}
}

func (b *books) mountable(attached map[corev1.UniqueVolumeName]bool) []Volume {
	var out []Volume
	for _, name := range b.inUse() {
		if v := b.volumes[name]; len(v.users) > 0 && v.reported && !v.staged && attached[name] {
			out = append(out, v.Volume)
		}
	}
	return out
}

func (b *books) staged(name corev1.UniqueVolumeName) { b.volumes[name].staged = true }

// These are staged for no pod.
func (b *books) unneeded() []Volume {
	var out []Volume
	for _, name := range b.inUse() {
		if v := b.volumes[name]; len(v.users) == 0 && v.staged {
			out = append(out, v.Volume)
		}
	}
	return out
}

func (b *books) unstaged(name corev1.UniqueVolumeName) { delete(b.volumes, name) }

func (b *books) those(is func(*podEntry) bool) []*podEntry {
	var out []*podEntry
	for _, uid := range slices.Sorted(maps.Keys(b.pods)) {
		if is(b.pods[uid]) {
			out = append(out, b.pods[uid])
		}
	}
	return out
}

// Pods without first status, that can run, or that can end.
func (b *books) untold() []*podEntry {
	return b.those(func(p *podEntry) bool { return !p.told && !p.leaving })
}

func (b *books) startable() []*podEntry {
	return b.those(func(p *podEntry) bool { return !p.running && !p.leaving && b.ready(p) })
}

func (b *books) ready(p *podEntry) bool {
	for _, v := range p.volumes {
		if held := b.volumes[v.Name]; held == nil || !held.staged {
			return false
		}
	}
	return true
}

func (b *books) endable() []*podEntry {
	return b.those(func(p *podEntry) bool { return p.leaving && !b.unfinished(p) })
}

func (b *books) unfinished(p *podEntry) bool {
	for _, v := range p.volumes {
		if held := b.volumes[v.Name]; held != nil && len(held.users) == 0 {
			return true
		}
	}
	return false
}

func (b *books) end(uid types.UID) { delete(b.pods, uid) }
