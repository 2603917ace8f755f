// SPDX-License-Identifier: Apache-2.0

// Package networkfence cuts unreachable machines off the storage, by csi-addons' NetworkFences.
// internal/networkfence decides.
package networkfence

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/networkfence"
	"github.com/moorage-dev/moorage/internal/work"
)

// Watcher keeps csi-addons' objects from the process' start, for a later leader's memory of deleted
// CSIAddonsNodes. Safe for parallel use.
type Watcher struct {
	factory                 dynamicinformer.DynamicSharedInformerFactory
	fences, classes, addons informers.GenericInformer
	snapshot                func() ledger.Snapshot

	mu    sync.Mutex
	gone  map[string]networkfence.Clients // by the key of the deleted CSIAddonsNode
	sweep work.Sweep                      // of gone, while another process leads
	kick  func()
}

// NewWatcher returns a Watcher. snapshot returns the facts.
func NewWatcher(client dynamic.Interface, snapshot func() ledger.Snapshot) (*Watcher, error) {
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	of := func(resource string) informers.GenericInformer {
		return factory.ForResource(networkfence.GroupVersion.WithResource(resource))
	}
	w := &Watcher{
		factory: factory, fences: of("networkfences"), classes: of("networkfenceclasses"), addons: of("csiaddonsnodes"),
		snapshot: snapshot, gone: map[string]networkfence.Clients{}, kick: func() {},
	}
	changed := func() { w.kicker()() }
	handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { changed() }, UpdateFunc: func(_, _ any) { changed() }, DeleteFunc: func(any) { changed() }}
	for _, informer := range []informers.GenericInformer{w.fences, w.classes} {
		if _, err := informer.Informer().AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("informer of csi-addons: %w", err)
		}
	}
	_, err := w.addons.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.is(object); changed() },
		UpdateFunc: func(_, object any) { w.is(object); changed() },
		DeleteFunc: func(object any) { w.was(object); changed() },
	})
	if err != nil {
		return nil, fmt.Errorf("informer of CSIAddonsNodes: %w", err)
	}
	return w, nil
}

// is forgets a returned CSIAddonsNode's last statement.
func (w *Watcher) is(object any) {
	if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.gone, key)
	}
}

// was remembers a CSIAddonsNode's last statement.
func (w *Watcher) was(object any) {
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
	}
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone[o.GetNamespace()+"/"+o.GetName()] = networkfence.ClientsOf(o)
	if w.sweep.Due(len(w.gone)) {
		w.forget(w.snapshot(), w.clients())
		w.sweep.Left(len(w.gone))
	}
}

func (w *Watcher) clients() []networkfence.Clients {
	var list []networkfence.Clients
	for _, o := range listed(w.addons) {
		list = append(list, networkfence.ClientsOf(o))
	}
	return list
}

// forget drops a memory once another object names the node, or the node is gone. clients are the present
// ones; mu is held.
func (w *Watcher) forget(s ledger.Snapshot, clients []networkfence.Clients) {
	if len(w.gone) == 0 {
		return
	}
	said, known := map[[2]string]bool{}, map[[2]string]bool{}
	for _, c := range clients {
		said[[2]string{c.Driver, c.NodeID}] = len(c.OfClass) > 0
	}
	for n := range s.Nodes() {
		for i := range n.Drivers {
			known[[2]string{n.Drivers[i].Name, n.Drivers[i].NodeID}] = n.Exists
			known[[2]string{n.Drivers[i].Name, string(n.Name)}] = n.Exists
		}
	}
	maps.DeleteFunc(w.gone, func(_ string, c networkfence.Clients) bool {
		id := [2]string{c.Driver, c.NodeID}
		return said[id] || !known[id]
	})
}

func (w *Watcher) kicker() func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.kick
}

// Subscribe has f called after each change. f must return at once.
func (w *Watcher) Subscribe(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kick = f
}

// Run watches until ctx is done. It does nothing on nil.
func (w *Watcher) Run(ctx context.Context) {
	if w == nil {
		return
	}
	w.factory.Start(ctx.Done())
	<-ctx.Done()
	w.factory.Shutdown()
}

// synced says whether everything was seen: not before csi-addons' definitions exist.
func (w *Watcher) synced() bool {
	return w.fences.Informer().HasSynced() && w.classes.Informer().HasSynced() && w.addons.Informer().HasSynced()
}

func (w *Watcher) state(s ledger.Snapshot, now time.Time) networkfence.State {
	state := networkfence.State{Snapshot: s, Now: now, Classes: map[string]string{}}
	for _, o := range listed(w.fences) {
		state.Fences = append(state.Fences, networkfence.FenceOf(o))
	}
	for _, o := range listed(w.classes) {
		state.Classes[o.GetName()], _, _ = unstructured.NestedString(o.Object, "spec", "provisioner")
	}
	state.Clients = w.clients()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(s, state.Clients)
	state.Clients = slices.AppendSeq(state.Clients, maps.Values(w.gone))
	return state
}

func listed(informer informers.GenericInformer) []*unstructured.Unstructured {
	var list []*unstructured.Unstructured
	objects, _ := informer.Lister().List(labels.Everything()) // a cache has no errors
	for _, object := range objects {
		if o, ok := object.(*unstructured.Unstructured); ok && o.Object != nil {
			list = append(list, o)
		}
	}
	return list
}
