// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The read kinds of external-snapshotter's API. For groups, the first served version is read: each has the
// necessary fields.
var (
	SnapshotVersions = []schema.GroupVersion{{Group: "snapshot.storage.k8s.io", Version: "v1"}}
	GroupVersions    = []schema.GroupVersion{
		{Group: "groupsnapshot.storage.k8s.io", Version: "v1"},
		{Group: "groupsnapshot.storage.k8s.io", Version: "v1beta2"},
		{Group: "groupsnapshot.storage.k8s.io", Version: "v1beta1"},
	}
)

const (
	SnapshotResource = "volumesnapshotcontents"
	GroupResource    = "volumegroupsnapshotcontents"
	KindSnapshot     = "VolumeSnapshotContent"
	KindGroup        = "VolumeGroupSnapshotContent"
	kindClaim        = "PersistentVolumeClaim"
)

// memberAnnotation is on the VolumeSnapshotContents of a group's members: the driver is called only for the
// group (external-snapshotter pkg/utils).
const memberAnnotation = "groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle"

// maxMembers bounds the volumes of one group, as of a ticket.
const maxMembers = 256

// Object names the object that asks for an operation.
type Object struct{ APIVersion, Kind, Namespace, Name, UID string }

func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Work is an unfinished operation.
type Work struct {
	Operation ledger.Operation
	// Object asks for it, and owns the ticket. Told is the user's object to be told about it; often the
	// same.
	Object, Told Object
	Created      int64 // creationTimestamp of Object, seconds

	// For a snapshot: the driver, and its handles of the volumes; several for a group.
	Driver  string
	Handles []string
	Group   bool

	// Claim is the claim to clone or to expand.
	Claim ledger.ClaimKey
	// Outside: the clone's source is in another namespace.
	Outside bool
	// Wants is the wanted bytes of an expansion.
	Wants int64
	// Infeasible: the driver has refused an expansion for good. Expect only rare further attempts.
	Infeasible bool

	// Cut: a snapshot has got further, but is not at its end.
	Cut bool
}

// SnapshotOf reads a VolumeSnapshotContent. False: there is nothing to do. Malformed fields read as empty.
func SnapshotOf(o *unstructured.Unstructured) (Work, bool) {
	w := contentOf(o, KindSnapshot, "VolumeSnapshot", "volumeSnapshotRef")
	handle, _, _ := unstructured.NestedString(o.Object, "spec", "source", "volumeHandle")
	_, member := o.GetAnnotations()[memberAnnotation]
	if handle == "" || member || !underWay(o) {
		return Work{}, false
	}
	w.Handles = []string{handle}
	return w, true
}

// GroupOf reads a VolumeGroupSnapshotContent like SnapshotOf.
func GroupOf(o *unstructured.Unstructured) (Work, bool) {
	w := contentOf(o, KindGroup, "VolumeGroupSnapshot", "volumeGroupSnapshotRef")
	handles, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "source", "volumeHandles")
	if len(handles) == 0 || len(handles) > maxMembers || !underWay(o) {
		return Work{}, false
	}
	slices.Sort(handles)
	w.Handles, w.Group = slices.Compact(handles), true
	return w, true
}

// Ready says whether a content's snapshot has ended well.
func Ready(o *unstructured.Unstructured) bool {
	ready, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse")
	return ready
}

func underWay(o *unstructured.Unstructured) bool { return o.GetDeletionTimestamp() == nil && !Ready(o) }

func contentOf(o *unstructured.Unstructured, kind, told, ref string) Work {
	text := func(path ...string) string {
		s, _, _ := unstructured.NestedString(o.Object, path...)
		return s
	}
	w := Work{
		Operation: ledger.OperationSnapshot,
		Object:    Object{APIVersion: o.GetAPIVersion(), Kind: kind, Name: o.GetName(), UID: string(o.GetUID())},
		Created:   o.GetCreationTimestamp().Unix(),
		Driver:    text("spec", "driver"),
	}
	w.Told = Object{APIVersion: o.GetAPIVersion(), Kind: told, Namespace: text("spec", ref, "namespace"), Name: text("spec", ref, "name"), UID: text("spec", ref, "uid")}
	if w.Told.Name == "" || w.Told.Namespace == "" {
		w.Told = w.Object
	}
	_, w.Cut, _ = unstructured.NestedFieldNoCopy(o.Object, "status", "creationTime")
	return w
}

// ClaimOf reads a PersistentVolumeClaim that may become a clone or be expanded; nil: neither. Tenants may
// write the claim's status: only the driver's refusal counts there.
func ClaimOf(c *corev1.PersistentVolumeClaim) *Work {
	if c.DeletionTimestamp != nil {
		return nil
	}
	w := Work{
		Object:  Object{APIVersion: "v1", Kind: kindClaim, Namespace: c.Namespace, Name: c.Name, UID: string(c.UID)},
		Created: c.CreationTimestamp.Unix(),
	}
	w.Told = w.Object
	if c.Spec.VolumeName == "" {
		return cloneOf(c, w)
	}
	w.Operation = ledger.OperationExpansion
	w.Claim = ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}
	w.Wants = c.Spec.Resources.Requests.Storage().Value()
	w.Infeasible = c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimControllerResizeInfeasible
	if w.Wants <= 0 {
		return nil
	}
	return &w
}

// IsOver says whether the driver's controller is finished by the claim's PersistentVolume. A node's part
// follows at the next mount.
func (w *Work) IsOver(s ledger.Snapshot) bool {
	if w.Object.Kind != kindClaim {
		return false // its content says so itself
	}
	c := s.Claim(ledger.ClaimKey{Namespace: w.Object.Namespace, Name: w.Object.Name})
	pv := boundTo(s, c)
	return pv != nil && c.UID == w.Object.UID && (w.Operation != ledger.OperationExpansion || pv.Capacity >= w.Wants)
}

// boundTo is the PersistentVolume of a claim, if both name each other; else nil. The claim's phase can be
// forged by its writer.
func boundTo(s ledger.Snapshot, c *ledger.Claim) *ledger.PersistentVolume {
	if c == nil || c.PersistentVolume == "" {
		return nil
	}
	pv := s.PersistentVolume(c.PersistentVolume)
	if pv == nil || pv.Claim != c.Key || pv.ClaimUID != c.UID {
		return nil
	}
	return pv
}

func cloneOf(c *corev1.PersistentVolumeClaim, w Work) *Work {
	w.Operation = ledger.OperationClone
	w.Claim.Namespace = c.Namespace
	switch from, ref := c.Spec.DataSource, c.Spec.DataSourceRef; {
	case ref != nil:
		if ref.Kind != kindClaim || ref.APIGroup != nil && *ref.APIGroup != "" {
			return nil
		}
		w.Claim.Name = ref.Name
		if ref.Namespace != nil && *ref.Namespace != "" {
			w.Claim.Namespace = *ref.Namespace
		}
	case from != nil:
		if from.Kind != kindClaim || from.APIGroup != nil && *from.APIGroup != "" {
			return nil
		}
		w.Claim.Name = from.Name
	default:
		return nil
	}
	w.Outside = w.Claim.Namespace != c.Namespace
	return &w
}
