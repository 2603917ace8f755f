// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

const driver = "d"

var now = time.Unix(1000, 0)

// facts is a ledger with a Ready node of two slots and disks a, b and c.
func facts(events ...ledger.Event) *ledger.Ledger {
	l := ledger.New()
	all := []ledger.Event{
		ledger.NodeState{Name: "n1", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2}}},
	}
	for _, h := range []string{"a", "b", "c"} {
		all = append(all,
			ledger.PersistentVolume{Name: h, Version: "1", Volume: ledger.VolumeID{Driver: driver, Handle: h}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: h}},
			ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: h}, UID: h, Version: "1", PersistentVolume: h, Bound: true, Access: ledger.AccessNode})
	}
	for _, e := range append(all, events...) {
		l.Apply(now, e)
	}
	return l
}

func pod(name string, node ledger.NodeName, claims ...string) ledger.Pod {
	p := ledger.Pod{UID: "uid-" + name, Version: "1", Namespace: "s", Name: name, Node: node}
	for _, c := range claims {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: c, Claim: c})
	}
	return p
}

func ticket(pod, node string, typ ledger.TicketType, claims ...string) ledger.Ticket {
	t := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "uid-" + pod}, UID: "t-" + pod, Version: "1", Type: typ, Node: ledger.NodeName(node)}
	if typ == ledger.TypePod {
		t.Pod, t.PodName = "uid-"+pod, pod
	}
	for _, c := range claims {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: c})
	}
	return t
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		facts  []ledger.Event
		ticket ledger.Ticket
		want   Answer
		reason ledger.Code
		holds  int
	}{
		"room for both volumes": {ticket: ticket("p", "n1", ledger.TypePod, "b", "a"), want: Grant, holds: 2},
		"room for none of three": {ticket: ticket("p", "n1", ledger.TypePod, "a", "b", "c"),
			want: Refuse, reason: arbiter.NoFreeSlot},
		"a full node, and nobody who would look elsewhere": {ticket: ticket("p", "n1", ledger.TypeManual, "a", "b", "c"),
			want: Wait, reason: arbiter.NoFreeSlot},
		"somebody living has it elsewhere": {facts: []ledger.Event{pod("old", "n2", "a")},
			ticket: ticket("p", "n1", ledger.TypePod, "a"), want: Refuse, reason: arbiter.HeldElsewhere},
		"the same, for a ticket of a user": {facts: []ledger.Event{pod("old", "n2", "a")},
			ticket: ticket("p", "n1", ledger.TypeManual, "a"), want: Wait, reason: arbiter.HeldElsewhere},
		"a claim that does not exist": {ticket: ticket("p", "n1", ledger.TypePod, "nothing"), want: Refuse, reason: arbiter.ClaimMissing},
		"a node that does not exist":  {ticket: ticket("p", "n9", ledger.TypePod, "a"), want: Refuse, reason: arbiter.DriverNotRegistered},
		"a driver that registers soon": {facts: []ledger.Event{ledger.NodeDrivers{Node: "n1", Version: "2"}},
			ticket: ticket("p", "n1", ledger.TypePod, "a"), want: Wait, reason: arbiter.DriverNotRegistered},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := facts(append(test.facts, pod("p", "", "a", "b", "c"), test.ticket)...)
			s := l.Snapshot()
			d := Decide(arbiter.Arbiter{}, s, s.Ticket(test.ticket.ID), now)
			if d.Answer != test.want || d.Verdict.First().Code != test.reason || len(d.Holds) != test.holds {
				t.Errorf("answer %d for %q with %d holds, want %d for %q with %d", d.Answer, d.Verdict.First().Code, len(d.Holds), test.want, test.reason, test.holds)
			}
			for i := 1; i < len(d.Holds); i++ {
				if holdName(d.Holds[i-1]) >= holdName(d.Holds[i]) {
					t.Errorf("holds are written in the order %s, %s", holdName(d.Holds[i-1]), holdName(d.Holds[i]))
				}
			}
		})
	}
}

// Who ranks first is decided first, whatever the order of arrival.
func TestPendingAreRanked(t *testing.T) {
	younger, older := ticket("y", "n1", ledger.TypePod, "a"), ticket("o", "n1", ledger.TypePod, "b")
	younger.Created, older.Created = 20, 10
	manual := ticket("m", "n1", ledger.TypeManual, "c")
	manual.Created = 30
	l := facts(younger, older, manual)
	got := pending(l.Snapshot(), "n1")
	if len(got) != 3 || got[0] != manual.ID || got[1] != older.ID || got[2] != younger.ID {
		t.Errorf("order %v", got)
	}
	if got := pending(l.Snapshot(), "n9"); got != nil {
		t.Errorf("a node that is not known has %v", got)
	}
}

func TestExhausted(t *testing.T) {
	granted := ticket("p", "n1", ledger.TypePod, "a")
	granted.Phase = ledger.TicketGranted
	full := ledger.Attachment{
		Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: "a"}, "n1"), UID: "u", Version: "1", Driver: driver, Node: "n1",
		PersistentVolume: "a", Ours: true, AttachError: ledger.CallError{Code: ledger.ResourceExhausted, Message: "full"},
	}
	broken := full
	broken.AttachError.Code = 13
	for name, test := range map[string]struct {
		pod        ledger.Pod
		attachment ledger.Attachment
		want       bool
	}{
		"no room":                  {pod("p", "", "a"), full, true},
		"no room, and bound":       {pod("p", "n1", "a"), full, false},
		"it fails for some reason": {pod("p", "", "a"), broken, false},
	} {
		s := facts(test.pod, granted, test.attachment).Snapshot()
		if got := Exhausted(s, s.Ticket(granted.ID)); got.Allowed() == test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMessagesAreBounded(t *testing.T) {
	v := arbiter.Verdict{}
	for range 100 {
		v.Reasons = append(v.Reasons, arbiter.Reason{Code: arbiter.ClaimMissing, Claim: strings.Repeat("ä", 20)})
	}
	c := condition(v1alpha1.TicketGranted, metav1.ConditionFalse, v, "", &v1alpha1.VolumeTicket{}, now)
	if len(c.Message) > maxMessage || strings.ToValidUTF8(c.Message, "?") != c.Message || c.Reason != string(arbiter.ClaimMissing) {
		t.Errorf("condition %+v", c)
	}
}

// What earlier processes counted counts once.
func TestAges(t *testing.T) {
	a := newAges()
	if got := a.of("u", 10*time.Second, now); got != 10*time.Second {
		t.Errorf("at first %s", got)
	}
	if got := a.of("u", 25*time.Second, now.Add(20*time.Second)); got != 30*time.Second {
		t.Errorf("later %s", got)
	}
	a.forget("u")
	if got := a.of("u", 0, now.Add(time.Hour)); got != 0 {
		t.Errorf("after it was forgotten %s", got)
	}
}
