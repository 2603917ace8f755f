// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// observe feeds an engine and returns when all objects are seen. Without calls, only VolumeAttachments
// matter.
func observe(ctx context.Context, client kubernetes.Interface, e *engine, calls bool) (stop func(), err error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slim))
	var synced []cache.InformerSynced
	add := func(informer cache.SharedIndexInformer, handler cache.ResourceEventHandler) {
		registration, handlerErr := informer.AddEventHandler(handler)
		if handlerErr != nil {
			err = fmt.Errorf("watch: %w", handlerErr)
			return
		}
		synced = append(synced, registration.HasSynced)
	}
	if calls {
		add(factory.Core().V1().PersistentVolumes().Informer(), handlers(e.SeeVolume, e.LoseVolume))
		add(factory.Storage().V1().CSINodes().Informer(), handlers(e.SeeNode, e.LoseNode))
	}
	add(factory.Storage().V1().VolumeAttachments().Informer(), handlers(e.SeeAttachment, e.LoseAttachment))
	if err != nil {
		return nil, err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return nil, fmt.Errorf("what is in the API was not seen in time: %w", ctx.Err())
	}
	return factory.Shutdown, nil
}

func handlers[T corev1.PersistentVolume | storagev1.CSINode | storagev1.VolumeAttachment](see, lose func(*T)) cache.ResourceEventHandler {
	seen := func(object any) {
		if o, ok := object.(*T); ok {
			see(o)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, object any) { seen(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if o, ok := object.(*T); ok {
				lose(o)
			}
		},
	}
}

func slim(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}
