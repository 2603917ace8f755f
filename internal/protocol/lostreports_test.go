// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func secondNode(version string, reported ...ledger.VolumeID) ledger.NodeState {
	return node(version, func(n *ledger.NodeState) { n.Name, n.UID, n.Reported = "n2", "m", reported })
}

// sharedISCSI has a shared volume without VolumeAttachments that pod q uses at n2.
func sharedISCSI() *player {
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	return newPlayer(node("1"), secondNode("1"),
		ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: ledger.AccessMany, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}, ledger.Complete{}, iscsiPod("q", "n2"))
}

// migrating has the exclusive volume of iscsiWorld at n1, and a live migration also brings it to n2. It
// returns the report at n2, and the ticket.
func migrating(t *testing.T) (*player, rules.Step, ledger.Ticket) {
	t.Helper()
	p := iscsiWorld(iscsiPod("p", "n1"), node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n3", "o" }),
		ledger.Policy{Name: "m", Version: "1", Driver: "kubernetes.io/iscsi", LiveMigration: true, Says: ledger.FieldLiveMigration})
	p.writesHolds(t)
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)), replies(Done, node("2", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{iscsi} })))
	m := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "m"}, UID: "tm", Version: "1", Type: ledger.TypeLiveMigration, Node: "n2", Phase: ledger.TicketGranted,
		Volumes: []ledger.TicketVolume{{Claim: "i"}}}
	p.ledger.Apply(p.now, m)
	p.writesHolds(t)
	r := stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)
	if r == nil || r.Node != "n2" {
		t.Fatalf("%+v", p.plan(rules.Arbiter{}, iscsi))
	}
	return p, *r, m
}

// writesHolds carries out the planned writes of the volume's hold, until there is none.
func (p *player) writesHolds(t *testing.T) {
	t.Helper()
	p.settles(t, standalone)
}

// looksAtSecond carries out the plan until it is about n2, or the volume is put into volumesAttached of n3.
func (p *player) looksAtSecond(t *testing.T) (looks bool) {
	t.Helper()
	for range 8 {
		p.writesHolds(t)
		for _, s := range p.plan(rules.Arbiter{}, iscsi) {
			switch {
			case s.Node == "n2" && (s.Kind == rules.Unreport || s.Kind == rules.ProveAbsent):
				return true
			case s.Node == "n3" && s.Kind == rules.Report:
				return false
			case s.Kind == rules.Unreport, s.Kind == rules.ProveAbsent:
				is := node("5")
				is.Name, is.UID = s.Node, s.NodeUID
				p.play(t, Do(s), replies(Done, is))
			}
		}
	}
	return true // it waits
}

// saysDetached says whether a ticket that asks for the volume to be at no node is told that it is.
func (p *player) saysDetached(t *testing.T) bool {
	t.Helper()
	a := rules.Arbiter{}
	asks := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "e"}, UID: "te", Version: "1", Type: ledger.TypeExpansion, Node: ledger.Detached,
		Phase: ledger.TicketPending, Volumes: []ledger.TicketVolume{{Claim: "i"}}}
	p.ledger.Apply(p.now, asks)
	s := p.ledger.Snapshot()
	one := Decided{s.Ticket(asks.ID), Rule(a, s, s.Ticket(asks.ID), p.now)}
	for _, e := range Announce([]Decided{one}) {
		p.ledger.Apply(p.now, e)
	}
	granted := asks
	granted.Version, granted.Phase, granted.Granted = "2", ledger.TicketGranted, one.Volumes
	p.play(t, Decide(one), replies(Done, granted))
	p.writesHolds(t)
	s = p.ledger.Snapshot()
	return a.Satisfied(s, s.Ticket(asks.ID), p.now).Allowed()
}

// loses plays a report; neither its answer nor the answer of the read after it arrives. Its user goes
// between the send and the news.
func (p *player) loses(t *testing.T, report rules.Step, goes ledger.Event) {
	t.Helper()
	task, m := p.memory.Next(Do(report), p.ledger.Snapshot(), p.now)
	if m.Send == nil || m.Send.Kind != rules.PatchNode {
		t.Fatalf("it is not sent: %+v", m)
	}
	p.ledger.Apply(p.now, goes)
	for _, e := range m.Tell {
		p.ledger.Apply(p.now, e)
	}
	task, m = p.memory.Answer(task, Answer{Result: Unknown}, p.ledger.Snapshot(), p.now)
	p.now = m.Wait
	task, _ = p.memory.Next(task, p.ledger.Snapshot(), p.now)
	if _, m = p.memory.Answer(task, Answer{Result: Unknown}, p.ledger.Snapshot(), p.now); m.End != Failed {
		t.Fatalf("%+v", m)
	}
}

// The only user of a shared volume goes while its report is sent. That is carried out, and neither its answer nor the
// read after it arrives.
func TestReportOfNobody(t *testing.T) {
	p := sharedISCSI()
	r := *stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)
	p.loses(t, r, ledger.PodGone{UID: "q"})
	if p.saysDetached(t) {
		t.Error("a ticket is told that the volume is attached nowhere; volumesAttached of n2 may name it")
	}
}

// The same for the target of a live migration whose ticket goes.
func TestReportOfNoMigration(t *testing.T) {
	p, r, ticket := migrating(t)
	p.loses(t, r, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n3"))
	if !p.looksAtSecond(t) {
		t.Error("it is put into volumesAttached of n3, and nobody has looked whether that of n2 names it")
	}
}

// A Node is deleted whose volumesAttached named a volume that its hold gives to another node. Its
// kubelet may have mounted it: the watch showed nothing in between.
func TestNodeDeletedAfterAReport(t *testing.T) {
	for _, answers := range [][]reply{{replies(Unknown), replies(Unknown)}, {replies(Done, secondNode("2", iscsi))}} {
		t.Run(answers[0].Result.String(), func(t *testing.T) {
			p, r, ticket := migrating(t)
			p.play(t, Do(r), answers...)
			p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
			p.ledger.Apply(p.now, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
			p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
			p.ledger.Apply(p.now, iscsiPod("q", "n3"))
			if !p.looksAtSecond(t) {
				t.Error("an exclusive volume is put into volumesAttached of n3; the machine of n2 may have it mounted")
			}

			p = sharedISCSI()
			p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)), answers...)
			p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
			p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
			if p.saysDetached(t) {
				t.Error("a ticket is told that a shared volume is attached nowhere; the machine of n2 may have it mounted")
			}
		})
	}
}

// As before, and the Node is made again by the same boot: that its new volumesAttached does not name the volume shows
// nothing.
func TestNodeMadeAgainAfterAReport(t *testing.T) {
	for _, answers := range [][]reply{{replies(Unknown), replies(Unknown)}, {replies(Done, inBoot(secondNode("3", iscsi), "m", "b"))}} {
		p, r, ticket := migrating(t)
		p.ledger.Apply(p.now, inBoot(secondNode("2"), "m", "b"))
		p.play(t, Do(r), answers...)
		p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
		p.ledger.Apply(p.now, inBoot(secondNode("9"), "again", "b"))
		p.ledger.Apply(p.now, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
		p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
		p.ledger.Apply(p.now, iscsiPod("q", "n3"))
		for range 4 {
			p.writesHolds(t)
			for _, s := range p.plan(rules.Arbiter{}, iscsi) {
				is := node("15")
				is.Name, is.UID = s.Node, s.NodeUID
				if s.Node == "n2" {
					is = inBoot(secondNode("15"), "again", "b")
				}
				if s.Kind == rules.Report && s.Node == "n3" {
					t.Fatalf("%s: it is put into volumesAttached of n3; the machine of n2 may have it mounted, and not list it", answers[0].Result)
				}
				p.play(t, Do(s), replies(Done, is))
			}
		}
	}
}

// inBoot is a Node that a machine has made in one of its boots.
func inBoot(n ledger.NodeState, uid, boot string) ledger.NodeState {
	n.UID, n.SystemUUID, n.BootID = uid, "m", boot
	return n
}

// A Node is deleted whose volumesAttached named a volume that its hold gives to another node, and the
// leader changes. The hold informs the next leader, until the time of force is over, also if the same
// boot makes the Node again.
func TestNextLeaderAfterANodeWithAReportIsGone(t *testing.T) {
	p := goneAfterReport(t)
	last := func(p *player) *ledger.VolumeOnNode {
		p.writesHolds(t)
		return p.ledger.Snapshot().Volume(iscsi).OnNode("n2")
	}
	next := p.leaderAfter()
	if place := last(next); place == nil || !place.MayBeMounted() {
		t.Fatalf("the next leader knows nothing of n2: %+v", next.ledger.Snapshot().Volume(iscsi).Hold)
	}
	if place := last(next.leaderAfter()); place == nil {
		t.Error("the one after that knows nothing of it")
	}
	if next.leaderAfter().saysDetached(t) {
		t.Error("a ticket is told that the volume is at no node; the machine of n2 may have it mounted")
	}

	again := next.leaderAfter()
	again.ledger.Apply(again.now, inBoot(secondNode("9"), "again", "b"))
	if !isUnknown(again.ledger.Snapshot(), iscsi, "n2") {
		t.Error("the boot that may have it mounted has made the Node again, and its word is believed")
	}
	again = next.leaderAfter()
	again.ledger.Apply(again.now, inBoot(secondNode("9"), "again", "c"))
	if isUnknown(again.ledger.Snapshot(), iscsi, "n2") {
		t.Error("the machine has booted, and its word is not believed")
	}

	// Also if the leader changes after that.
	again = next.leaderAfter()
	again.ledger.Apply(again.now, inBoot(secondNode("9"), "again", "b"))
	again.writesHolds(t)
	after := iscsiWorld(inBoot(secondNode("9"), "again", "b"), ledger.HoldSeen{Volume: iscsi, Hold: *again.ledger.Snapshot().Volume(iscsi).Hold}, ledger.TookOver{})
	if !isUnknown(after.ledger.Snapshot(), iscsi, "n2") {
		t.Errorf("the boot that may have it mounted made the Node again, the leader has changed, and its word is believed: %+v", after.ledger.Snapshot().Volume(iscsi).Hold)
	}

	later := next.leaderAfter()
	for range 20 {
		later.writesHolds(t)
		if s := stepOf(later.plan(rules.Arbiter{}, iscsi), rules.Unreport); s != nil {
			later.play(t, Do(*s), replies(NotFound))
		}
		later.now = later.now.Add(time.Minute)
	}
	if place := last(later); place != nil {
		t.Errorf("it stays at n2 for ever: %+v", place)
	}
	if hold := later.ledger.Snapshot().Volume(iscsi).Hold; hold != nil && len(hold.Fences) > 0 {
		t.Errorf("the hold keeps %+v", hold.Fences)
	}
}

// A live migration brings an exclusive volume to a boot from which it was taken by force before. An old
// mount may be there: after the migration it stays until another boot, and the volume's hold says why.
func TestMigrationToABootThatLostTheVolume(t *testing.T) {
	p, r, ticket := migrating(t)
	p.ledger.Apply(p.now, inBoot(secondNode("2"), "m", "b"))
	hold := *p.ledger.Snapshot().Volume(iscsi).Hold
	hold.Version, hold.Fences = "90", []ledger.Fence{{Node: "n2", NodeUID: "m", SystemUUID: "m", BootID: "b", InUse: true}}
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: iscsi, Hold: hold})
	p.play(t, Do(r), replies(Done, inBoot(secondNode("3", iscsi), "m", "b")))
	p.ledger.Apply(p.now, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n3"))
	leaves := func() bool {
		return slices.ContainsFunc(p.plan(rules.Arbiter{}, iscsi), func(s rules.Step) bool { return s.Node == "n2" && s.Kind == rules.Unreport })
	}
	p.writesHolds(t)
	if leaves() {
		t.Error("it leaves n2, where a mount of before may be")
	}
	if hold := p.ledger.Snapshot().Volume(iscsi).Hold; hold.Reason != rules.InUseUnknown {
		t.Errorf("the hold says %q: %s", hold.Reason, hold.Message)
	}
	p.ledger.Apply(p.now, inBoot(secondNode("9", iscsi), "m", "c"))
	p.writesHolds(t)
	if !leaves() {
		t.Errorf("it stays at n2 though the machine has booted: %+v", p.plan(rules.Arbiter{}, iscsi))
	}
}

// In Cooperative mode too a deleted Node with such a volume is forgotten once the time of force is
// over: also if the volume is not Moorage's.
func TestCooperativeForgetsANodeWithAReport(t *testing.T) {
	a := rules.Arbiter{Cooperative: true}
	adopted := ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", Node: "n1", NodeUID: "n", State: ledger.HoldHeld, Transitions: 2}}
	for name, more := range map[string][]ledger.Event{"adopted": {adopted}, "not adopted": nil} {
		p := iscsiWorld(append(more, iscsiPod("q", "n2"), secondNode("3", iscsi))...)
		p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
		p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
		for range 20 {
			if s := stepOf(p.plan(a, iscsi), rules.ProveAbsent); s != nil {
				p.play(t, Do(*s), replies(NotFound))
			}
			p.now = p.now.Add(time.Minute)
		}
		if place := p.ledger.Snapshot().Volume(iscsi).OnNode("n2"); place != nil {
			t.Errorf("%s: %+v", name, place)
		}
	}
}

// A report came to nothing, and no answer says so. The volume is given to n1 meanwhile, while the kubelet
// of n2, where a pod waits, lists it in use: a read shows that it was never there.
func TestReportThatCameToNothing(t *testing.T) {
	p := iscsiWorld(iscsiPod("q", "n2"))
	p.writesHolds(t)
	r := *stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "99", Node: "n1", NodeUID: "n", State: ledger.HoldHeld, Transitions: 2, PVs: []string{"i"}}})
	p.ledger.Apply(p.now, iscsiPod("p", "n1"))
	waits := secondNode("3")
	waits.InUse = []ledger.VolumeID{iscsi}
	p.play(t, Do(r), replies(Unknown), replies(Done, waits))
	for range 4 {
		p.writesHolds(t)
		for _, s := range p.plan(rules.Arbiter{}, iscsi) {
			switch {
			case s.Kind == rules.Report && s.Node == "n1":
				return
			case s.Kind == rules.ProveAbsent && s.Node == "n2":
				p.play(t, Do(s), replies(Done, waits))
			}
		}
	}
	t.Errorf("the pod at n1 waits: %+v", p.plan(rules.Arbiter{}, iscsi))
}

// A seen report ends its doubt, and an unmanaged node ignores reports.
func TestWhatEndsAReport(t *testing.T) {
	p := sharedISCSI()
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)), replies(Unknown), replies(Unknown))
	place := func() *ledger.VolumeOnNode { return p.ledger.Snapshot().Volume(iscsi).OnNode("n2") }
	if !place().ReportSent {
		t.Fatal("it is not doubted")
	}
	p.ledger.Apply(p.now, secondNode("5", iscsi))
	if place().ReportSent {
		t.Error("it is reported, and doubted")
	}

	p = iscsiWorld(iscsiPod("p", "n1"))
	p.ledger.Apply(p.now, node("2", func(n *ledger.NodeState) { n.Managed = false }))
	p.writesHolds(t)
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n2"))
	if _, proved := p.reportedAt(t, "n2"); proved {
		t.Error("the volumesAttached of a node is read that is not managed")
	}
}

// Another component takes a shared volume out of volumesAttached; the kubelet restarts, and lists
// nothing.
func TestSharedVolumeTakenOut(t *testing.T) {
	p := sharedISCSI()
	is := func(v string, reported, inUse []ledger.VolumeID) ledger.NodeState {
		n := secondNode(v, reported...)
		n.InUse, n.BootID, n.SystemUUID = inUse, "b", "m"
		return n
	}
	p.ledger.Apply(p.now, is("2", nil, nil))
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)), replies(Done, is("3", []ledger.VolumeID{iscsi}, nil)))
	p.ledger.Apply(p.now, is("4", []ledger.VolumeID{iscsi}, []ledger.VolumeID{iscsi}))
	p.ledger.Apply(p.now, is("5", nil, []ledger.VolumeID{iscsi})) // another component takes it out
	p.ledger.Apply(p.now, is("6", nil, nil))                      // the kubelet restarts
	p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
	if p.saysDetached(t) {
		t.Error("told detached though mounted")
	}
}

// A report without an answer is also looked for at a node that is not managed any more.
func TestReportAtAnUnmanagedNode(t *testing.T) {
	p := sharedISCSI()
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)), replies(Unknown), replies(Unknown))
	p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
	n := secondNode("7")
	n.Managed = false
	p.ledger.Apply(p.now, n)
	if v := p.ledger.Snapshot().Volume(iscsi); len(v.OnNodes) > 0 && len(p.plan(rules.Arbiter{}, iscsi)) == 0 {
		t.Errorf("kept for ever: %+v", v.OnNodes)
	}
}

// A volume without VolumeAttachments is leaving a node's volumesAttached when a pod comes to the node. No
// pod is told that the node has it until the outcome is known: an unanswered patch is waited for.
func TestNobodyIsToldOfAVolumeThatLeaves(t *testing.T) {
	leaves := func() (*player, Task) {
		p := sharedISCSI()
		p.ledger.Apply(p.now, secondNode("2", iscsi))
		p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
		p.now = p.now.Add(time.Hour)
		p.writesHolds(t)
		step := stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Unreport)
		if step == nil {
			t.Fatalf("it stays: %+v", p.plan(rules.Arbiter{}, iscsi))
		}
		return p, Do(*step)
	}
	isTold := func(p *player) bool {
		return rules.Arbiter{}.SafeToMount(p.ledger.Snapshot(), iscsi, "n2")
	}
	for name, test := range map[string]struct {
		list  []reply
		lines []string
		told  bool
	}{
		"done":      {[]reply{replies(Done, secondNode("3"))}, []string{"tell Unreported", "tell UnreportResolved", "finished"}, false},
		"refused":   {[]reply{replies(Refused)}, []string{"tell UnreportResolved", "failed"}, true},
		"not sent":  {[]reply{replies(Unfit)}, []string{"tell UnreportResolved", "stale"}, true},
		"no answer": {[]reply{replies(Unknown), replies(Done, secondNode("2", iscsi))}, []string{"wait 20s", "get nodes n2", "tell UnreportResolved", "stale"}, true},
		"no answer, and none to the read": {[]reply{replies(Unknown), replies(Unknown), replies(NotSent), replies(Done, secondNode("3"))},
			[]string{"wait 20s", "get nodes n2", "wait 20s", "get nodes n2", "wait 20s", "get nodes n2", "tell UnreportResolved", "stale"}, false},
		"a conflict, and no answer to the read": {[]reply{replies(Conflict), replies(Unknown), replies(Done, secondNode("2", iscsi))},
			[]string{"get nodes n2", "wait 20s", "get nodes n2", "tell UnreportResolved", "stale"}, true},
		"no answer, and the Node is gone, as the watch says later": {[]reply{replies(Unknown), replies(NotFound), replies(NotFound, ledger.NodeGone{Name: "n2"})},
			[]string{"wait 20s", "get nodes n2", "wait 20s", "get nodes n2", "tell UnreportResolved", "stale"}, false},
	} {
		p, task := leaves()
		want := append([]string{"tell UnreportSent", "patch-node n2 add=false uid=m"}, test.lines...)
		if got := p.play(t, task, test.list...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if told := isTold(p); told != test.told {
			t.Errorf("%s: told %t", name, told)
		}
	}
	p, task := leaves()
	if !isTold(p) {
		t.Error("it is not there before it leaves")
	}
	_, m := p.memory.Next(task, p.ledger.Snapshot(), p.now)
	for _, e := range m.Tell {
		p.ledger.Apply(p.now, e)
	}
	if isTold(p) {
		t.Error("it is told of while it leaves")
	}
	if m.Send != nil {
		t.Error("it may have been told before the ledger knew, and whoever was told is not looked for")
	}
}

// A user comes to a node after the removal of a volume without VolumeAttachments was planned, and is told
// that it is there before the ledger knows of the removal: the removal is not sent.
func TestVolumeStaysForWhoCameMeanwhile(t *testing.T) {
	manual := ledger.Ticket{ID: ledger.TicketID{Namespace: "ns", Name: "m"}, UID: "tm", Version: "2", Type: ledger.TypeManual, Node: "n2",
		Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "i"}}}
	asks := manual
	asks.Phase = ledger.TicketPending
	for name, test := range map[string]struct {
		comes ledger.Event
		stays bool
	}{
		"a ticket that is granted": {manual, true},
		"a ticket that asks":       {asks, false},
		"a pod that is bound":      {iscsiPod("r", "n2"), true},
	} {
		p := sharedISCSI()
		p.ledger.Apply(p.now, secondNode("2", iscsi))
		p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
		p.writesHolds(t)
		step := stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Unreport)
		if step == nil {
			t.Fatalf("it stays: %+v", p.plan(rules.Arbiter{}, iscsi))
		}
		p.ledger.Apply(p.now, test.comes)
		want, answers := []string{"tell UnreportSent", "tell UnreportResolved", "stale"}, []reply(nil)
		if !test.stays {
			want, answers = []string{"tell UnreportSent", "patch-node n2 add=false uid=m", "tell UnreportResolved", "failed"}, []reply{replies(Refused)}
		}
		if got := p.play(t, Do(*step), answers...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		s := p.ledger.Snapshot()
		if told := (rules.Arbiter{}).SafeToMount(s, iscsi, "n2"); !told {
			t.Errorf("%s: nobody is told of it any more", name)
		}
	}
}

// A user at a fenced node does not keep it there.
func TestVolumeLeavesAFencedNode(t *testing.T) {
	p := sharedISCSI()
	p.ledger.Apply(p.now, secondNode("2", iscsi))
	dead := secondNode("3", iscsi)
	dead.InUse = []ledger.VolumeID{iscsi}
	tainted(&dead)
	p.ledger.Apply(p.now, dead)
	p.now = p.now.Add(time.Hour)
	p.writesHolds(t)
	step := stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Unreport)
	if step == nil || step.Rule == "" {
		t.Fatalf("%+v", p.plan(rules.Arbiter{}, iscsi))
	}
	got := p.play(t, Do(*step), replies(Done, secondNode("4")))
	if !slices.Contains(got, "tell Unreported") {
		t.Errorf("%q", got)
	}
}
