// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Annotations returns a binding's annotations: the status Reserved for each volume to attach. It returns
// nil for a pod without the webhook's stamp, since nobody publishes its volumes' status, and for a pod
// whose annotations would be too large.
func Annotations(s ledger.Snapshot, pod *corev1.Pod, fact *ledger.Pod, node string) (map[string]string, error) {
	if _, stamped := pod.Annotations[v1alpha1.AnnotationVolumeStatus]; !stamped {
		return nil, nil
	}
	status := v1alpha1.VolumeStatus{UID: pod.UID}
	for _, v := range fact.Volumes {
		entry := v1alpha1.PodVolumeStatus{Name: v.Name, Claim: v.Claim}
		if v.Claim != "" {
			if claim := s.Claim(ledger.ClaimKey{Namespace: fact.Namespace, Name: v.Claim}); claim != nil {
				entry.PersistentVolume = claim.PersistentVolume
			}
		}
		id, link := s.ResolvePod(fact, v)
		if link.NeedsNone() || link == ledger.LinkVolume && !s.AttachRequired(id.Driver) {
			entry.SafeToMount = true // nothing has to be attached
		} else {
			entry.Node, entry.Reason = node, v1alpha1.VolumeReserved
			entry.Message = fmt.Sprintf("the volume is reserved for the pod at %s, and is not attached there yet", node)
		}
		status.Volumes = append(status.Volumes, entry)
	}
	value, err := status.Annotation()
	if err != nil {
		return nil, err
	}
	changed := maps.Clone(pod.Annotations)
	changed[v1alpha1.AnnotationVolumeStatus] = value
	if validation.ValidateAnnotationsSize(changed) != nil {
		return nil, nil // the API server would take it, and refuse each later write
	}
	return map[string]string{v1alpha1.AnnotationVolumeStatus: value}, nil
}
