// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// PodStatus is a pod's published status.
type PodStatus struct {
	Annotation string // moorage.dev/volume-status
	Condition  corev1.PodCondition
}

// PublishPod writes annotation and condition in one patch. A gone or replaced pod is no error.
func (e *Executor) PublishPod(ctx context.Context, pod *ledger.Pod, status PodStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":         pod.UID,
			"annotations": map[string]string{v1alpha1.AnnotationVolumeStatus: status.Annotation},
		},
		"status": map[string]any{"conditions": []any{whole(status.Condition)}},
	})
	if err != nil {
		return fmt.Errorf("encode the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	written, err := call(ctx, e, time.Time{}, func(ctx context.Context) (*corev1.Pod, error) {
		return e.config.Kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	case err != nil:
		return fmt.Errorf("publish the volume status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	e.config.Observer.Saw(written)
	return nil
}

// conditionPatch has empty fields too: an omitted field would keep its old value.
type conditionPatch struct {
	corev1.PodCondition

	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func whole(c corev1.PodCondition) conditionPatch {
	return conditionPatch{PodCondition: c, Reason: c.Reason, Message: c.Message}
}
