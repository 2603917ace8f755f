// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Ticket makes a fact of a VolumeTicket. It is pending unless condition Granted is True: it asks for as
// long as it exists.
func Ticket(t *v1alpha1.VolumeTicket) ledger.Ticket {
	fact := ledger.Ticket{
		ID:  ledger.TicketID{Namespace: t.Namespace, Name: t.Name},
		UID: string(t.UID), Version: t.ResourceVersion,
		Type:     ledger.TicketType(t.Spec.Type),
		Node:     nodeOf(t),
		Wherever: t.Spec.Wherever,
		Created:  t.CreationTimestamp.Unix(),
		Epoch:    t.Status.Epoch,

		Interruptions: min(t.Status.Interruptions, ledger.MaxNumber),

		Finalizers: len(t.Finalizers) > 0,
	}
	fact.Parameters = parameters(t.Spec.Parameters)
	switch t.Spec.OnDrain {
	case v1alpha1.OnDrainEnd:
		fact.OnDrain = ledger.EndOnDrain
	case v1alpha1.OnDrainMove:
		fact.OnDrain = ledger.MoveOnDrain
	case v1alpha1.OnDrainStay, "":
	}
	if gone := t.Status.NodeGone; gone != nil {
		fact.NodeGone = ledger.Outage{Elapsed: Elapsed(gone.ElapsedSeconds), NodeUID: string(gone.NodeUID)}
	}
	fact.TTLSeconds = TTLSeconds(t)
	for i := range t.Spec.Volumes {
		fact.Volumes = append(fact.Volumes, ticketVolume(&t.Spec.Volumes[i]))
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted); c != nil {
		fact.Reason = c.Reason
		if c.Status == metav1.ConditionTrue {
			fact.Phase, fact.Granted = ledger.TicketGranted, granted(t)
		}
	}
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied); c != nil && c.Status == metav1.ConditionTrue {
		fact.SatisfiedSince = c.LastTransitionTime.Unix()
	}
	if asked := t.Yielding(); asked != nil {
		fact.YieldingSince, fact.LetsGo = asked.LastTransitionTime.Unix(), t.LetsGo()
	}
	return fact
}

const unendedTTLSeconds = 3600

// TTLSeconds is a ticket's time; 0: no time ends it.
func TTLSeconds(t *v1alpha1.VolumeTicket) int64 {
	switch {
	case t.Spec.TTLSeconds != nil:
		return *t.Spec.TTLSeconds
	case len(t.OwnerReferences) == 0:
		return unendedTTLSeconds
	}
	return 0
}

// granted are the status' volumes in the spec's order; nil: none.
func granted(t *v1alpha1.VolumeTicket) []ledger.VolumeID {
	var list []ledger.VolumeID
	for i := range t.Spec.Volumes {
		of := ticketVolume(&t.Spec.Volumes[i])
		for _, is := range t.Status.Volumes {
			same := is.Claim == of.Claim && (of.Claim != "" || is.PersistentVolume == of.PersistentVolume)
			if same && is.Driver != "" && is.VolumeHandle != "" {
				if list == nil {
					list = make([]ledger.VolumeID, len(t.Spec.Volumes))
				}
				list[i] = ledger.VolumeID{Driver: is.Driver, Handle: is.VolumeHandle}
			}
		}
	}
	return list
}

// nodeOf: the API takes any words as a node's name, but the ledger's words for no node name no existing
// one.
func nodeOf(t *v1alpha1.VolumeTicket) ledger.NodeName {
	n := ledger.NodeName(t.Node())
	switch {
	case t.Spec.Detached:
		return ledger.Detached
	case n == ledger.Detached:
		return n + "?"
	}
	return n
}

// parameters makes one word, to compare two tickets; empty: none.
func parameters(of map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(&b, "%q=%q ", key, of[key])
	}
	return b.String()
}

// NodeGone is the entry about a deleted Node; nil: none. Ticket is its inverse.
func NodeGone(o ledger.Outage) *v1alpha1.NodeGoneProgress {
	if o == (ledger.Outage{}) {
		return nil
	}
	return &v1alpha1.NodeGoneProgress{NodeUID: types.UID(o.NodeUID), ElapsedSeconds: int64(o.Elapsed / time.Second)}
}

func ticketVolume(v *v1alpha1.TicketVolume) ledger.TicketVolume {
	fact := ledger.TicketVolume{PersistentVolume: v.PersistentVolume}
	if v.Claim != nil {
		fact.Claim, fact.ClaimUID = v.Claim.Name, string(v.Claim.UID)
	}
	return fact
}
