// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestAttachment(t *testing.T) {
	now := metav1.Unix(9, 0)
	object := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "csi-1", UID: "u", ResourceVersion: "5", DeletionTimestamp: &now,
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			Annotations: map[string]string{v1alpha1.AnnotationTransitions: "7", AnnotationNodeID: "i-1"},
		},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "d", NodeName: "n", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("pv")}},
		Status: storagev1.VolumeAttachmentStatus{
			Attached:    true,
			AttachError: &storagev1.VolumeError{},
			DetachError: &storagev1.VolumeError{Message: "full", ErrorCode: ptr.To[int32](8)},
		},
	}
	want := ledger.Attachment{
		Name: "csi-1", UID: "u", Version: "5", Driver: "d", Node: "n", PersistentVolume: "pv",
		Attached: true, Deleting: true, DeletedAt: 9, Ours: true, Transitions: 7, NodeID: "i-1",
		AttachError: ledger.CallError{Message: "the driver gave no message"},
		DetachError: ledger.CallError{Code: ledger.ResourceExhausted, Message: "full"},
	}
	if got, err := Attachment(object); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("attachment %+v (%v)\nwant       %+v", got, err, want)
	}
	for _, broken := range []string{"", "-3", "x", "99999999999999999999", "9223372036854775807"} {
		object.Annotations[v1alpha1.AnnotationTransitions] = broken
		if got, _ := Attachment(object); got.Transitions != 0 {
			t.Errorf("transitions %q are taken for %d", broken, got.Transitions)
		}
	}
	object.Spec.Source = storagev1.VolumeAttachmentSource{InlineVolumeSpec: &corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}}}
	if got, err := Attachment(object); err != nil || got.Inline != (ledger.VolumeID{Driver: "d", Handle: "h"}) || got.PersistentVolume != "" {
		t.Errorf("inline attachment %+v (%v)", got, err)
	}
}

// Without stored codes, only gRPC's own text gives the code.
func TestErrorCodeByItsText(t *testing.T) {
	for message, want := range map[string]int32{
		"rpc error: code = ResourceExhausted desc = no room":                                                    8,
		"failed to attach: rpc error: code = ResourceExhausted desc = no room":                                  8,
		"rpc error: code = Internal desc = cloud: rpc error: code = ResourceExhausted desc = quota of the call": 13,
		"rpc error: code = ResourceExhausted":                                                                   0,
		"rpc error: code = Code(99) desc = new":                                                                 0,
		"rpc error: code = resourceexhausted desc = in other letters":                                           0,
		"ResourceExhausted desc = no room":                                                                      0,
		"":                                                                                                      0,
	} {
		if got := ErrorCode(&storagev1.VolumeError{Message: message}); got != want {
			t.Errorf("%q has the code %d, want %d", message, got, want)
		}
		if got := ErrorCode(&storagev1.VolumeError{Message: message, ErrorCode: ptr.To[int32](5)}); got != 5 {
			t.Errorf("%q with code 5 has the code %d", message, got)
		}
	}
}

func TestTicket(t *testing.T) {
	object := &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "pod-uid", UID: "u", ResourceVersion: "3",
			OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "other", UID: "other"}, {Kind: "Pod", Name: "db-0", UID: "pod-uid"}},
		},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n", Volumes: []v1alpha1.TicketVolume{
			{Claim: &v1alpha1.ClaimReference{Name: "data", UID: "c"}}, {Claim: &v1alpha1.ClaimReference{Name: "late"}}, {PersistentVolume: "pv"}}},
		Status: v1alpha1.VolumeTicketStatus{Epoch: 4},
	}
	want := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "shop", Name: "pod-uid"}, UID: "u", Version: "3", Type: ledger.TypeManual, Node: "n",
		Epoch: 4, Created: object.CreationTimestamp.Unix(),
		Volumes: []ledger.TicketVolume{{Claim: "data", ClaimUID: "c"}, {Claim: "late"}, {PersistentVolume: "pv"}},
	}
	for status, phase := range map[metav1.ConditionStatus]ledger.TicketPhase{
		"": ledger.TicketPending, metav1.ConditionUnknown: ledger.TicketPending,
		metav1.ConditionTrue: ledger.TicketGranted, metav1.ConditionFalse: ledger.TicketPending,
	} {
		want.Phase, want.Reason = phase, ""
		object.Status.Conditions = nil
		if status != "" {
			want.Reason = "Why"
			object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: status, Reason: "Why"}}
		}
		if got := Ticket(object); !reflect.DeepEqual(got, want) {
			t.Errorf("Granted %q: ticket %+v\nwant %+v", status, got, want)
		}
	}
	object.Status.Conditions = []metav1.Condition{{Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue}}
	object.Status.Volumes = []v1alpha1.TicketVolumeStatus{
		{PersistentVolume: "pv", Driver: "disk", VolumeHandle: "second"}, {Claim: "late"},
		{Claim: "data", PersistentVolume: "pv", Driver: "disk", VolumeHandle: "first"},
	}
	if got, want := Ticket(object).Granted, []ledger.VolumeID{{Driver: "disk", Handle: "first"}, {}, {Driver: "disk", Handle: "second"}}; !slices.Equal(got, want) {
		t.Errorf("it was granted %v, want %v", got, want)
	}
	object.Status.Conditions[0].Status = metav1.ConditionUnknown
	if got := Ticket(object).Granted; got != nil {
		t.Errorf("a ticket that is not granted has %v", got)
	}
	object.Spec.Type, object.Spec.TTLSeconds = v1alpha1.TicketManual, ptr.To[int64](60)
	if got := Ticket(object); got.TTLSeconds != 60 {
		t.Errorf("a manual ticket is %+v", got)
	}
	object.Spec.TTLSeconds, object.OwnerReferences = nil, []metav1.OwnerReference{{Kind: "Job", Name: "j", UID: "j"}}
	if got := Ticket(object); got.TTLSeconds != 0 {
		t.Errorf("a ticket that its owner ends is %+v", got)
	}
	object.OwnerReferences = nil
	if got := Ticket(object); got.TTLSeconds != 3600 {
		t.Errorf("a ticket that nothing ends is %+v", got)
	}
	object.Spec.TTLSeconds = ptr.To[int64](60)
	object.Spec.NodeName, object.Spec.Detached = "", true
	if got := Ticket(object); got.Node != ledger.Detached || got.Wherever {
		t.Errorf("a ticket for no node is %+v", got)
	}
	object.Spec.Detached, object.Spec.NodeName = false, string(ledger.Detached)
	if got := Ticket(object); got.Node == ledger.Detached {
		t.Error("a ticket that calls a node so asks for its volumes to be detached")
	}
	object.Spec.NodeName = "n"
	said := map[string]bool{}
	for _, of := range []map[string]string{nil, {"a": "b"}, {"a": "b", "c": ""}, {"a": `b" "c"=""`}, {"ab": ""}} {
		object.Spec.Parameters = of
		said[Ticket(object).Parameters] = true
	}
	if len(said) != 5 || !said[""] {
		t.Errorf("the parameters of five tickets are %v", said)
	}
	object.Spec.Parameters = nil
	object.Status.Interruptions = 3
	object.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.TicketGranted, Status: metav1.ConditionFalse, Reason: "Outranked"},
		{Type: v1alpha1.TicketSatisfied, Status: metav1.ConditionTrue, LastTransitionTime: metav1.Unix(50, 0)},
	}
	if got := Ticket(object); got.Phase != ledger.TicketPending || got.Reason != "Outranked" || got.Interruptions != 3 || got.SatisfiedSince != 50 {
		t.Errorf("a ticket that an earlier release has refused is %+v", got)
	}
	object.Status.Conditions[1].Status = metav1.ConditionFalse
	if got := Ticket(object); got.SatisfiedSince != 0 {
		t.Errorf("a ticket that is not satisfied is so since %d", got.SatisfiedSince)
	}
}

func TestClaim(t *testing.T) {
	object := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "data", UID: "u", ResourceVersion: "3",
			Annotations: map[string]string{annotationSelectedNode: "n"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Pod", Name: "db", UID: "p", Controller: ptr.To(true)}},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: "pv", StorageClassName: ptr.To("fast"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	want := ledger.Claim{
		Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "u", Version: "3", PersistentVolume: "pv", Bound: true,
		Class: "fast", Access: ledger.AccessNode, OwnerPod: "p", SelectedNode: "n",
	}
	if got := Claim(object); got != want {
		t.Errorf("claim %+v, want %+v", got, want)
	}
	object.Annotations[corev1.BetaStorageClassAnnotation] = "old"
	object.OwnerReferences[0].Controller = nil
	if got := Claim(object); got.Class != "old" || got.OwnerPod != "" {
		t.Errorf("claim %+v", got)
	}
}

func TestClassAndDriver(t *testing.T) {
	wait := storagev1.VolumeBindingWaitForFirstConsumer
	class := StorageClass(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Provisioner: "kubernetes.io/aws-ebs", VolumeBindingMode: &wait})
	if class.Driver != "ebs.csi.aws.com" || !class.WaitForFirst {
		t.Errorf("class %+v", class)
	}
	if class := StorageClass(&storagev1.StorageClass{Provisioner: "d"}); class.Driver != "d" || class.WaitForFirst {
		t.Errorf("class %+v", class)
	}
	if !Driver(&storagev1.CSIDriver{}).AttachRequired || Driver(&storagev1.CSIDriver{Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(false)}}).AttachRequired {
		t.Error("attachments are required unless the driver says otherwise")
	}
}

func TestPolicy(t *testing.T) {
	minutes := func(n time.Duration) *metav1.Duration { return &metav1.Duration{Duration: n * time.Minute} }
	got := Policy(&v1alpha1.AttachPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", CreationTimestamp: metav1.Unix(7, 0)}, Spec: v1alpha1.AttachPolicySpec{
		Driver: "d", StorageClassName: "c", DetachDelay: minutes(1),
		Slots:       &v1alpha1.SlotPolicy{Max: ptr.To[int32](9), Headroom: ptr.To[int32](1)},
		ForceDetach: &v1alpha1.ForceDetachPolicy{AfterPodGone: "3m", AfterUnreachable: minutes(4)},
		Workers:     ptr.To[int32](5), LiveMigration: ptr.To(true),
	}})
	want := ledger.Policy{
		Name: "p", Created: 7, Driver: "d", Class: "c", DetachDelay: time.Minute,
		MaxSlots: ptr.To[int32](9), Headroom: 1, AfterPodGone: ptr.To(3 * time.Minute), AfterUnreachable: ptr.To(4 * time.Minute),
		Workers: 5, LiveMigration: true,
		Says: ledger.FieldDetachDelay | ledger.FieldLiveMigration,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("policy %+v\nwant   %+v", got, want)
	}
	for _, text := range []string{v1alpha1.ForceDetachNever, "soon"} {
		never := Policy(&v1alpha1.AttachPolicy{Spec: v1alpha1.AttachPolicySpec{ForceDetach: &v1alpha1.ForceDetachPolicy{AfterPodGone: text, AfterUnreachable: minutes(4)}}})
		if never.AfterPodGone == nil || *never.AfterPodGone >= 0 || never.AfterUnreachable == nil || *never.AfterUnreachable >= 0 {
			t.Errorf("where no time forces, by %s: %+v", text, never)
		}
	}
	for field, spec := range map[ledger.PolicyFields]v1alpha1.AttachPolicySpec{
		ledger.FieldDetachDelay:   {DetachDelay: minutes(0)},
		ledger.FieldLiveMigration: {LiveMigration: ptr.To(false)},
	} {
		if got := Policy(&v1alpha1.AttachPolicy{Spec: spec}); !reflect.DeepEqual(got, ledger.Policy{Says: field}) {
			t.Errorf("set to its default, field %b is %+v", field, got)
		}
	}
	if got := Policy(&v1alpha1.AttachPolicy{}); !reflect.DeepEqual(got, ledger.Policy{}) {
		t.Errorf("an empty policy is %+v", got)
	}
}

func TestAttacherFinalizer(t *testing.T) {
	if got := AttacherFinalizer("Disk.example_9.com"); got != "external-attacher/Disk-example-9-com" {
		t.Errorf("finalizer %q", got)
	}
}

// CSI volumes in a pod's spec take no slot, as for kube-scheduler.
func TestOwnCSIVolumes(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "own", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "secrets.example.com"}}},
	}}}
	if fact, err := Pod(pod); err != nil || len(fact.Volumes) != 0 || len(fact.OwnCSI) != 1 {
		t.Errorf("%+v, %v", fact, err)
	}
}
