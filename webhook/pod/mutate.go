// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Operation is one operation of a JSON Patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// PathSchedulerName is the scheduler's path in the patch.
const PathSchedulerName = "/spec/schedulerName"

// Mutate returns the changes to a new pod for Moorage to place it and to report on its volumes; nothing
// if there are none. Applied to its own result it returns nothing.
//
//   - Mirror pods are left alone: the kubelet owns them, and compares them with its manifest.
//   - The scheduler changes only where it is the default one and has yet to be asked: never in a pod
//     that names another scheduler or already has a node.
//   - A pod without a volume that can be attachable changes only if it is in a group: all pods of a
//     group need the same scheduler, which would wait for the others without end.
//   - A restored pod carries marks of its original: they are replaced, or removed.
//
// The operations touch nothing else, so that other webhooks' changes stay.
func Mutate(pod *corev1.Pod, schedulerName string) ([]Operation, error) {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil, nil
	}
	placeholder, err := Placeholder(pod)
	if err != nil || placeholder == "" && !inGroup(pod) {
		return nil, err
	}
	var patch []Operation
	if isDefaultScheduler(pod.Spec.SchedulerName) && pod.Spec.NodeName == "" && pod.Spec.SchedulerName != schedulerName {
		patch = append(patch, Operation{Op: "add", Path: PathSchedulerName, Value: schedulerName})
	}
	if placeholder != "" {
		patch = append(patch, annotate(pod, v1alpha1.AnnotationVolumeStatus, placeholder)...)
	}
	return patch, nil
}

// inGroup includes PodGroups of Kubernetes and of sigs.k8s.io/scheduler-plugins.
func inGroup(pod *corev1.Pod) bool {
	own := pod.Spec.SchedulingGroup
	return own != nil && own.PodGroupName != nil || pod.Labels[schedulingv1alpha1.PodGroupLabel] != ""
}

// The API server fills in the default before webhooks see the pod.
func isDefaultScheduler(name string) bool {
	return name == "" || name == corev1.DefaultSchedulerName
}

// "add" to a missing map fails, and "add" of the whole map replaces it.
func annotate(pod *corev1.Pod, key, value string) []Operation {
	if len(pod.Annotations) == 0 {
		return []Operation{{Op: "add", Path: "/metadata/annotations", Value: map[string]string{key: value}}}
	}
	if current, ok := pod.Annotations[key]; ok && current == value {
		return nil
	}
	return []Operation{{Op: "add", Path: "/metadata/annotations/" + escapePointer(key), Value: value}}
}

// RFC 6901, section 3: "~" before "/", or the escape would be escaped.
func escapePointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
