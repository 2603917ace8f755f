// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// permissions are what a person has to say yes to, as to kubectl drain, by flags of the same
// names.
type permissions struct {
	ignoreDaemonSets, deleteEmptyDirData, force bool
}

// choose returns the pods of a node that a drain evicts: all but those of DaemonSets, those
// that the kubelet runs by a file, and those that a selector leaves out. It is an error when
// one needs a permission that was not given.
func (p permissions) choose(w *facts.World, node string, selector labels.Selector) (chosen []*corev1.Pod, err error) {
	var daemons, data, alone []string
	for _, pod := range w.Pods {
		owner := metav1.GetControllerOf(pod)
		_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
		if pod.Spec.NodeName != node || mirror || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if owner != nil && owner.Kind == "DaemonSet" {
			daemons = append(daemons, nameOf(pod))
			continue
		}
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !finished && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil }) {
			data = append(data, nameOf(pod))
		}
		if !finished && owner == nil {
			alone = append(alone, nameOf(pod))
		}
		chosen = append(chosen, pod)
	}
	var missing []string
	need := func(given bool, names []string, what, flag string) {
		if !given && len(names) > 0 {
			missing = append(missing, fmt.Sprintf("%s: %s (%s)", what, strings.Join(names, ", "), flag))
		}
	}
	need(p.ignoreDaemonSets, daemons, "DaemonSets have pods there, which would come back at once", "--ignore-daemonsets leaves them")
	need(p.deleteEmptyDirData, data, "pods would lose what they have in emptyDir volumes", "--delete-emptydir-data evicts them")
	need(p.force, alone, "no controller would make these pods again", "--force evicts them")
	if len(missing) > 0 {
		return nil, fmt.Errorf("node %s is not drained, and nothing was changed. %s", node, strings.Join(missing, ". "))
	}
	return chosen, nil
}
