// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeStatus is the value of the annotation moorage.dev/volume-status of a
// pod: where each of its attachable volumes is. It is for people and tools, and
// never says more than the node's status does, which is what the kubelet obeys.
type VolumeStatus struct {
	// UID is the pod's. A pod that a backup tool has restored has another: its status is about the
	// original pod. Empty in the webhook's placeholder, since a new pod has none yet.
	UID types.UID `json:"uid,omitempty"`
	// Volumes are the volumes of pod.spec.volumes that can be attachable, in its order.
	Volumes []PodVolumeStatus `json:"volumes"`
}

// VolumeReserved is the reason of a volume in the status that a pod gets with its node: the scheduler
// has counted the volume at the node, and nothing has attached it there yet.
const VolumeReserved = "Reserved"

// PodVolumeStatus is where one volume of a pod is.
type PodVolumeStatus struct {
	// Name is the volume's name in pod.spec.volumes.
	Name string `json:"name"`
	// Claim is the name of the claim; empty for inline volumes.
	Claim string `json:"claim,omitempty"`
	// PersistentVolume is what the claim is bound to; empty for inline volumes
	// and while it is not bound.
	PersistentVolume string `json:"persistentVolume,omitempty"`
	// Node is where the volume is, or is going to be for this pod.
	Node string `json:"node,omitempty"`
	// SafeToMount: the volume is attached at the pod's node, and the node's
	// status says so; or it needs no attachment, and Node is empty. False from the
	// moment when the containers of the pod have ended.
	SafeToMount bool `json:"safeToMount"`
	// SafeToDetach: the containers of the pod have ended, and the kubelet has let go of
	// the volume: it does not report the volume as in use, and moorage-node, if it runs there,
	// finds nothing of it. The controller writes this while the volume is attached, and never after
	// the detach; a later user of the volume does not change it. A deleted pod has no status. Whether
	// its volumes may be detached is said by their VolumeHolds.
	SafeToDetach bool `json:"safeToDetach"`
	// Transitions is the volume's fencing token; 0 if it is not exclusive.
	Transitions int64 `json:"transitions,omitempty"`
	// Reason is one of the codes in docs/reasons.md.
	Reason string `json:"reason,omitempty"`
	// Message explains the reason, with the event that would change it.
	Message string `json:"message,omitempty"`
}

// ParseVolumeStatus reads the annotation's value. Its error says that the value
// is not a VolumeStatus; unknown fields are ignored, so that a newer writer
// does not break an older reader.
func ParseVolumeStatus(annotation string) (VolumeStatus, error) {
	var status VolumeStatus
	if err := json.Unmarshal([]byte(annotation), &status); err != nil {
		return VolumeStatus{}, fmt.Errorf("annotation %s is not a VolumeStatus: %w", AnnotationVolumeStatus, err)
	}
	return status, nil
}

// VolumeStatusOf returns the volume status that a pod carries. False: the pod carries none, none
// that can be read, or the status of another pod.
func VolumeStatusOf(pod metav1.Object) (VolumeStatus, bool) {
	text, ok := pod.GetAnnotations()[AnnotationVolumeStatus]
	if !ok {
		return VolumeStatus{}, false
	}
	status, err := ParseVolumeStatus(text)
	if err != nil || !status.isOf(pod.GetUID()) {
		return VolumeStatus{}, false
	}
	return status, true
}

// isOf says whether a status is of the pod with this UID. A status without a UID is a placeholder,
// and says nothing of any volume.
func (s VolumeStatus) isOf(uid types.UID) bool {
	return s.UID == uid || s.UID == "" &&
		!slices.ContainsFunc(s.Volumes, func(v PodVolumeStatus) bool { return v.SafeToMount || v.SafeToDetach || v.Node != "" })
}

// Annotation returns the annotation's value. Equal statuses give equal bytes,
// so that a writer can tell by comparison whether there is anything to write.
func (s VolumeStatus) Annotation() (string, error) {
	if s.Volumes == nil {
		s.Volumes = []PodVolumeStatus{}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("encode VolumeStatus: %w", err)
	}
	return string(raw), nil
}
