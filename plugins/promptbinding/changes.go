// SPDX-License-Identifier: Apache-2.0

package promptbinding

import (
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// changes wakes the waits for a claim after a change of the claim or of a PersistentVolume that names it.
// Other waits cost nothing. Safe for parallel use.
type changes struct {
	mu      sync.Mutex
	waiting map[claimKey][]chan<- struct{}
}

func newChanges(factory informers.SharedInformerFactory) (*changes, error) {
	c := &changes{waiting: map[claimKey][]chan<- struct{}{}}
	core := factory.Core().V1()
	if _, err := core.PersistentVolumeClaims().Informer().AddEventHandler(c.handler(func(object any) (claimKey, bool) {
		claim, ok := object.(*corev1.PersistentVolumeClaim)
		if !ok {
			return claimKey{}, false
		}
		return claimKey{claim.Namespace, claim.Name}, true
	})); err != nil {
		return nil, fmt.Errorf("watch of claims: %w", err)
	}
	if _, err := core.PersistentVolumes().Informer().AddEventHandler(c.handler(func(object any) (claimKey, bool) {
		pv, ok := object.(*corev1.PersistentVolume)
		if !ok || pv.Spec.ClaimRef == nil {
			return claimKey{}, false
		}
		return claimKey{pv.Spec.ClaimRef.Namespace, pv.Spec.ClaimRef.Name}, true
	})); err != nil {
		return nil, fmt.Errorf("watch of PersistentVolumes: %w", err)
	}
	return c, nil
}

// A deleted object binds no claim.
func (c *changes) handler(claimOf func(object any) (claimKey, bool)) cache.ResourceEventHandler {
	tell := func(object any) {
		if key, ok := claimOf(object); ok {
			c.tell(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: tell, UpdateFunc: func(_, object any) { tell(object) }}
}

// of returns a channel that receives after a change of these claims, until stop is called. Changes before
// the next receive are reported once.
func (c *changes) of(keys []claimKey) (changed <-chan struct{}, stop func()) {
	channel := make(chan struct{}, 1)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		c.waiting[key] = append(c.waiting[key], channel)
	}
	return channel, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, key := range keys {
			c.waiting[key] = slices.DeleteFunc(c.waiting[key], func(other chan<- struct{}) bool { return other == channel })
			if len(c.waiting[key]) == 0 {
				delete(c.waiting, key)
			}
		}
	}
}

func (c *changes) tell(key claimKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, channel := range c.waiting[key] {
		select {
		case channel <- struct{}{}:
		default:
		}
	}
}
