// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Pod makes a fact of a Pod, valid even with an error about broken sources. Volumes that no container
// mounts count: the attach/detach controller attaches them, though kubelets never report them in use.
func Pod(p *corev1.Pod) (ledger.Pod, error) {
	fact := ledger.Pod{
		UID: string(p.UID), Version: p.ResourceVersion,
		Namespace: p.Namespace, Name: p.Name,
		Node:    ledger.NodeName(p.Spec.NodeName),
		Phase:   podPhase(p),
		Created: p.CreationTimestamp.Unix(),
	}
	fact.Started, fact.Bound = Started(p), boundAt(&p.Status)
	if p.Spec.Priority != nil {
		fact.Priority = *p.Spec.Priority
	}
	_, fact.Mirror = p.Annotations[corev1.MirrorPodAnnotationKey]
	_, stamped := v1alpha1.VolumeStatusOf(p)
	fact.OptedOut = !stamped && p.Spec.SchedulerName != v1alpha1.SchedulerName
	var errs []error
	broken, labels := 0, labelsOf(p)
	for i := range p.Spec.Volumes {
		if p.Spec.Volumes[i].CSI != nil {
			fact.OwnCSI = append(fact.OwnCSI, p.Spec.Volumes[i].Name)
			continue
		}
		v, ok, err := podVolume(p, &p.Spec.Volumes[i])
		if err != nil {
			broken++
		}
		if err != nil && broken <= namedVolumes {
			errs = append(errs, fmt.Errorf("pod %s/%s, volume %s: %w", p.Namespace, p.Name, p.Spec.Volumes[i].Name, shortened{err}))
		}
		if ok {
			v.SELinux = labels.of(v.Name)
			fact.Volumes = append(fact.Volumes, v)
		}
	}
	if more := broken - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("%d more volumes of pod %s/%s: %w", more, p.Namespace, p.Name, ErrSource))
	}
	return fact, errors.Join(errs...)
}

// A tenant decides the number of broken volumes, and the text's length.
const (
	namedVolumes = 3   // the rest is counted
	maxErrorText = 300 // of each fault
)

type shortened struct{ error }

func (e shortened) Error() string {
	text := e.error.Error()
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + " …"
}

func (e shortened) Unwrap() error { return e.error }

// podVolume is false for volumes that are never attached.
func podVolume(p *corev1.Pod, volume *corev1.Volume) (ledger.PodVolume, bool, error) {
	v := ledger.PodVolume{Name: volume.Name}
	switch {
	case volume.PersistentVolumeClaim != nil:
		v.Claim, v.ReadOnly = volume.PersistentVolumeClaim.ClaimName, volume.PersistentVolumeClaim.ReadOnly
		return v, v.Claim != "", nil
	case volume.Ephemeral != nil:
		v.Claim, v.Ephemeral = p.Name+"-"+volume.Name, true
		return v, true, nil
	}
	id, err := volumeOfInline(volume, p.Namespace)
	v.Inline, v.Access = id, accessOfInline(volume, p.Namespace)
	return v, !id.IsZero(), err
}

// podPhase: a pod under deletion is finished only when all containers are reported terminated: without a
// report one may run.
func podPhase(p *corev1.Pod) ledger.PodPhase {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return ledger.PodFinished
	case p.DeletionTimestamp == nil:
		return ledger.PodLive
	case Ended(p):
		return ledger.PodFinished
	}
	return ledger.PodTerminating
}

// Started: a container runs or has run. Kubelets start none before all volumes are mounted.
func Started(p *corev1.Pod) bool {
	status := &p.Status
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			if c := &list[i]; c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

// boundAt is when a pod got its node, in seconds; 0: unknown or none.
func boundAt(status *corev1.PodStatus) int64 {
	for _, c := range status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Unix()
		}
	}
	return 0
}

// Ended: all containers are reported terminated, with init and ephemeral ones. Without a report: no.
func Ended(p *corev1.Pod) bool {
	status := &p.Status
	if len(status.ContainerStatuses) < len(p.Spec.Containers) || len(status.ContainerStatuses) == 0 ||
		len(status.InitContainerStatuses) < len(p.Spec.InitContainers) ||
		len(status.EphemeralContainerStatuses) < len(p.Spec.EphemeralContainers) {
		return false
	}
	for _, list := range [][]corev1.ContainerStatus{status.ContainerStatuses, status.InitContainerStatuses, status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].State.Terminated == nil {
				return false
			}
		}
	}
	return true
}
