// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// forgottenFix is what a person does about a volume that a kubelet does not know of.
const forgottenFix = "Unless a pod there uses it, unmount it at the node (umount, with the path below the kubelet's folder), or drain the node and reboot it: docs/operate/runbook.md#moorageforgottenstagingpath."

// readNodeVolumes reads what nodes say of themselves, where a moorage-node runs. The
// definition may be older than this.
func readNodeVolumes(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	list, err := c.Moorage.NodeVolumes().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		e.NodeVolumes.Err = err
	default:
		e.NodeVolumes.Items = list.Items
	}
}

// checkNodeVolumes looks for volumes that a node has staged or mounted, that no pod's
// folder there names, and that its kubelet does not list either: it has forgotten them.
// One that it lists it is about to stage, or to unstage.
func checkNodeVolumes(e *Evidence) []Finding {
	if e.NodeVolumes.Err != nil {
		return unchecked("nodevolumes.moorage.dev", e.NodeVolumes.Err)
	}
	var list []Finding
	for i := range e.NodeVolumes.Items {
		n := &e.NodeVolumes.Items[i]
		for _, v := range n.Status.Volumes {
			if v.Forgotten && !e.listsInUse(n.Name, v) {
				list = append(list, found(Warning, n.Name+": "+v.Path, forgottenFix,
					"node %s has volume %s of driver %s staged or mounted, and its kubelet does not know of it", n.Name, v.Handle, v.Driver))
			}
		}
		if len(n.Status.Unknown) > 0 {
			list = append(list, found(Unknown, n.Status.Unknown[0], "docs/operate/node.md says what moorage-node has to be able to read.",
				"moorage-node at %s can't read all of what the node has", n.Name))
		}
	}
	if len(list) == 0 && len(e.NodeVolumes.Items) > 0 {
		list = append(list, ok("nodes that say what they have staged, of which their kubelets know: %d", len(e.NodeVolumes.Items)))
	}
	return list
}

// listsInUse says whether a node's kubelet lists a volume in volumesInUse.
func (e *Evidence) listsInUse(node string, v v1alpha1.NodeVolume) bool {
	name := translate.UniqueName(ledger.VolumeID{Driver: v.Driver, Handle: v.Handle})
	return slices.ContainsFunc(e.World.Nodes, func(n *corev1.Node) bool {
		return n.Name == node && slices.Contains(n.Status.VolumesInUse, name)
	})
}
