// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

var (
	attachmentsResource = schema.GroupResource{Group: "storage.k8s.io", Resource: "volumeattachments"}
	volumesResource     = schema.GroupResource{Resource: "persistentvolumes"}
	secretsResource     = schema.GroupResource{Resource: "secrets"}
)

// fakeAPI stores only the attacher's resources, and writes changes into the transcript. Serial.
type fakeAPI struct {
	write       func(line string) // to the transcript
	failures    map[string][]string
	version     int
	attachments map[string]*storagev1.VolumeAttachment
	volumes     map[string]*corev1.PersistentVolume
	secrets     map[string]map[string]string
	csinodes    map[string]*storagev1.CSINode
	events      []func(*engine)
}

func newFakeAPI(write func(string)) *fakeAPI {
	return &fakeAPI{
		write: write, failures: map[string][]string{},
		attachments: map[string]*storagev1.VolumeAttachment{},
		volumes:     map[string]*corev1.PersistentVolume{},
		secrets:     map[string]map[string]string{},
		csinodes:    map[string]*storagev1.CSINode{},
	}
}

func (f *fakeAPI) fails(kind string, resource schema.GroupResource, name string) (string, error) {
	queue := f.failures[kind]
	if len(queue) == 0 {
		return "", nil
	}
	how := queue[0]
	f.failures[kind] = queue[1:]
	switch how {
	case "ok":
		return "", nil
	case "forbidden":
		return " -> forbidden", apierrors.NewForbidden(resource, name, errors.New("the role lacks a verb"))
	case "invalid":
		return " -> invalid", apierrors.NewInvalid(schema.GroupKind{Kind: resource.Resource}, name, nil)
	case "denied":
		denied := webhookerrors.ToStatusErr("theirs.example.com", &metav1.Status{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
		return " -> a webhook answers not found", denied
	case "lost":
		return " -> no answer", apierrors.NewTimeoutError("the answer was lost", 0)
	}
	return " -> " + how, apierrors.NewInternalError(errors.New(how))
}

func (f *fakeAPI) bump(meta *metav1.ObjectMeta) {
	f.version++
	meta.ResourceVersion = strconv.Itoa(f.version)
}

func (f *fakeAPI) putAttachment(va *storagev1.VolumeAttachment) {
	f.bump(&va.ObjectMeta)
	if va.DeletionTimestamp != nil && len(va.Finalizers) == 0 {
		delete(f.attachments, va.Name)
		f.events = append(f.events, func(e *engine) { e.LoseAttachment(va) })
		return
	}
	f.attachments[va.Name] = va
	f.events = append(f.events, func(e *engine) { e.SeeAttachment(va) })
}

func (f *fakeAPI) putVolume(pv *corev1.PersistentVolume) {
	f.bump(&pv.ObjectMeta)
	if pv.DeletionTimestamp != nil && len(pv.Finalizers) == 0 {
		delete(f.volumes, pv.Name)
		f.events = append(f.events, func(e *engine) { e.LoseVolume(pv) })
		return
	}
	f.volumes[pv.Name] = pv
	f.events = append(f.events, func(e *engine) { e.SeeVolume(pv) })
}

func (f *fakeAPI) putNode(n *storagev1.CSINode) {
	f.bump(&n.ObjectMeta)
	f.csinodes[n.Name] = n
	f.events = append(f.events, func(e *engine) { e.SeeNode(n) })
}

func (f *fakeAPI) dropNode(name string) {
	n := f.csinodes[name]
	delete(f.csinodes, name)
	f.events = append(f.events, func(e *engine) { e.LoseNode(n) })
}

func (f *fakeAPI) PatchAttachment(_ context.Context, name string, patch []byte, status bool) (*storagev1.VolumeAttachment, error) {
	kind := "patch va"
	if status {
		kind = "status va"
	}
	have := f.attachments[name]
	if have == nil {
		f.write(kind + " " + name + " -> not found")
		return nil, apierrors.NewNotFound(attachmentsResource, name)
	}
	next, err := applied(have, patch)
	if err != nil {
		f.write(kind + " " + name + " -> refused: changed meanwhile")
		return nil, err
	}
	if status {
		next.ObjectMeta = *have.ObjectMeta.DeepCopy()
	} else {
		next.Status = *have.Status.DeepCopy()
	}
	how, err := f.fails(kind, attachmentsResource, name)
	change, note := attachmentChange(have, next)
	f.write(kind + " " + name + change + how + note)
	if err != nil && !apierrors.IsTimeout(err) {
		return nil, err
	}
	f.putAttachment(next)
	return next.DeepCopy(), err
}

func (f *fakeAPI) GetAttachment(_ context.Context, name string) (*storagev1.VolumeAttachment, error) {
	f.write("get va " + name)
	if have := f.attachments[name]; have != nil {
		return have.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(attachmentsResource, name)
}

func (f *fakeAPI) PatchPersistentVolume(_ context.Context, name string, patch []byte) (*corev1.PersistentVolume, error) {
	have := f.volumes[name]
	if have == nil {
		f.write("patch pv " + name + " -> not found")
		return nil, apierrors.NewNotFound(volumesResource, name)
	}
	next, err := applied(have, patch)
	if err != nil {
		f.write("patch pv " + name + " -> refused: changed meanwhile")
		return nil, err
	}
	how, err := f.fails("patch pv", volumesResource, name)
	f.write("patch pv " + name + finalizerChange(have.Finalizers, next.Finalizers) + annotationChange(have.Annotations, next.Annotations) + how)
	if err != nil {
		return nil, err
	}
	f.putVolume(next)
	return next.DeepCopy(), nil
}

func (f *fakeAPI) GetPersistentVolume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	f.write("get pv " + name)
	if have := f.volumes[name]; have != nil {
		return have.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(volumesResource, name)
}

func (f *fakeAPI) GetSecret(_ context.Context, namespace, name string) (map[string]string, error) {
	key := namespace + "/" + name
	secret, ok := f.secrets[key]
	if !ok {
		f.write("get secret " + key + " -> not found")
		return nil, apierrors.NewNotFound(secretsResource, name)
	}
	f.write("get secret " + key)
	return secret, nil
}

// applied answers a failed test with 422, like kube-apiserver.
func applied[T any](have *T, patch []byte) (*T, error) {
	document, err := json.Marshal(have)
	if err != nil {
		return nil, err
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := decoded.Apply(document)
	if err != nil {
		return nil, apierrors.NewGenericServerResponse(422, "patch", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	next := new(T)
	return next, json.Unmarshal(after, next)
}

func attachmentChange(a, b *storagev1.VolumeAttachment) (text, note string) {
	text = finalizerChange(a.Finalizers, b.Finalizers) + annotationChange(a.Annotations, b.Annotations)
	switch {
	case b.Status.Attached && (!a.Status.Attached || !sameMap(a.Status.AttachmentMetadata, b.Status.AttachmentMetadata)):
		text += " attached" + pairs(" metadata", b.Status.AttachmentMetadata)
	case a.Status.Attached && !b.Status.Attached:
		text += " detached"
	case b.Status.Attached && a.Status.AttachError != nil && b.Status.AttachError == nil:
		text += " attached"
	}
	for what, errs := range map[string][2]*storagev1.VolumeError{
		" attach-error": {a.Status.AttachError, b.Status.AttachError},
		" detach-error": {a.Status.DetachError, b.Status.DetachError},
	} {
		if e := errs[1]; e != nil && (errs[0] == nil || errs[0].Message != e.Message) {
			text, note = text+what, " # "+e.Message
			if e.ErrorCode != nil {
				text += fmt.Sprintf(" code=%d", *e.ErrorCode)
			}
		}
	}
	return text, note
}

var shortKeys = map[string]string{"csi.alpha.kubernetes.io/node-id": "node-id", v1alpha1.AnnotationStrays: "unaccounted"}

func annotationChange(a, b map[string]string) string {
	text := ""
	for _, key := range sortedKeys(b) {
		if a[key] != b[key] {
			text += fmt.Sprintf(" %s=%s", shortKeys[key], b[key])
		}
	}
	for _, key := range sortedKeys(a) {
		if _, still := b[key]; !still {
			text += " -" + shortKeys[key]
		}
	}
	return text
}

func finalizerChange(a, b []string) string {
	text := ""
	for _, f := range b {
		if !slices.Contains(a, f) {
			text += " +" + f
		}
	}
	for _, f := range a {
		if !slices.Contains(b, f) {
			text += " -" + f
		}
	}
	return text
}

func (f *fakeAPI) newUID() types.UID {
	f.version++
	return types.UID("uid-" + strconv.Itoa(f.version))
}
