// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Ticket is a present ticket of Moorage's for an operation.
type Ticket struct {
	ID        ledger.TicketID
	UID       string
	Operation ledger.Operation
	Owner     Object // its Namespace is unknown: the ticket's, if the kind has any
	Spec      v1alpha1.VolumeTicketSpec
	Created   time.Time
	Granted   bool
	Deleting  bool
	// Reason and Message are of the condition Granted while it is not True.
	Reason, Message string
}

// TicketOf reads a ticket. False: Moorage did not make it for an operation.
func TicketOf(t *v1alpha1.VolumeTicket) (Ticket, bool) {
	i := slices.IndexFunc(ledger.AllOperations(), func(o ledger.Operation) bool { return o.String() == t.Labels[v1alpha1.LabelOperation] })
	if i < 0 || t.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy || len(t.OwnerReferences) != 1 {
		return Ticket{}, false
	}
	owner := t.OwnerReferences[0]
	own := Ticket{
		ID: ledger.TicketID{Namespace: t.Namespace, Name: t.Name}, UID: string(t.UID), Operation: ledger.AllOperations()[i],
		Owner: Object{APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, UID: string(owner.UID)},
		Spec:  t.Spec, Created: t.CreationTimestamp.Time, Deleting: t.DeletionTimestamp != nil,
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted); c != nil {
		own.Granted = c.Status == metav1.ConditionTrue
		if !own.Granted {
			own.Reason, own.Message = c.Reason, c.Message
		}
	}
	return own, own.ID.Name == nameOf(own.Operation, own.Owner) && own.isShaped()
}

// isShaped: otherwise a ticket is foreign, with any labels.
func (t Ticket) isShaped() bool {
	kinds := []string{kindClaim}
	if t.Operation == ledger.OperationSnapshot {
		kinds = []string{KindSnapshot, KindGroup}
	}
	return slices.Contains(kinds, t.Owner.Kind) && t.Spec.Type == v1alpha1.TicketType(t.Operation.TicketType()) &&
		t.Spec.NodeName == "" && t.Spec.Wherever != t.Spec.Detached && t.Spec.TTLSeconds != nil && t.Spec.OnDrain == "" && len(t.Spec.Parameters) == 0
}

func nameOf(o ledger.Operation, of Object) string {
	return strings.ToLower(o.String()) + "-" + of.UID
}

// MayBe says whether a ticket has the name and type of Moorage's for operations, and counts as such.
func MayBe(id ledger.TicketID, of ledger.TicketType) bool {
	return slices.ContainsFunc(ledger.AllOperations(), func(o ledger.Operation) bool {
		return of == o.TicketType() && strings.HasPrefix(id.Name, strings.ToLower(o.String())+"-")
	})
}

// Make is a ticket to make.
type Make struct {
	ID        ledger.TicketID
	Operation ledger.Operation
	Owner     Object // the asking object
	Told      Object
	Driver    string
	Spec      v1alpha1.VolumeTicketSpec
}

func (m Make) Object() *v1alpha1.VolumeTicket {
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.ID.Namespace, Name: m.ID.Name,
			Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelOperation: m.Operation.String()},
			Annotations: map[string]string{v1alpha1.AnnotationOperationOf: m.Told.String()},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: m.Owner.APIVersion, Kind: m.Owner.Kind, Name: m.Owner.Name, UID: types.UID(m.Owner.UID),
			}},
		},
		Spec: m.Spec,
	}
}

// Why says for people why the ticket is made.
func (m Make) Why() string {
	where := "while no node has the volume"
	if !m.Spec.Detached {
		where = "while the volume is attached"
	}
	does := map[ledger.Operation]string{
		ledger.OperationSnapshot: "takes snapshots", ledger.OperationClone: "clones", ledger.OperationExpansion: "expands volumes",
	}[m.Operation]
	return "driver " + m.Driver + " " + does + " only " + where
}

// same ignores the time: a policy's new time counts from the next ticket on.
func same(a, b v1alpha1.VolumeTicketSpec) bool {
	return a.Type == b.Type && a.Wherever == b.Wherever && a.Detached == b.Detached && equality.Semantic.DeepEqual(a.Volumes, b.Volumes)
}
