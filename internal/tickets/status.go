// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
)

const maxMessage = 1024

// Condition makes a ticket's condition from a verdict. ok is the reason if it is True.
func Condition(name string, status metav1.ConditionStatus, v rules.Verdict, ok string, t *v1alpha1.VolumeTicket, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: name, Status: status, Reason: ok,
		ObservedGeneration: t.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	if status != metav1.ConditionTrue {
		c.Reason, c.Message = string(v.First().Code), message(v)
	}
	if c.Reason == "" {
		c.Reason = v1alpha1.ReasonPending
	}
	return c
}

func message(v rules.Verdict) string {
	var all []string
	for _, r := range v.Reasons {
		all = append(all, r.Message())
	}
	m := strings.Join(all, "; ")
	if len(m) > maxMessage {
		m = strings.ToValidUTF8(m[:maxMessage], "")
	}
	return m
}

// Volumes lists a ticket's volumes, and which of them are granted.
func Volumes(s ledger.Snapshot, t *ledger.Ticket, granted []ledger.VolumeID) []v1alpha1.TicketVolumeStatus {
	var list []v1alpha1.TicketVolumeStatus
	for i, v := range t.Volumes {
		status := v1alpha1.TicketVolumeStatus{Claim: v.Claim, PersistentVolume: v.PersistentVolume}
		if c := s.Claim(ledger.ClaimKey{Namespace: t.ID.Namespace, Name: v.Claim}); v.Claim != "" && c != nil {
			status.PersistentVolume = possibleName(c.PersistentVolume)
		}
		if id, link := s.ResolveTicket(t, v); link == ledger.LinkVolume {
			status.Transitions = s.Volume(id).Record().Transitions
		}
		if i < len(granted) && granted[i].IsReal() {
			status.Driver, status.VolumeHandle = granted[i].Driver, granted[i].Handle
		}
		list = append(list, status)
	}
	return list
}

// possibleName is empty for an invalid name: a claim's volumeName is any text of its tenant, and the API
// server refuses a ticket's status with a longer one.
func possibleName(volume string) string {
	if len(volume) > validation.DNS1123SubdomainMaxLength {
		return ""
	}
	return volume
}

func stateOf(t *v1alpha1.VolumeTicket) string {
	granted := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted)
	satisfied := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketSatisfied)
	switch {
	case granted == nil:
		return ""
	case granted.Status != metav1.ConditionTrue || satisfied == nil:
		return granted.Reason
	case meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.TicketYielding):
		return v1alpha1.TicketYielding
	}
	return satisfied.Reason
}

// Says reports whether a ticket already has the condition.
func Says(t *v1alpha1.VolumeTicket, c metav1.Condition) bool {
	old := meta.FindStatusCondition(t.Status.Conditions, c.Type)
	return old != nil && old.Status == c.Status && old.Reason == c.Reason && old.Message == c.Message
}

// As writes the status of next unchanged.
func As(next *v1alpha1.VolumeTicket) write.Status {
	next.Status.State = stateOf(next)
	return func(protocol.Request) (*v1alpha1.VolumeTicket, error) { return next, nil }
}
