// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// seenPod remembers a pod beyond its life.
type seenPod struct {
	namespace, name, node string
	uid                   types.UID
	claims                []string // namespace/name
	volumes               []seenVolume
}

// seenVolume is a PersistentVolume by name and handle.
type seenVolume struct{ name, handle string }

// rememberPod keeps what the timeline needs of a pod.
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

// claimsOf lists the claims that a pod mounts, as namespace/name.
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

// rememberVolume keeps which volume is behind a claim.
func (v *View) rememberVolume(_, pv *corev1.PersistentVolume) {
	if pv == nil || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != DriverName || pv.Spec.ClaimRef == nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.claimed[pv.Spec.ClaimRef.Namespace+"/"+pv.Spec.ClaimRef.Name] = seenVolume{name: pv.Name, handle: pv.Spec.CSI.VolumeHandle}
}

// podsEver lists the pods of a namespace that exist or existed, with the
// volumes behind their claims.
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
