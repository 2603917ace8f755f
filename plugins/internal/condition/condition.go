// SPDX-License-Identifier: Apache-2.0

// Package condition patches a pod's condition, for pods that wait (plugins/volumehold), that may be tried
// again (plugins/extender), or that have an unanswered Binding (plugins/internal/binding).
package condition

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Patch writes a single condition. A UID or resource version that differs from only is a conflict.
func Patch(ctx context.Context, kube kubernetes.Interface, pod types.NamespacedName, only metav1.Preconditions, c corev1.PodCondition) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": only,
		"status":   map[string]any{"conditions": []corev1.PodCondition{c}},
	})
	if err != nil {
		return fmt.Errorf("encode the condition %s: %w", c.Type, err)
	}
	if _, err := kube.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("write the condition %s: %w", c.Type, err)
	}
	return nil
}
