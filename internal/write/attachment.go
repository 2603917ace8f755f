// SPDX-License-Identifier: Apache-2.0

package write

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

func (e *Executor) createAttachment(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	object, err := e.newAttachment(r)
	if err != nil {
		return answerOf(r, err), err
	}
	answer, err := ask(ctx, e, r, attachmentFact, func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
		return e.config.Kube.StorageV1().VolumeAttachments().Create(ctx, object, metav1.CreateOptions{})
	})
	if err != nil {
		err = fmt.Errorf("create VolumeAttachment %s: %w", object.Name, err)
	}
	return answer, err
}

func (e *Executor) newAttachment(r protocol.Request) (*storagev1.VolumeAttachment, error) {
	fact, _ := r.Fact.(ledger.Attachment)
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fact.Name,
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			Annotations: map[string]string{},
		},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: fact.Driver, NodeName: string(fact.Node)},
	}
	if r.Beside != "" {
		object.Annotations[v1alpha1.AnnotationBeside] = string(r.Beside)
	}
	if fact.Cooperative {
		object.Annotations[v1alpha1.AnnotationCooperative] = "true"
	}
	if fact.Transitions > 0 {
		object.Annotations[v1alpha1.AnnotationTransitions] = strconv.FormatInt(fact.Transitions, 10)
	}
	note, err := convert.NoteText(fact.Note)
	if err != nil {
		return nil, fmt.Errorf("%w: encode the note of VolumeAttachment %s: %w", errNotSent, fact.Name, err)
	}
	if note != "" {
		object.Annotations[v1alpha1.AnnotationHolder] = note
	}
	// This includes the attacher's first write, and saves a write and an event for each attach.
	if fact.NodeID != "" && e.config.Observer.AttacherCalls(fact.Driver) {
		object.Annotations[convert.AnnotationNodeID] = fact.NodeID
		object.Finalizers = []string{convert.AttacherFinalizer(fact.Driver)}
	}
	if fact.PersistentVolume != "" {
		object.Spec.Source.PersistentVolumeName = ptr.To(fact.PersistentVolume)
		return object, nil
	}
	for pod := range e.podsOf(r.Volume) {
		if spec := convert.InlineSource(pod, r.Volume); spec != nil {
			object.Spec.Source.InlineVolumeSpec = spec
			return object, nil
		}
	}
	return nil, fmt.Errorf("%w: no pod names the inline volume any more", errUnfit)
}

func (e *Executor) podsOf(id ledger.VolumeID) iter.Seq[*corev1.Pod] {
	return func(yield func(*corev1.Pod) bool) {
		s := e.snapshot()
		v := s.Volume(id)
		if v == nil {
			return
		}
		for i := range v.OnNodes {
			for _, u := range v.OnNodes[i].Users {
				fact := s.Pod(u.Pod)
				if fact == nil {
					continue
				}
				if pod, ok := e.config.Observer.Pod(fact.Namespace, fact.Name); ok && string(pod.UID) == fact.UID && !yield(pod) {
					return
				}
			}
		}
	}
}

func (e *Executor) annotate(ctx context.Context, r protocol.Request, key, value string) (protocol.Answer, error) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         r.UID,
		"annotations": map[string]string{key: cmp.Or(value, string(r.Node))},
	}})
	if err != nil {
		err = fmt.Errorf("%w: encode the patch of VolumeAttachment %s: %w", errNotSent, r.Key, err)
		return answerOf(r, err), err
	}
	answer, err := ask(ctx, e, r, attachmentFact, func(ctx context.Context) (*storagev1.VolumeAttachment, error) {
		return e.config.Kube.StorageV1().VolumeAttachments().Patch(ctx, r.Key, types.MergePatchType, patch, metav1.PatchOptions{})
	})
	if err != nil {
		err = fmt.Errorf("write annotation %s of VolumeAttachment %s: %w", key, r.Key, err)
	}
	return answer, err
}
