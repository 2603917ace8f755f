// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// sweepInterval is for answers without an informer's confirmation; few last so long.
const sweepInterval = time.Second

// settlePatience is an informer's time to handle a received version, while it shows nothing newer.
const settlePatience = 30 * time.Second

type feed struct {
	kind         Kind
	observer     *Observer
	informer     cache.SharedIndexInformer
	registration cache.ResourceEventHandlerRegistration
	seen         func(runtime.Object) (ledger.Event, error)
	gone         func(runtime.Object, metav1.Object) ledger.Event
	byUID        bool // not by name

	// mu is held while an event is applied: informer and answers can't overtake each other between look and
	// write.
	mu sync.Mutex
	// handled is the newest version from the informer.
	handled string
	// relisted is when the informer last delivered an older version than before.
	relisted time.Time
	// ahead holds the objects that an answer showed before the informer did.
	ahead map[string]answer
	// leaving holds gone objects that may be made again at once.
	leaving map[string]departure
	deleted map[string]deletion
	// broken has the last logged faults.
	broken map[string]string
	works  works
}

type deletion struct {
	uid     types.UID
	version string
	since   time.Time
}

type answer struct {
	object runtime.Object
	meta   metav1.Object
	since  time.Time
	missed bool // the last sweep missed it too
	passed bool // the informer had delivered a newer version before
}

func (f *feed) OnAdd(object any, _ bool) { f.deliver(nil, object) }

func (f *feed) OnUpdate(old, object any) { f.deliver(old, object) }

func (f *feed) OnDelete(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	last, ok := object.(runtime.Object)
	if !ok {
		return
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass(m.GetResourceVersion())
	if f.deleted == nil {
		f.deleted = map[string]deletion{}
	}
	f.deleted[key(m)] = deletion{m.GetUID(), m.GetResourceVersion(), f.observer.config.Now()}
	if a, ok := f.ahead[key(m)]; ok && a.meta.GetUID() != m.GetUID() && !f.byUID {
		return // another object has the name
	}
	delete(f.ahead, key(m))
	f.applyGone(last, m)
}

// showedEnd says whether the informer has lately shown the object's end.
func (f *feed) showedEnd(namespace, name, uid string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.deleted[namespace+"/"+name]
	return ok && string(d.uid) == uid
}

func (f *feed) deliver(old, object any) {
	current, ok := object.(runtime.Object)
	if !ok {
		return
	}
	m, err := meta.Accessor(object)
	if err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pass(m.GetResourceVersion())
	if a, ok := f.ahead[key(m)]; ok && !ledger.Newer(a.meta.GetResourceVersion(), m.GetResourceVersion()) {
		delete(f.ahead, key(m))
	}
	delete(f.leaving, key(m))
	if former, ok := old.(runtime.Object); ok && f.byUID {
		if before, err := meta.Accessor(old); err == nil && before.GetUID() != m.GetUID() {
			f.applyGone(former, before)
		}
	}
	f.apply(current, m)
}

// saw takes an answer in, unless its object is known to be gone. Newer versions of other objects say
// nothing: a relist has no order. The ledger ignores older versions.
func (f *feed) saw(object runtime.Object) {
	m, err := meta.Accessor(object)
	if err != nil || m.GetResourceVersion() == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	version := m.GetResourceVersion()
	if a, ok := f.ahead[key(m)]; ok && !ledger.Newer(version, a.meta.GetResourceVersion()) {
		return
	}
	if d, ok := f.deleted[key(m)]; ok && (d.uid == m.GetUID() || !ledger.Newer(version, d.version)) {
		return
	}
	stored, err := f.stored(key(m))
	if stored != nil && stored.GetUID() != m.GetUID() && !ledger.Newer(version, stored.GetResourceVersion()) {
		return // another one has the name by now
	}
	passed := f.handled != "" && !ledger.Newer(version, f.handled)
	if stored == nil || err != nil || !passed {
		f.ahead[key(m)] = answer{object: object, meta: m, since: f.observer.config.Now(), passed: passed}
	}
	f.apply(object, m)
}

// stored is nil if the informer's store has nothing.
func (f *feed) stored(key string) (metav1.Object, error) {
	object, exists, err := f.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return nil, err
	}
	return meta.Accessor(object)
}

// mu is held.
func (f *feed) apply(object runtime.Object, m metav1.Object) {
	if b, ok := object.(*brief); ok {
		if event, work := b.take(); event != nil {
			f.observer.Apply(event)
			f.observer.follow(event, work)
		}
		return
	}
	if kept, ok := object.(*keptPod); ok {
		object = kept.pod()
	}
	event, err := f.seen(object)
	if f.newlyBroken(key(m), err) {
		klog.Background().Error(err, "An object names a volume that nobody can attach", "kind", f.kind, "name", m.GetName(), "namespace", m.GetNamespace())
	}
	f.observer.Apply(event)
	if pod, ok := object.(*corev1.Pod); ok {
		f.observer.publishRefused(pod)
	}
}

// newlyBroken says whether the fault is new: its author decides on its faults, and a pod is written often.
// mu is held.
func (f *feed) newlyBroken(key string, err error) bool {
	if err == nil {
		delete(f.broken, key)
		return false
	}
	text := err.Error()
	if f.broken[key] == text {
		return false
	}
	if f.broken == nil {
		f.broken = map[string]string{}
	}
	f.broken[key] = text
	return true
}

// mu is held.
func (f *feed) applyGone(object runtime.Object, m metav1.Object) {
	delete(f.broken, key(m))
	if f.linger(object, m) {
		return
	}
	f.observer.Apply(f.gone(object, m))
	f.works.set(key(m), nil, nil)
}

func (f *feed) pass(version string) {
	switch {
	case f.handled == "" || ledger.Newer(version, f.handled):
		f.handled = version
	case version != f.handled:
		f.relisted = f.observer.config.Now()
	}
}

func (f *feed) get(key string) (runtime.Object, bool) {
	if f == nil {
		return nil, false
	}
	f.mu.Lock()
	a, ok := f.ahead[key]
	f.mu.Unlock()
	stored, exists, err := f.informer.GetStore().GetByKey(key)
	if err != nil || !exists {
		return a.object, ok
	}
	object, isObject := stored.(runtime.Object)
	if !isObject {
		return a.object, ok
	}
	if m, err := meta.Accessor(object); ok && err == nil && ledger.Newer(a.meta.GetResourceVersion(), m.GetResourceVersion()) {
		return a.object, true
	}
	return object, true
}

// sweepVanished takes back objects from answers that the informer passed without showing them: they are
// gone. The informer may receive a version seconds before its store has it: it must have handled a newer
// version since, in order, or had plenty of time, and a second sweep must agree.
func (f *feed) sweepVanished(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.depart(now)
	maps.DeleteFunc(f.deleted, func(_ string, d deletion) bool { return now.Sub(d.since) >= settlePatience })
	position := f.informer.LastSyncResourceVersion()
	for k, a := range f.ahead {
		version, age := a.meta.GetResourceVersion(), now.Sub(a.since)
		if age < sweepInterval || ledger.Newer(version, position) {
			continue
		}
		_, exists, err := f.informer.GetStore().GetByKey(k)
		switch {
		case err != nil, exists:
			delete(f.ahead, k)
		case age < settlePatience && (a.passed || f.handled == "" || ledger.Newer(version, f.handled) || now.Sub(f.relisted) < settlePatience):
		case !a.missed:
			a.missed = true
			f.ahead[k] = a
		default:
			delete(f.ahead, k)
			f.applyGone(a.object, a.meta)
		}
	}
}

func (o *Observer) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			o.pass(o.config.Now())
		}
	}
}

func (o *Observer) pass(now time.Time) {
	for _, f := range o.feeds {
		f.sweepVanished(now)
	}
	o.Apply(rules.Lapse(now))
}

func key(m metav1.Object) string {
	if m.GetNamespace() == "" {
		return m.GetName()
	}
	return m.GetNamespace() + "/" + m.GetName()
}
