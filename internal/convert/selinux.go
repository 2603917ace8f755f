// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Labels of a Node about its machine's SELinux.
const (
	// LabelSELinuxMount, "true" or "false", says whether the kubelet mounts volumes with SELinux labels. It
	// precedes the next label.
	LabelSELinuxMount = "moorage.dev/selinux-mount"
	// labelSELinuxEnabled is node-feature-discovery's (feature kernel.selinux).
	labelSELinuxEnabled = "feature.node.kubernetes.io/kernel-selinux.enabled"
)

// seLinuxMountSince is the kubelet's version with SELinuxMount on by default (pkg/features/kube_features.go
// of Kubernetes 1.37). Before, it was for ReadWriteOncePod volumes only, with one pod each.
var seLinuxMountSince = version.MajorMinor(1, 37)

// seLinuxMount goes by labels and the kubelet's version; false if unknown.
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

// seLinuxLabels are a kubelet's mount labels by volume name (pkg/volume/util, GetPodVolumeNames and
// GetMountSELinuxLabel). A volume that no container mounts has none: it is a block device or unused, and no
// kubelet compares its label. A pod without containers is the slimmed form (SlimContainers) of a pod
// without labels: nil.
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
	decided := map[string]bool{} // by a container with a label
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
			if label != ledger.SELinuxUnknown { // differing containers keep the pod from running anyway
				labels[name] = ledger.SELinuxNone
			}
		}
	}
	return labels
}

// effectiveOptions are a container's own whole options, or else the pod's.
func effectiveOptions(ofPod *corev1.PodSecurityContext, own *corev1.SecurityContext) *corev1.SELinuxOptions {
	switch {
	case own != nil && own.SELinuxOptions != nil:
		return own.SELinuxOptions
	case ofPod != nil:
		return ofPod.SELinuxOptions
	}
	return nil
}

// recursive: the volumes are relabelled file by file, and mounted without a label.
func recursive(p *corev1.Pod) bool {
	c := p.Spec.SecurityContext
	return c != nil && c.SELinuxChangePolicy != nil && *c.SELinuxChangePolicy == corev1.SELinuxChangePolicyRecursive
}

func seLinuxOf(o *corev1.SELinuxOptions) ledger.SELinux {
	switch {
	case *o == corev1.SELinuxOptions{}:
		return ledger.SELinuxNone
	case o.Level == "": // the node chooses one
		return ledger.SELinuxUnknown
	}
	return ledger.SELinuxLabel(o.User, o.Level)
}

// SlimContainers keep the labels of a pod's attachable volumes: one container for each label, none for most
// pods.
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
