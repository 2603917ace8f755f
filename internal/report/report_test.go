// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestMetrics(t *testing.T) {
	l := ledger.New()
	now := time.Unix(1000, 0)
	l.Apply(now, ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 5}, {Name: "free", Limit: ledger.NoLimit}}})
	l.Apply(now, ledger.PersistentVolume{Name: "pv", Version: "1", Volume: ledger.VolumeID{Driver: "d", Handle: "h"}, Access: ledger.AccessNode})
	left := ledger.VolumeID{Driver: "d", Handle: "left"} // it may be there: that is no reservation
	l.Apply(now, ledger.PersistentVolume{Name: "left", Version: "1", Volume: left, Access: ledger.AccessNode})
	l.Apply(now, ledger.HoldSeen{Volume: left, Hold: ledger.Hold{Version: "1", Node: "n1", Stays: true}})
	l.Apply(now, ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "t"}, UID: "u", Version: "1", Type: ledger.TypeManual, Node: "n1",
		Phase: ledger.TicketGranted, Reason: "Granted", Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}, {PersistentVolume: "left"}}})
	for name, created := range map[string]int64{"young": 900, "old": 700} {
		l.Apply(now, ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: name}, UID: name, Version: "1", Type: ledger.TypeManual, Node: "n1", Created: created,
			Phase: ledger.TicketPending, Reason: "HeldElsewhere", Volumes: []ledger.TicketVolume{{PersistentVolume: "other"}}})
	}
	l.Apply(now, ledger.HoldBoots{Dropped: true})
	m := report.NewMetrics(l.Snapshot)
	none := func() map[ledger.Code]report.PodWait { return nil }
	m.Leads(map[string]func() int{"volumes": func() int { return 1 }}, none)
	m.Leads(map[string]func() int{"volumes": func() int { return 7 }}, none)
	m.Step(rules.Step{Kind: rules.Report}, nil)
	m.Step(rules.Step{Kind: rules.Report}, protocol.ErrStale)
	m.Step(rules.Step{Kind: rules.DeleteAttachment, Rule: rules.OutOfService}, nil)
	m.Step(rules.Step{Kind: rules.Unreport, Rule: rules.OutOfService}, nil) // a forced detach is counted once
	m.Violations([]rules.Violation{{Invariant: "I1"}, {Invariant: "I1"}})
	m.Attached("d", 2*time.Second)
	m.Detached("d", time.Second)
	want := `
# HELP attach_detach_controller_attachdetach_controller_forced_detaches Number of times the A/D Controller performed a forced detach
# TYPE attach_detach_controller_attachdetach_controller_forced_detaches counter
attach_detach_controller_attachdetach_controller_forced_detaches{reason="out-of-service"} 1
# HELP moorage_forced_detaches_total Volumes detached without their kubelet's report, by rule.
# TYPE moorage_forced_detaches_total counter
moorage_forced_detaches_total{rule="OutOfService"} 1
# HELP moorage_invariant_violations_total Broken invariants that an audit found. Any is a bug, or somebody else's doing.
# TYPE moorage_invariant_violations_total counter
moorage_invariant_violations_total{invariant="I1"} 2
# HELP moorage_queue_depth Keys that are due in a queue of the controller and not taken up yet: volumes to plan for, tickets to end, pods to tell, tickets of operations to make and end.
# TYPE moorage_queue_depth gauge
moorage_queue_depth{queue="volumes"} 7
# HELP moorage_slots_limit Slots of a driver that a node has, by its CSINode and the policy; none where there is no limit.
# TYPE moorage_slots_limit gauge
moorage_slots_limit{driver="d",node="n1"} 5
# HELP moorage_slots_reserved Slots among moorage_slots_used that are promised to pods and tickets, and that nothing is attached in yet.
# TYPE moorage_slots_reserved gauge
moorage_slots_reserved{driver="d",node="n1"} 1
moorage_slots_reserved{driver="free",node="n1"} 0
# HELP moorage_slots_used Slots of a driver that are taken at a node: attached, attaching, detaching, reserved or unknown.
# TYPE moorage_slots_used gauge
moorage_slots_used{driver="d",node="n1"} 2
moorage_slots_used{driver="free",node="n1"} 0
# HELP moorage_steps_total Steps executed: each is one write to the API, shared by several where they are of one node.
# TYPE moorage_steps_total counter
moorage_steps_total{result="error",step="report"} 1
moorage_steps_total{result="ok",step="delete-attachment"} 1
moorage_steps_total{result="ok",step="report"} 1
moorage_steps_total{result="ok",step="unreport"} 1
# HELP moorage_tickets VolumeTickets by type, phase and the reason of their condition Granted.
# TYPE moorage_tickets gauge
moorage_tickets{phase="granted",reason="Granted",type="Manual"} 1
moorage_tickets{phase="pending",reason="HeldElsewhere",type="Manual"} 2
# HELP moorage_volumehold_fields_dropped 1 while the API server drops fields from VolumeHolds: their CustomResourceDefinition is older than this controller.
# TYPE moorage_volumehold_fields_dropped gauge
moorage_volumehold_fields_dropped 1
# HELP moorage_tickets_oldest_pending_timestamp_seconds When the oldest ticket was made that is neither granted nor refused, in seconds since the epoch, by type and the reason that it waits for.
# TYPE moorage_tickets_oldest_pending_timestamp_seconds gauge
moorage_tickets_oldest_pending_timestamp_seconds{reason="HeldElsewhere",type="Manual"} 700
`
	err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "attach_detach_controller_attachdetach_controller_forced_detaches", "moorage_forced_detaches_total", "moorage_invariant_violations_total",
		"moorage_queue_depth", "moorage_slots_limit", "moorage_slots_reserved", "moorage_slots_used", "moorage_steps_total", "moorage_tickets",
		"moorage_volumehold_fields_dropped",
		"moorage_tickets_oldest_pending_timestamp_seconds")
	if err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(m.Registry, "moorage_operation_seconds"); err != nil || n != 2 {
		t.Errorf("%d series of operations (%v), want attach and detach", n, err)
	}
	var nothing *report.Metrics
	nothing.Step(rules.Step{}, nil)
	nothing.Forced(rules.OutOfService)
	nothing.Attached("d", 0)
	nothing.Violations(nil)
	nothing.Leads(nil, nil)()
}

func TestEvents(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	e := report.NewEventsWith(recorder)
	pod := &ledger.Pod{Namespace: "shop", Name: "db", UID: "u"}
	v := ledger.VolumeID{Driver: "d", Handle: "h"}
	e.Waits(pod, nil, rules.Reason{Code: rules.NodeUnreachable, Volume: v, Node: "n1"})
	e.Waits(pod, nil, rules.Reason{Code: rules.AttachFailed, Volume: v, Node: "n1", Detail: "no such disk"})
	e.Waits(pod, nil, rules.Reason{Code: rules.HeldElsewhere, Volume: v, Node: "n2"})
	e.ForcedDetach(t.Context(), v, ledger.Fence{Node: "n1", Rule: rules.OutOfService})
	e.ForcedDetach(t.Context(), v, ledger.Fence{Node: "n1", Rule: rules.AfterPodGone})
	for _, want := range [][]string{
		{"VolumeWait", "NodeUnreachable", "out-of-service"},
		{"FailedAttachVolume", "no such disk"},
		{"FailedAttachVolume", "HeldElsewhere", "n2 holds it"},
		{"ForcedDetach", "OutOfService: proof that"},
		{"ForcedDetach", "AfterPodGone: a time, which does not prove"},
	} {
		got := <-recorder.Events
		for _, part := range append(want, "Warning") {
			if !strings.Contains(got, part) {
				t.Errorf("event %q does not say %q", got, part)
			}
		}
	}
	if len(recorder.Events) > 0 {
		t.Errorf("one event too many: %s", <-recorder.Events)
	}
	var none *report.Events
	none.Waits(pod, nil, rules.Reason{})
	none.ForcedDetach(t.Context(), v, ledger.Fence{})
}

// A wait that may last for ever never counts as passing.
func TestTransient(t *testing.T) {
	for _, c := range []ledger.Code{rules.NodeUnreachable, rules.InUseUnknown, rules.AttachFailed, rules.DetachFailed,
		rules.HeldElsewhere, rules.ForeignAttachment, rules.NoFreeSlot, rules.ClaimMissing, rules.NodeUnmanaged} {
		if rules.Transient(c) {
			t.Errorf("%s is taken for transient", c)
		}
	}
	if !rules.Transient(rules.Attaching) || !rules.Transient(rules.NotReported) {
		t.Error("an attach that goes as it should is told at once")
	}
}

// Without a controller the first owner is told.
func TestTicketEnded(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	e := report.NewEventsWith(recorder)
	ticket := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly"}, Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketBackup, NodeName: "n1"}}
	for _, cause := range rules.EndCauses() {
		ticket.OwnerReferences = nil
		e.TicketEnded(ticket, cause)
		if got := <-recorder.Events; !strings.Contains(got, "TicketEnded "+string(cause)+": ") || strings.HasSuffix(got, string(cause)) {
			t.Errorf("event %q", got)
		}
		ticket.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "first"}, {Kind: "Backup", Name: "second", Controller: new(true)}}
		e.TicketEnded(ticket, cause)
		<-recorder.Events
		if got := <-recorder.Events; !strings.Contains(got, "TicketEnded ticket nightly: "+string(cause)+": ") {
			t.Errorf("event %q", got)
		}
	}
	if len(recorder.Events) > 0 {
		t.Errorf("one event too many: %s", <-recorder.Events)
	}
	e.TicketEnded(nil, rules.EndTimeOver)
	(*report.Events)(nil).TicketEnded(ticket, rules.EndTimeOver)
}

// An event has only as much text as its note may have: the recorder keeps thousands.
func TestLongWordsAreCut(t *testing.T) {
	recorder := record.NewFakeRecorder(10)
	pod := &ledger.Pod{Namespace: "shop", Name: "db", UID: "u"}
	report.NewEventsWith(recorder).AttachRefused(pod, "pv", "n1", "denied: "+strings.Repeat("ü", 1<<20))
	if got := <-recorder.Events; len(got) > 1100 || !strings.Contains(got, "denied: ") || !utf8.ValidString(got) {
		t.Errorf("an event of %d bytes: %.100q", len(got), got)
	}
}
