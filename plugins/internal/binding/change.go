// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// ChangeBy is a Binder's Change: it writes the condition PodScheduled, as kube-scheduler does for
// a pod that it could not place.
func ChangeBy(kube kubernetes.Interface) func(ctx context.Context, namespace, name, uid, version, why string) error {
	return func(ctx context.Context, namespace, name, uid, version, why string) error {
		now := metav1.NewTime(time.Now())
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": uid, "resourceVersion": version},
			"status": map[string]any{"conditions": []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: why,
				LastProbeTime: now, LastTransitionTime: now,
			}}},
		})
		if err != nil {
			return fmt.Errorf("encode the condition: %w", err)
		}
		if _, err := kube.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			return fmt.Errorf("write the condition %s: %w", corev1.PodScheduled, err)
		}
		return nil
	}
}
