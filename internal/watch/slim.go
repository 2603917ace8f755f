// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
)

// slim drops unread fields, without a change of the facts, in our own informers only. Its own results stay
// unchanged: informers pass a first list through it twice.
func (o *Observer) slim(object any) (any, error) {
	if whole, ok := object.(runtime.Object); ok {
		if b, ok := o.inBrief(whole); ok {
			return b, nil
		}
	}
	switch object := object.(type) {
	case *corev1.Pod:
		object.ManagedFields = nil
		slimPod(object)
		return keepPod(object), nil
	case *corev1.Node:
		object.ManagedFields, object.Labels = convert.SlimFields(object), sharedLabels(object.Labels)
		object.Status.Images = nil
	case *storagev1.CSINode:
		object.ManagedFields, object.Labels = nil, nil
	case *v1alpha1.VolumeTicket:
		slimTicket(object)
	case *v1alpha1.NodeMountReport:
		object.ManagedFields = nil
		slimVolumesOf(object)
	}
	return object, nil
}

// slimVolumesOf keeps the volumes' identity, and whether they are staged, mounted, published or forgotten.
// Only the path and the PersistentVolume's name may identify an unreadable volume.
func slimVolumesOf(n *v1alpha1.NodeMountReport) {
	for i := range n.Status.Volumes {
		v := &n.Status.Volumes[i]
		if v.Unknown != "" {
			v.Unknown = "?" // only its presence matters
		} else {
			v.Path, v.PersistentVolume = "", ""
		}
		v.MorePods = v.MorePods || slices.ContainsFunc(v.Published, func(p v1alpha1.PublishedPod) bool { return p.Mounted != v1alpha1.NodeNo })
		v.Published, v.FileSystems = slices.Clone(v.Published[:min(1, len(v.Published))]), nil
		share(&v.Driver)
	}
}

func slimPod(p *corev1.Pod) {
	p.Labels, p.OwnerReferences = nil, nil
	share(&p.Namespace)
	share(&p.Spec.NodeName)
	p.Annotations = only(p.Annotations, v1alpha1.AnnotationVolumeStatus, corev1.MirrorPodAnnotationKey)
	status, containers := corev1.PodStatus{Phase: p.Status.Phase}, convert.SlimContainers(p)
	switch {
	case convert.Ended(p):
		ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
		status.ContainerStatuses = slices.Repeat([]corev1.ContainerStatus{ended}, max(1, len(containers)))
	case convert.Started(p):
		status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
	share(&p.Spec.SchedulerName)
	p.Spec = corev1.PodSpec{NodeName: p.Spec.NodeName, SchedulerName: p.Spec.SchedulerName, Priority: p.Spec.Priority, Volumes: slimVolumes(p.Spec.Volumes), Containers: containers}
	for _, c := range p.Status.Conditions {
		if c.Type == v1alpha1.PodSafeToMount || refused(p, c) {
			status.Conditions = append(status.Conditions, c)
		}
	}
	p.Status = status
}

func refused(p *corev1.Pod, c corev1.PodCondition) bool {
	return p.Spec.NodeName == "" && c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
}

// slimVolumes drops the kinds that are never attached, but keeps drivers' names.
func slimVolumes(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for _, v := range volumes {
		switch {
		case v.ConfigMap != nil, v.Secret != nil, v.Projected != nil, v.DownwardAPI != nil, v.EmptyDir != nil, v.HostPath != nil:
			continue
		case v.CSI != nil:
			v.CSI = &corev1.CSIVolumeSource{} // its name matters
		case v.Ephemeral != nil:
			v.Ephemeral = &corev1.EphemeralVolumeSource{}
		}
		kept = append(kept, v)
	}
	return kept
}

// Most nodes have the same keys, and few values.
func sharedLabels(labels map[string]string) map[string]string {
	shared := make(map[string]string, len(labels))
	for key, value := range labels {
		share(&key)
		share(&value)
		shared[key] = value
	}
	return shared
}
