// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/plugins/internal/condition"
)

// ChangeBy is a Binder's Change: it writes PodScheduled, as kube-scheduler does for an unplaced pod.
func ChangeBy(kube kubernetes.Interface) func(ctx context.Context, namespace, name, uid, version, why string) error {
	return func(ctx context.Context, namespace, name, uid, version, why string) error {
		now := metav1.NewTime(time.Now())
		return condition.Patch(ctx, kube, types.NamespacedName{Namespace: namespace, Name: name},
			metav1.Preconditions{UID: new(types.UID(uid)), ResourceVersion: &version}, corev1.PodCondition{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulerError, Message: why,
				LastProbeTime: now, LastTransitionTime: now,
			})
	}
}
