// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// settle is how long changes are gathered: an attach changes half a dozen objects meanwhile. In a large
// cluster the pause is idle times the reading time, to keep the core free.
const (
	settle = 200 * time.Millisecond
	idle   = 4
)

// leasesAgain is the interval for Leases, with a call of see: they are written every few seconds, but
// holders change rarely.
const leasesAgain = 15 * time.Second

// Follow calls see with the present cluster and after every change, at most five times a second, until ctx
// ends or see fails. It leaves out kinds like Read.
func (c *Cluster) Follow(ctx context.Context, see func(*facts.World) error) error {
	first, err := c.Read(ctx)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := make(chan struct{}, 1)
	feeds, err := c.feeds(ctx, unseenOf(first), changed)
	if err != nil {
		return err
	}
	world, pause, leases := first, settle, first.Leases
	again := time.NewTicker(leasesAgain)
	defer again.Stop()
	for {
		if err := see(world); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
		case <-again.C:
			leases = c.readLeases(ctx, world.Nodes)
		}
		began := time.Now()
		world = c.world(feeds, first, leases)
		pause = max(settle, idle*time.Since(began))
	}
}

func (c *Cluster) feeds(ctx context.Context, unseen []facts.Unseen, changed chan struct{}) ([]cache.SharedInformer, error) {
	var feeds []cache.SharedInformer
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	var synced []cache.InformerSynced
	for _, k := range kinds() {
		namespace, visible := scope(k, unseen)
		if !visible {
			continue
		}
		r := k.reader(c, namespace)
		informer := cache.NewSharedInformer(&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}, nil, 0)
		if err := informer.SetTransform(slim); err != nil {
			return nil, fmt.Errorf("watch %s: %w", k.resource, err)
		}
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		})
		if err != nil {
			return nil, fmt.Errorf("watch %s: %w", k.resource, err)
		}
		go informer.RunWithContext(ctx)
		synced = append(synced, registration.HasSynced)
		feeds = append(feeds, informer)
	}
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, ctx.Err()
	}
	return feeds, nil
}

func unseenOf(w *facts.World) []facts.Unseen {
	if w.WordsUnseen == nil {
		return w.Unseen
	}
	return append(slices.Clone(w.Unseen), *w.WordsUnseen)
}

// scope is the namespace where a kind is visible; false: none.
func scope(k kind, unseen []facts.Unseen) (string, bool) {
	for _, u := range unseen {
		if u.Resource == k.resource {
			return u.Namespace, u.Namespace != ""
		}
	}
	return metav1.NamespaceAll, true
}

func (c *Cluster) world(feeds []cache.SharedInformer, first *facts.World, leases facts.Leases) *facts.World {
	objects := facts.Objects{Home: first.Home, Leases: leases}
	for _, feed := range feeds {
		for _, object := range feed.GetStore().List() {
			if o, ok := object.(runtime.Object); ok {
				if _, err := meta.Accessor(o); err == nil {
					objects.Add(o)
				}
			}
		}
	}
	w := facts.NewWorld(objects, c.Clock())
	w.Unseen, w.WordsUnseen = first.Unseen, first.WordsUnseen
	return w
}
