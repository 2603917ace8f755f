// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
)

type volumeWork struct {
	running  bool
	failures int
	until    time.Time
	stop     func() bool
}

func (e *engine) lookAtVolume(name string) {
	pv := e.store.volumes[name]
	if !e.started || e.stopping || !e.config.Rules.Publishes || pv == nil || !e.unneeded(pv) {
		return
	}
	work := e.volumes[name]
	if work == nil {
		work = &volumeWork{}
		e.volumes[name] = work
	}
	if work.running {
		return
	}
	if wait := work.until.Sub(e.now()); wait > 0 || !e.config.Leading() {
		e.wakeVolume(name, work, max(wait, leaseRecheck))
		return
	}
	work.running = true
	e.running++
	e.config.Run(func() {
		ctx, cancel := context.WithTimeout(e.ctx, e.config.Timeout)
		defer cancel()
		fresh, err := e.unstamp(ctx, pv)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.unstamped(name, work, fresh, err)
	})
}

func (e *engine) unneeded(pv *corev1.PersistentVolume) bool {
	return decide.PersistentVolume{
		Stamped:  slices.Contains(pv.Finalizers, e.config.Reader.Finalizer()),
		Deleting: pv.DeletionTimestamp != nil,
		Used:     len(e.store.byVolume[pv.Name]) > 0,
		Orphaned: csitranslation.New().IsPVMigratable(pv) &&
			pv.Annotations[objects.AnnotationMigratedTo] != e.config.Reader.Driver,
	}.Unstamp()
}

// unstamp returns the PersistentVolume afterwards, if it still exists.
func (e *engine) unstamp(ctx context.Context, pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	patch, err := objects.UnstampPersistentVolume(pv, e.config.Reader.Finalizer())
	if err != nil {
		return nil, err
	}
	fresh, err := e.config.API.PatchPersistentVolume(ctx, pv.Name, patch)
	switch {
	case err == nil:
		return fresh, nil
	case isGone(err):
		return nil, nil
	case changed(err):
		if fresh, getErr := e.config.API.GetPersistentVolume(ctx, pv.Name); getErr == nil {
			return fresh, err
		}
	}
	return nil, err
}

func (e *engine) unstamped(name string, work *volumeWork, fresh *corev1.PersistentVolume, err error) {
	work.running = false
	if e.running--; e.running == 0 {
		e.idle.Broadcast()
	}
	if have := e.store.volumes[name]; fresh != nil && have != nil && have.UID == fresh.UID {
		e.look(e.sawVolume(fresh)...)
	}
	if err != nil {
		work.failures++
		work.until = e.now().Add(e.config.Rules.Backoff.After(work.failures, e.config.Rules.Random()))
		klog.FromContext(e.ctx).V(2).Info("The finalizer stays on the PersistentVolume for now", "PersistentVolume", name, "err", err.Error())
		e.lookAtVolume(name)
		return
	}
	e.forgetVolume(name)
}

func (e *engine) wakeVolume(name string, work *volumeWork, after time.Duration) {
	if work.stop != nil {
		work.stop()
	}
	work.stop = e.config.Clock.AfterFunc(after, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.volumes[name] == work {
			work.stop = nil
			e.lookAtVolume(name)
		}
	})
}

func (e *engine) forgetVolume(name string) {
	if work := e.volumes[name]; work != nil {
		if work.stop != nil {
			work.stop()
		}
		if !work.running {
			delete(e.volumes, name)
		}
	}
}
