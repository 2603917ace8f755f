// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
)

// operation is of a JSON Patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

type removal struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

// Every patch tests the UID, to spare a namesake, and each changed list, to keep all finalizers. The API
// server applies all or answers 422.

// StampAttachment adds the missing finalizer and node ID. It tests the present ID: a late patch must not
// restore a replaced machine's ID.
func StampAttachment(va *storagev1.VolumeAttachment, finalizer, nodeID string) ([]byte, error) {
	patch := append(ofUID(&va.ObjectMeta), addFinalizer(va.Finalizers, finalizer)...)
	was, found := va.Annotations[convert.AnnotationNodeID]
	path := "/metadata/annotations/" + escape(convert.AnnotationNodeID)
	switch {
	case found && was == nodeID:
	case va.Annotations == nil:
		patch = append(patch,
			operation{"test", "/metadata/annotations", nil},
			operation{"add", "/metadata/annotations", map[string]string{convert.AnnotationNodeID: nodeID}})
	case !found:
		patch = append(patch, operation{"test", path, nil}, operation{"add", path, nodeID})
	default:
		patch = append(patch, operation{"test", path, was}, operation{"add", path, nodeID})
	}
	return encode(patch)
}

// ReleaseAttachment takes the finalizer off a VolumeAttachment.
func ReleaseAttachment(va *storagev1.VolumeAttachment, finalizer string) ([]byte, error) {
	return removeFinalizer(&va.ObjectMeta, finalizer)
}

// Status replaces a VolumeAttachment's whole status: it is the attacher's.
func Status(va *storagev1.VolumeAttachment, status storagev1.VolumeAttachmentStatus) ([]byte, error) {
	return encode(append(ofUID(&va.ObjectMeta), operation{"add", "/status", status}))
}

// StampPersistentVolume puts the finalizer on.
func StampPersistentVolume(pv *corev1.PersistentVolume, finalizer string) ([]byte, error) {
	return encode(append(ofUID(&pv.ObjectMeta), addFinalizer(pv.Finalizers, finalizer)...))
}

// UnstampPersistentVolume takes the finalizer off.
func UnstampPersistentVolume(pv *corev1.PersistentVolume, finalizer string) ([]byte, error) {
	return removeFinalizer(&pv.ObjectMeta, finalizer)
}

// TellStrays writes on a PersistentVolume which nodes have its volume without an attachment, or none.
func TellStrays(pv *corev1.PersistentVolume, nodes string) ([]byte, error) {
	path := "/metadata/annotations/" + escape(v1alpha1.AnnotationStrays)
	patch := ofUID(&pv.ObjectMeta)
	switch {
	case nodes == "":
		patch = append(patch, removal{"remove", path})
	case pv.Annotations == nil:
		patch = append(patch,
			operation{"test", "/metadata/annotations", nil},
			operation{"add", "/metadata/annotations", map[string]string{v1alpha1.AnnotationStrays: nodes}})
	default:
		patch = append(patch, operation{"add", path, nodes})
	}
	return encode(patch)
}

func ofUID(meta *metav1.ObjectMeta) []any {
	return []any{operation{"test", "/metadata/uid", meta.UID}}
}

// addFinalizer tests the whole list: otherwise two writers could both add it, and the API keeps duplicates.
func addFinalizer(have []string, finalizer string) []any {
	switch {
	case slices.Contains(have, finalizer):
		return nil
	case len(have) == 0:
		return []any{
			operation{"test", "/metadata/finalizers", nil},
			operation{"add", "/metadata/finalizers", []string{finalizer}},
		}
	}
	return []any{
		operation{"test", "/metadata/finalizers", have},
		operation{"add", "/metadata/finalizers/-", finalizer},
	}
}

func removeFinalizer(meta *metav1.ObjectMeta, finalizer string) ([]byte, error) {
	i := slices.Index(meta.Finalizers, finalizer)
	if i < 0 {
		return nil, fmt.Errorf("finalizer %s is not on %s any more", finalizer, meta.Name)
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", i)
	return encode(append(ofUID(meta), operation{"test", path, finalizer}, removal{"remove", path}))
}

// escape is for a JSON Pointer (RFC 6901).
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

func encode(patch []any) ([]byte, error) {
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return data, nil
}
