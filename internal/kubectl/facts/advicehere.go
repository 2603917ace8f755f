// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
)

// adviceHere is what to do about a reason for which a pod waits: docs/reasons.md's words, or
// others where the pod and the cluster rule those out.
func (w *World) adviceHere(do string, r arbiter.Reason, pod *corev1.Pod) string {
	switch {
	case r.Code == arbiter.HeldElsewhere && pod.Spec.NodeName != "":
		return fmt.Sprintf("Delete the holder if it is not wanted. Or delete pod %s/%s, which is bound to %s already, and have it made again without spec.nodeName, or for %s. Pods that must run at the same time on different nodes need ReadWriteMany",
			pod.Namespace, pod.Name, pod.Spec.NodeName, r.Node)
	case r.Code == arbiter.DriverNotRegistered:
		return cmp.Or(w.adviceOnNoDriver(r.Driver), do)
	case r.Code == arbiter.AttachFailed && exhausted(r) && stock(pod):
		return fmt.Sprintf("%s has no slot left, and the pod was placed there by %s, not by Moorage. Delete the pod, so that it is placed anew, or end another one that has a volume there: kubectl moorage explain node %s -o wide. Moorage places pods by free slots in namespaces that have opted in: kubectl label namespace %s moorage.dev/enforce=true",
			r.Node, corev1.DefaultSchedulerName, r.Node, pod.Namespace)
	}
	return do
}

// stock says whether kube-scheduler's own profile has placed a pod, past Moorage.
func stock(p *corev1.Pod) bool {
	_, stamped := v1alpha1.VolumeStatusOf(p)
	return !stamped && cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName) == corev1.DefaultSchedulerName
}

// exhausted says whether a driver has refused because a node has no room: by the code of its answer, or
// in an attacher's words, which name it.
func exhausted(r arbiter.Reason) bool {
	const code = "ResourceExhausted"
	return r.GRPC == arbiter.CodeNamed(code) || strings.Contains(r.Detail, "code = "+code)
}

// adviceOnNoDriver is what to do about a driver that no node registers; empty where one does, or
// that can't be seen.
func (w *World) adviceOnNoDriver(driver string) string {
	registers := func(n *storagev1.CSINode) bool {
		return slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver })
	}
	if w.unseen("csinodes.storage.k8s.io") || w.unseen("csidrivers.storage.k8s.io") || slices.ContainsFunc(w.NodeDrivers, registers) {
		return ""
	}
	if slices.ContainsFunc(w.Drivers, func(d *storagev1.CSIDriver) bool { return d.Name == driver }) {
		return "No node has this driver registered: see whether the DaemonSet of its node plugin has pods, and what their logs say: kubectl get daemonsets -A"
	}
	return "No node has this driver registered, and there is no CSIDriver of that name: install the driver, or make the PersistentVolume again with the right name (spec.csi.driver): kubectl get csidrivers"
}
