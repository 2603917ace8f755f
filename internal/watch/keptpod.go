// SPDX-License-Identifier: Apache-2.0

package watch

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// keptPod stands in an informer's store for a pod that slimPod has slimmed, without the room that a Pod
// takes for empty fields. A large cluster has hundreds of thousands of them.
//
//	Invariant: it is not changed once it is made
type keptPod struct {
	metav1.ObjectMeta
	node, scheduler string
	priority        *int32
	// claims are the volumes if all are claims; otherwise volumes has them.
	claims  []keptClaim
	volumes []corev1.Volume
	// labelled are spec containers as SlimContainers leaves them: most pods have none.
	labelled []corev1.Container
	phase    corev1.PodPhase
	// containers are status containers: only if all have ended, and no more than in the spec, or one.
	containers []corev1.ContainerStatus
	conditions []corev1.PodCondition
}

type keptClaim struct {
	name, claim string
	readOnly    bool
}

var _ runtime.Object = (*keptPod)(nil)

func keepPod(p *corev1.Pod) *keptPod {
	k := &keptPod{
		ObjectMeta: p.ObjectMeta, node: p.Spec.NodeName, scheduler: p.Spec.SchedulerName, priority: p.Spec.Priority,
		labelled: p.Spec.Containers, phase: p.Status.Phase, containers: p.Status.ContainerStatuses, conditions: p.Status.Conditions,
	}
	if claims, ok := claimsOf(p.Spec.Volumes); ok {
		k.claims = claims
	} else {
		k.volumes = p.Spec.Volumes
	}
	return k
}

// claimsOf returns false if a volume is no claim.
func claimsOf(volumes []corev1.Volume) ([]keptClaim, bool) {
	if len(volumes) == 0 {
		return nil, true
	}
	claims := make([]keptClaim, 0, len(volumes))
	for _, v := range volumes {
		if v.PersistentVolumeClaim == nil {
			return nil, false
		}
		claims = append(claims, keptClaim{v.Name, v.PersistentVolumeClaim.ClaimName, v.PersistentVolumeClaim.ReadOnly})
	}
	return claims, true
}

func (k *keptPod) pod() *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: k.ObjectMeta,
		Spec:       corev1.PodSpec{NodeName: k.node, SchedulerName: k.scheduler, Priority: k.priority, Volumes: k.volumes, Containers: k.labelled},
		Status:     corev1.PodStatus{Phase: k.phase, ContainerStatuses: k.containers, Conditions: k.conditions},
	}
	for _, c := range k.claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: c.name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.claim, ReadOnly: c.readOnly},
		}})
	}
	return p
}

func (k *keptPod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

func (k *keptPod) DeepCopyObject() runtime.Object { return keepPod(k.pod().DeepCopy()) }
