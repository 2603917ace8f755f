// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// mountAdvice is what to do about a volume that the kubelet of a pod's node can't mount, by the name that
// the kubelet gives it: its PersistentVolume's, or that in the pod.
func (w *World) mountAdvice(p *corev1.Pod, volume string) string {
	plugin, own := w.kubeletsOwn(p, volume)
	if !own {
		return fmt.Sprintf("Read the message; the log of the driver's node plugin at %s has more", p.Spec.NodeName)
	}
	do := fmt.Sprintf("Read the message. The kubelet mounts it by itself%s, without a CSI driver: its log at %s has more", plugin, p.Spec.NodeName)
	switch plugin {
	case byISCSI:
		do += ", and those of iscsid and multipathd there"
	case byFC:
		do += ", and that of multipathd there"
	}
	return do
}

// sameVolume is for a pod with two PersistentVolumes that are one volume by driver and handle: its kubelet
// knows volumes by these, mounts one, and may wait forever for the other. Nil for any other.
func (w *World) sameVolume(p *corev1.Pod) *Cause {
	first := map[ledger.VolumeID]*corev1.PersistentVolumeClaim{}
	for _, claim := range w.ClaimsOf(p.Namespace, p.Spec.Volumes) {
		pv := w.Snapshot.PersistentVolume(claim.Spec.VolumeName)
		if pv == nil || pv.Volume.IsZero() {
			continue
		}
		other := first[pv.Volume]
		if other == nil {
			first[pv.Volume] = claim
		} else if other.Spec.VolumeName != claim.Spec.VolumeName {
			return &Cause{Of: OfMount, Code: "SameVolume", Since: waitsSince(p),
				Message: fmt.Sprintf("its claims %s and %s have different PersistentVolumes, %s and %s, which are one volume: %s of driver %s. The kubelet mounts it once for the pod, and may wait forever for the other",
					other.Name, claim.Name, other.Spec.VolumeName, claim.Spec.VolumeName, pv.Volume.Handle, pv.Volume.Driver),
				Do: "Use one claim for both mounts. If the two are to be different, such as folders or access points of one file system, give each PersistentVolume a volumeHandle of its own"}
		}
	}
	return nil
}

// Plugins of the kubelet's own that need tools of the node.
const (
	byISCSI = " (iSCSI)"
	byFC    = " (Fibre Channel)"
)

// kubeletsOwn says whether a plugin of the kubelet's own mounts a volume, and no CSI driver's, and which of
// those that need tools of the node. What in-tree drivers of clouds had is the CSI driver's that took their place.
func (w *World) kubeletsOwn(p *corev1.Pod, volume string) (plugin string, own bool) {
	inline := slices.IndexFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == volume && v.PersistentVolumeClaim == nil && v.Ephemeral == nil
	})
	if inline >= 0 {
		v := &p.Spec.Volumes[inline]
		attached := slices.ContainsFunc(w.PodFact(p).Volumes, func(fact ledger.PodVolume) bool { return fact.Name == volume && ofCSI(fact.Inline) })
		return pluginOf(v.ISCSI != nil, v.FC != nil), v.CSI == nil && !attached
	}
	pv, fact := w.pvs[volume], w.Snapshot.PersistentVolume(volume)
	if pv == nil || fact == nil {
		return "", false
	}
	return pluginOf(pv.Spec.ISCSI != nil, pv.Spec.FC != nil), pv.Spec.CSI == nil && !ofCSI(fact.Volume)
}

// ofCSI says whether a volume is a CSI driver's.
func ofCSI(id ledger.VolumeID) bool { return !id.IsZero() && !id.NoAttach() }

func pluginOf(iscsi, fc bool) string {
	switch {
	case iscsi:
		return byISCSI
	case fc:
		return byFC
	}
	return ""
}
