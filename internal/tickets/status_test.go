// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/test/ticketwriter"
)

type writer = ticketwriter.Writer

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

func keeperOf(t *testing.T, w *kept, at time.Time) *Keeper {
	t.Helper()
	k, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return at }, Order: &sync.Mutex{}, Waits: &Waits{}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSatisfiedEndsWithTheGrant(t *testing.T) {
	for name, phase := range map[string]ledger.TicketPhase{"granted": ledger.TicketGranted} {
		backup := ticket("backup", "n1", ledger.TypeBackup, "a")
		backup.Phase, backup.Interruptions = phase, 1
		object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "backup", ResourceVersion: backup.Version}}
		meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{Type: v1alpha1.TicketSatisfied, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSatisfied})
		w := &kept{&writer{Ledger: facts(backup)}, object}
		c := keeperOf(t, w, now)
		s := w.Snapshot()
		outranked := rules.Verdict{Reasons: []rules.Reason{{Code: rules.Outranked, Claim: "a", Node: "n2"}}}
		if err := c.carry(t.Context(), protocol.Interruption(s.Ticket(backup.ID), outranked, nil, now)); err != nil {
			t.Fatal(err)
		}
		satisfied := meta.FindStatusCondition(w.object.Status.Conditions, v1alpha1.TicketSatisfied)
		if satisfied.Status != metav1.ConditionFalse || satisfied.Message == "" {
			t.Errorf("%s: Satisfied is %s: %s", name, satisfied.Status, satisfied.Message)
		}
		granted := meta.FindStatusCondition(w.object.Status.Conditions, v1alpha1.TicketGranted)
		if granted.Status != metav1.ConditionUnknown || granted.Reason != string(rules.Outranked) || satisfied.Reason != granted.Reason || w.object.Status.Interruptions != 2 {
			t.Errorf("Granted is %s (%s), Satisfied %s, %d interruptions", granted.Status, granted.Reason, satisfied.Reason, w.object.Status.Interruptions)
		}
	}
}

// The condition has deadline and user, keeps the grant, and ends with the request.
func TestYieldingIsWritten(t *testing.T) {
	backup := ticket("backup", "n1", ledger.TypeBackup, "a")
	backup.Phase = ledger.TicketGranted
	object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "backup", ResourceVersion: backup.Version}}
	for _, name := range []string{v1alpha1.TicketGranted, v1alpha1.TicketSatisfied} {
		meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{Type: name, Status: metav1.ConditionTrue, Reason: name})
	}
	w := &kept{&writer{Ledger: facts(backup)}, object}
	c := keeperOf(t, w, now)
	outranked := rules.Verdict{Outcome: rules.Deny, Reasons: []rules.Reason{{Code: rules.Outranked, Claim: "a", Node: "n2"}}}
	write := func(task protocol.Task) *metav1.Condition {
		t.Helper()
		known := convert.Ticket(w.object)
		task.Ticket = &known
		if err := c.carry(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		return meta.FindStatusCondition(w.object.Status.Conditions, v1alpha1.TicketYielding)
	}
	asking := protocol.Task{Commit: protocol.Request{Kind: rules.DecideTicket, Version: backup.Version, Phase: ledger.TicketGranted, Verdict: outranked, YieldingSince: now.Unix()}}
	said := write(asking)
	if want := "let go by " + now.Add(30*time.Second).UTC().Format(time.RFC3339) + ": volume a goes to n2 first"; said == nil || said.Message != want || said.Reason != string(rules.Outranked) {
		t.Fatalf("it says %+v, want %q", said, want)
	}
	if !meta.IsStatusConditionTrue(w.object.Status.Conditions, v1alpha1.TicketGranted) || !meta.IsStatusConditionTrue(w.object.Status.Conditions, v1alpha1.TicketSatisfied) {
		t.Errorf("it has lost its volumes: %+v", w.object.Status.Conditions)
	}
	if got := convert.Ticket(w.object); got.YieldingSince != now.Unix() || got.LetsGo {
		t.Errorf("it is read as %+v", got)
	}
	w.object.Annotations = map[string]string{v1alpha1.AnnotationLetsGo: now.UTC().Format(time.RFC3339)}
	if !convert.Ticket(w.object).LetsGo {
		t.Error("it does not let go")
	}
	later := asking
	later.Commit.YieldingSince += 5
	if write(later); convert.Ticket(w.object).LetsGo || convert.Ticket(w.object).YieldingSince != now.Unix()+5 {
		t.Error("it was asked anew, and the answer was to the first question")
	}
	if said := write(protocol.Task{Commit: protocol.Request{Kind: rules.DecideTicket, Version: backup.Version, Phase: ledger.TicketGranted}}); said != nil {
		t.Errorf("it is asked no longer, and says %+v", said)
	}
	write(asking)
	lost := asking
	lost.Commit.Phase, lost.Commit.YieldingSince = ledger.TicketPending, 0
	if said := write(lost); said != nil {
		t.Errorf("it has lost its volumes, and says %+v", said)
	}
}

// The transition time stays.
func TestYieldingSaysWhatIsSo(t *testing.T) {
	backup := ticket("backup", "n1", ledger.TypeBackup, "a")
	backup.Phase, backup.SatisfiedSince, backup.YieldingSince = ledger.TicketGranted, now.Unix(), now.Unix()
	hold := ledger.HoldSeen{Volume: ledger.VolumeID{Driver: driver, Handle: "a"}, Hold: ledger.Hold{
		Version: "1", Node: "n1", Requesters: []ledger.Requester{{Ticket: true, Namespace: "s", Name: "backup", UID: backup.UID}},
		Next: ledger.Promise{Node: "n2", To: ledger.Requester{Namespace: "s", Name: "two", UID: "uid-two"}},
	}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  string
	}{
		"somebody else": {[]ledger.Event{pod("two", "n2", "a")},
			"let go by " + now.Add(rules.Notice).UTC().Format(time.RFC3339) + ": volume a goes to n2 for pod s/two first"},
		"nobody": {[]ledger.Event{ledger.HoldSeen{Volume: hold.Volume, Hold: ledger.Hold{Version: "2", Node: "n1"}}}, "as it was"},
	} {
		object := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: "backup", ResourceVersion: backup.Version}}
		for _, condition := range []string{v1alpha1.TicketGranted, v1alpha1.TicketSatisfied, v1alpha1.TicketYielding} {
			meta.SetStatusCondition(&object.Status.Conditions, metav1.Condition{
				Type: condition, Status: metav1.ConditionTrue, Reason: condition, Message: "as it was", LastTransitionTime: metav1.NewTime(now),
			})
		}
		w := &kept{&writer{Ledger: facts(append([]ledger.Event{hold, backup}, test.facts...)...)}, object}
		c := keeperOf(t, w, now.Add(time.Second))
		s := w.Snapshot()
		if err := c.stillAsked(t.Context(), s.Ticket(backup.ID), c.keeps(s, s.Ticket(backup.ID))); err != nil {
			t.Fatal(err)
		}
		said := w.object.Yielding()
		if said == nil || said.Message != test.want || !said.LastTransitionTime.Time.Equal(now) {
			t.Errorf("%s: it says %+v, want %q", name, said, test.want)
		}
	}
}

func TestStateOf(t *testing.T) {
	is := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason}
	}
	for want, conditions := range map[string][]metav1.Condition{
		"":              nil,
		"HeldElsewhere": {is(v1alpha1.TicketGranted, metav1.ConditionUnknown, "HeldElsewhere")},
		"Outranked":     {is(v1alpha1.TicketGranted, metav1.ConditionUnknown, "Outranked"), is(v1alpha1.TicketSatisfied, metav1.ConditionFalse, "Outranked")},
		"Granted":       {is(v1alpha1.TicketGranted, metav1.ConditionTrue, "Granted")},
		"AttachFailed":  {is(v1alpha1.TicketGranted, metav1.ConditionTrue, "Granted"), is(v1alpha1.TicketSatisfied, metav1.ConditionFalse, "AttachFailed")},
		"Satisfied":     {is(v1alpha1.TicketGranted, metav1.ConditionTrue, "Granted"), is(v1alpha1.TicketSatisfied, metav1.ConditionTrue, "Satisfied")},
		"Yielding":      {is(v1alpha1.TicketGranted, metav1.ConditionTrue, "Granted"), is(v1alpha1.TicketSatisfied, metav1.ConditionTrue, "Satisfied"), is(v1alpha1.TicketYielding, metav1.ConditionTrue, "Outranked")},
	} {
		if got := stateOf(&v1alpha1.VolumeTicket{Status: v1alpha1.VolumeTicketStatus{Conditions: conditions}}); got != want {
			t.Errorf("state %q, want %q", got, want)
		}
	}
}

// A claim's volumeName is any text: an invalid name in a status would fail the write.
func TestNoSuchPersistentVolume(t *testing.T) {
	k := ticket("p", "n1", ledger.TypeManual, "odd")
	for name, want := range map[string]string{"pv-1": "pv-1", strings.Repeat("x", 254): ""} {
		l := facts(ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "odd"}, UID: "odd", Version: "1", PersistentVolume: name}, k)
		if list := Volumes(l.Snapshot(), l.Snapshot().Ticket(k.ID), nil); list[0].PersistentVolume != want {
			t.Errorf("%.10s: it says %q", name, list[0].PersistentVolume)
		}
	}
}
