// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/operation"
	"github.com/moorage-dev/moorage/internal/served"
)

const askEvery = 30 * time.Second

// Watcher keeps the unready contents of snapshots, once needed and where served. Safe for parallel use.
type Watcher struct {
	discovery served.Discovery
	client    dynamic.Interface
	every     time.Duration
	needed    chan struct{} // closed by Need
	need      sync.Once
	kinds     []*kind

	mu      sync.Mutex
	changed func()
}

type kind struct {
	name     string
	resource string
	versions []schema.GroupVersion // the first served one counts
	read     func(*unstructured.Unstructured) (operation.Work, bool)

	mu       sync.Mutex
	version  schema.GroupVersion // empty until the kind is served
	stop     context.CancelFunc  // ends the watch
	informer cache.SharedIndexInformer
	handled  cache.ResourceEventHandlerRegistration
	works    map[string]operation.Work
}

// NewWatcher returns a Watcher.
func NewWatcher(discovery served.Discovery, client dynamic.Interface) *Watcher {
	return &Watcher{
		discovery: discovery, client: client, every: askEvery, needed: make(chan struct{}), changed: func() {},
		kinds: []*kind{
			{name: operation.KindSnapshot, resource: operation.SnapshotResource, versions: operation.SnapshotVersions, read: operation.SnapshotOf},
			{name: operation.KindGroup, resource: operation.GroupResource, versions: operation.GroupVersions, read: operation.GroupOf},
		},
	}
}

// Need starts the watch of contents.
func (w *Watcher) Need() { w.need.Do(func() { close(w.needed) }) }

// Subscribe has f called after each change. f must return at once.
func (w *Watcher) Subscribe(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = f
}

func (w *Watcher) tell() {
	w.mu.Lock()
	f := w.changed
	w.mu.Unlock()
	f()
}

// Run watches until ctx is done. It does nothing on nil.
func (w *Watcher) Run(ctx context.Context) {
	if w == nil {
		return
	}
	select {
	case <-ctx.Done():
		return
	case <-w.needed:
	}
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(w.every)
	defer tick.Stop()
	for {
		w.lookAll(ctx, &running)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (w *Watcher) lookAll(ctx context.Context, running *sync.WaitGroup) {
	for _, k := range w.kinds {
		if err := w.look(ctx, k, running); err != nil {
			klog.FromContext(ctx).Error(err, "It is not known in which version the contents of snapshots are served; asking again", "kind", k.name, "after", w.every)
		}
	}
}

// look watches a kind in its served version. If that changes or goes, the old watch ends: it would say
// nothing new.
func (w *Watcher) look(ctx context.Context, k *kind, running *sync.WaitGroup) error {
	version, err := k.served(w.discovery)
	if err != nil || version == k.watched() {
		return err
	}
	if k.end() {
		w.tell()
	}
	if version.Empty() {
		return nil
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, version.WithResource(k.resource), "", 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(slim); err != nil {
		return fmt.Errorf("informer of %s: %w", k.name, err)
	}
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.is(informer, object, false); w.tell() },
		UpdateFunc: func(_, object any) { k.is(informer, object, false); w.tell() },
		DeleteFunc: func(object any) { k.is(informer, object, true); w.tell() },
	})
	if err != nil {
		return fmt.Errorf("informer of %s: %w", k.name, err)
	}
	ctx, stop := context.WithCancel(ctx)
	k.begin(informer, version, stop)
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		select {
		case <-handled.HasSyncedChecker().Done():
			k.sees(informer, handled)
			w.tell()
		case <-ctx.Done():
		}
	})
	klog.FromContext(ctx).Info("Watching the contents of snapshots", "kind", k.name, "version", version)
	return nil
}

// served is empty if the kind is not served.
func (k *kind) served(d served.Discovery) (schema.GroupVersion, error) {
	for _, version := range k.versions {
		resources, err := served.Ask(d, version.String())
		if err != nil {
			return schema.GroupVersion{}, err
		}
		if slices.Contains(resources[version.String()], k.resource) {
			return version, nil
		}
	}
	return schema.GroupVersion{}, nil
}

// slim keeps the read fields, and leaves its own results unchanged.
func slim(object any) (any, error) {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	if operation.Ready(o) { // most are, and nothing is left to do
		slim := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"readyToUse": true}}}
		slim.SetAPIVersion(o.GetAPIVersion())
		slim.SetKind(o.GetKind())
		slim.SetName(o.GetName())
		slim.SetUID(o.GetUID())
		slim.SetResourceVersion(o.GetResourceVersion())
		return slim, nil
	}
	o.SetManagedFields(nil)
	return o, nil
}

func (k *kind) begin(informer cache.SharedIndexInformer, version schema.GroupVersion, stop context.CancelFunc) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.informer, k.version, k.stop, k.works = informer, version, stop, map[string]operation.Work{}
}

// end stops a watch and forgets its results; false: there was none.
func (k *kind) end() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.informer == nil {
		return false
	}
	k.stop()
	k.informer, k.handled, k.works, k.version = nil, nil, nil, schema.GroupVersion{}
	return true
}

func (k *kind) sees(informer cache.SharedIndexInformer, handled cache.ResourceEventHandlerRegistration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.informer == informer {
		k.handled = handled
	}
}

func (k *kind) watched() schema.GroupVersion {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version
}

// is notes a content's present request, as an informer has seen it.
func (k *kind) is(informer cache.SharedIndexInformer, object any, gone bool) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	work, due := k.read(o)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.informer != informer {
		return // stopped
	}
	if due && !gone {
		k.works[o.GetName()] = work
	} else {
		delete(k.works, o.GetName())
	}
}

func (w *Watcher) state(s *operation.State, owners []operation.Object) {
	s.Unknown, s.Ready = map[string]bool{}, map[string]bool{}
	for _, k := range w.kinds {
		k.state(s, owners)
	}
}

func (k *kind) state(s *operation.State, owners []operation.Object) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.handled == nil { // not seen as a whole
		s.Unknown[k.name] = true
		return
	}
	for _, work := range k.works {
		s.Works = append(s.Works, work)
	}
	for _, owner := range owners {
		if owner.Kind != k.name {
			continue
		}
		object, exists, err := k.informer.GetStore().GetByKey(owner.Name)
		if o, ok := object.(*unstructured.Unstructured); ok && exists && err == nil && string(o.GetUID()) == owner.UID {
			s.Ready[owner.UID] = operation.Ready(o)
		}
	}
}
