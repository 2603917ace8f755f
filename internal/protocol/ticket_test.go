// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func decided(p *player, id ledger.TicketID) Decided {
	s := p.ledger.Snapshot()
	t := s.Ticket(id)
	return Decided{t, Rule(rules.Arbiter{}, s, t, p.now)}
}

func (p *player) announced(d Decided) Task {
	for _, e := range Announce([]Decided{d}) {
		p.ledger.Apply(p.now, e)
	}
	return Decide(d)
}

func TestGrant(t *testing.T) {
	asks := ticket("p", "n1", ledger.TypeManual, "b", "a")
	granted := asks
	granted.Phase, granted.Version = ledger.TicketGranted, "2"
	commit := "decide-ticket s/uid-p granted epoch=7 uid=t-p version=1"
	get, told := "get tickets s/uid-p", "tell GrantResolved"
	for name, test := range map[string]struct {
		replies []reply
		want    []string
	}{
		"granted":                        {[]reply{replies(Done, granted)}, []string{commit, told, "finished"}},
		"another version":                {[]reply{replies(Conflict), replies(Done, granted)}, []string{commit, get, told, "stale"}},
		"another version, and then gone": {[]reply{replies(Conflict), replies(NotFound)}, []string{commit, get, told, "stale"}},
		"another version, and no answer": {[]reply{replies(Conflict), replies(Unknown)}, []string{commit, get, told, "failed"}},
		"the ticket is gone":             {[]reply{replies(NotFound)}, []string{commit, told, "stale"}},
		"refused for good":               {[]reply{replies(Refused)}, []string{commit, told, "failed"}},
		"no answer":                      {[]reply{replies(Unknown), replies(Done, granted)}, []string{commit, "wait 20s", get, told, "stale"}},
		"nobody knows what came of it":   {[]reply{replies(Unknown), replies(Unknown)}, []string{commit, "wait 20s", get, "tell TicketInDoubt", told, "failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(pod("p", "", "a", "b"), asks)
			check(t, p.play(t, p.announced(decided(p, asks.ID)), test.replies...), test.want...)
			if k := p.ledger.Snapshot().Ticket(asks.ID); k != nil && (k.Granting || k.InDoubt != (name == "nobody knows what came of it")) {
				t.Errorf("it is granting: %t, in doubt: %t", k.Granting, k.InDoubt)
			}
		})
	}
}

// The ledger must know the grant, of this version.
func TestGrantIsAnnounced(t *testing.T) {
	asks := ticket("p", "n1", ledger.TypeManual, "a")
	changed := asks
	changed.Version = "2"
	p := newPlayer(pod("p", "", "a"), asks)
	unannounced := decided(p, asks.ID)
	check(t, p.play(t, Decide(unannounced)), "tell GrantResolved", "stale")
	task := p.announced(unannounced)
	if !p.ledger.Snapshot().Ticket(asks.ID).Granting {
		t.Error("the ledger does not know of it")
	}
	p.ledger.Apply(p.now, changed)
	check(t, p.play(t, task), "tell GrantResolved", "stale")
	if events := Announce([]Decided{{unannounced.Ticket, Decision{Ruling: Wait}}}); len(events) > 0 {
		t.Errorf("it announces %v", events)
	}
}

func TestWait(t *testing.T) {
	asks := ticket("p", "n1", ledger.TypeManual, "a")
	p := newPlayer(asks)
	verdict := rules.Verdict{Outcome: rules.Wait, Reasons: []rules.Reason{{Code: rules.NoFreeSlot}}}
	task := Decide(Decided{p.ledger.Snapshot().Ticket(asks.ID), Decision{Ruling: Wait, Verdict: verdict}})
	check(t, p.play(t, task, replies(Done)), "decide-ticket s/uid-p pending epoch=7 uid=t-p version=1", "finished")
	if p.last.Sent.EpochOnly || len(p.last.Sent.Verdict.Reasons) != 1 {
		t.Error("written without the reason")
	}
}

func TestRenewWritesNothingElse(t *testing.T) {
	asks := ticket("p", "n1", ledger.TypeManual, "a")
	if r := Renew(&asks).Commit; !r.EpochOnly {
		t.Errorf("it writes %+v", r)
	}
	if r := Write(&asks).Commit; r.EpochOnly {
		t.Errorf("a status that the driver has made is written as %+v", r)
	}
}

// The read comes before the loss of the grant.
func TestMissingIsRead(t *testing.T) {
	claim := ledger.Claim{Key: ledger.ClaimKey{Namespace: "s", Name: "nothing"}, UID: "new", Version: "1"}
	named := ticket("p", "n1", ledger.TypeManual, "nothing")
	other := ticket("p", "n1", ledger.TypeManual, "nothing")
	other.Volumes[0].ClaimUID = "old"
	both := ticket("p", "n1", ledger.TypeManual, "data", "nothing")
	replaced := ticket("p", "n1", ledger.TypeManual, "nothing", "data")
	replaced.Volumes[0].ClaimUID = "old"
	same := ticket("p", "n1", ledger.TypeManual, "nothing")
	same.Volumes[0].ClaimUID = "new"
	refuse, get := "decide-ticket s/uid-p pending epoch=7 uid=t-p version=1", "get claims s/nothing"
	for name, test := range map[string]struct {
		ticket  ledger.Ticket
		replies []reply
		want    []string
	}{
		"missing":             {named, []reply{replies(NotFound), replies(Done)}, []string{get, refuse, "finished"}},
		"there":               {named, []reply{replies(Done, claim)}, []string{get, "stale"}},
		"there, and the same": {same, []reply{replies(Done, claim)}, []string{get, "stale"}},
		"another of the name": {other, []reply{replies(Done, claim), replies(Done)}, []string{get, refuse, "finished"}},
		"no answer":           {named, []reply{replies(Unknown)}, []string{get, "failed"}},
		"another of the name, and one that is not asked about": {replaced, []reply{replies(Done, claim), replies(Done)}, []string{get, refuse, "finished"}},
		"another claim": {both, []reply{replies(NotFound), replies(Done, claim)}, []string{"get claims s/data", get, "stale"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(pod("p", ""), test.ticket)
			s := p.ledger.Snapshot()
			verdict := rules.Verdict{Outcome: rules.Deny, Reasons: []rules.Reason{{Code: rules.ClaimMissing}}}
			missing := slices.DeleteFunc(slices.Clone(test.ticket.Volumes), func(v ledger.TicketVolume) bool {
				return name == "another of the name, and one that is not asked about" && v.Claim == "data"
			})
			task := Interruption(s.Ticket(test.ticket.ID), verdict, missing, p.now)
			check(t, p.play(t, task, test.replies...), test.want...)
		})
	}
	p := newPlayer(pod("p", "", "a"), named)
	verdict := rules.Verdict{Outcome: rules.Deny, Reasons: []rules.Reason{{Code: rules.NodeMissing}}}
	check(t, p.play(t, Interruption(p.ledger.Snapshot().Ticket(named.ID), verdict, nil, p.now), replies(Done, node("2"))), "get nodes n1", "stale")
}

func TestEnding(t *testing.T) {
	drop := "delete-ticket uid=t-p version=1"
	for name, test := range map[string]struct {
		replies []reply
		want    []string
		ends    bool
	}{
		"it is over":      {[]reply{replies(Done)}, []string{drop, "tell TicketReleased", "finished"}, true},
		"gone already":    {[]reply{replies(NotFound)}, []string{drop, "tell TicketReleased", "finished"}, true},
		"another version": {[]reply{replies(Conflict), replies(Done)}, []string{drop, "get tickets s/uid-p", "stale"}, false},
		"no answer":       {[]reply{replies(Unknown)}, []string{drop, "failed"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			asks := ticket("p", "n1", ledger.TypeManual, "a")
			p := newPlayer(asks)
			check(t, p.play(t, Ending(p.ledger.Snapshot().Ticket(asks.ID)), test.replies...), test.want...)
			if ended := p.ledger.Snapshot().Ticket(asks.ID) == nil; ended != test.ends {
				t.Errorf("ended: %t", ended)
			}
		})
	}
}

// The watch may be behind: a read must confirm it.
func TestEndOfNode(t *testing.T) {
	cordoned := func(n *ledger.NodeState) { n.Draining = true }
	for name, test := range map[string]struct {
		cause rules.EndCause
		reply reply
		want  string // empty: it ends
	}{
		"deleted":                     {rules.EndNodeDeleted, replies(NotFound), ""},
		"deleted, and there":          {rules.EndNodeDeleted, replies(Done, node("9", silent)), "stale"},
		"deleted, and no answer":      {rules.EndNodeDeleted, replies(Unknown), "failed"},
		"cordoned":                    {rules.EndNodeCordoned, replies(Done, node("9", cordoned)), ""},
		"cordoned, and no more":       {rules.EndNodeCordoned, replies(Done, node("9")), "stale"},
		"cordoned, and deleted since": {rules.EndNodeCordoned, replies(NotFound), "stale"},
	} {
		t.Run(name, func(t *testing.T) {
			asks := ticket("p", "n1", ledger.TypeManual, "a")
			p := newPlayer(node("8", silent, cordoned), asks)
			s, list, want := p.ledger.Snapshot(), []reply{test.reply}, []string{"get nodes n1", test.want}
			if test.want == "" {
				list, want = append(list, replies(Done)), []string{"get nodes n1", "delete-ticket uid=t-p version=1", "tell TicketReleased", "finished"}
			}
			check(t, p.play(t, EndOf(s.Ticket(asks.ID), test.cause), list...), want...)
			if ended := p.ledger.Snapshot().Ticket(asks.ID) == nil; ended != (test.want == "") {
				t.Errorf("ended: %t", ended)
			}
		})
	}
}

// A read of the Node must show why; another claimant needs no read.
func TestMoveIsProved(t *testing.T) {
	silent := func(s *ledger.NodeState) { s.Ready = ledger.ReadyUnknown }
	cordoned := func(s *ledger.NodeState) { s.Draining = true }
	const hour = time.Hour
	for name, test := range map[string]struct {
		facts []ledger.Event
		wait  time.Duration
		reply reply
		moves bool
		ends  string
	}{
		"cordoned":              {[]ledger.Event{node("8", cordoned)}, 0, replies(Done, node("9", cordoned)), true, "finished"},
		"cordoned, and no more": {[]ledger.Event{node("8", cordoned)}, 0, replies(Done, node("9")), false, "stale"},
		"cordoned, and gone":    {[]ledger.Event{node("8", cordoned)}, 0, replies(NotFound), false, "stale"},
		"cordoned, no answer":   {[]ledger.Event{node("8", cordoned)}, 0, replies(Unknown), false, "failed"},
		"gone":                  {[]ledger.Event{node("8", silent), ledger.NodeGone{Name: "n1"}}, hour, replies(NotFound), true, "finished"},
		"gone, and back":        {[]ledger.Event{node("8", silent), ledger.NodeGone{Name: "n1"}}, hour, replies(Done, node("9")), false, "stale"},
	} {
		t.Run(name, func(t *testing.T) {
			k := ticket("p", "n1", ledger.TypeManual, "a")
			k.Wherever, k.OnDrain, k.Phase = true, ledger.MoveOnDrain, ledger.TicketGranted
			p := newPlayer(append(append([]ledger.Event{k}, ledger.Complete{}), test.facts...)...)
			p.now = p.now.Add(test.wait)
			s := p.ledger.Snapshot()
			task, due := Due(rules.Arbiter{}, s, s.Ticket(k.ID), rules.Arbiter{}.Keeps(s, s.Ticket(k.ID), p.now), p.now)
			if !due || task.Commit.Kind != rules.DecideTicket || task.Commit.Phase != ledger.TicketPending {
				t.Fatalf("due %t: %+v", due, task.Commit)
			}
			list, want := []reply{test.reply}, []string{"get nodes n1", test.ends}
			if test.moves {
				list, want = append(list, replies(Done)), []string{"get nodes n1", "decide-ticket s/uid-p pending epoch=7 uid=t-p version=1", test.ends}
			}
			check(t, p.play(t, task, list...), want...)
		})
	}
}

// A ticket with finalizers counts until it is gone.
func TestATicketThatOutlivesItsDeletionCounts(t *testing.T) {
	stays := ticket("p", "n1", ledger.TypeManual, "a")
	stays.Finalizers = true
	for name, test := range map[string]struct {
		answer Result
		want   []string
		ends   bool
	}{
		"pending": {Done, []string{"finished"}, false},
		"gone":    {NotFound, []string{"tell TicketReleased", "finished"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(stays)
			got := p.play(t, Ending(p.ledger.Snapshot().Ticket(stays.ID)), replies(test.answer))
			check(t, got[1:], test.want...)
			if ended := p.ledger.Snapshot().Ticket(stays.ID) == nil; ended != test.ends {
				t.Errorf("ended: %t", ended)
			}
		})
	}
}

func TestTakeOver(t *testing.T) {
	first, second, done := ticket("a", "n1", ledger.TypeManual, "a"), ticket("b", "n1", ledger.TypeManual, "b"), ticket("c", "n1", ledger.TypeManual)
	first.Epoch, done.Phase = 9, ledger.TicketGranted
	p := newPlayer(first, done)
	var got []string
	turn := func(replies ...reply) int {
		tasks := p.memory.TakeOver(p.ledger.Snapshot())
		for i, task := range tasks {
			got = append(got, p.play(t, task, replies[i:min(i+1, len(replies))]...)...)
		}
		return len(tasks)
	}
	turn(replies(Unknown), replies(Done), replies(Done), replies(Done))
	turn(replies(Done, second)) // in no cache yet
	turn()
	if left := turn(); left != 0 {
		t.Errorf("%d tasks are left", left)
	}
	check(t, got, "list tickets", "failed", "list attachments", "finished", "list holds", "finished", "list pvs", "finished", "list tickets", "finished",
		"tell TookOver", "finished")
	for _, e := range Doubts(p.ledger.Snapshot()) {
		p.ledger.Apply(p.now, e)
	}
	taken := first
	taken.Version, taken.Epoch = "2", 10
	check(t, p.play(t, Renew(p.ledger.Snapshot().Ticket(first.ID)), replies(Done, taken)),
		"decide-ticket s/uid-a pending epoch=10 uid=t-a version=1", "finished")
	check(t, p.play(t, Renew(p.ledger.Snapshot().Ticket(second.ID)), replies(Refused)),
		"decide-ticket s/uid-b pending epoch=7 uid=t-b version=1", "failed")
	// An older leader's grant of the second ticket may still be in flight.
	list := round(p.ledger.Snapshot(), "n1", nil)
	if len(list) != 1 || list[0].Ticket.ID != first.ID || list[0].Ruling != Grant {
		t.Errorf("decided: %+v", list)
	}
}

// The cache may be behind: the Node is read before a doubt.
func TestTakeOverReadsNodesThatHoldsName(t *testing.T) {
	held := ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{
		Version: "1", State: ledger.HoldHeld, Node: "n1", NodeUID: "again", SystemUUID: "m", BootID: "b",
	}}
	again := node("2", names("m"), func(n *ledger.NodeState) { n.UID, n.BootID = "again", "b" })
	for name, test := range map[string]struct {
		answers []reply
		lines   []string
		doubted bool
	}{
		"made again":   {[]reply{replies(Done, again)}, []string{"get nodes n1", "finished"}, false},
		"as it is":     {[]reply{replies(Done)}, []string{"get nodes n1", "finished"}, true},
		"gone":         {[]reply{replies(NotFound)}, []string{"get nodes n1", "tell NodeGone", "finished"}, true},
		"not answered": {[]reply{replies(Unknown), replies(Done, again)}, []string{"get nodes n1", "failed", "get nodes n1", "finished"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlayer(node("1", names("m"), func(n *ledger.NodeState) { n.BootID = "b" }), attachment("5"), held)
			for range 4 { // the lists of the take-over
				p.play(t, p.memory.TakeOver(p.ledger.Snapshot())[0], replies(Done))
			}
			var got []string
			for _, r := range test.answers {
				tasks := p.memory.TakeOver(p.ledger.Snapshot())
				if len(tasks) != 1 {
					t.Fatalf("%d tasks", len(tasks))
				}
				got = append(got, p.play(t, tasks[0], r)...)
			}
			check(t, got, test.lines...)
			tasks := p.memory.TakeOver(p.ledger.Snapshot())
			if len(tasks) != 1 || !tasks[0].TookOver {
				t.Fatalf("it is not done with reading: %+v", tasks)
			}
			p.play(t, tasks[0])
			if got := isUnknown(p.ledger.Snapshot(), disk, "n1"); got != test.doubted {
				t.Errorf("taken for used: %t", got)
			}
		})
	}
}
