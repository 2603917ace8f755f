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

// askEvery is how often it is asked whether definitions are served that were not.
const askEvery = 30 * time.Second

// Watcher keeps the contents of snapshots that are not ready, from when they are needed, and
// where they are served. Its methods are safe for parallel use.
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

// kind is one of the kinds that are watched.
type kind struct {
	name     string
	resource string
	versions []schema.GroupVersion // the first one that is served counts
	read     func(*unstructured.Unstructured) (operation.Work, bool)

	mu       sync.Mutex
	informer cache.SharedIndexInformer // nil until the kind is served
	handled  cache.ResourceEventHandlerRegistration
	works    map[string]operation.Work
}

// NewWatcher returns a Watcher that is ready to Run.
func NewWatcher(discovery served.Discovery, client dynamic.Interface) *Watcher {
	return &Watcher{
		discovery: discovery, client: client, every: askEvery, needed: make(chan struct{}), changed: func() {},
		kinds: []*kind{
			{name: operation.KindSnapshot, resource: operation.SnapshotResource, versions: operation.SnapshotVersions, read: operation.SnapshotOf},
			{name: operation.KindGroup, resource: operation.GroupResource, versions: operation.GroupVersions, read: operation.GroupOf},
		},
	}
}

// Need has the contents watched, from now on.
func (w *Watcher) Need() { w.need.Do(func() { close(w.needed) }) }

// Subscribe has f called whenever something has changed. It must return at once.
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
	for !w.startAll(ctx, &running) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	<-ctx.Done()
}

// startAll watches the kinds that are served. It is false while there is one that is not.
func (w *Watcher) startAll(ctx context.Context, running *sync.WaitGroup) bool {
	all := true
	for _, k := range w.kinds {
		started, err := w.start(ctx, k, running)
		if err != nil {
			klog.FromContext(ctx).Error(err, "Snapshots are not seen yet; asking again", "kind", k.name, "after", w.every)
		}
		all = all && started
	}
	return all
}

// start watches a kind, if it is served.
func (w *Watcher) start(ctx context.Context, k *kind, running *sync.WaitGroup) (bool, error) {
	if k.started() {
		return true, nil
	}
	version, err := k.served(w.discovery)
	if err != nil || version.Empty() {
		return false, err
	}
	informer := dynamicinformer.NewFilteredDynamicInformer(w.client, version.WithResource(k.resource), "", 0, cache.Indexers{}, nil).Informer()
	if err := informer.SetTransform(slim); err != nil {
		return false, fmt.Errorf("informer of %s: %w", k.name, err)
	}
	k.begin(informer)
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { k.is(object, false); w.tell() },
		UpdateFunc: func(_, object any) { k.is(object, false); w.tell() },
		DeleteFunc: func(object any) { k.is(object, true); w.tell() },
	})
	if err != nil {
		return false, fmt.Errorf("informer of %s: %w", k.name, err)
	}
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() {
		select {
		case <-handled.HasSyncedChecker().Done():
			k.sees(handled)
			w.tell()
		case <-ctx.Done():
		}
	})
	klog.FromContext(ctx).Info("Watching the contents of snapshots", "kind", k.name, "version", version)
	return true, nil
}

// served is the version in which a kind is served; empty: in none.
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

// slim leaves of a content what is read. What it has made it leaves as it is.
func slim(object any) (any, error) {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	if operation.Ready(o) { // most are, and nothing will be done for them any more
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

func (k *kind) begin(informer cache.SharedIndexInformer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.informer, k.works = informer, map[string]operation.Work{}
}

func (k *kind) sees(handled cache.ResourceEventHandlerRegistration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.handled = handled
}

func (k *kind) started() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.informer != nil
}

// is notes what a content asks for now.
func (k *kind) is(object any, gone bool) {
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
	if due && !gone {
		k.works[o.GetName()] = work
	} else {
		delete(k.works, o.GetName())
	}
}

// state adds what contents ask for, and which of some owners are ready.
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
