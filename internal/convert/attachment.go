// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// AnnotationNodeID on a VolumeAttachment is where external-attacher keeps the
// driver's name for the node, for the day its CSINode is gone
// (pkg/controller/csi_handler.go).
const AnnotationNodeID = "csi.alpha.kubernetes.io/node-id"

// AttacherFinalizer is the finalizer of a driver's external-attacher on its
// VolumeAttachments and PersistentVolumes: the driver's name with everything
// but letters, digits and "-" replaced, and "X" after a "-" at its end
// (pkg/controller/util.go).
func AttacherFinalizer(driver string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, driver)
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return "external-attacher/" + name
}

// maxNodeID is the longest nodeID that a CSINode may state, in bytes. The annotation of a
// VolumeAttachment may be longer, and is told in its VolumeHold.
const maxNodeID = 256

// keptBy names a finalizer that keeps a VolumeAttachment once its attacher has taken its
// own off: the volume is detached then. It is empty while the attacher's is there.
func keptBy(a *storagev1.VolumeAttachment) string {
	if len(a.Finalizers) == 0 || slices.Contains(a.Finalizers, AttacherFinalizer(a.Spec.Attacher)) {
		return ""
	}
	return a.Finalizers[0]
}

// Attachment makes a fact of a VolumeAttachment. The fact holds even with an
// error, which says that its inline source is broken.
func Attachment(a *storagev1.VolumeAttachment) (ledger.Attachment, error) {
	fact := ledger.Attachment{
		Name: a.Name, UID: string(a.UID), Version: a.ResourceVersion,
		Driver:   a.Spec.Attacher,
		Node:     ledger.NodeName(a.Spec.NodeName),
		Attached: a.Status.Attached,
		Deleting: a.DeletionTimestamp != nil,
		Stamped:  len(a.Finalizers) > 0,
		Ours:     a.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy,
		NodeID:   identity(a.Annotations[AnnotationNodeID], maxNodeID),
		Wanted:   a.Annotations[v1alpha1.AnnotationWanted] != "",

		Confirmed:   a.Annotations[v1alpha1.AnnotationConfirmed] != "",
		Cooperative: a.Annotations[v1alpha1.AnnotationCooperative] != "",

		AttachError: callError(a.Status.AttachError),
		DetachError: callError(a.Status.DetachError),
	}
	if a.DeletionTimestamp != nil {
		fact.DeletedAt, fact.KeptBy = a.DeletionTimestamp.Unix(), keptBy(a)
	}
	if n, err := strconv.ParseInt(a.Annotations[v1alpha1.AnnotationTransitions], 10, 64); err == nil && n > 0 && n <= ledger.MaxTransitions {
		fact.Transitions = n
	}
	fact.Note = noteOf(a.Annotations[v1alpha1.AnnotationHolder])
	if a.Spec.Source.PersistentVolumeName != nil {
		fact.PersistentVolume = *a.Spec.Source.PersistentVolumeName
	}
	var err error
	if spec := a.Spec.Source.InlineVolumeSpec; spec != nil {
		_, fact.Inline, err = volumeOfPV(&corev1.PersistentVolume{Spec: *spec})
	}
	return fact, err
}

// holder is v1alpha1.AnnotationHolder.
type holder struct {
	NodeUID    string `json:"nodeUID"`
	BootID     string `json:"bootID,omitempty"`
	SystemUUID string `json:"systemUUID,omitempty"`
	PodUID     string `json:"podUID,omitempty"`
}

// noteOf makes a note of the annotation of a VolumeAttachment; zero if there is none that can be read: then a
// VolumeHold is written.
func noteOf(text string) ledger.Note {
	var a holder
	if text == "" || json.Unmarshal([]byte(text), &a) != nil || a.NodeUID == "" {
		return ledger.Note{}
	}
	return ledger.Note{
		NodeUID: identity(a.NodeUID, maxIdentity), Pod: identity(a.PodUID, maxIdentity),
		Boot: ledger.Boot{SystemUUID: identity(a.SystemUUID, maxIdentity), BootID: identity(a.BootID, maxIdentity)},
	}
}

// NoteText is the annotation for a note; empty for none.
func NoteText(n ledger.Note) (string, error) {
	if n == (ledger.Note{}) {
		return "", nil
	}
	text, err := json.Marshal(holder{n.NodeUID, n.Boot.BootID, n.Boot.SystemUUID, n.Pod})
	return string(text), err
}

func callError(e *storagev1.VolumeError) ledger.CallError {
	if e == nil {
		return ledger.CallError{}
	}
	fact := ledger.CallError{Message: e.Message, Code: ErrorCode(e)}
	if fact.IsZero() {
		fact.Message = "the driver gave no message"
	}
	return fact
}

// ErrorCode is the gRPC code of a driver's error, 0 if it can't be told. Kubernetes 1.34
// drops the field by default, and attachers write gRPC's own text of an error, which
// begins with its code, perhaps after words of their own.
func ErrorCode(e *storagev1.VolumeError) int32 {
	if e.ErrorCode != nil {
		return *e.ErrorCode
	}
	_, after, _ := strings.Cut(e.Message, "rpc error: code = ")
	name, _, named := strings.Cut(after, " desc = ")
	if !named {
		return 0
	}
	return rules.CodeNamed(name)
}
