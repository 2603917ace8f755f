// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func listing(events ...ledger.Event) (*ledger.Ledger, ledger.VolumeID) {
	l, v := ledger.New(), ledger.VolumeID{Driver: "disk", Handle: "a"}
	for _, e := range append([]ledger.Event{
		ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n1", Limit: 9}}},
		ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n2", Limit: 9}}},
		ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: []ledger.VolumeID{v}},
		ledger.NodeState{Name: "n2", UID: "n2", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.Complete{},
	}, events...) {
		l.Apply(auditTime, e)
	}
	return l, v
}

func TestUnexplainedUseCountsAndIsTold(t *testing.T) {
	pv := ledger.PersistentVolume{Name: "a", UID: "a", Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: "a"}, Access: ledger.AccessNode}
	hold := ledger.Hold{Version: "1", Node: "n2", NodeUID: "n2", Transitions: 2, State: ledger.HoldHeld, PVs: []string{"a"}}
	user := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "t"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "n2",
		Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{PersistentVolume: "a"}}}
	l, v := listing(pv, ledger.HoldSeen{Volume: ledger.VolumeID{Driver: "disk", Handle: "a"}, Hold: hold}, user)
	attaches := func() (bool, ledger.Hold) {
		written := hold
		attaches := false
		for _, step := range (Arbiter{}).Plan(l.Snapshot(), v, auditTime).Steps {
			if step.Kind == WriteHold {
				written = step.Hold
			}
			attaches = attaches || step.Kind == CreateAttachment
		}
		return attaches, written
	}
	attached, written := attaches()
	if attached {
		t.Error("it is attached to n2 while n1 lists it")
	}
	if written.State != ledger.HoldUnknown || written.Reason != InUseUnexplained || !strings.Contains(written.Message, "n1") || !strings.Contains(written.Message, "restart the kubelet") {
		t.Errorf("the hold says %s %s: %s", written.State, written.Reason, written.Message)
	}

	off := ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true, InUse: []ledger.VolumeID{v}}
	l.Apply(auditTime, off)
	if attached, _ := attaches(); !attached {
		t.Error("it is not attached to n2 though n1 is out of service")
	}
	l.Apply(auditTime, ledger.NodeState{Name: "n1", UID: "n1", Version: "3", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	if attached, _ := attaches(); !attached {
		t.Error("it is not attached to n2 though nobody lists it")
	}
}

func TestWhatExplainsUse(t *testing.T) {
	v := ledger.VolumeID{Driver: "disk", Handle: "a"}
	bound := ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n1", Volumes: []ledger.PodVolume{{Name: "a", Inline: v}}}
	leaving := bound
	leaving.Phase = ledger.PodTerminating
	waits := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "t"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "n1", Volumes: []ledger.TicketVolume{{PersistentVolume: "a"}}}
	for name, test := range map[string]struct {
		events []ledger.Event
		want   bool
	}{
		"nothing": {want: true},
		"an attachment": {events: []ledger.Event{
			ledger.Attachment{Name: ledger.AttachmentName(v, "n1"), UID: "u", Version: "1", Driver: "disk", Node: "n1", Inline: v}}},
		"somebody else's attachment": {events: []ledger.Event{
			ledger.Attachment{Name: "theirs", UID: "u", Version: "1", Driver: "disk", Node: "n1", Inline: v}}},
		"a pod":                {events: []ledger.Event{bound}},
		"a pod that is ending": {events: []ledger.Event{leaving}},
		"a ticket that is not granted": {want: true, events: []ledger.Event{
			ledger.PersistentVolume{Name: "a", UID: "a", Version: "1", Volume: v}, waits}},
		"volumesAttached": {events: []ledger.Event{
			ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: []ledger.VolumeID{v}, Reported: []ledger.VolumeID{v}}}},
		"a creation that is under way": {events: []ledger.Event{bound, ledger.AttachSent{Volume: v, Node: "n1"}, ledger.PodGone{UID: "p"}}},
		"that it is not listed, and only asked for": {events: []ledger.Event{
			ledger.PersistentVolume{Name: "a", UID: "a", Version: "1", Volume: v}, waits,
			ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}}},
		"a hold of what may have been left there": {events: []ledger.Event{
			ledger.HoldSeen{Volume: v, Hold: ledger.Hold{Version: "1", Node: "n1", Stays: true}}}},
	} {
		l, _ := listing(test.events...)
		s := l.Snapshot()
		if got := Unexplained(s, s.Volume(v).OnNode("n1")); got != test.want {
			t.Errorf("with %s it is unexplained: %t, want %t", name, got, test.want)
		}
	}
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "a"}
	l, _ := listing(ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", Node: "n1", State: ledger.HoldHeld}},
		ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: []ledger.VolumeID{iscsi}})
	if s := l.Snapshot(); Unexplained(s, s.Volume(iscsi).OnNode("n1")) {
		t.Error("one that needs no attachment is unexplained where its hold has it")
	}
}

// A kubelet may list any names: an unknown volume gets no VolumeHold.
func TestListedNamesMakeNoHolds(t *testing.T) {
	var names []ledger.VolumeID
	for i := range 100 {
		names = append(names, ledger.VolumeID{Driver: "disk", Handle: fmt.Sprint("x", i)})
	}
	l, _ := listing(ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: names})
	s := l.Snapshot()
	for _, v := range names {
		if plan := (Arbiter{}).Plan(s, v, auditTime); len(plan.Steps) > 0 {
			t.Fatalf("for a volume that is only listed: %v", plan.Steps[0].Kind)
		}
	}
	l.Apply(auditTime, ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: names[0], Access: ledger.AccessNode})
	if plan := (Arbiter{}).Plan(l.Snapshot(), names[0], auditTime); len(plan.Steps) != 1 || plan.Steps[0].Kind != WriteHold || plan.Steps[0].Hold.Node != "n1" {
		t.Errorf("for one with a PersistentVolume: %+v", plan.Steps)
	}
}
