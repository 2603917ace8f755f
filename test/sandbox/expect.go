// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

func (e *Env) PodsOf(key, value string) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range e.View.Pods(e.Namespace) {
		if pod.Labels[key] == value {
			out = append(out, pod)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (e *Env) Running(name string) error {
	pod := e.View.Pod(e.Namespace, name)
	switch {
	case pod == nil:
		return fmt.Errorf("there is no pod %s", name)
	case pod.Status.Phase == corev1.PodFailed:
		return Never("pod %s failed: %s %s", name, pod.Status.Reason, pod.Status.Message)
	case pod.Status.Phase != corev1.PodRunning:
		return fmt.Errorf("pod %s is %s on node %q", name, pod.Status.Phase, pod.Spec.NodeName)
	}
	return nil
}

func (e *Env) PodGone(name string) error {
	if pod := e.View.Pod(e.Namespace, name); pod != nil {
		return fmt.Errorf("pod %s is still there, %s", name, pod.Status.Phase)
	}
	return nil
}

// Event returns nil without a matching event.
func (e *Env) Event(kind, name, reason, text string) *corev1.Event {
	for _, event := range e.View.Events(e.Namespace) {
		if event.InvolvedObject.Kind == kind && event.InvolvedObject.Name == name &&
			event.Reason == reason && strings.Contains(event.Message, text) {
			return event
		}
	}
	return nil
}

func (e *Env) Handle(claim string) (string, error) {
	c := e.View.Claim(e.Namespace, claim)
	if c == nil {
		return "", fmt.Errorf("there is no claim %s", claim)
	}
	pv := e.View.Volume(c.Spec.VolumeName)
	if pv == nil || pv.Spec.CSI == nil {
		return "", fmt.Errorf("claim %s is %s and has no volume", claim, c.Status.Phase)
	}
	return pv.Spec.CSI.VolumeHandle, nil
}

// UniqueName is the volume's name in node.status (k8s.io/kubernetes pkg/volume/util.GetUniqueVolumeName and
// the CSI plugin's volume name).
func UniqueName(handle string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/" + DriverName + "^" + handle)
}

func (e *Env) InUse(node, handle string) bool {
	n := e.View.Node(node)
	return n != nil && slices.Contains(n.Status.VolumesInUse, UniqueName(handle))
}

func (e *Env) ReportedAttached(node, handle string) bool {
	n := e.View.Node(node)
	return n != nil && slices.ContainsFunc(n.Status.VolumesAttached, func(v corev1.AttachedVolume) bool {
		return v.Name == UniqueName(handle)
	})
}
