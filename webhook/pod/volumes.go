// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// CanBeAttachable reports whether a volume's kind can need an attachment. Claims and generic ephemeral
// volumes may turn out not to. Inline volumes of kinds that Kubernetes migrates to CSI count, and iSCSI and
// FC, which are attached without a call and yet must be in node.status.volumesAttached. The chart has the
// same list in CEL.
func CanBeAttachable(volume *corev1.Volume) bool {
	source := &volume.VolumeSource
	switch {
	case source.PersistentVolumeClaim != nil, source.Ephemeral != nil:
		return true
	case source.GCEPersistentDisk != nil, source.AWSElasticBlockStore != nil, source.Cinder != nil,
		source.AzureDisk != nil, source.AzureFile != nil, source.VsphereVolume != nil, source.PortworxVolume != nil:
		return true
	case source.ISCSI != nil, source.FC != nil:
		return true
	default:
		return false
	}
}

// Placeholder returns the value of moorage.dev/volume-status for a new pod: each volume that can be
// attachable, in the pod's order, safe for nothing yet; empty without any. Equal pods get equal bytes.
//
// It leaves out a generic ephemeral volume's claim: its name contains the pod's, which a pod with a
// generateName does not have yet.
func Placeholder(pod *corev1.Pod) (string, error) {
	var status v1alpha1.VolumeStatus
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		if !CanBeAttachable(volume) {
			continue
		}
		entry := v1alpha1.PodVolumeStatus{Name: volume.Name, Reason: v1alpha1.ReasonPending}
		if claim := volume.PersistentVolumeClaim; claim != nil {
			entry.Claim = claim.ClaimName
		}
		status.Volumes = append(status.Volumes, entry)
	}
	if len(status.Volumes) == 0 {
		return "", nil
	}
	text, err := status.Annotation()
	if err != nil {
		return "", fmt.Errorf("placeholder of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return text, nil
}
