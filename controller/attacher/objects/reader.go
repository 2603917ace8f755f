// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	csitranslation "k8s.io/csi-translation-lib"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// AnnotationMigratedTo names the CSI driver of a migrated in-tree PersistentVolume (kubernetes
// pkg/controller/volume/persistentvolume).
const AnnotationMigratedTo = "pv.kubernetes.io/migrated-to"

// Catalog has a VolumeAttachment's last seen related objects; nil: unknown.
type Catalog interface {
	PersistentVolume(name string) *corev1.PersistentVolume
	CSINode(name string) *storagev1.CSINode
}

// Reader reads one driver's objects. It is safe for parallel use.
type Reader struct {
	// Driver is the CSI driver's name.
	Driver string
	// PublishReadOnly and SingleNodeMultiWriter are driver capabilities.
	PublishReadOnly, SingleNodeMultiWriter bool
	// DefaultFSType is for volumes without a filesystem type.
	DefaultFSType string
}

// Finalizer is the attacher's, on VolumeAttachments and PersistentVolumes.
func (r *Reader) Finalizer() string { return convert.AttacherFinalizer(r.Driver) }

// Attachment makes a fact and the call's inputs, as far as the fact allows the call.
func (r *Reader) Attachment(va *storagev1.VolumeAttachment, c Catalog) (decide.Attachment, Call) {
	finalizer := r.Finalizer()
	a := decide.Attachment{
		Name: va.Name, UID: string(va.UID), Node: va.Spec.NodeName,
		Created:     va.CreationTimestamp.Time,
		Mark:        mark(va, finalizer),
		Beside:      va.Annotations[v1alpha1.AnnotationBeside],
		Deleting:    va.DeletionTimestamp != nil,
		Stamped:     slices.Contains(va.Finalizers, finalizer),
		Kept:        slices.ContainsFunc(va.Finalizers, func(f string) bool { return f != finalizer }),
		Attached:    va.Status.Attached,
		Metadata:    va.Status.AttachmentMetadata,
		AttachError: reasonOf(va.Status.AttachError),
		DetachError: reasonOf(va.Status.DetachError),
		NodeID:      va.Annotations[convert.AnnotationNodeID],
		Wanted:      va.Annotations[v1alpha1.AnnotationWanted] != "",
	}
	a.TargetID, a.NoTarget = r.nodeID(c.CSINode(va.Spec.NodeName), va.Spec.NodeName)
	call := r.source(&a, va, c)
	transitions, err := transitionsOf(va)
	if a.Transitions = transitions; err != nil {
		a.NoPublish = Reason(err)
	}
	return a, call
}

func (r *Reader) source(a *decide.Attachment, va *storagev1.VolumeAttachment, c Catalog) Call {
	spec, pv, migrated, err := r.volume(va, c)
	if err != nil {
		a.NoPublish, a.NoUnpublish = Reason(err), Reason(err)
		return Call{}
	}
	a.Volume = decide.VolumeID(spec.CSI.VolumeHandle)
	a.Exclusive = exclusive(spec.AccessModes)
	a.PVStamped = pv == nil || slices.Contains(pv.Finalizers, r.Finalizer())
	call := Call{
		Handle: spec.CSI.VolumeHandle, Context: spec.CSI.VolumeAttributes, Secret: spec.CSI.ControllerPublishSecretRef,
		ReadOnly: spec.CSI.ReadOnly && r.PublishReadOnly, Migrated: migrated,
	}
	a.NeedsSecret = call.Secret != nil
	if pv != nil {
		call.PersistentVolume = pv.Name
	}
	if call.Capability, err = r.capability(spec); err != nil {
		a.NoPublish = Reason(err)
	}
	if pv != nil && pv.DeletionTimestamp != nil {
		a.NoPublish = decide.Reason{Message: fmt.Sprintf("PersistentVolume %s is being deleted: it is not attached any more", pv.Name)}
	}
	return call
}

// volume returns the spec translated to CSI, and the original PersistentVolume, if any.
func (r *Reader) volume(va *storagev1.VolumeAttachment, c Catalog) (spec *corev1.PersistentVolumeSpec, pv *corev1.PersistentVolume, migrated bool, err error) {
	source := va.Spec.Source
	switch {
	case source.PersistentVolumeName != nil && source.InlineVolumeSpec != nil:
		return nil, nil, false, errors.New("spec.source names a PersistentVolume and an inline volume: it must be one of them")
	case source.PersistentVolumeName == nil && source.InlineVolumeSpec == nil:
		return nil, nil, false, errors.New("spec.source names neither a PersistentVolume nor an inline volume")
	case source.InlineVolumeSpec != nil:
		if source.InlineVolumeSpec.CSI == nil || source.InlineVolumeSpec.CSI.VolumeHandle == "" {
			return nil, nil, false, errors.New("spec.source.inlineVolumeSpec has no CSI volume")
		}
		return source.InlineVolumeSpec, nil, csitranslation.New().IsMigratedCSIDriverByName(source.InlineVolumeSpec.CSI.Driver), nil
	}
	pv = c.PersistentVolume(*source.PersistentVolumeName)
	if pv == nil {
		return nil, nil, false, fmt.Errorf("PersistentVolume %s is not there", *source.PersistentVolumeName)
	}
	asCSI, err := convert.AsCSI(pv)
	if err != nil {
		return nil, nil, false, fmt.Errorf("PersistentVolume %s: %w", pv.Name, err)
	}
	spec = &asCSI.Spec
	if spec.CSI == nil || spec.CSI.VolumeHandle == "" {
		return nil, nil, false, fmt.Errorf("PersistentVolume %s is no CSI volume and not migrated to one", pv.Name)
	}
	return spec, pv, asCSI != pv, nil
}

func (r *Reader) nodeID(n *storagev1.CSINode, name string) (string, decide.Reason) {
	if n == nil {
		return "", decide.Reason{Message: fmt.Sprintf("CSINode %s is not there: its kubelet has not registered any CSI driver", name)}
	}
	for _, d := range n.Spec.Drivers {
		if d.Name == r.Driver && d.NodeID != "" {
			return d.NodeID, decide.Reason{}
		}
	}
	return "", decide.Reason{Message: fmt.Sprintf("CSINode %s does not list driver %s: is its node plugin running?", name, r.Driver)}
}

// exclusive is kubernetes pkg/volume/util, IsMultiAttachAllowed, inverted, except that no mode at all
// allows nothing.
func exclusive(modes []corev1.PersistentVolumeAccessMode) bool {
	return !slices.Contains(modes, corev1.ReadWriteMany) && !slices.Contains(modes, corev1.ReadOnlyMany)
}

func transitionsOf(va *storagev1.VolumeAttachment) (int64, error) {
	text, ok := va.Annotations[v1alpha1.AnnotationTransitions]
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > ledger.MaxTransitions {
		return 0, fmt.Errorf("annotation %s is %q, and must be a number from 0 to %d", v1alpha1.AnnotationTransitions, text, int64(ledger.MaxTransitions))
	}
	return n, nil
}

// maxMessage is the API's limit for a VolumeError in bytes (kubernetes pkg/apis/storage/validation).
const maxMessage = 1024

func shortened(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	const mark = "…"
	end := maxMessage - len(mark)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + mark
}
