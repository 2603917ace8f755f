// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
)

type kept struct {
	*writer
	object *v1alpha1.VolumeTicket
}

func (k *kept) Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool) { return k.object, true }

func (k *kept) Carry(_ context.Context, task protocol.Task, status write.Status) error {
	next, err := status(task.Commit)
	if next != nil {
		k.object = next
	}
	return err
}

func TestVolumesOfAnEarlierReleaseAreNamed(t *testing.T) {
	backup := ticket("backup", "n1", ledger.TypeBackup, "a")
	backup.Phase = ledger.TicketGranted
	object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "backup", ResourceVersion: backup.Version}}
	w := &kept{&writer{Ledger: facts(backup)}, object}
	c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	s := w.Snapshot()
	at, seen := s.TicketAt(backup.ID), *s.Ticket(backup.ID)
	if _, err := c.satisfied(t.Context(), s, &seen); err != nil {
		t.Fatal(err)
	}
	if volumes := w.object.Status.Volumes; len(volumes) != 1 || volumes[0].Driver != at[0].Driver || volumes[0].VolumeHandle != at[0].Handle {
		t.Errorf("its status names %+v, want %v", volumes, at)
	}
	written := w.object
	seen.Granted = at
	if _, err := c.satisfied(t.Context(), s, &seen); err != nil || w.object != written {
		t.Error("it is written again")
	}
}

// For a shared volume an unanswered detach changes no hold, so nothing touches the ticket.
func TestWaitThatLastsByTimeAloneIsTold(t *testing.T) {
	backup := ticket("backup", "n1", ledger.TypeBackup, "a")
	backup.Phase = ledger.TicketGranted
	shared := ledger.VolumeID{Driver: driver, Handle: "a"}
	backup.Granted = []ledger.VolumeID{shared}
	object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "backup", ResourceVersion: backup.Version}}
	w := &kept{&writer{Ledger: facts(
		ledger.PersistentVolume{Name: "a", Version: "2", Volume: shared, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "s", Name: "a"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "a"}, UID: "a", Version: "2", PersistentVolume: "a", Bound: true, Access: ledger.AccessMany},
		ledger.Attachment{Name: ledger.AttachmentName(shared, "n1"), UID: "v", Version: "1", Driver: driver, Node: "n1", PersistentVolume: "a", Ours: true, Attached: true, Deleting: true},
		backup,
	)}, object}
	at := now
	c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	for at.Sub(now) < 2*time.Minute {
		after, err := c.reconcile(t.Context(), backup.ID)
		if err != nil {
			t.Fatal(err)
		}
		if said := meta.FindStatusCondition(w.object.Status.Conditions, v1alpha1.TicketSatisfied); said != nil {
			if said.Reason != string(rules.DetachUnanswered) {
				t.Errorf("after %s it is told %s", at.Sub(now), said.Reason)
			}
			return
		}
		if after == 0 {
			t.Fatalf("after %s it is told nothing, and is not looked at again", at.Sub(now))
		}
		at = at.Add(after)
	}
	t.Error("it is told nothing")
}
