// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Labels of a Node that say whether its machine has SELinux.
const (
	// LabelSELinuxMount, "true" or "false", says whether the node's kubelet mounts volumes with
	// SELinux labels. It goes before the other label.
	LabelSELinuxMount = "moorage.dev/selinux-mount"
	// labelSELinuxEnabled is node-feature-discovery's (source/kernel, selinux.enabled).
	labelSELinuxEnabled = "feature.node.kubernetes.io/kernel-selinux.enabled"
)

// seLinuxMountSince is the kubelet's version from which on the feature SELinuxMount is on by default
// (pkg/features/kube_features.go of Kubernetes 1.37). Before, it was for volumes with access mode
// ReadWriteOncePod alone, of which one pod has each.
var seLinuxMountSince = version.MajorMinor(1, 37)

// seLinuxMount says whether a node's kubelet mounts volumes with SELinux labels, as far as its
// labels and the kubelet's version tell. Where they don't it is false.
func seLinuxMount(n *corev1.Node) bool {
	if said, ok := n.Labels[LabelSELinuxMount]; ok {
		return said == "true"
	}
	if n.Labels[labelSELinuxEnabled] != "true" {
		return false
	}
	kubelet, err := version.ParseGeneric(n.Status.NodeInfo.KubeletVersion)
	return err == nil && kubelet.AtLeast(seLinuxMountSince)
}

// seLinuxLabels are the labels with which a kubelet mounts a pod's volumes, by the volumes' names in the
// pod, those without one left out (pkg/volume/util, GetPodVolumeNames and GetMountSELinuxLabel).
func seLinuxLabels(p *corev1.Pod) map[string]ledger.SELinux {
	ofPod := p.Spec.SecurityContext
	if ofPod != nil && ofPod.SELinuxChangePolicy != nil && *ofPod.SELinuxChangePolicy == corev1.SELinuxChangePolicyRecursive {
		return nil
	}
	var labels map[string]ledger.SELinux
	mounts := func(own *corev1.SecurityContext, volumes []corev1.VolumeMount) {
		var options *corev1.SELinuxOptions
		switch {
		case own != nil && own.SELinuxOptions != nil:
			options = own.SELinuxOptions
		case ofPod != nil && ofPod.SELinuxOptions != nil:
			options = ofPod.SELinuxOptions
		default:
			return // a container that names no label decides nothing
		}
		if labels == nil {
			labels = map[string]ledger.SELinux{}
		}
		for _, v := range volumes {
			label := seLinuxOf(options)
			if other, named := labels[v.Name]; named && other != label {
				label = ledger.SELinux{Unknown: true}
			}
			labels[v.Name] = label
		}
	}
	for i := range p.Spec.InitContainers {
		mounts(p.Spec.InitContainers[i].SecurityContext, p.Spec.InitContainers[i].VolumeMounts)
	}
	for i := range p.Spec.Containers {
		mounts(p.Spec.Containers[i].SecurityContext, p.Spec.Containers[i].VolumeMounts)
	}
	for i := range p.Spec.EphemeralContainers {
		mounts(p.Spec.EphemeralContainers[i].SecurityContext, p.Spec.EphemeralContainers[i].VolumeMounts)
	}
	return labels
}

func seLinuxOf(o *corev1.SELinuxOptions) ledger.SELinux {
	switch {
	case *o == corev1.SELinuxOptions{}:
		return ledger.SELinux{}
	case o.Level == "":
		return ledger.SELinux{Unknown: true} // of a level of the node's choice
	}
	return ledger.SELinux{User: o.User, Level: o.Level}
}

// SlimContainers are containers by which Pod makes of a pod the same labels as by its own: one for each
// volume that is mounted with a label. They are nil of most pods.
func SlimContainers(p *corev1.Pod) []corev1.Container {
	var list []corev1.Container
	labels := seLinuxLabels(p)
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		options := corev1.SELinuxOptions{User: labels[name].User, Level: labels[name].Level}
		switch {
		case labels[name].Unknown:
			options.Type = "unknown"
		case options.Level == "":
			continue
		}
		list = append(list, corev1.Container{
			SecurityContext: &corev1.SecurityContext{SELinuxOptions: &options}, VolumeMounts: []corev1.VolumeMount{{Name: name}},
		})
	}
	return list
}
