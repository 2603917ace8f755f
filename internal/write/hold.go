// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// writeHold creates a VolumeHold, or replaces exactly the decided version.
func (e *Executor) writeHold(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	fact, _ := r.Fact.(ledger.HoldSeen)
	hold := fact.Hold
	hold.Version = r.Version
	old, _ := e.config.Observer.Hold(r.Volume)
	claim := e.snapshot().ClaimOf(hold.PVs)
	object := convert.HoldObject(convert.HoldContext{Volume: r.Volume, Claim: claim, Old: old, Now: e.config.Now()}, hold)
	holds := e.config.Moorage.VolumeHolds()
	var written *v1alpha1.VolumeHold
	answer, err := ask(ctx, e, r, holdFact, func(ctx context.Context) (_ *v1alpha1.VolumeHold, err error) {
		if r.Version == "" {
			written, err = holds.Create(ctx, object, metav1.CreateOptions{})
			return written, err
		}
		object.ManagedFields = untracked()
		written, err = holds.Update(ctx, object, metav1.UpdateOptions{})
		return written, err
	})
	if err != nil {
		return answer, fmt.Errorf("write VolumeHold %s: %w", object.Name, err)
	}
	e.config.Events.HoldChanged(old, written, e.boundClaim(claim, hold.PVs))
	e.tellDroppedBoot(ctx, object, written)
	if lost := len(object.Status.Fenced) - len(written.Status.Fenced); lost > 0 {
		// The write is known; the forced detach after it must not begin.
		return protocol.Answer{Result: protocol.Refused, Facts: answer.Facts}, fmt.Errorf(
			"the API server dropped status.fenced of VolumeHold %s: its CustomResourceDefinition is older than this controller, and nothing can be detached by force: apply the definitions of this release", object.Name)
	}
	return answer, nil
}

// dropHold deletes exactly the decided version. The hold's reports then end.
func (e *Executor) dropHold(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	old, known := e.config.Observer.Hold(r.Volume)
	var pvs []string
	if v := e.snapshot().Volume(r.Volume); v != nil {
		pvs = v.PVs()
	}
	answer, err := e.drop(ctx, r)
	if err == nil && known {
		ended := old.DeepCopy()
		ended.Status = v1alpha1.VolumeHoldStatus{}
		e.config.Events.HoldChanged(old, ended, e.boundClaim(e.snapshot().ClaimOf(pvs), pvs))
	}
	return answer, err
}

// tellDroppedBoot says once a term that the API server drops holders' bootIDs. Volumes are attached and
// mounted all the same.
func (e *Executor) tellDroppedBoot(ctx context.Context, sent, written *v1alpha1.VolumeHold) {
	if sent.Status.Holder == nil || sent.Status.Holder.BootID == "" || written.Status.Holder != nil && written.Status.Holder.BootID != "" {
		return
	}
	e.droppedBoot.Do(func() {
		klog.FromContext(ctx).Error(errOldDefinition, "The API server dropped status.holder.bootID of a VolumeHold. "+
			"Until it keeps that, the next leader does not know a Node that was made again by the same boot, and believes its kubelet: apply the definitions of this release", "volumeHold", written.Name)
	})
}

var errOldDefinition = errors.New("the CustomResourceDefinition of VolumeHolds is older than this controller")

// untracked stops the API server's tracking of field managers, like an update that sets managedFields to
// one empty entry. Only the controller writes holds, always whole, and tracking is a third of an update's
// CPU. Creations are always tracked, and status subresources can't end it.
func untracked() []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{}} }

// boundClaim is the claim for messages (ledger.Snapshot.ClaimOf); nil if it is gone or replaced.
func (e *Executor) boundClaim(key ledger.ClaimKey, pvs []string) *ledger.Claim {
	claim := e.snapshot().Claim(key)
	if claim == nil || !slices.Contains(pvs, claim.PersistentVolume) {
		return nil
	}
	return claim
}
