// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"math"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A VolumeHold's edited number of transitions may be the largest. The next number is valid, and not lower.
func TestEditedTransitions(t *testing.T) {
	disk, now := ledger.VolumeID{Driver: "disk", Handle: "d"}, time.Unix(2000, 0)
	for edited, want := range map[int64]int64{math.MaxInt64: ledger.MaxTransitions, ledger.MaxTransitions: ledger.MaxTransitions, ledger.MaxTransitions - 2: ledger.MaxTransitions - 1} {
		object := &v1alpha1.VolumeHold{Spec: v1alpha1.VolumeHoldSpec{Driver: disk.Driver, Handle: disk.Handle}, Status: v1alpha1.VolumeHoldStatus{Transitions: edited}}
		ticket := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "t"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "n", Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}}
		object.ResourceVersion = "5"
		l := ledger.New()
		for _, e := range []ledger.Event{
			ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: disk, Access: ledger.AccessNode},
			ledger.NodeState{Name: "n", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, BootID: "b", SystemUUID: "m"},
			ledger.Pod{UID: "p", Version: "1", Namespace: "shop", Name: "p", Node: "n", Volumes: []ledger.PodVolume{{Name: "v", Inline: disk}}},
			Hold(object),
			ticket,
		} {
			l.Apply(now, e)
		}
		steps := (rules.Arbiter{}).Plan(l.Snapshot(), disk, now).Steps
		if len(steps) == 0 || steps[0].Kind != rules.WriteHold || steps[0].Hold.Node != "n" {
			t.Fatalf("transitions %d: the hold is not written: %v", edited, steps)
		}
		if token := l.Snapshot().Token(); token > 1_000_000_000 {
			t.Errorf("transitions %d of one volume count for all: %d", edited, token)
		}
		if written := HoldObject(HoldContext{Volume: disk, Now: now}, steps[0].Hold).Status.Transitions; written != want {
			t.Errorf("transitions %d: %d are written, want %d", edited, written, want)
		}
	}
}

// The API server would refuse an overflow.
func TestEditedCounts(t *testing.T) {
	ticket := &v1alpha1.VolumeTicket{Status: v1alpha1.VolumeTicketStatus{Interruptions: math.MaxInt64, NodeGone: &v1alpha1.NodeGoneProgress{ElapsedSeconds: math.MaxInt64}}}
	hold := &v1alpha1.VolumeHold{Status: v1alpha1.VolumeHoldStatus{ForceDetach: &v1alpha1.ForceDetachProgress{ElapsedSeconds: math.MaxInt64}}}
	fact := Ticket(ticket)
	if fact.Interruptions <= 0 || fact.Interruptions+1 <= 0 {
		t.Errorf("%d interruptions", fact.Interruptions)
	}
	for what, elapsed := range map[string]time.Duration{"ticket": fact.NodeGone.Elapsed, "hold": Hold(hold).Hold.Force.Elapsed} {
		if elapsed <= 0 || elapsed+24*time.Hour <= elapsed || elapsed+elapsed <= elapsed {
			t.Errorf("%s: %v are counted", what, elapsed)
		}
	}
	if word := NodeWord(&v1alpha1.NodeMountReport{Spec: v1alpha1.NodeMountReportSpec{Look: 3}, Status: v1alpha1.NodeMountReportStatus{Looked: math.MaxInt64}}); word.Looked != 0 || word.Look != 3 {
		t.Errorf("look %d counts as done, of %d", word.Looked, word.Look)
	}
	if got := Elapsed(90); got != 90*time.Second {
		t.Errorf("90 seconds are %v", got)
	}
}
