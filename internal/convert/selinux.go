// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Labels of a Node that say whether its machine has SELinux.
const (
	// LabelSELinuxMount, "true" or "false", says whether the node's kubelet mounts volumes with SELinux
	// labels. It goes before the next label.
	LabelSELinuxMount = "moorage.dev/selinux-mount"
	// labelSELinuxEnabled is node-feature-discovery's (feature kernel.selinux).
	labelSELinuxEnabled = "feature.node.kubernetes.io/kernel-selinux.enabled"
)

// seLinuxMountSince is the kubelet's version with the feature SELinuxMount on by default
// (pkg/features/kube_features.go of Kubernetes 1.37). Before, it was for volumes with access mode
// ReadWriteOncePod alone, which one pod has each.
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

// seLinuxLabels are a kubelet's mount labels for a pod's volumes, by the volumes' names in the pod
// (pkg/volume/util, GetPodVolumeNames and GetMountSELinuxLabel). A volume that no container mounts has
// none: it is a block device, or unused, and no kubelet compares its label. The API server takes no pod
// without containers: a pod without is the slimmed form of a pod that mounts all its volumes without a
// label (SlimContainers): nil.
type seLinuxLabels map[string]ledger.SELinux

func (l seLinuxLabels) of(volume string) ledger.SELinux {
	if l == nil {
		return ledger.SELinuxNone
	}
	if label, mounted := l[volume]; mounted {
		return label
	}
	return ledger.SELinuxUnknown
}

func labelsOf(p *corev1.Pod) seLinuxLabels {
	if len(p.Spec.Containers)+len(p.Spec.InitContainers) == 0 {
		return nil
	}
	labels := seLinuxLabels{}
	decided := map[string]bool{} // by a container that names a label
	mounts := func(own *corev1.SecurityContext, volumes []corev1.VolumeMount) {
		options := effectiveOptions(p.Spec.SecurityContext, own)
		for _, v := range volumes {
			switch {
			case options == nil && !decided[v.Name]:
				labels[v.Name] = ledger.SELinuxNone
			case options == nil:
			case decided[v.Name] && labels[v.Name] != seLinuxOf(options):
				labels[v.Name] = ledger.SELinuxUnknown
			default:
				labels[v.Name], decided[v.Name] = seLinuxOf(options), true
			}
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
	if recursive(p) {
		for name, label := range labels {
			if label != ledger.SELinuxUnknown { // containers that differ keep the pod from running all the same
				labels[name] = ledger.SELinuxNone
			}
		}
	}
	return labels
}

// effectiveOptions are a container's own options, whole, or else the pod's.
func effectiveOptions(ofPod *corev1.PodSecurityContext, own *corev1.SecurityContext) *corev1.SELinuxOptions {
	switch {
	case own != nil && own.SELinuxOptions != nil:
		return own.SELinuxOptions
	case ofPod != nil:
		return ofPod.SELinuxOptions
	}
	return nil
}

// recursive says whether the volumes of a pod are relabelled file by file, and mounted without a label.
func recursive(p *corev1.Pod) bool {
	c := p.Spec.SecurityContext
	return c != nil && c.SELinuxChangePolicy != nil && *c.SELinuxChangePolicy == corev1.SELinuxChangePolicyRecursive
}

// seLinuxOf is the label of a volume that a container with these options mounts.
func seLinuxOf(o *corev1.SELinuxOptions) ledger.SELinux {
	switch {
	case *o == corev1.SELinuxOptions{}:
		return ledger.SELinuxNone
	case o.Level == "": // the node chooses one
		return ledger.SELinuxUnknown
	}
	return ledger.SELinuxLabel(o.User, o.Level)
}

// SlimContainers are containers that give a pod the same labels as its own: one for each label of its
// mounts of attachable volumes. There are none for a pod without labels, as most are.
func SlimContainers(p *corev1.Pod) []corev1.Container {
	labels := labelsOf(p)
	slim := map[ledger.SELinux]corev1.Container{}
	plain := true
	for i := range p.Spec.Volumes {
		v, ok, _ := podVolume(p, &p.Spec.Volumes[i])
		if !ok {
			continue
		}
		label := labels.of(v.Name)
		plain = plain && label == ledger.SELinuxNone
		c := slim[label]
		if _, mounted := labels[v.Name]; mounted {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name})
		}
		slim[label] = c
	}
	if plain {
		return nil
	}
	list := make([]corev1.Container, 0, len(slim))
	for _, label := range slices.Sorted(maps.Keys(slim)) {
		c := slim[label]
		if user, level := label.Parts(); level != "" {
			c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{User: user, Level: level}}
		} else if label == ledger.SELinuxUnknown {
			c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Type: "unknown"}}
		}
		list = append(list, c)
	}
	return list
}
