// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

const VolumeStatusAnnotation = "moorage.dev/volume-status"

type fact struct {
	at    time.Time
	stage Stage
	pod   types.UID // empty for a volume's
	// volume is the handle for calls of the disk service and entries of
	// node.status, and the PersistentVolume's name for VolumeAttachments.
	volume, node string
}

// API times are the watch's, a few milliseconds after the write. CSI times are the disk service's.
type recorder struct {
	mu    sync.Mutex
	facts []fact
}

func (r *recorder) add(f fact) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.facts = append(r.facts, f)
}

func (r *recorder) snapshot() []fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.facts[:len(r.facts):len(r.facts)]
}

// old is nil for an addition, new is nil for a deletion.
func handler[T any](see func(old, new *T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) {
			if t, ok := o.(*T); ok {
				see(nil, t)
			}
		},
		UpdateFunc: func(before, after any) {
			b, okB := before.(*T)
			a, okA := after.(*T)
			if okB && okA {
				see(b, a)
			}
		},
		DeleteFunc: func(o any) {
			if tombstone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = tombstone.Obj
			}
			if t, ok := o.(*T); ok {
				see(t, nil)
			}
		},
	}
}

func turned[T any](old, new *T, is func(*T) bool) bool {
	return new != nil && is(new) && (old == nil || !is(old))
}

func (r *recorder) pod(old, new *corev1.Pod) {
	now := time.Now()
	if new == nil {
		r.add(fact{at: now, stage: Gone, pod: old.UID})
		return
	}
	for _, s := range []struct {
		stage Stage
		is    func(*corev1.Pod) bool
	}{
		{Created, func(*corev1.Pod) bool { return true }},
		{Stamped, func(p *corev1.Pod) bool { return p.Annotations[VolumeStatusAnnotation] != "" }},
		{Bound, func(p *corev1.Pod) bool { return p.Spec.NodeName != "" }},
		{Running, func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning }},
		{Deleted, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }},
	} {
		if turned(old, new, s.is) {
			r.add(fact{at: now, stage: s.stage, pod: new.UID})
		}
	}
}

func (r *recorder) attachment(old, new *storagev1.VolumeAttachment) {
	now := time.Now()
	either := new
	if either == nil {
		either = old
	}
	if either.Spec.Attacher != DriverName || either.Spec.Source.PersistentVolumeName == nil {
		return
	}
	f := fact{at: now, volume: *either.Spec.Source.PersistentVolumeName, node: either.Spec.NodeName}
	note := func(stage Stage) {
		f.stage = stage
		r.add(f)
	}
	if new == nil {
		note(Detached)
		return
	}
	if old == nil {
		note(AttachmentCreated)
	}
	if turned(old, new, func(a *storagev1.VolumeAttachment) bool { return a.Status.Attached }) {
		note(Attached)
	}
	if turned(old, new, func(a *storagev1.VolumeAttachment) bool { return a.DeletionTimestamp != nil }) {
		note(AttachmentReleasing)
	}
}

func (r *recorder) node(old, new *corev1.Node) {
	now := time.Now()
	either := new
	if either == nil {
		either = old
	}
	diff := func(before, after map[string]bool, appeared, left Stage) {
		for handle := range after {
			if !before[handle] {
				r.add(fact{at: now, stage: appeared, volume: handle, node: either.Name})
			}
		}
		for handle := range before {
			if !after[handle] {
				r.add(fact{at: now, stage: left, volume: handle, node: either.Name})
			}
		}
	}
	diff(attachedHandles(old), attachedHandles(new), Reported, Unreported)
	diff(inUseHandles(old), inUseHandles(new), InUse, NotInUse)
}

func attachedHandles(n *corev1.Node) map[string]bool {
	out := map[string]bool{}
	if n != nil {
		for _, v := range n.Status.VolumesAttached {
			addHandle(out, v.Name)
		}
	}
	return out
}

func inUseHandles(n *corev1.Node) map[string]bool {
	out := map[string]bool{}
	if n != nil {
		for _, v := range n.Status.VolumesInUse {
			addHandle(out, v)
		}
	}
	return out
}

func addHandle(to map[string]bool, name corev1.UniqueVolumeName) {
	if handle, ok := strings.CutPrefix(string(name), string(UniqueName(""))); ok {
		to[handle] = true
	}
}

func conditionIs(o *unstructured.Unstructured, kind, status string) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == kind {
			return m["status"] == status
		}
	}
	return false
}

func (r *recorder) call(e diskapi.Entry) {
	var stage Stage
	switch {
	case e.Phase == diskapi.Arrived:
		stage = map[diskapi.Call]Stage{
			diskapi.ControllerPublish: PublishCalled, diskapi.ControllerUnpublish: UnpublishCalled, diskapi.NodeStage: StageCalled,
		}[e.Call]
	case e.Done():
		stage = map[diskapi.Call]Stage{
			diskapi.ControllerPublish: Published, diskapi.ControllerUnpublish: Unpublished,
			diskapi.NodeStage: Staged, diskapi.NodeUnstage: Unstaged,
			diskapi.NodePublish: Mounted, diskapi.NodeUnpublish: Unmounted,
		}[e.Call]
	}
	if stage != "" {
		r.add(fact{at: e.Time, stage: stage, volume: e.Volume, node: strings.TrimPrefix(e.Node, diskapi.NodeID(""))})
	}
}
