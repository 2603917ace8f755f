// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/controller/attacher/objects"
	"github.com/moorage-dev/moorage/internal/convert"
)

type outcome struct {
	result decide.Result
	// attachment and volume are newer states; gone: the attachment is deleted.
	attachment *storagev1.VolumeAttachment
	volume     *corev1.PersistentVolume
	gone       bool
	secret     map[string]string
}

func failed(err error) outcome { return outcome{result: decide.Result{Failed: objects.Reason(err)}} }

// prepare collects a step's inputs under the lock; the returned function works without it.
func (e *engine) prepare(step decide.Step) func(context.Context) outcome {
	call, known := e.calls[step.UID]
	if !known {
		call = e.callOf(step.Volume)
	}
	switch step.Do {
	case decide.Publish, decide.Unpublish:
		secrets := e.secrets[step.UID]
		delete(e.secrets, step.UID)
		return func(ctx context.Context) outcome { return e.call(ctx, step, call, secrets) }
	case decide.Look:
		return func(ctx context.Context) outcome { return e.ask(ctx, step, call) }
	case decide.ReadSecret:
		return func(ctx context.Context) outcome { return e.readSecret(ctx, call.Secret) }
	case decide.StampPV:
		pv := e.store.volumes[call.PersistentVolume]
		return func(ctx context.Context) outcome { return e.stampVolume(ctx, pv, call.PersistentVolume) }
	default:
		va := e.store.attachments[step.Name]
		return func(ctx context.Context) outcome { return e.write(ctx, step, va) }
	}
}

// callOf has a volume's call inputs, from another attachment if one's PersistentVolume is unseen.
func (e *engine) callOf(id decide.VolumeID) objects.Call {
	for _, call := range e.calls {
		if call.Handle == string(id) {
			return call
		}
	}
	return objects.Call{Handle: string(id)}
}

func (e *engine) call(ctx context.Context, step decide.Step, call objects.Call, secrets map[string]string) outcome {
	var o outcome
	var err error
	if step.Do == decide.Publish {
		o.result.Context, err = e.config.Backend.Publish(ctx, call, step.NodeID, secrets)
	} else {
		err = e.config.Backend.Unpublish(ctx, call, step.NodeID, secrets)
	}
	o.result.Failed = objects.Reason(err)
	return o
}

func (e *engine) ask(ctx context.Context, step decide.Step, call objects.Call) outcome {
	handle, err := e.config.Reader.ListedHandle(call, step.NodeID)
	if err != nil {
		return failed(err)
	}
	there, err := e.config.Backend.Published(ctx, handle, step.NodeID)
	return outcome{result: decide.Result{Failed: objects.Reason(err), There: there}}
}

func (e *engine) readSecret(ctx context.Context, ref *corev1.SecretReference) outcome {
	if ref == nil {
		return failed(fmt.Errorf("the volume names no Secret any more"))
	}
	secret, err := e.config.API.GetSecret(ctx, ref.Namespace, ref.Name)
	if err != nil {
		return failed(fmt.Errorf("read Secret %s/%s, which the driver's call needs: %w", ref.Namespace, ref.Name, err))
	}
	return outcome{secret: secret}
}

func (e *engine) stampVolume(ctx context.Context, pv *corev1.PersistentVolume, name string) outcome {
	if pv == nil {
		return failed(fmt.Errorf("PersistentVolume %s is not there any more", name))
	}
	patch, err := objects.StampPersistentVolume(pv, e.config.Reader.Finalizer())
	if err != nil {
		return failed(err)
	}
	updated, err := e.config.API.PatchPersistentVolume(ctx, name, patch)
	if err == nil {
		return outcome{volume: updated}
	}
	o := failed(fmt.Errorf("put the finalizer on PersistentVolume %s: %w", name, err))
	if changed(err) {
		if o.volume, err = e.config.API.GetPersistentVolume(ctx, name); err == nil {
			o.result.Moved = true
		}
	}
	return o
}

func (e *engine) write(ctx context.Context, step decide.Step, va *storagev1.VolumeAttachment) outcome {
	if va == nil || va.UID != types.UID(step.UID) {
		o := failed(fmt.Errorf("VolumeAttachment %s is not there any more", step.Name))
		o.result.Moved = true
		return o
	}
	patch, status, err := e.patch(step, va)
	if err != nil {
		return failed(err)
	}
	updated, err := e.config.API.PatchAttachment(ctx, step.Name, patch, status)
	if err == nil {
		return outcome{attachment: updated}
	}
	o := failed(fmt.Errorf("write VolumeAttachment %s: %w", step.Name, err))
	switch {
	case isGone(err):
		o.result.Moved, o.gone = true, true
	case changed(err):
		fresh, err := e.config.API.GetAttachment(ctx, step.Name)
		o.result.Moved = err == nil || apierrors.IsNotFound(err)
		o.gone = apierrors.IsNotFound(err) || err == nil && fresh.UID != va.UID
		if err == nil && !o.gone {
			o.attachment = fresh
		}
	}
	return o
}

// isGone says whether the object is deleted: a webhook's NotFound is no proof.
func isGone(err error) bool { return apierrors.IsNotFound(err) && !convert.Denied(err) }

// changed: the object has changed, and the write was refused; a failed test is 422.
func changed(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsConflict(err) }

// patch also says whether the patch is of the status.
func (e *engine) patch(step decide.Step, va *storagev1.VolumeAttachment) ([]byte, bool, error) {
	status := *va.Status.DeepCopy()
	switch step.Do {
	case decide.Stamp:
		patch, err := objects.StampAttachment(va, e.config.Reader.Finalizer(), step.NodeID)
		return patch, false, err
	case decide.Release:
		patch, err := objects.ReleaseAttachment(va, e.config.Reader.Finalizer())
		return patch, false, err
	case decide.MarkAttached:
		status = storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: step.Context, DetachError: status.DetachError}
	case decide.MarkDetached:
		status = storagev1.VolumeAttachmentStatus{AttachError: status.AttachError}
	case decide.ReportAttach:
		status.AttachError = objects.VolumeError(step.Reason, e.now())
	case decide.ReportDetach:
		status.DetachError = objects.VolumeError(step.Reason, e.now())
	default:
		return nil, false, fmt.Errorf("%s is no write: this is a bug", step.Do)
	}
	patch, err := objects.Status(va, status)
	return patch, true, err
}

func (e *engine) absorb(step decide.Step, o outcome) []decide.VolumeID {
	var touched []decide.VolumeID
	if pv := o.volume; pv != nil {
		if have := e.store.volumes[pv.Name]; have != nil && have.UID == pv.UID {
			touched = append(touched, e.sawVolume(pv)...)
		}
	}
	have := e.store.attachments[step.Name]
	if have == nil || have.UID != types.UID(step.UID) {
		return touched
	}
	if o.gone {
		return append(touched, e.lostAttachment(have)...)
	}
	if o.attachment != nil {
		touched = append(touched, e.sawAttachment(o.attachment)...)
	}
	return touched
}
