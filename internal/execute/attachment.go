// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// confirmed holds the UIDs of the attachments that this process created or
// last wrote to and has sent no DELETE for since. A DELETE of an older process
// that is still in flight names an older version of them, and fails.
type confirmed struct {
	mu   sync.Mutex
	uids map[string]bool
}

func (c *confirmed) has(uid string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uids[uid]
}

func (c *confirmed) set(uid string, is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !is:
		delete(c.uids, uid)
	case c.uids == nil:
		c.uids = map[string]bool{uid: true}
	default:
		c.uids[uid] = true
	}
}

// Prune forgets the confirmed attachments that exist no more.
func (e *Executor) Prune(s ledger.Snapshot) {
	exists := map[string]bool{}
	for v := range s.Volumes() {
		for i := range v.Places {
			for _, a := range v.Places[i].Attachments() {
				exists[a.UID] = true
			}
		}
	}
	e.confirmed.mu.Lock()
	defer e.confirmed.mu.Unlock()
	for uid := range e.confirmed.uids {
		if !exists[uid] {
			delete(e.confirmed.uids, uid)
		}
	}
}

// createAttachment creates the VolumeAttachment of a volume at a node. One
// that exists already will do if it is of the same volume. From before it is sent
// until it is proved what came of it, the ledger knows that it may be there.
func (e *Executor) createAttachment(ctx context.Context, step arbiter.Step) error {
	object, err := e.newAttachment(step)
	if err != nil {
		return err
	}
	e.config.Observer.Apply(ledger.AttachSent{Volume: step.Volume, Node: step.Node})
	if place := e.snapshot().Volume(step.Volume).Place(step.Node); place == nil || !place.Sent {
		return fmt.Errorf("%w: nobody at node %s is there any more for whom it was to be created", ErrStale, step.Node)
	}
	attachments := e.config.Kube.StorageV1().VolumeAttachments()
	created, err := call(ctx, e, func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
		return attachments.Create(ctx, object, metav1.CreateOptions{})
	})
	if err == nil {
		e.confirmed.set(string(created.UID), true)
		e.config.Observer.Saw(created)
		e.settled(step)
		return nil
	}
	failed := fmt.Errorf("create VolumeAttachment %s: %w", object.Name, err)
	switch {
	case mayFollow(err):
		// Nothing else is decided about the volume until it is known whether it
		// is attached here: a late creation would be a second attachment.
		if err := e.outlast(ctx); err != nil {
			return err
		}
	case !apierrors.IsAlreadyExists(err):
		e.settled(step)
		return failed
	}
	found, err := e.lookFor(ctx, step)
	switch {
	case err != nil:
		return err
	case found == nil:
		return failed
	}
	if found.Spec.Attacher != object.Spec.Attacher || found.Spec.NodeName != object.Spec.NodeName ||
		!sameSource(found.Spec.Source, object.Spec.Source) {
		return fmt.Errorf("VolumeAttachment %s exists and is of another volume: it takes a person to delete it", object.Name)
	}
	return nil
}

// findAttachment finds out what came of a creation that an earlier step has sent,
// and whose time was over when that ended.
func (e *Executor) findAttachment(ctx context.Context, step arbiter.Step) error {
	_, err := e.lookFor(ctx, step)
	return err
}

// lookFor reads the attachment whose creation was sent and can be under way no
// more: nil without an error when it is not there.
func (e *Executor) lookFor(ctx context.Context, step arbiter.Step) (*storagev1.VolumeAttachment, error) {
	found, err := e.rereadAttachment(ctx, step.Attachment)
	if err != nil && !errors.Is(err, ErrStale) {
		return nil, err
	}
	e.settled(step)
	return found, nil
}

// settled tells the ledger that it knows what came of a creation.
func (e *Executor) settled(step arbiter.Step) {
	e.config.Observer.Apply(ledger.AttachSettled{Volume: step.Volume, Node: step.Node})
}

// sameSource says whether two attachments may be of one volume. Two names of
// PersistentVolumes may: several can have one handle.
func sameSource(a, b storagev1.VolumeAttachmentSource) bool {
	if a.PersistentVolumeName != nil && b.PersistentVolumeName != nil {
		return true
	}
	return reflect.DeepEqual(a, b)
}

func (e *Executor) newAttachment(step arbiter.Step) (*storagev1.VolumeAttachment, error) {
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:        step.Attachment,
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			Annotations: map[string]string{},
		},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: step.Volume.Driver, NodeName: string(step.Node)},
	}
	if step.Beside != "" {
		object.Annotations[v1alpha1.AnnotationBeside] = string(step.Beside)
	}
	if step.Transitions > 0 {
		object.Annotations[v1alpha1.AnnotationTransitions] = strconv.FormatInt(step.Transitions, 10)
	}
	// What the attacher would write first is written here already: one write,
	// and one event that makes it look twice, less for each attach.
	if step.NodeID != "" && e.config.Observer.AttacherCalls(step.Volume.Driver) {
		object.Annotations[translate.AnnotationNodeID] = step.NodeID
		object.Finalizers = []string{translate.AttacherFinalizer(step.Volume.Driver)}
	}
	if step.PV != "" {
		object.Spec.Source.PersistentVolumeName = ptr.To(step.PV)
		return object, nil
	}
	for pod := range e.podsOf(step) {
		if spec := translate.InlineSource(pod, step.Volume); spec != nil {
			object.Spec.Source.InlineVolumeSpec = spec
			return object, nil
		}
	}
	return nil, fmt.Errorf("%w: no pod names the inline volume any more", ErrStale)
}

// markWanted tells the attacher that the volume of an attachment that is being
// deleted is wanted where it is.
func (e *Executor) markWanted(ctx context.Context, step arbiter.Step) error {
	_, err := e.annotate(ctx, step, v1alpha1.AnnotationWanted, cmp.Or(step.Who, string(step.Node)))
	return err
}

// confirm gives an attachment a new annotation value, so that every DELETE
// still in flight names an older version and fails, and proves by the answer
// that none has succeeded.
func (e *Executor) confirm(ctx context.Context, step arbiter.Step) error {
	written, err := e.annotate(ctx, step, v1alpha1.AnnotationConfirmed, e.config.Token())
	if err != nil {
		return err
	}
	if !Confirms(step, written) {
		return fmt.Errorf("%w: VolumeAttachment %s is not attached for good", ErrStale, step.Attachment)
	}
	e.confirmed.set(step.UID, true)
	return nil
}

// annotate writes an annotation of exactly the attachment that is meant, and
// takes the answer in.
func (e *Executor) annotate(ctx context.Context, step arbiter.Step, key, value string) (*storagev1.VolumeAttachment, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         step.UID,
		"annotations": map[string]string{key: value},
	}})
	if err != nil {
		return nil, fmt.Errorf("encode the patch of VolumeAttachment %s: %w", step.Attachment, err)
	}
	written, err := call(ctx, e, func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
		return e.config.Kube.StorageV1().VolumeAttachments().Patch(ctx, step.Attachment, types.MergePatchType, patch, metav1.PatchOptions{})
	})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err):
		return nil, fmt.Errorf("%w: VolumeAttachment %s is not the one it was", ErrStale, step.Attachment)
	case err != nil:
		return nil, fmt.Errorf("write annotation %s of VolumeAttachment %s: %w", key, step.Attachment, err)
	}
	e.config.Observer.Saw(written)
	return written, nil
}

// Confirms says whether the answer to a new annotation value proves that an
// attachment is there to stay: the one that was meant, attached, and not being
// deleted. It is pure.
func Confirms(step arbiter.Step, written *storagev1.VolumeAttachment) bool {
	return string(written.UID) == step.UID && written.Status.Attached && written.DeletionTimestamp == nil
}

// Deletion is how an attachment is deleted: exactly the version that the
// proofs are about. It is pure.
func Deletion(step arbiter.Step) metav1.DeleteOptions {
	return metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID(step.UID)), ResourceVersion: ptr.To(step.Version)},
	}
}

// deleteAttachment deletes exactly the attachment that the proofs are about.
func (e *Executor) deleteAttachment(ctx context.Context, step arbiter.Step) error {
	if step.Rule != "" {
		if err := e.stillRuled(ctx, step); err != nil {
			return err
		}
	}
	e.confirmed.set(step.UID, false)
	err := e.try(ctx, func(ctx context.Context) error {
		return e.config.Kube.StorageV1().VolumeAttachments().Delete(ctx, step.Attachment, Deletion(step))
	})
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		if _, err := e.rereadAttachment(ctx, step.Attachment); err != nil {
			return err
		}
		return fmt.Errorf("%w: VolumeAttachment %s has a newer version", ErrStale, step.Attachment)
	}
	return fmt.Errorf("delete VolumeAttachment %s: %w", step.Attachment, err)
}

// stillRuled reads the Node and proves that it is as it was when a rule of
// force was found to hold for it: one that is Ready again is never forced.
func (e *Executor) stillRuled(ctx context.Context, step arbiter.Step) error {
	node, err := call(ctx, e, func(ctx context.Context) (*corev1.Node, error) {
		return e.config.Kube.CoreV1().Nodes().Get(ctx, string(step.Node), metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err) && step.NodeUID == "":
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: node %s is gone", ErrStale, step.Node)
	case err != nil:
		return fmt.Errorf("read node %s before a forced detach: %w", step.Node, err)
	}
	if string(node.UID) != step.NodeUID || node.ResourceVersion != step.NodeVersion {
		e.config.Observer.Saw(node)
		return fmt.Errorf("%w: node %s is not as it was", ErrStale, step.Node)
	}
	return nil
}

// rereadAttachment takes in the attachment as it is now.
func (e *Executor) rereadAttachment(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	found, err := call(ctx, e, func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
		return e.config.Kube.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: VolumeAttachment %s is gone", ErrStale, name)
	case err != nil:
		return nil, fmt.Errorf("read VolumeAttachment %s: %w", name, err)
	}
	e.config.Observer.Saw(found)
	return found, nil
}
