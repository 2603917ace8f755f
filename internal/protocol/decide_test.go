// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/sample"
)

const driver = sample.Driver

var (
	now    = sample.Now
	facts  = sample.Ledger
	pod    = sample.Pod
	ticket = sample.Ticket
)

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		facts  []ledger.Event
		ticket ledger.Ticket
		want   Ruling
		reason ledger.Code
	}{
		"room for both volumes": {ticket: ticket("p", "n1", ledger.TypeManual, "b", "a"), want: Grant},
		"a full node, and nobody who would look elsewhere": {facts: []ledger.Event{pod("old", "n1", "c")},
			ticket: ticket("p", "n1", ledger.TypeManual, "a", "b"), want: Wait, reason: rules.NoFreeSlot},
		"more than the node has room for": {ticket: ticket("p", "n1", ledger.TypeManual, "a", "b", "c"),
			want: Wait, reason: rules.SlotsNotKept},
		"somebody living has it elsewhere": {facts: []ledger.Event{pod("old", "n2", "a")},
			ticket: ticket("p", "n1", ledger.TypeManual, "a"), want: Wait, reason: rules.HeldElsewhere},
		"a claim that does not exist": {ticket: ticket("p", "n1", ledger.TypeManual, "nothing"), want: Wait, reason: rules.ClaimMissing},
		"a node that does not exist":  {ticket: ticket("p", "n9", ledger.TypeManual, "a"), want: Wait, reason: rules.NodeMissing},
		"a driver that registers soon, for a ticket of a user": {facts: []ledger.Event{ledger.NodeDrivers{Node: "n1", Version: "2"}},
			ticket: ticket("p", "n1", ledger.TypeManual, "a"), want: Wait, reason: rules.DriverNotRegistered},
		"a driver that registers soon, and has to be there": {facts: []ledger.Event{ledger.NodeDrivers{Node: "n1", Version: "2"}, ledger.Driver{Name: "d", Version: "9", AttachRequired: true, NeedsNode: true}},
			ticket: ticket("p", "n1", ledger.TypeManual, "a"), want: Wait, reason: rules.DriverNotRegistered},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := facts(append(test.facts, pod("p", "", "a", "b", "c"), test.ticket)...)
			s := l.Snapshot()
			d := Rule(rules.Arbiter{}, s, s.Ticket(test.ticket.ID), now)
			if d.Ruling != test.want || d.Verdict.First().Code != test.reason {
				t.Errorf("answer %d for %q, want %d for %q", d.Ruling, d.Verdict.First().Code, test.want, test.reason)
			}
		})
	}
}

func TestPendingAreRanked(t *testing.T) {
	younger, older := ticket("y", "n1", ledger.TypeManual, "a"), ticket("o", "n1", ledger.TypeManual, "b")
	younger.Created, older.Created = 20, 10
	restore := ticket("m", "n1", ledger.TypeRestore, "c")
	restore.Created = 30
	l := facts(younger, older, restore)
	var got []ledger.TicketID
	list := round(l.Snapshot(), "n1", nil)
	for _, d := range list {
		got = append(got, d.Ticket.ID)
	}
	if !slices.Equal(got, []ledger.TicketID{restore.ID, older.ID, younger.ID}) {
		t.Errorf("order %v", got)
	}
	if list := round(l.Snapshot(), "n9", nil); list != nil {
		t.Errorf("a node that is not known has %v", list)
	}
}

func TestDue(t *testing.T) {
	manual := ticket("p", "n1", ledger.TypeManual, "a")
	manual.Phase = ledger.TicketGranted
	full := ledger.Attachment{
		Name: ledger.AttachmentName(ledger.VolumeID{Driver: driver, Handle: "a"}, "n1"), UID: "u", Version: "1", Driver: driver, Node: "n1",
		PersistentVolume: "a", Ours: true, AttachError: ledger.CallError{Code: ledger.ResourceExhausted, Message: "full"},
	}
	s := facts(manual, full).Snapshot()
	if task, due := Due(rules.Arbiter{}, s, s.Ticket(manual.ID), rules.Arbiter{}.Keeps(s, s.Ticket(manual.ID), now), now); due {
		t.Errorf("it gets %+v", task.Commit)
	}
}

func TestDueInterrupts(t *testing.T) {
	backup := ticket("backup", "n1", ledger.TypeBackup, "a")
	backup.Phase, backup.Interruptions = ledger.TicketGranted, 2
	hold := ledger.HoldSeen{Volume: ledger.VolumeID{Driver: driver, Handle: "a"}, Hold: ledger.Hold{
		Version: "1", Node: "n1", Requesters: []ledger.Requester{{Ticket: true, Namespace: "s", Name: "backup", UID: backup.UID}},
		Next: ledger.Promise{Node: "n2", To: ledger.Requester{Namespace: "s", Name: "p", UID: "uid-p"}},
	}}
	for name, test := range map[string]struct {
		satisfied time.Duration // for how long
		pod       ledger.Pod
		want      int64
		reason    ledger.Code
	}{
		"never satisfied":    {0, pod("p", "n2", "a"), 3, rules.Outranked},
		"satisfied lately":   {satisfiedForLong - time.Second, pod("p", "n2", "a"), 3, rules.Outranked},
		"satisfied for long": {satisfiedForLong, pod("p", "n2", "a"), 1, rules.Outranked},
		"its claim is gone":  {0, pod("p", "n2", "a"), 2, rules.ClaimMissing},
		"nobody wants it":    {},
	} {
		k, list := backup, []ledger.Event{hold}
		if test.satisfied > 0 {
			k.SatisfiedSince = now.Add(-test.satisfied).Unix()
			k.YieldingSince = now.Add(-rules.Notice).Unix()
		}
		switch test.reason {
		case rules.ClaimMissing:
			k.Volumes = []ledger.TicketVolume{{Claim: "nothing"}}
		case rules.Outranked:
			list = append(list, test.pod)
		default: // nothing happens
		}
		s := facts(append(list, k)...).Snapshot()
		task, due := Due(rules.Arbiter{}, s, s.Ticket(k.ID), rules.Arbiter{}.Keeps(s, s.Ticket(k.ID), now), now)
		if due != (test.reason != "") {
			t.Errorf("%s: due %t", name, due)
		} else if c := task.Commit; due && (c.Phase != ledger.TicketPending || c.Interruptions != test.want || c.Verdict.First().Code != test.reason) {
			t.Errorf("%s: %v, %d interruptions, %v", name, c.Phase, c.Interruptions, c.Verdict.Reasons)
		}
		if test.reason == rules.ClaimMissing && len(task.Proofs) != 1 {
			t.Errorf("%s: it is not read whether it is", name)
		}
	}
}

// The ticket is asked once before it loses its volumes.
func TestDueAsks(t *testing.T) {
	backup := ticket("backup", "n1", ledger.TypeBackup, "a")
	backup.Phase, backup.SatisfiedSince = ledger.TicketGranted, now.Unix()
	hold := ledger.HoldSeen{Volume: ledger.VolumeID{Driver: driver, Handle: "a"}, Hold: ledger.Hold{
		Version: "1", Node: "n1", Requesters: []ledger.Requester{{Ticket: true, Namespace: "s", Name: "backup", UID: backup.UID}},
		Next: ledger.Promise{Node: "n2", To: ledger.Requester{Namespace: "s", Name: "p", UID: "uid-p"}},
	}}
	asked := func(ago time.Duration) func(*ledger.Ticket) {
		return func(k *ledger.Ticket) { k.YieldingSince = now.Add(-ago).Unix() }
	}
	const nothing, asks, takesBack, asksNoMore = "nothing", "it is asked", "its grant is taken back", "it is asked no longer"
	for name, test := range map[string]struct {
		change func(*ledger.Ticket)
		facts  []ledger.Event
		want   string
	}{
		"somebody wants it":         {nil, []ledger.Event{pod("p", "n2", "a")}, asks},
		"asked":                     {asked(29 * time.Second), []ledger.Event{pod("p", "n2", "a")}, nothing},
		"its time is over":          {asked(30 * time.Second), []ledger.Event{pod("p", "n2", "a")}, takesBack},
		"by a clock that is ahead":  {asked(-time.Second), []ledger.Event{pod("p", "n2", "a")}, nothing},
		"by one that is far ahead":  {asked(-time.Hour), []ledger.Event{pod("p", "n2", "a")}, asks},
		"it lets go":                {func(k *ledger.Ticket) { asked(0)(k); k.LetsGo = true }, []ledger.Event{pod("p", "n2", "a")}, takesBack},
		"its volumes are not there": {func(k *ledger.Ticket) { asked(0)(k); k.SatisfiedSince = 0 }, []ledger.Event{pod("p", "n2", "a")}, takesBack},
		"nobody wants it":           {nil, nil, nothing},
		"nobody wants it any more":  {asked(29 * time.Second), nil, nothing},
		"until its time is over":    {asked(30 * time.Second), nil, asksNoMore},
		"nor has it anything":       {func(k *ledger.Ticket) { asked(0)(k); k.SatisfiedSince = 0 }, nil, asksNoMore},
		"it let go of it before":    {func(k *ledger.Ticket) { asked(0)(k); k.LetsGo = true }, nil, asksNoMore},
		"it let go before that":     {func(k *ledger.Ticket) { asked(30 * time.Second)(k); k.LetsGo = true }, nil, asksNoMore},
		"its claim is gone": {func(k *ledger.Ticket) { k.Volumes = []ledger.TicketVolume{{Claim: "nothing"}} },
			[]ledger.Event{pod("p", "n2", "a")}, takesBack},
	} {
		k := backup
		if test.change != nil {
			test.change(&k)
		}
		s := facts(append(test.facts, hold, k)...).Snapshot()
		task, due := Due(rules.Arbiter{}, s, s.Ticket(k.ID), rules.Arbiter{}.Keeps(s, s.Ticket(k.ID), now), now)
		c, got := task.Commit, nothing
		switch {
		case due && c.Phase == ledger.TicketPending:
			got = takesBack
		case due && c.YieldingSince == now.Unix() && c.Verdict.First().Code == rules.Outranked:
			got = asks
		case due && c.Phase == ledger.TicketGranted && c.YieldingSince == 0 && c.Verdict.Allowed():
			got = asksNoMore
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestDuePlaces(t *testing.T) {
	interrupted := func(k *ledger.Ticket) {
		k.Node, k.Reason, k.Interruptions = "n1", string(rules.Outranked), 1
	}
	down := []ledger.Event{ledger.NodeGone{Name: "n1"}, ledger.NodeGone{Name: "n2"}}
	for name, test := range map[string]struct {
		change func(*ledger.Ticket)
		facts  []ledger.Event
		due    bool
		node   ledger.NodeName
		reason ledger.Code
	}{
		"nobody has it":      {nil, nil, true, "n1", rules.NotGranted},
		"a pod has it":       {nil, []ledger.Event{pod("p", "n2", "a")}, true, "n2", rules.NotGranted},
		"it is there":        {func(k *ledger.Ticket) { k.Node = "n2" }, []ledger.Event{pod("p", "n2", "a")}, false, "", ""},
		"the pod has moved":  {func(k *ledger.Ticket) { k.Node = "n1" }, []ledger.Event{pod("p", "n2", "a")}, true, "n2", rules.NotGranted},
		"it pauses":          {interrupted, []ledger.Event{pod("p", "n2", "a")}, false, "", ""},
		"it is granted":      {func(k *ledger.Ticket) { k.Node, k.Phase = "n1", ledger.TicketGranted }, nil, false, "", ""},
		"no node":            {nil, down, true, "", rules.NoNode},
		"and it is told":     {func(k *ledger.Ticket) { k.Reason = string(rules.NoNode) }, down, false, "", ""},
		"it names its node":  {func(k *ledger.Ticket) { k.Node, k.Wherever = "n1", false }, []ledger.Event{pod("p", "n2", "a")}, false, "", ""},
		"its claim is gone":  {nil, []ledger.Event{ledger.ClaimGone{Key: ledger.ClaimKey{Namespace: "s", Name: "a"}}}, true, "", rules.ClaimMissing},
		"told that it waits": {func(k *ledger.Ticket) { k.Reason = string(rules.NoNode) }, nil, true, "n1", rules.NotGranted},
	} {
		k := ticket("backup", "", ledger.TypeBackup, "a")
		k.Wherever = true
		if test.change != nil {
			test.change(&k)
		}
		s := facts(append([]ledger.Event{k}, test.facts...)...).Snapshot()
		task, due := Due(rules.Arbiter{}, s, s.Ticket(k.ID), rules.Arbiter{}.Keeps(s, s.Ticket(k.ID), now), now)
		if c := task.Commit; due != test.due || due && (c.Node != test.node || c.Phase != ledger.TicketPending || c.Verdict.First().Code != test.reason) {
			t.Errorf("%s: due %t, at %q: %v", name, due, c.Node, c.Verdict.Reasons)
		}
	}
}

// Only a read may prove that a reused PersistentVolume is another claim's.
func TestClaimOfAnOlderPersistentVolume(t *testing.T) {
	volume := func(version string, of ledger.ClaimKey, uid string) ledger.PersistentVolume {
		return ledger.PersistentVolume{Name: "a", Version: version, Volume: ledger.VolumeID{Driver: sample.Driver, Handle: "a"}, Access: ledger.AccessNode, Claim: of, ClaimUID: uid}
	}
	mine, get := ledger.ClaimKey{Namespace: "s", Name: "a"}, "get pvs a"
	k := ticket("p", "n1", ledger.TypeManual, "a")
	k.Volumes[0].ClaimUID = "a"
	for name, test := range map[string]struct {
		reply reply
		want  string
		then  Ruling
	}{
		"used again":            {replies(Done, volume("3", mine, "a")), "stale", Grant},
		"without a claim":       {replies(Done, volume("3", ledger.ClaimKey{}, "")), "stale", Grant},
		"another claim's":       {replies(Done, volume("3", ledger.ClaimKey{Namespace: "s", Name: "b"}, "b")), "finished", Wait},
		"a claim's of the name": {replies(Done, volume("3", mine, "before")), "finished", Wait},
		"gone":                  {replies(NotFound), "finished", Wait},
		"not read":              {replies(Unknown), "failed", Wait},
	} {
		for _, phase := range []ledger.TicketPhase{ledger.TicketGranted} {
			is := k
			is.Phase = phase
			p := newPlayer(volume("2", mine, "before"), pod("p", "", "a"), is)
			of := func() (Decision, Task) {
				s := p.ledger.Snapshot()
				d := Rule(rules.Arbiter{}, s, s.Ticket(k.ID), now)
				if phase == ledger.TicketPending {
					return d, Decide(Decided{s.Ticket(k.ID), d})
				}
				task, _ := Due(rules.Arbiter{}, s, s.Ticket(k.ID), rules.Arbiter{}.Keeps(s, s.Ticket(k.ID), now), now)
				return d, task
			}
			d, task := of()
			if phase == ledger.TicketPending && d.Verdict.First().Code != rules.ClaimLost {
				t.Errorf("%s: at first %v", name, d.Verdict.Reasons)
			}
			answers := []reply{test.reply}
			if test.want == "finished" {
				answers = append(answers, replies(Done))
			}
			if got := p.play(t, task, answers...); got[0] != get || got[len(got)-1] != test.want {
				t.Errorf("%s: %q", name, got)
			}
			if d, _ := of(); phase == ledger.TicketPending && d.Ruling != test.then {
				t.Errorf("%s: then %d for %v", name, d.Ruling, d.Verdict.Reasons)
			}
		}
	}
}

// Pauses double from 10 s to 5 min.
func TestResumes(t *testing.T) {
	for interruptions, want := range map[int64]time.Duration{0: 0, 1: 10 * time.Second, 2: 20 * time.Second, 5: 160 * time.Second, 6: 5 * time.Minute, 1 << 40: 5 * time.Minute} {
		k := ticket("backup", "n1", ledger.TypeBackup, "a")
		k.Reason, k.Interruptions = string(rules.Outranked), interruptions
		s := facts(k).Snapshot()
		if got := Resumes(s, "n1", now, nil); got != want {
			t.Errorf("after %d interruptions it resumes after %s, want %s", interruptions, got, want)
		}
		if list := round(s, "n1", nil); (len(list) == 0) != (want > 0) {
			t.Errorf("after %d interruptions: decisions %+v", interruptions, list)
		}
		if list := Round(rules.Arbiter{}.Queue(s, "n1", now.Add(want)), s, now.Add(want), nil, nil); len(list) != 1 || list[0].Ruling != Grant {
			t.Errorf("after %d interruptions and the pause: decisions %+v", interruptions, list)
		}
	}
	if got := Resumes(facts().Snapshot(), "nowhere", now, nil); got != 0 {
		t.Errorf("at no node something resumes after %s", got)
	}
}

// Only a read of the claim takes the grant back.
func TestDueBesides(t *testing.T) {
	granted := func(claims ...string) ledger.Ticket {
		k := ticket("p", "n1", ledger.TypeManual, claims...)
		k.Phase = ledger.TicketGranted
		return k
	}
	for name, test := range map[string]struct {
		facts  []ledger.Event
		want   rules.Kind
		proofs []string
	}{
		"a claim is missing":   {[]ledger.Event{granted("a", "nothing")}, rules.DecideTicket, []string{"get claims s/nothing"}},
		"it is not decided on": {[]ledger.Event{ticket("p", "n1", ledger.TypeManual, "nothing")}, 0, nil},
		"nothing":              {[]ledger.Event{granted("a")}, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := facts(test.facts...).Snapshot()
			task, due := Due(rules.Arbiter{}, s, s.Ticket(granted().ID), rules.Arbiter{}.Keeps(s, s.Ticket(granted().ID), now), now)
			if due != (test.want != 0) || due && task.Commit.Kind != test.want {
				t.Fatalf("due: %t, %+v", due, task.Commit)
			}
			var proofs []string
			for _, r := range task.Proofs {
				proofs = append(proofs, text(r))
			}
			if due && !slices.Equal(proofs, test.proofs) {
				t.Errorf("reads before it: %q, want %q", proofs, test.proofs)
			}
		})
	}
}

func round(s ledger.Snapshot, n ledger.NodeName, paused Paused) []Decided {
	return Round(rules.Arbiter{}.Queue(s, n, now), s, now, paused, nil)
}
