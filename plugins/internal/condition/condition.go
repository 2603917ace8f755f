// SPDX-License-Identifier: Apache-2.0

// Package condition writes a condition of a pod. It serves pods that wait (plugins/volumehold),
// pods that may be tried again (plugins/extender), and pods with an unanswered Binding
// (plugins/internal/binding).
//
// Reads: nothing. Writes: pods/status, by a patch.
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

// Patch writes a single condition of a pod. The API server answers with a conflict if the pod's UID
// or resource version differs from only.
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
