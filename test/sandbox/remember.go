// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

type seenPod struct {
	namespace, name, node string
	uid                   types.UID
	claims                []string // namespace/name
	volumes               []seenVolume
}

type seenVolume struct{ name, handle string }

func (v *View) rememberPod(_, pod *corev1.Pod) {
	if pod == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.seen[pod.UID]
	if seen == nil {
		seen = &seenPod{namespace: pod.Namespace, name: pod.Name, uid: pod.UID, claims: claimsOf(pod)}
		v.seen[pod.UID] = seen
	}
	seen.node = pod.Spec.NodeName
}

func claimsOf(pod *corev1.Pod) []string {
	var out []string
	for _, volume := range pod.Spec.Volumes {
		switch {
		case volume.PersistentVolumeClaim != nil:
			out = append(out, pod.Namespace+"/"+volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			out = append(out, pod.Namespace+"/"+pod.Name+"-"+volume.Name)
		}
	}
	return out
}

func (v *View) rememberVolume(_, pv *corev1.PersistentVolume) {
	if pv == nil || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != DriverName || pv.Spec.ClaimRef == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.claimed[pv.Spec.ClaimRef.Namespace+"/"+pv.Spec.ClaimRef.Name] = seenVolume{name: pv.Name, handle: pv.Spec.CSI.VolumeHandle}
}

func (v *View) podsEver(namespace string) []seenPod {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []seenPod
	for _, pod := range v.seen {
		if namespace != "" && pod.namespace != namespace {
			continue
		}
		seen := *pod
		for _, claim := range pod.claims {
			if volume, ok := v.claimed[claim]; ok {
				seen.volumes = append(seen.volumes, volume)
			}
		}
		out = append(out, seen)
	}
	return out
}
