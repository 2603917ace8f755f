// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
)

// lost has a reason that a claim is Lost say what has become of its PersistentVolume: the data is gone
// only where that is. Any other reason is left as it is.
func (w *World) lost(reason Reason, namespace, name string) Reason {
	claim := w.Claim(namespace, name)
	if codeOf(&reason) != arbiter.ClaimLost || claim == nil || claim.Spec.VolumeName == "" {
		return reason
	}
	pv := w.pvs[claim.Spec.VolumeName]
	switch {
	case pv == nil && w.unseen("persistentvolumes"):
		reason.Message = fmt.Sprintf("claim %s is Lost: its PersistentVolume %s is gone, or is bound to another claim", name, claim.Spec.VolumeName)
		reason.Do = askFor("persistentvolumes")
	case pv == nil:
	case pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == claim.UID:
		reason.Message = fmt.Sprintf("claim %s is Lost, and its PersistentVolume %s is there and free for it", name, pv.Name)
		reason.Changes = "kube-controller-manager binds the two again"
		reason.Do = "If it lasts, see whether kube-controller-manager runs: kubectl get lease -n kube-system"
	default:
		return w.boundToOther(reason, claim, pv)
	}
	return reason
}

// boundToOther is for a Lost claim whose PersistentVolume is there, and bound to another claim by its UID:
// one that lives, or one that is gone, as after a restore from a backup.
func (w *World) boundToOther(reason Reason, claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) Reason {
	ref := pv.Spec.ClaimRef
	if other := w.Claim(ref.Namespace, ref.Name); other != nil && other != claim && (ref.UID == "" || ref.UID == other.UID) {
		reason.Message = fmt.Sprintf("claim %s is Lost: its PersistentVolume %s is bound to claim %s/%s", claim.Name, pv.Name, ref.Namespace, ref.Name)
		reason.Do = "Make the claim anew with a volume of its own, such as a clone or a snapshot's"
		return reason
	}
	reason.Message = fmt.Sprintf("claim %s is Lost: its PersistentVolume %s is there with its data, and is bound to an earlier claim %s/%s that is gone", claim.Name, pv.Name, ref.Namespace, ref.Name)
	reason.Do = fmt.Sprintf("If the data is this claim's, bind the two again: kubectl patch pv %s -p '{\"spec\": {\"claimRef\": {\"namespace\": \"%s\", \"name\": \"%s\", \"uid\": \"%s\"}}}'",
		pv.Name, claim.Namespace, claim.Name, claim.UID)
	switch {
	case w.partUnseen("persistentvolumeclaims") && ref.Namespace != claim.Namespace:
		reason.Message = fmt.Sprintf("claim %s is Lost: its PersistentVolume %s is bound to claim %s/%s", claim.Name, pv.Name, ref.Namespace, ref.Name)
		reason.Do = askFor("persistentvolumeclaims")
	case pv.DeletionTimestamp != nil:
		reason.Message = fmt.Sprintf("claim %s is Lost: its PersistentVolume %s is bound to an earlier claim %s/%s, and is being deleted", claim.Name, pv.Name, ref.Namespace, ref.Name)
		reason.Do = w.adviceOn(arbiter.ClaimLost).Do
	case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
		reason.Do += ". Be quick: its reclaim policy is Delete"
	}
	return reason
}

// preboundCause says why a claim that names its PersistentVolume is not bound to it; nil while that takes
// no longer than it should.
func (w *World) preboundCause(claim *corev1.PersistentVolumeClaim) *Cause {
	if claim.Status.Phase != corev1.ClaimPending || w.unseen("persistentvolumes") || w.Now.Sub(claim.CreationTimestamp.Time) < bindPatience {
		return nil
	}
	name := claim.Spec.VolumeName
	c := &Cause{Of: OfClaim, Code: string(arbiter.ClaimUnbound), Since: claim.CreationTimestamp.Time,
		Message: fmt.Sprintf("claim %s names PersistentVolume %s, which does not exist", claim.Name, name),
		Do:      "Make that PersistentVolume, or make the claim anew without spec.volumeName: kubectl get pv"}
	pv := w.pvs[name]
	if pv == nil {
		return c
	}
	if ref := pv.Spec.ClaimRef; ref != nil && (ref.Namespace != claim.Namespace || ref.Name != claim.Name || ref.UID != "" && ref.UID != claim.UID) {
		c.Message = fmt.Sprintf("claim %s names PersistentVolume %s, which is bound to another claim: %s/%s with UID %s", claim.Name, name, ref.Namespace, ref.Name, ref.UID)
		c.Do = fmt.Sprintf("If that claim is gone, and the data is this one's, make the volume free: kubectl patch pv %s -p '{\"spec\":{\"claimRef\":null}}'. Otherwise make the claim anew without spec.volumeName", name)
		return c
	}
	c.Message = fmt.Sprintf("claim %s names PersistentVolume %s, and is not bound to it", claim.Name, name)
	c.Do = fmt.Sprintf("Compare size, access modes, volume mode and class of the two: kubectl describe pvc -n %s %s; kubectl describe pv %s", claim.Namespace, claim.Name, name)
	return c
}

// bindPatience is for how long a claim may wait for a PersistentVolume that it names.
const bindPatience = 30 * time.Second
