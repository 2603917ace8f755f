// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	csitranslation "k8s.io/csi-translation-lib"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Plugin names of the kubelet (pkg/volume/{csi,iscsi,fc}).
const (
	csiPrefix   = "kubernetes.io/csi/"
	pluginISCSI = "kubernetes.io/iscsi"
	pluginFC    = "kubernetes.io/fc"
)

// ErrSource: a broken source identifies no volume, and no controller attaches it.
var ErrSource = errors.New("volume source names no volume")

// UniqueName is a volume's name in volumesInUse and volumesAttached: "kubernetes.io/csi/<driver>^<handle>",
// or "<plugin>/<name>" for iSCSI and FC (pkg/volume/util, GetUniqueVolumeName).
func UniqueName(v ledger.VolumeID) corev1.UniqueVolumeName {
	if v.NoAttach() {
		return corev1.UniqueVolumeName(v.Driver + "/" + v.Handle)
	}
	return corev1.UniqueVolumeName(csiPrefix + v.Driver + "^" + v.Handle)
}

// VolumeOf is the volume of a name in a node's status; false for ignored plugins, and without a volume. A
// handle may hold "^".
func VolumeOf(name corev1.UniqueVolumeName) (ledger.VolumeID, bool) {
	s := string(name)
	if rest, ok := strings.CutPrefix(s, csiPrefix); ok {
		driver, handle, _ := strings.Cut(rest, "^")
		v, err := volumeID(driver, handle)
		return v, err == nil
	}
	for _, plugin := range []string{pluginISCSI, pluginFC} {
		if rest, ok := strings.CutPrefix(s, plugin+"/"); ok {
			v, err := volumeID(plugin, rest)
			return v, err == nil
		}
	}
	return ledger.VolumeID{}, false
}

// volumeID returns ErrSource with the cause if a volume can't be named. The name must come back from a
// VolumeHold unchanged, or its hold would be written without end: a VolumeHold is JSON, with UTF-8 and
// bounded lengths, but protobuf strings may have any bytes. No handle has NUL; the ledger uses it for its
// own handles.
func volumeID(driver, handle string) (ledger.VolumeID, error) {
	wrong := ""
	switch {
	case driver == "" || handle == "":
		wrong = "driver or handle is empty"
	case !utf8.ValidString(driver) || !utf8.ValidString(handle):
		wrong = "driver or handle is not UTF-8"
	case strings.Contains(handle, "\x00"):
		wrong = "the handle contains a NUL"
	case utf8.RuneCountInString(driver) > v1alpha1.MaxDriverLength:
		wrong = fmt.Sprintf("the driver's name is longer than %d characters", v1alpha1.MaxDriverLength)
	case utf8.RuneCountInString(handle) > v1alpha1.MaxHandleLength:
		wrong = fmt.Sprintf("the handle is longer than %d characters, which a VolumeHold can't have", v1alpha1.MaxHandleLength)
	default:
		return ledger.VolumeID{Driver: driver, Handle: handle}, nil
	}
	return ledger.VolumeID{}, fmt.Errorf("%w: %s", ErrSource, wrong)
}

// AsCSI returns a PersistentVolume as Kubernetes reads it. An in-tree one is translated to CSI, as in
// kube-controller-manager, external-attacher and kube-scheduler. Others are unchanged, also, with the
// error, if the translation fails.
//
// kube-scheduler does not translate vSphere and Azure File (volumebinding, isCSIMigrationOnForPlugin):
// their node affinity stays.
func AsCSI(pv *corev1.PersistentVolume) (*corev1.PersistentVolume, error) {
	translator := csitranslation.New()
	if !translator.IsPVMigratable(pv) {
		return pv, nil
	}
	migrated, err := guarded(func() (*corev1.PersistentVolume, error) {
		return translator.TranslateInTreePVToCSI(klog.Background(), pv)
	})
	if err != nil {
		return pv, err
	}
	if pv.Spec.VsphereVolume != nil || pv.Spec.AzureFile != nil {
		migrated.Spec.NodeAffinity = pv.Spec.NodeAffinity
	}
	return migrated, nil
}

// volumeOfPV returns a PersistentVolume as CSI and its volume: zero without an error for never attached
// storage, such as NFS.
func volumeOfPV(pv *corev1.PersistentVolume) (csi *corev1.PersistentVolume, id ledger.VolumeID, err error) {
	if csi, err = AsCSI(pv); err != nil {
		return csi, ledger.VolumeID{}, err
	}
	source := &csi.Spec.PersistentVolumeSource
	switch {
	case source.CSI != nil:
		id, err = volumeID(source.CSI.Driver, source.CSI.VolumeHandle)
	case source.ISCSI != nil:
		id, err = iscsi(source.ISCSI.TargetPortal, source.ISCSI.IQN, source.ISCSI.Lun)
	case source.FC != nil:
		id, err = fc(source.FC)
	}
	return csi, id, err
}

// volumeOfInline is zero without an error for storage that is never attached. Nodes make CSI ephemeral
// volumes (pkg/volume/csi, CanAttach).
func volumeOfInline(volume *corev1.Volume, namespace string) (ledger.VolumeID, error) {
	switch {
	case volume.ISCSI != nil:
		return iscsi(volume.ISCSI.TargetPortal, volume.ISCSI.IQN, volume.ISCSI.Lun)
	case volume.FC != nil:
		return fc(volume.FC)
	}
	migrated, err := migrateInline(volume, namespace)
	if err != nil || migrated == nil {
		return ledger.VolumeID{}, err
	}
	return volumeID(migrated.Spec.CSI.Driver, migrated.Spec.CSI.VolumeHandle)
}

// accessOfInline is the translated PersistentVolume's; iSCSI and FC may be shared (pkg/volume/util,
// IsMultiAttachAllowed).
func accessOfInline(volume *corev1.Volume, namespace string) ledger.Access {
	migrated, err := migrateInline(volume, namespace)
	switch {
	case volume.ISCSI != nil, volume.FC != nil:
		return ledger.AccessMany
	case err != nil || migrated == nil:
		return ledger.AccessUnknown
	}
	return access(migrated.Spec.AccessModes)
}

// InlineSource is a VolumeAttachment's source for a pod's inline volume: the translated spec. Nil: no such
// volume.
func InlineSource(pod *corev1.Pod, v ledger.VolumeID) *corev1.PersistentVolumeSpec {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if id, err := volumeOfInline(volume, pod.Namespace); err != nil || id != v || v.NoAttach() {
			continue
		}
		if migrated, err := migrateInline(volume, pod.Namespace); err == nil && migrated != nil {
			return &migrated.Spec
		}
	}
	return nil
}

// migrateInline is nil without an error for volumes that are not migrated.
func migrateInline(volume *corev1.Volume, namespace string) (*corev1.PersistentVolume, error) {
	translator := csitranslation.New()
	if !translator.IsInlineMigratable(volume) {
		return nil, nil
	}
	return guarded(func() (*corev1.PersistentVolume, error) {
		return translator.TranslateInTreeInlineVolumeToCSI(klog.Background(), volume, namespace)
	})
}

// guarded turns the library's panics into errors.
func guarded(translate func() (*corev1.PersistentVolume, error)) (pv *corev1.PersistentVolume, err error) {
	defer func() {
		if r := recover(); r != nil {
			pv, err = nil, fmt.Errorf("%w: translating it to CSI failed: %v", ErrSource, r)
		}
	}()
	pv, err = translate()
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	case pv == nil || pv.Spec.CSI == nil:
		return nil, fmt.Errorf("%w: its translation has no CSI source", ErrSource)
	}
	return pv, nil
}

// iscsi is as in pkg/volume/iscsi/iscsi.go, GetVolumeName.
func iscsi(portal, iqn string, lun int32) (ledger.VolumeID, error) {
	return volumeID(pluginISCSI, fmt.Sprintf("%v:%v:%v", portal, iqn, lun))
}

// fc is as in pkg/volume/fc/fc.go, GetVolumeName.
func fc(source *corev1.FCVolumeSource) (ledger.VolumeID, error) {
	switch {
	case len(source.TargetWWNs) != 0 && source.Lun != nil:
		return volumeID(pluginFC, fmt.Sprintf("%v:%v", source.TargetWWNs, *source.Lun))
	case len(source.WWIDs) != 0:
		return volumeID(pluginFC, fmt.Sprintf("%v", source.WWIDs))
	}
	return ledger.VolumeID{}, fmt.Errorf("%w: FC needs targetWWNs with a lun, or wwids", ErrSource)
}
