// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
)

const (
	firstBackoff = 200 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

// callTimeout is external-provisioner's default.
const callTimeout = 15 * time.Second

// Provisioner makes and deletes disks. Run it once.
type Provisioner struct {
	config      Config
	log         *slog.Logger
	factory     informers.SharedInformerFactory
	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	classes     storagelisters.StorageClassLister
	attachments cache.Indexer
	events      record.EventRecorder
	broadcaster record.EventBroadcaster
	// reclaimed has the UIDs of reclaimed volumes that may still be in the cache, so that an own write in
	// flight is not looked at again.
	reclaimed               sync.Map
	claimQueue, volumeQueue workqueue.TypedRateLimitingInterface[string]
}

func New(c Config) (*Provisioner, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("provisioner: %w", err)
	}
	f := informers.NewSharedInformerFactory(c.Client, 0)
	p := &Provisioner{
		config: c, log: c.Logger, factory: f,
		claims:      f.Core().V1().PersistentVolumeClaims().Lister(),
		volumes:     f.Core().V1().PersistentVolumes().Lister(),
		classes:     f.Storage().V1().StorageClasses().Lister(),
		attachments: f.Storage().V1().VolumeAttachments().Informer().GetIndexer(),
		broadcaster: record.NewBroadcaster(),
		claimQueue:  newQueue(), volumeQueue: newQueue(),
	}
	if p.log == nil {
		p.log = slog.Default()
	}
	p.events = p.broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: c.Driver})
	if err := p.watch(); err != nil {
		return nil, fmt.Errorf("provisioner: %w", err)
	}
	return p, nil
}

func newQueue() workqueue.TypedRateLimitingInterface[string] {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstBackoff, lastBackoff))
}

func (p *Provisioner) watch() error {
	core, storage := p.factory.Core().V1(), p.factory.Storage().V1()
	_, errClaims := core.PersistentVolumeClaims().Informer().AddEventHandler(onChange(p.claimQueue.Add))
	_, errVolumes := core.PersistentVolumes().Informer().AddEventHandler(onChange(p.volumeQueue.Add))
	_, errForget := core.PersistentVolumes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: p.volumeGone})
	_, errClasses := storage.StorageClasses().Informer().AddEventHandler(onChange(p.classChanged))
	_, errGone := storage.VolumeAttachments().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: p.attachmentGone,
	})
	errIndex := storage.VolumeAttachments().Informer().AddIndexers(cache.Indexers{byVolume: indexByVolume})
	return errors.Join(errClaims, errVolumes, errForget, errClasses, errGone, errIndex)
}

func onChange(add func(key string)) cache.ResourceEventHandler {
	handle := func(obj any) {
		// The key function knows every object that an informer can hold.
		if key, err := cache.MetaNamespaceKeyFunc(obj); err == nil {
			add(key)
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, obj any) { handle(obj) }}
}

// A claim may have waited for its class.
func (p *Provisioner) classChanged(string) {
	for _, key := range p.factory.Core().V1().PersistentVolumeClaims().Informer().GetStore().ListKeys() {
		p.claimQueue.Add(key)
	}
}

func (p *Provisioner) volumeGone(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		p.reclaimed.Delete(pv.UID)
	}
}

func (p *Provisioner) attachmentGone(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if va, ok := obj.(*storagev1.VolumeAttachment); ok && va.Spec.Source.PersistentVolumeName != nil {
		p.volumeQueue.Add(*va.Spec.Source.PersistentVolumeName)
	}
}

func (p *Provisioner) Run(ctx context.Context) error {
	p.broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: p.config.Client.CoreV1().Events("")})
	defer p.broadcaster.Shutdown()
	p.factory.Start(ctx.Done())
	defer p.factory.Shutdown()
	for kind, synced := range p.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("provisioner: can't list %s", kind)
		}
	}
	var work sync.WaitGroup
	for range p.config.Workers {
		work.Go(func() { p.drain(ctx, "claim", p.claimQueue, p.syncClaim) })
		work.Go(func() { p.drain(ctx, "volume", p.volumeQueue, p.syncVolume) })
	}
	<-ctx.Done()
	p.claimQueue.ShutDown()
	p.volumeQueue.ShutDown()
	work.Wait()
	return nil
}

func (p *Provisioner) drain(ctx context.Context, kind string, q workqueue.TypedRateLimitingInterface[string], sync func(context.Context, string) error) {
	for {
		key, stop := q.Get()
		if stop {
			return
		}
		if err := sync(ctx, key); err != nil && ctx.Err() == nil {
			p.log.Warn("provisioner: will try again", kind, key, "error", err)
			q.AddRateLimited(key)
		} else {
			q.Forget(key)
		}
		q.Done(key)
	}
}
