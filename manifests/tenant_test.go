// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// The API server takes any text that is not empty for a pod's claimName: one that holds
// JSON must not make the placeholder say anything else.
func TestAClaimNameForgesNoVolumeStatus(t *testing.T) {
	volume := claim("data")
	volume.PersistentVolumeClaim.ClaimName = `claim-data","safeToMount":true,"safeToDetach":true},{"name":"x`
	forged := podWith(`{"volumes":[{"name":"data","claim":"claim-data","safeToMount":true,"safeToDetach":true},{"name":"x","safeToMount":false,"safeToDetach":false,"reason":"Pending"}]}`, volume)
	var status v1alpha1.VolumeStatus
	if err := json.Unmarshal([]byte(forged.Annotations[v1alpha1.AnnotationVolumeStatus]), &status); err != nil || !status.Volumes[0].SafeToMount {
		t.Fatalf("not what it is to be: %+v (%v)", status, err)
	}
	r := request{user: tenant, namespace: "shop", resource: pods, kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: forged}
	check(t, loadPolicy(t, "moorage-volume-status").judge(t, r), "claimName")
}

// What the webhook makes of a pod passes the policy, or is refused with words that say what is
// wrong: no claim can have such a name.
func TestAClaimNameThatIsNoneIsRefusedAsSuch(t *testing.T) {
	for name, want := range map[string]string{
		`a"b`: "claimName", `a\b`: "claimName", "a<b": "claimName", "a&b": "claimName", "a\nb": "claimName", "a\n": "claimName", "a\u2028b": "claimName", "A": "claimName",
		"a": "", "data-0.shop": "",
	} {
		volume := claim("data")
		volume.PersistentVolumeClaim.ClaimName = name
		stamped := podWith(placeholder(t, podWith("", volume)), volume)
		r := request{user: tenant, namespace: "shop", resource: pods, kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: stamped}
		t.Run(name, func(t *testing.T) { check(t, loadPolicy(t, "moorage-volume-status").judge(t, r), want) })
	}
}

// A ticket that its requester can keep from ending is one that nothing ends: nobody puts a
// finalizer on one, at creation or later. One that is there, such as the garbage
// collector's, stays until somebody takes it off.
func TestATicketHasNoFinalizers(t *testing.T) {
	with := func(finalizers ...string) *v1alpha1.VolumeTicket {
		return &v1alpha1.VolumeTicket{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "t", Finalizers: finalizers},
			Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n1", TTLSeconds: ptr.To[int64](1),
				Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
		}
	}
	for name, test := range map[string]struct {
		before, now *v1alpha1.VolumeTicket
		want        string
	}{
		"created with one":  {nil, with("example.com/stay"), "finalizer"},
		"given one later":   {with(), with("example.com/stay"), "finalizer"},
		"given another":     {with(metav1.FinalizerDeleteDependents), with(metav1.FinalizerDeleteDependents, "example.com/stay"), "finalizer"},
		"one taken off":     {with(metav1.FinalizerDeleteDependents), with(), ""},
		"one that is there": {with(metav1.FinalizerDeleteDependents), with(metav1.FinalizerDeleteDependents), ""},
	} {
		r := request{user: "tess", namespace: "shop", resource: tickets, kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: test.now}
		if test.before != nil {
			r.before = test.before
		}
		t.Run(name, func(t *testing.T) { check(t, loadPolicy(t, "moorage-ticket-finalizers").judge(t, r), test.want) })
	}
}

// Who deletes the reservation of a pod would have its slot given away while the pod's bind is
// under way: a tenant may not, with whatever Role in a namespace. Those who reserve may, and
// what cleans up after a pod or a namespace.
func TestReservationsAreEndedByRight(t *testing.T) {
	policy := loadPolicy(t, "moorage-pod-tickets")
	const denied = "may not end the reservation of a pod"
	ticket := func(kind v1alpha1.TicketType) *v1alpha1.VolumeTicket {
		return &v1alpha1.VolumeTicket{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "t"},
			Spec:       v1alpha1.VolumeTicketSpec{Type: kind, NodeName: "n1", Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
		}
	}
	for user, want := range map[string]string{
		"walt": denied, "mallory": denied, "ina": denied, "root": "",
		"tess": denied, "system:serviceaccount:shop:gc": denied, "system:serviceaccount:kube-system-2:gc": denied, "systemd": denied,
		"system:serviceaccount:moorage-system:moorage-controller": "", "system:serviceaccount:moorage-system:moorage-scheduler": "",
		"system:serviceaccount:moorage-system:moorage-webhook":        denied,
		"system:serviceaccount:kube-system:generic-garbage-collector": "",
		"system:serviceaccount:kube-system:namespace-controller":      "",
		"system:kube-controller-manager":                              "", "system:kube-scheduler": "",
	} {
		for _, kind := range []v1alpha1.TicketType{v1alpha1.TicketPod, v1alpha1.TicketManual, v1alpha1.TicketRestore} {
			r := request{user: user, namespace: "shop", resource: tickets, kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), before: ticket(kind)}
			wanted := want
			if kind != v1alpha1.TicketPod {
				wanted = ""
			}
			t.Run(user+" "+string(kind), func(t *testing.T) { check(t, policy.judge(t, r), wanted) })
		}
	}
}

// Who changes the owner of a pod's reservation has the garbage collector delete it: only those may who may end it. All
// else of a ticket may be changed as before, and so may the owners of other tickets.
func TestReservationsKeepTheirOwners(t *testing.T) {
	policy := loadPolicy(t, "moorage-pod-tickets")
	const denied = "leave metadata.ownerReferences as they are"
	pod := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "db", UID: "t"}
	ticket := func(kind v1alpha1.TicketType, owners ...metav1.OwnerReference) *v1alpha1.VolumeTicket {
		return &v1alpha1.VolumeTicket{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "t", OwnerReferences: owners},
			Spec:       v1alpha1.VolumeTicketSpec{Type: kind, NodeName: "n1", Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
		}
	}
	renamed, blocks, labelled := pod, pod, ticket(v1alpha1.TicketPod, pod)
	renamed.Name, blocks.BlockOwnerDeletion, labelled.Labels = "nobody", ptr.To(true), map[string]string{"app": "x"}
	for change, test := range map[string]struct {
		before, now *v1alpha1.VolumeTicket
		refused     bool
	}{
		"renamed":                       {ticket(v1alpha1.TicketPod, pod), ticket(v1alpha1.TicketPod, renamed), true},
		"taken off":                     {ticket(v1alpha1.TicketPod, pod), ticket(v1alpha1.TicketPod), true},
		"another one beside it":         {ticket(v1alpha1.TicketPod, pod), ticket(v1alpha1.TicketPod, pod, renamed), true},
		"one where there was none":      {ticket(v1alpha1.TicketPod), ticket(v1alpha1.TicketPod, renamed), true},
		"blocking the pod's deletion":   {ticket(v1alpha1.TicketPod, pod), ticket(v1alpha1.TicketPod, blocks), true},
		"as it was, with another label": {ticket(v1alpha1.TicketPod, pod), labelled, false},
		"none, as before":               {ticket(v1alpha1.TicketPod), ticket(v1alpha1.TicketPod), false},
		"that of a Manual ticket":       {ticket(v1alpha1.TicketManual, pod), ticket(v1alpha1.TicketManual, renamed), false},
	} {
		for user, may := range map[string]bool{
			"walt": false, "mallory": false, "tess": false, "root": true, "system:serviceaccount:shop:gc": false, "system:serviceaccount:kube-system-2:gc": false,
			"system:serviceaccount:moorage-system:moorage-controller": true, "system:serviceaccount:moorage-system:moorage-scheduler": true,
			"system:serviceaccount:moorage-system:moorage-webhook":        false,
			"system:serviceaccount:kube-system:generic-garbage-collector": true, "system:kube-controller-manager": true,
		} {
			r := request{user: user, namespace: "shop", resource: tickets, kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), before: test.before, now: test.now}
			want := ""
			if test.refused && !may {
				want = denied
			}
			t.Run(change+" by "+user, func(t *testing.T) { check(t, policy.judge(t, r), want) })
		}
	}
}

// A ticket that is made for an operation of a driver says so, and is owned by what asks for that:
// nobody but the controller makes one, or makes another ticket look like one, and nobody takes its
// marks or its owner off, but for the garbage collector, which orphans.
func TestOperationTicketsStayMarked(t *testing.T) {
	policy := loadPolicy(t, "moorage-operation-tickets")
	const collector, others = "system:serviceaccount:kube-system:generic-garbage-collector", "marks tickets that Moorage's controller makes"
	ticket := func(change func(*v1alpha1.VolumeTicket)) *v1alpha1.VolumeTicket {
		out := &v1alpha1.VolumeTicket{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "t", Labels: map[string]string{v1alpha1.LabelOperation: "Snapshot", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, "app": "x"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshotContent", Name: "c", UID: "u"}}},
			Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketSnapshot, Wherever: true, TTLSeconds: ptr.To[int64](1),
				Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
		}
		if change != nil {
			change(out)
		}
		return out
	}
	marked := ticket(nil)
	bare := ticket(func(t *v1alpha1.VolumeTicket) { t.Labels = nil })
	unowned := ticket(func(t *v1alpha1.VolumeTicket) { t.OwnerReferences = nil })
	for name, test := range map[string]struct {
		before, now          *v1alpha1.VolumeTicket
		root, gc, controller string
	}{
		"made": {nil, marked, others, others, ""},
		"made, by its owner": {nil, ticket(func(t *v1alpha1.VolumeTicket) {
			t.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
		}), "", "", ""},
		"marked later":        {bare, marked, others, others, ""},
		"another operation":   {marked, ticket(func(t *v1alpha1.VolumeTicket) { t.Labels[v1alpha1.LabelOperation] = "Clone" }), others, others, ""},
		"the mark is gone":    {marked, bare, others, others, ""},
		"the manager is gone": {marked, ticket(func(t *v1alpha1.VolumeTicket) { delete(t.Labels, v1alpha1.LabelManagedBy) }), others, others, ""},
		"another label":       {marked, ticket(func(t *v1alpha1.VolumeTicket) { t.Labels["app"] = "y" }), "", "", ""},
		"renewed":             {marked, ticket(func(t *v1alpha1.VolumeTicket) { t.Annotations = map[string]string{v1alpha1.AnnotationRenewed: "1"} }), "", "", ""},
		"the owner is gone":   {marked, unowned, others, "", ""},
		"another owner":       {marked, ticket(func(t *v1alpha1.VolumeTicket) { t.OwnerReferences[0].UID = "v" }), others, "", ""},
		"one without a mark":  {bare, ticket(func(t *v1alpha1.VolumeTicket) { t.Labels, t.OwnerReferences = nil, nil }), "", "", ""},
	} {
		for user, want := range map[string]string{"root": test.root, "walt": test.root, "system:serviceaccount:shop:gc": test.root, collector: test.gc, controllerUser: test.controller} {
			r := request{user: user, namespace: "shop", resource: tickets, kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: test.now}
			if test.before != nil {
				r.before = test.before
			}
			t.Run(name+" by "+user, func(t *testing.T) { check(t, policy.judge(t, r), want) })
		}
	}
}
