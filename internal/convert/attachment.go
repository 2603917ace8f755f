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

// AnnotationNodeID keeps external-attacher's driver name for the node, for when its CSINode is gone
// (pkg/controller/csi_handler.go).
const AnnotationNodeID = "csi.alpha.kubernetes.io/node-id"

// AttacherFinalizer is the finalizer of a driver's external-attacher: the driver's name with all but
// letters, digits and "-" replaced, and "X" after a final "-" (pkg/controller/util.go).
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

// maxNodeID is a CSINode's longest nodeID in bytes. A VolumeAttachment's annotation may be longer.
const maxNodeID = 256

// keptBy names a finalizer that keeps a VolumeAttachment without its attacher's: the volume is detached.
// Empty while the attacher's is there.
func keptBy(a *storagev1.VolumeAttachment) string {
	if len(a.Finalizers) == 0 || slices.Contains(a.Finalizers, AttacherFinalizer(a.Spec.Attacher)) {
		return ""
	}
	return a.Finalizers[0]
}

// Attachment makes a fact of a VolumeAttachment, valid even with an error about its inline source.
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

// noteOf is zero if the annotation can't be read: then a VolumeHold is written.
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

// NoteText is a note's annotation; empty: none.
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

// ErrorCode is a driver error's gRPC code; 0: unknown. Kubernetes 1.34 drops the field by default, and
// attachers write gRPC's text, which has the code, perhaps after their own words.
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
