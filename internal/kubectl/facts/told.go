// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// blind says whether kinds could not be seen without which nothing can be
// computed about a bound pod's volumes.
func (w *World) blind() bool {
	return slices.ContainsFunc(w.Unseen, func(u Unseen) bool {
		switch u.Resource {
		case "persistentvolumes", "nodes", "volumeattachments.storage.k8s.io", "persistentvolumeclaims":
			return u.Namespace == ""
		}
		return false
	})
}

// toldVolumes are the pod's volumes by what the controller has written on the
// pod: all that somebody can know who may read nothing but their own namespace.
// False when nothing is written.
func (w *World) toldVolumes(p *corev1.Pod) ([]PodVolume, bool) {
	status, told := v1alpha1.VolumeStatusOf(p)
	if !told {
		return nil, false
	}
	var list []PodVolume
	for _, v := range status.Volumes {
		name := v.Claim
		if name == "" {
			name = v.Name
		}
		out := PodVolume{Name: name, SafeToMount: v.SafeToMount, Volume: Volume{
			PersistentVolume: v.PersistentVolume, Access: accessUnknown, State: stateUnknown, Transitions: v.Transitions,
		}}
		if v.Claim != "" {
			out.Claim = p.Namespace + "/" + v.Claim
			if claim := w.Snapshot.Claim(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim}); claim != nil {
				out.Access = accessOf(claim.Access)
			}
		}
		if v.SafeToMount {
			out.State = stateAttached
		}
		if v.Reason != "" && !v.SafeToMount {
			// v.Node is the pod's own, not the one that the reason is about.
			code := ledger.Code(v.Reason)
			out.Reasons = []Reason{{
				Code: v.Reason, Message: cmp.Or(v.Message, "nobody has said yet what keeps volume "+name), Since: waitsSince(p), Changes: w.adviceOn(code).Changes, Do: w.safeAdvice(code, ""),
			}}
		}
		list = append(list, out)
	}
	return list, true
}
