// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

const namespace = "default"

// pod is the UID of a pod.
func pod(round string, i int) string {
	return fmt.Sprintf("%s0000000-1111-2222-3333-%012d", round, i)
}

// ticket is what a scheduler writes for a pod with one claim.
func ticket(round string, i int) *v1alpha1.VolumeTicket {
	uid := types.UID(pod(round, i))
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: string(uid), Labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: fmt.Sprintf("pod-%d", i), UID: uid, Controller: new(bool), BlockOwnerDeletion: new(bool),
			}},
		},
		Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketManual, NodeName: "worker-1",
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: fmt.Sprintf("claim-%d", i), UID: uid}}},
		},
	}
}

// granted is what the controller makes of it.
func granted(t *v1alpha1.VolumeTicket, i int) *v1alpha1.VolumeTicket {
	t = t.DeepCopy()
	t.ManagedFields = nil // as caches have it
	t.Status.Epoch = 1
	t.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.TicketGranted, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonGranted, ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
	}}
	t.Status.Volumes = []v1alpha1.TicketVolumeStatus{{Claim: fmt.Sprintf("claim-%d", i), PersistentVolume: fmt.Sprintf("pv-%d", i), Transitions: 1}}
	return t
}

// hold is what the controller writes for the volume; version is empty for a new
// one.
func hold(round string, i int, version, node string) *v1alpha1.VolumeHold {
	object := translate.HoldObject(translate.HoldContext{
		Volume: ledger.VolumeID{Driver: "disk.example.com", Handle: fmt.Sprintf("%s-%d", round, i)},
		Claim:  ledger.ClaimKey{Namespace: namespace, Name: fmt.Sprintf("claim-%d", i)}, Now: time.Now(),
	}, ledger.Hold{
		Version: version, Node: ledger.NodeName(node), NodeUID: pod("e", 0), State: ledger.HoldHeld, Transitions: 1,
		PVs:        []string{fmt.Sprintf("pv-%d", i)},
		Requesters: []ledger.Requester{{Namespace: namespace, Name: fmt.Sprintf("pod-%d", i), UID: pod(round, i)}},
	})
	if version != "" {
		object.ManagedFields = []metav1.ManagedFieldsEntry{{}} // as package execute has it
	}
	return object
}
