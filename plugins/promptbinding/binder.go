// SPDX-License-Identifier: Apache-2.0

package promptbinding

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding"
)

var errBound = errors.New("all claims of the pod are bound")

// binder is upstream's binder, but its wait ends when the caches show bound claims.
type binder struct {
	volumebinding.SchedulerVolumeBinder

	changes *changes
	facts   facts
}

// BindPodVolumes has upstream bind or provision the pod's claims, and returns when all are bound. All
// failures, and waits that the caches don't end, are upstream's.
func (b *binder) BindPodVolumes(ctx context.Context, pod *corev1.Pod, volumes *volumebinding.PodVolumes) error {
	waiting, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() {
		if b.waitUntilBound(waiting, pod) {
			end(errBound)
		}
	}()
	err := b.SchedulerVolumeBinder.BindPodVolumes(waiting, pod, volumes)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(waiting), errBound) {
		return nil
	}
	return err
}

// waitUntilBound returns false if ctx ended before.
func (b *binder) waitUntilBound(ctx context.Context, pod *corev1.Pod) bool {
	keys := claimsOf(pod)
	changed, stop := b.changes.of(keys)
	defer stop()
	for !b.facts.bound(pod.Spec.NodeName, keys) {
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
	return true
}

type claimKey struct{ namespace, name string }

// claimsOf includes claims that are made for the pod.
func claimsOf(pod *corev1.Pod) []claimKey {
	var keys []claimKey
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.PersistentVolumeClaim != nil:
			keys = append(keys, claimKey{pod.Namespace, v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil:
			keys = append(keys, claimKey{pod.Namespace, ephemeral.VolumeClaimName(pod, v)})
		}
	}
	return keys
}

type facts struct {
	claims     corelisters.PersistentVolumeClaimLister
	volumes    corelisters.PersistentVolumeLister
	nodes      corelisters.NodeLister
	translator csitranslation.CSITranslator
}

func factsOf(factory informers.SharedInformerFactory) facts {
	core := factory.Core().V1()
	return facts{
		claims: core.PersistentVolumeClaims().Lister(), volumes: core.PersistentVolumes().Lister(),
		nodes: core.Nodes().Lister(), translator: csitranslation.New(),
	}
}

// bound says whether all claims are bound, by upstream's rules, to reachable volumes. Only upstream can
// tell for a driver that Kubernetes has migrated to CSI.
func (f facts) bound(nodeName string, keys []claimKey) bool {
	node, err := f.nodes.Get(nodeName)
	if err != nil {
		return false
	}
	for _, key := range keys {
		claim, err := f.claims.PersistentVolumeClaims(key.namespace).Get(key.name)
		if err != nil || claim.DeletionTimestamp != nil || claim.Spec.VolumeName == "" {
			return false
		}
		if _, completed := claim.Annotations[volume.AnnBindCompleted]; !completed {
			return false
		}
		pv, err := f.volumes.Get(claim.Spec.VolumeName)
		if err != nil || f.translator.IsPVMigratable(pv) || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID {
			return false
		}
		if volume.CheckNodeAffinity(pv, node.Labels) != nil {
			return false
		}
	}
	return len(keys) > 0
}
