// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

const byVolume = "persistentVolumeName"

func indexByVolume(obj any) ([]string, error) {
	va, ok := obj.(*storagev1.VolumeAttachment)
	if !ok || va.Spec.Source.PersistentVolumeName == nil {
		return nil, nil
	}
	return []string{*va.Spec.Source.PersistentVolumeName}, nil
}

func (p *Provisioner) syncClaim(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return fmt.Errorf("claim key: %w", err)
	}
	claim, err := p.claims.PersistentVolumeClaims(namespace).Get(name)
	if apierrors.IsNotFound(err) || err == nil && claim.Spec.StorageClassName == nil {
		return nil
	}
	if err != nil {
		return err
	}
	class, err := p.classes.Get(*claim.Spec.StorageClassName)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !needsDisk(p.config.Driver, claim, class) {
		return nil
	}
	if _, err := p.volumes.Get(diskName(claim)); err == nil {
		return nil
	}
	if err := p.provision(ctx, claim, class); err != nil {
		p.events.Event(claim, corev1.EventTypeWarning, "ProvisioningFailed", err.Error())
		return err
	}
	return nil
}

func (p *Provisioner) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	if claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil {
		return fmt.Errorf("claim %s/%s has a data source: this provisioner makes empty disks only", claim.Namespace, claim.Name)
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	made, err := p.config.Volumes.CreateVolume(call, createRequest(claim, class))
	if err != nil {
		return fmt.Errorf("create the disk of claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	pv := volumeFor(p.config.Driver, claim, class, made.GetVolume())
	_, err = p.config.Client.CoreV1().PersistentVolumes().Create(ctx, pv, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}

// The end of an attachment brings the volume back here.
func (p *Provisioner) syncVolume(ctx context.Context, name string) error {
	pv, err := p.volumes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, done := p.reclaimed.Load(pv.UID); done || !reclaimable(p.config.Driver, pv) {
		return nil
	}
	attached, err := p.attachments.ByIndex(byVolume, name)
	if err != nil {
		return fmt.Errorf("find the attachments of %s: %w", name, err)
	}
	if len(attached) > 0 {
		return nil
	}
	if err := p.confirmDetached(ctx, name); err != nil {
		return err
	}
	if err := p.reclaim(ctx, pv); err != nil {
		p.events.Event(pv, corev1.EventTypeWarning, "VolumeFailedDelete", err.Error())
		return err
	}
	p.reclaimed.Store(pv.UID, struct{}{})
	return nil
}

// confirmDetached asks the API server: after its restart, the caches may see a volume's release long before
// its attachment.
func (p *Provisioner) confirmDetached(ctx context.Context, name string) error {
	list, err := p.config.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the attachments of PersistentVolume %s: %w", name, err)
	}
	for _, va := range list.Items {
		if source := va.Spec.Source.PersistentVolumeName; source != nil && *source == name {
			return fmt.Errorf("PersistentVolume %s is still attached to node %s", name, va.Spec.NodeName)
		}
	}
	return nil
}

// The disk goes before its object.
func (p *Provisioner) reclaim(ctx context.Context, pv *corev1.PersistentVolume) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if _, err := p.config.Volumes.DeleteVolume(call, &csi.DeleteVolumeRequest{VolumeId: pv.Spec.CSI.VolumeHandle}); err != nil {
		return fmt.Errorf("delete the disk of PersistentVolume %s: %w", pv.Name, err)
	}
	if pv.DeletionTimestamp == nil {
		err := p.config.Client.CoreV1().PersistentVolumes().Delete(ctx, pv.Name,
			metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pv.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete PersistentVolume %s: %w", pv.Name, err)
		}
	}
	return p.release(ctx, pv)
}

// release leaves others' finalizers. If the list has changed, the patch's test fails and the volume is
// tried again.
func (p *Provisioner) release(ctx context.Context, pv *corev1.PersistentVolume) error {
	i := slices.Index(pv.Finalizers, storagehelpers.PVDeletionProtectionFinalizer)
	if i < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": string(pv.UID)},
		{"op": "test", "path": path, "value": storagehelpers.PVDeletionProtectionFinalizer},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return fmt.Errorf("encode the patch of PersistentVolume %s: %w", pv.Name, err)
	}
	_, err = p.config.Client.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the finalizer off PersistentVolume %s: %w", pv.Name, err)
	}
	return nil
}
