// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
)

// stray has the driver's IDs of nodes with a PersistentVolume's volume but no VolumeAttachment, joined by
// commas; empty: none any more.
type stray struct {
	pv    *corev1.PersistentVolume
	nodes string
}

// strayed lists the strays to write. A list may be older than a detach: only entries in two lists in a row
// count.
func (e *engine) strayed(published map[string][]string, accounted map[string]map[string]bool) []stray {
	var list []stray
	seen := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(e.store.volumes)) {
		pv := e.store.volumes[name]
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != e.config.Reader.Driver {
			continue
		}
		var lost, again []string
		for _, node := range published[pv.Spec.CSI.VolumeHandle] {
			if !accounted[pv.Spec.CSI.VolumeHandle][node] {
				lost = append(lost, node)
			}
		}
		slices.Sort(lost)
		for _, node := range lost {
			if slices.Contains(e.strays[name], node) {
				again = append(again, node)
			}
		}
		if len(lost) > 0 {
			seen[name] = lost
		}
		if nodes := strings.Join(again, ","); nodes != pv.Annotations[v1alpha1.AnnotationStrays] {
			list = append(list, stray{pv, nodes})
		}
	}
	e.strays = seen
	return list
}

// tell repeats a failed write after the next list.
func (e *engine) tell(ctx context.Context, list []stray) {
	for _, s := range list {
		if !e.config.Leading() {
			return
		}
		patch, err := objects.TellStrays(s.pv, s.nodes)
		if err == nil {
			var fresh *corev1.PersistentVolume
			if fresh, err = e.config.API.PatchPersistentVolume(ctx, s.pv.Name, patch); err == nil {
				e.SeeVolume(fresh)
			}
		}
		if err != nil {
			klog.FromContext(ctx).Info("What the driver lists was not told", "PersistentVolume", s.pv.Name, "nodes", s.nodes, "err", err.Error())
		}
	}
}
