// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// kept is a writer that keeps one ticket as it is written.
type kept struct {
	*writer
	object *v1alpha1.VolumeTicket
}

func (k *kept) Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool) { return k.object, true }

func (k *kept) Carry(_ context.Context, task flow.Task, status execute.Status) error {
	next, err := status(task.Commit)
	if next != nil {
		k.object = next
	}
	return err
}

// Satisfied is True only of a ticket that is granted and has its volumes: it is written
// False together with the loss of the grant, and where an earlier release left it True.
func TestSatisfiedEndsWithTheGrant(t *testing.T) {
	for name, phase := range map[string]ledger.TicketPhase{"granted": ledger.TicketGranted, "an earlier release refused it": ledger.TicketPending} {
		backup := ticket("backup", "n1", ledger.TypeBackup, "a")
		backup.Phase, backup.Interruptions = phase, 1
		object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "backup", ResourceVersion: backup.Version}}
		meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{Type: v1alpha1.TicketSatisfied, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSatisfied})
		w := &kept{&writer{ledger: facts(backup)}, object}
		c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		s := w.Snapshot()
		if phase == ledger.TicketGranted {
			outranked := arbiter.Verdict{Reasons: []arbiter.Reason{{Code: arbiter.Outranked, Claim: "a", Node: "n2"}}}
			err = c.write(t.Context(), flow.Interruption(s.Ticket(backup.ID), outranked, nil, now))
		} else {
			err = c.satisfied(t.Context(), s, s.Ticket(backup.ID))
		}
		if err != nil {
			t.Fatal(err)
		}
		satisfied := meta.FindStatusCondition(w.object.Status.Conditions, v1alpha1.TicketSatisfied)
		if satisfied.Status != metav1.ConditionFalse || satisfied.Message == "" {
			t.Errorf("%s: Satisfied is %s: %s", name, satisfied.Status, satisfied.Message)
		}
		if phase != ledger.TicketGranted {
			continue
		}
		granted := meta.FindStatusCondition(w.object.Status.Conditions, v1alpha1.TicketGranted)
		if granted.Status != metav1.ConditionUnknown || granted.Reason != string(arbiter.Outranked) || satisfied.Reason != granted.Reason || w.object.Status.Interruptions != 2 {
			t.Errorf("Granted is %s (%s), Satisfied %s, %d interruptions", granted.Status, granted.Reason, satisfied.Reason, w.object.Status.Interruptions)
		}
	}
}
