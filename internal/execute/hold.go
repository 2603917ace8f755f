// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// writeHold creates a VolumeHold, or replaces it at exactly the version that
// was decided on.
func (e *Executor) writeHold(ctx context.Context, step arbiter.Step) error {
	old, _ := e.config.Observer.Hold(step.Volume)
	hold := step.Hold
	hold.Version = step.Expect
	object := translate.HoldObject(translate.HoldContext{
		Volume: step.Volume, Claim: e.claimOf(step), Old: old, Now: e.config.Now(),
	}, hold)
	holds := e.config.Moorage.VolumeHolds()
	written, err := call(ctx, e, func(ctx context.Context) (*v1alpha1.VolumeHold, error) {
		if step.Expect == "" {
			return holds.Create(ctx, object, metav1.CreateOptions{})
		}
		object.ManagedFields = untracked()
		return holds.Update(ctx, object, metav1.UpdateOptions{})
	})
	switch {
	case err == nil:
		e.config.Observer.Saw(written)
		e.config.Events.HoldChanged(old, written, e.boundClaim(step))
		return nil
	case apierrors.IsAlreadyExists(err), apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return e.rereadHold(ctx, step.Volume)
	}
	return fmt.Errorf("write VolumeHold %s: %w", object.Name, err)
}

// untracked has the API server not track any more which manager owns which field
// of an object, as an update does that sets managedFields to one empty entry. Only
// the controller writes holds, and always as a whole, and tracking is a third of
// the CPU that an update of one costs the API server. Creations are tracked
// whatever they say, and status subresources can't end it.
func untracked() []metav1.ManagedFieldsEntry { return []metav1.ManagedFieldsEntry{{}} }

// rereadHold takes in the hold as it is now.
func (e *Executor) rereadHold(ctx context.Context, v ledger.VolumeID) error {
	name := v1alpha1.VolumeHoldName(v.Driver, v.Handle)
	hold, err := call(ctx, e, func(ctx context.Context) (*v1alpha1.VolumeHold, error) {
		return e.config.Moorage.VolumeHolds().Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case err == nil:
		e.config.Observer.Saw(hold)
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("read VolumeHold %s: %w", name, err)
	}
	return fmt.Errorf("%w: VolumeHold %s has another version", ErrStale, name)
}

// deleteHold deletes a hold, after consistent reads of the PersistentVolumes
// that it names: a cache that has not heard of one yet proves nothing, and a
// hold that is made anew counts its transitions from the beginning. One that
// names none was written for an inline volume, or by somebody who had not heard
// of any; there are few. One without transitions has nothing to lose.
func (e *Executor) deleteHold(ctx context.Context, step arbiter.Step) error {
	if err := e.proveForgotten(ctx, step); err != nil {
		return err
	}
	name := v1alpha1.VolumeHoldName(step.Volume.Driver, step.Volume.Handle)
	err := e.try(ctx, func(ctx context.Context) error {
		return e.config.Moorage.VolumeHolds().Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To(step.Expect)},
		})
	})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		return e.rereadHold(ctx, step.Volume)
	}
	return fmt.Errorf("delete VolumeHold %s: %w", name, err)
}

// proveForgotten returns nil when nothing is left that counts on a hold's
// transitions.
func (e *Executor) proveForgotten(ctx context.Context, step arbiter.Step) error {
	switch {
	case step.Hold.Transitions == 0:
		return nil
	case len(step.Hold.PVs) == 0:
		return e.proveNone(ctx, step.Volume)
	}
	for _, pv := range step.Hold.PVs {
		if err := e.proveGone(ctx, pv); err != nil {
			return err
		}
	}
	return nil
}

// proveGone returns nil when a PersistentVolume does not exist, and takes it in
// when it does.
func (e *Executor) proveGone(ctx context.Context, name string) error {
	pv, err := call(ctx, e, func(ctx context.Context) (*corev1.PersistentVolume, error) {
		return e.config.Kube.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read PersistentVolume %s: %w", name, err)
	}
	e.config.Observer.Saw(pv)
	return fmt.Errorf("%w: PersistentVolume %s exists", ErrStale, name)
}

// pvPage is how many PersistentVolumes are read at a time.
const pvPage = 500

// proveNone returns nil when no PersistentVolume names a volume, and takes the
// first in that does.
func (e *Executor) proveNone(ctx context.Context, v ledger.VolumeID) error {
	for options := (metav1.ListOptions{Limit: pvPage}); ; {
		list, err := call(ctx, e, func(ctx context.Context) (*corev1.PersistentVolumeList, error) {
			return e.config.Kube.CoreV1().PersistentVolumes().List(ctx, options)
		})
		if err != nil {
			return fmt.Errorf("list the PersistentVolumes: %w", err)
		}
		for i := range list.Items {
			if pv, _ := translate.PersistentVolume(&list.Items[i]); pv.Volume == v {
				e.config.Observer.Saw(&list.Items[i])
				return fmt.Errorf("%w: PersistentVolume %s exists", ErrStale, pv.Name)
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}

// claimOf is the claim that people know a volume by.
func (e *Executor) claimOf(step arbiter.Step) ledger.ClaimKey {
	s := e.snapshot()
	for _, name := range step.Hold.PVs {
		if pv := s.PersistentVolume(name); pv != nil && pv.Claim.Name != "" {
			return pv.Claim
		}
	}
	return ledger.ClaimKey{}
}

// boundClaim is that claim itself; nil when it is gone, or another one by now.
func (e *Executor) boundClaim(step arbiter.Step) *ledger.Claim {
	claim := e.snapshot().Claim(e.claimOf(step))
	if claim == nil || !slices.Contains(step.Hold.PVs, claim.PersistentVolume) {
		return nil
	}
	return claim
}
