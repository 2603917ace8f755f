// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// goneAfterReport deletes n2 (machine m, boot b) after a migration's report there.
func goneAfterReport(t *testing.T) *player {
	t.Helper()
	p, r, ticket := migrating(t)
	p.play(t, Do(r), replies(Done, inBoot(secondNode("3", iscsi), "m", "b")))
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
	p.ledger.Apply(p.now, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.writesHolds(t)
	if f, found := p.holdNow().Fence("n2"); !found || f.BootID != "b" || f.SystemUUID != "m" {
		t.Fatalf("no fence: %+v", p.holdNow())
	}
	return p
}

func (p *player) holdNow() *ledger.Hold {
	if v := p.ledger.Snapshot().Volume(iscsi); v != nil {
		return v.Hold
	}
	return nil
}

// leaderAfter begins with the API's objects, before its take-over.
func (p *player) leaderAfter(more ...ledger.Event) *player {
	events := []ledger.Event{ledger.HoldSeen{Volume: iscsi, Hold: *p.holdNow()}, ledger.NodeGone{Name: "n2"},
		node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n3", "o" })}
	next := iscsiWorld(append(append(events, more...), ledger.TookOver{})...)
	next.now = p.now
	return next
}

func TestNodeMadeAgainBeforeTheTakeOver(t *testing.T) {
	for name, again := range map[string]ledger.NodeState{
		"same boot":       inBoot(secondNode("9"), "again", "b"),
		"no boot said":    func() ledger.NodeState { n := secondNode("9"); n.UID = "again"; return n }(),
		"another machine": func() ledger.NodeState { n := inBoot(secondNode("9"), "again", "c"); n.SystemUUID = "m9"; return n }(),
	} {
		t.Run(name, func(t *testing.T) {
			p := goneAfterReport(t)
			p.ledger.Apply(p.now, again)
			p.writesHolds(t)
			next := p.leaderAfter(again)
			if !isUnknown(next.ledger.Snapshot(), iscsi, "n2") {
				t.Errorf("the next leader believes n2")
			}
			next.ledger.Apply(next.now, iscsiPod("q", "n3"))
			if !next.looksAtSecond(t) {
				t.Errorf("it is put into volumesAttached of n3; the machine of n2 may have it mounted. Hold: %+v", next.holdNow())
			}
			next = p.leaderAfter(again)
			if next.saysDetached(t) {
				t.Error("a ticket is told detached")
			}
		})
	}
}

func TestPodStillAtANodeThatIsGone(t *testing.T) {
	p := goneAfterReport(t)
	next := p.leaderAfter(iscsiPod("x", "n2"))
	place := next.ledger.Snapshot().Volume(iscsi).OnNode("n2")
	if !place.MayBeMounted() {
		t.Errorf("the next leader knows nothing of n2: %+v", place)
	}
	next.writesHolds(t)
	next.ledger.Apply(next.now, ledger.PodGone{UID: "x"}) // pod garbage collection
	next.ledger.Apply(next.now, iscsiPod("q", "n3"))
	if !next.looksAtSecond(t) {
		t.Errorf("it is put into volumesAttached of n3 at once; the machine of n2 may have it mounted. Hold: %+v", next.holdNow())
	}
}

func TestSharedVolumeAtAnotherMachineOfTheName(t *testing.T) {
	p := sharedISCSI()
	p.ledger.Apply(p.now, inBoot(secondNode("2"), "m", "b"))
	p.play(t, Do(*stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)), replies(Done, inBoot(secondNode("3", iscsi), "m", "b")))
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "q"})
	p.writesHolds(t)
	other := func(v string, vols ...ledger.VolumeID) ledger.NodeState {
		n := inBoot(secondNode(v, vols...), "other", "c")
		n.SystemUUID = "m9"
		return n
	}
	p.ledger.Apply(p.now, other("9"))
	p.writesHolds(t)
	p.ledger.Apply(p.now, iscsiPod("r", "n2"))
	p.writesHolds(t)
	rep := stepOf(p.plan(rules.Arbiter{}, iscsi), rules.Report)
	if rep == nil {
		t.Fatalf("not reported: %+v", p.plan(rules.Arbiter{}, iscsi))
	}
	p.play(t, Do(*rep), replies(Done, other("10", iscsi)))
	if !isUnknown(p.ledger.Snapshot(), iscsi, "n2") {
		t.Fatal("not doubted")
	}
	p.writesHolds(t)
	for _, s := range p.plan(rules.Arbiter{}, iscsi) {
		if s.Kind == rules.DeleteHold {
			t.Fatal("what the hold says of machine m is deleted, and this leader doubts it still")
		}
	}
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	next := newPlayer(node("1"), other("10", iscsi),
		ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: ledger.AccessMany, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}, ledger.Complete{},
		ledger.HoldSeen{Volume: iscsi, Hold: *p.holdNow()}, ledger.TookOver{})
	for range 5 {
		next.writesHolds(t)
		for _, s := range next.plan(rules.Arbiter{}, iscsi) {
			if s.Kind == rules.Unreport {
				next.play(t, Do(s), replies(Done, other("11")))
			}
		}
	}
	if next.saysDetached(t) {
		t.Error("the next leader tells a ticket that the volume is detached; machine m may have it mounted")
	}
}

// The volume is mounted; the restarted kubelet lists nothing.
func TestNextLeaderAfterSomebodyTookAVolumeOut(t *testing.T) {
	p, r, ticket := migrating(t)
	is := func(v string, reported, inUse []ledger.VolumeID) ledger.NodeState {
		n := inBoot(secondNode(v, reported...), "m", "b")
		n.InUse = inUse
		return n
	}
	vol := []ledger.VolumeID{iscsi}
	p.ledger.Apply(p.now, is("2", nil, nil))
	p.writesHolds(t)
	p.play(t, Do(r), replies(Done, is("3", vol, nil)))
	p.ledger.Apply(p.now, is("4", vol, vol)) // mounted
	p.ledger.Apply(p.now, is("5", nil, vol)) // another component takes it out
	p.writesHolds(t)
	p.ledger.Apply(p.now, is("6", nil, nil)) // the kubelet restarts
	p.writesHolds(t)
	p.ledger.Apply(p.now, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.writesHolds(t)
	if len(p.holdNow().Fences) == 0 {
		t.Errorf("the hold says nothing of n2")
	}
	this := func(q *player) bool { q.ledger.Apply(q.now, iscsiPod("q", "n3")); return q.looksAtSecond(t) }
	next := p.leaderAfter(is("6", nil, nil))
	if !this(next) {
		t.Errorf("the next leader puts it into volumesAttached of n3, and it is mounted at n2")
	}
	if !this(p) {
		t.Errorf("this leader does, too")
	}
}

var standalone, cooperative = rules.Arbiter{}, rules.Arbiter{Cooperative: true}

func (p *player) settles(t *testing.T, a rules.Arbiter) (writes []ledger.Hold) {
	t.Helper()
	for range 12 {
		w := stepOf(p.plan(a, iscsi), rules.WriteHold)
		if w == nil {
			return writes
		}
		h := w.Hold
		was, _ := strconv.Atoi(w.Expect)
		h.Version = strconv.Itoa(was + 10)
		writes = append(writes, h)
		p.play(t, Do(*w), replies(Done, ledger.HoldSeen{Volume: iscsi, Hold: h}))
	}
	t.Fatalf("it writes on: %+v", writes)
	return nil
}

func reportedFirst(n *ledger.NodeState) {
	n.Reported, n.InUse = []ledger.VolumeID{iscsi}, []ledger.VolumeID{iscsi}
}

func TestCooperativeLeaderBetweenTwoOthers(t *testing.T) {
	p, r, ticket := migrating(t)
	p.play(t, Do(r), replies(Done, inBoot(secondNode("3", iscsi), "m", "b")))
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
	p.ledger.Apply(p.now, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
	p.settles(t, standalone)
	coop := p.leaderAfter(node("5", reportedFirst), iscsiPod("p", "n1"))
	coop.settles(t, cooperative)
	if _, found := coop.holdNow().Fence("n2"); !found {
		t.Errorf("the leader in Cooperative mode takes the fence back: %+v", coop.holdNow())
	}
	last := coop.leaderAfter(node("6"), iscsiPod("q", "n3"))
	if !last.looksAtSecond(t) {
		t.Errorf("then it is put into volumesAttached of n3; the machine of n2 may have it mounted")
	}
}

func TestCooperativeLeaderThatLeavesTheVolume(t *testing.T) {
	p := goneAfterReport(t)
	h := *p.holdNow()
	h.Version, h.Node, h.NodeUID, h.State = "99", "", "", ledger.HoldFree
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: iscsi, Hold: h})
	coop := p.leaderAfter()
	if len(coop.holdNow().Fences) != 1 {
		t.Fatal()
	}
	coop.settles(t, cooperative)
	if len(coop.holdNow().Fences) == 0 {
		t.Errorf("leave takes the fence back: %+v; place %+v", coop.holdNow(), coop.ledger.Snapshot().Volume(iscsi).OnNode("n2"))
	}
	if coop.leaderAfter().saysDetached(t) {
		t.Error("told detached")
	}
}

// The hold has no entry about a mount.
func TestForcedDetachFromADeletedNodeIsNoReport(t *testing.T) {
	boots := func(n *ledger.NodeState) { n.BootID, n.SystemUUID = "b1", "m1" }
	third := node("1", func(n *ledger.NodeState) { n.Name, n.UID, n.BootID, n.SystemUUID = "n3", "o", "b3", "m3" })
	p := iscsiWorld(third, node("1b", boots))
	p.ledger.Apply(p.now, node("2", boots))
	p.ledger.Apply(p.now, iscsiPod("p", "n1"))
	p.settles(t, standalone)
	p.play(t, Do(*stepOf(p.plan(standalone, iscsi), rules.Report)), replies(Done, node("3", boots, reportedFirst)))
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n1"})
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n3"))
	p.settles(t, standalone)
	for range 10 {
		p.now = p.now.Add(time.Minute)
		if w := stepOf(p.plan(standalone, iscsi), rules.WriteHold); w != nil && w.Hold.Node == "n3" {
			break
		}
		p.settles(t, standalone)
	}
	w := stepOf(p.plan(standalone, iscsi), rules.WriteHold)
	h := w.Hold
	h.Version = "100000"
	next := iscsiWorld(ledger.NodeGone{Name: "n1"}, third, ledger.HoldSeen{Volume: iscsi, Hold: h}, iscsiPod("q", "n3"))
	next.now = p.now
	next.ledger.Apply(next.now, ledger.TookOver{})
	n1 := next.now
	for range 20 {
		next.settles(t, standalone)
		if stepOf(next.plan(standalone, iscsi), rules.Report) != nil {
			break
		}
		for _, s := range next.plan(standalone, iscsi) {
			if s.Node == "n1" && s.Kind == rules.Unreport {
				next.play(t, Do(s), replies(NotFound))
			}
		}
		if stepOf(next.plan(standalone, iscsi), rules.Report) != nil {
			break
		}
		next.now = next.now.Add(30 * time.Second)
	}
	if d := next.now.Sub(n1); d > 0 {
		t.Errorf("the pod at n3 waits for another %s, after the leader before gave it the volume: %+v", d, next.holdNow())
	}
}

// A rule of force finds room beside many gone Nodes.
func TestRulesOfForceHaveRoomFirst(t *testing.T) {
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	p := newPlayer(node("1"), ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: ledger.AccessMany, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}, ledger.Complete{})
	for i := range 257 {
		name := ledger.NodeName(fmt.Sprintf("a%03d", i))
		p.ledger.Apply(p.now, node("1", func(n *ledger.NodeState) {
			n.Name, n.UID, n.BootID, n.Reported = name, string(name), "b", []ledger.VolumeID{iscsi}
		}))
		p.ledger.Apply(p.now, ledger.NodeGone{Name: name})
	}
	z := func(v string, more ...func(*ledger.NodeState)) ledger.NodeState {
		n := node(v, reportedFirst)
		n.Name, n.UID, n.BootID, n.SystemUUID, n.ReadySince = "z", "z", "bz", "mz", 50
		for _, c := range more {
			c(&n)
		}
		return n
	}
	p.ledger.Apply(p.now, z("1"))
	p.settles(t, standalone)
	p.ledger.Apply(p.now, z("2", tainted))
	p.settles(t, standalone)
	for _, s := range p.plan(standalone, iscsi) {
		if s.Kind == rules.Unreport && s.Node == "z" {
			return
		}
	}
	t.Error("the volume is not taken from z, which is out of service: its hold is full of nodes that are gone")
}

func TestFenceOfAVolumeThatWasExclusiveIsWrittenOnce(t *testing.T) {
	p := sharedISCSI()
	p.ledger.Apply(p.now, inBoot(secondNode("2"), "m", "b"))
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", State: ledger.HoldFree, Transitions: 3}})
	p.play(t, Do(*stepOf(p.plan(standalone, iscsi), rules.Report)), replies(Done, inBoot(secondNode("3", iscsi), "m", "b")))
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
	if writes := p.settles(t, standalone); len(writes) > 1 {
		t.Errorf("%d writes: %+v", len(writes), writes)
	}
}

// The hold's earlier force is no report to the next leader.
func TestFenceOfForceIsNoReport(t *testing.T) {
	never := time.Duration(-1)
	policy := ledger.Policy{Name: "m", Version: "1", Driver: "kubernetes.io/iscsi", AfterPodGone: &never}
	boots := func(n *ledger.NodeState) { n.BootID, n.SystemUUID, n.ReadySince = "b1", "m1", 50 }
	third := func(v string, r ...ledger.VolumeID) ledger.NodeState {
		return node(v, func(n *ledger.NodeState) {
			n.Name, n.UID, n.BootID, n.SystemUUID, n.Reported, n.InUse = "n3", "o", "b3", "m3", r, r
		})
	}
	p := iscsiWorld(third("1"), policy, node("2", boots))
	p.ledger.Apply(p.now, node("2", boots))
	p.ledger.Apply(p.now, iscsiPod("p", "n1"))
	p.settles(t, standalone)
	p.play(t, Do(*stepOf(p.plan(standalone, iscsi), rules.Report)), replies(Done, node("3", boots, reportedFirst)))
	p.ledger.Apply(p.now, node("4", boots, reportedFirst, tainted))
	p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
	p.ledger.Apply(p.now, iscsiPod("q", "n3"))
	for range 5 {
		p.settles(t, standalone)
		for _, s := range p.plan(standalone, iscsi) {
			switch {
			case s.Kind == rules.Unreport && s.Node == "n1":
				p.play(t, Do(s), replies(Done, node("5", boots, tainted, func(n *ledger.NodeState) { n.InUse = []ledger.VolumeID{iscsi} })))
			case s.Kind == rules.Report && s.Node == "n3":
				p.play(t, Do(s), replies(Done, third("6", iscsi)))
			}
		}
	}
	p.ledger.Apply(p.now, node("7", boots, func(n *ledger.NodeState) { n.ReadySince = 60 })) // Ready again, lists nothing
	p.settles(t, standalone)
	if f, found := p.holdNow().Fence("n1"); !found || f.Rule != "" {
		t.Fatalf("no fence of before: %+v", p.holdNow())
	}
	// No process leads at the deletion.
	key := ledger.ClaimKey{Namespace: "ns", Name: "i"}
	next := newPlayer(third("6", iscsi), secondNode("1"), policy,
		ledger.PersistentVolume{Name: "i", Version: "1", Volume: iscsi, Access: ledger.AccessNode, Claim: key},
		ledger.Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "i", Bound: true}, ledger.Complete{},
		iscsiPod("q", "n3"), ledger.NodeGone{Name: "n1"}, ledger.HoldSeen{Volume: iscsi, Hold: *p.holdNow()}, ledger.TookOver{})
	next.settles(t, standalone)
	next.ledger.Apply(next.now, ledger.PodGone{UID: "q"})
	idle := third("8", iscsi)
	idle.InUse = nil
	next.ledger.Apply(next.now, idle)
	next.ledger.Apply(next.now, iscsiPod("r", "n2"))
	for range 60 {
		next.settles(t, standalone)
		for _, s := range next.plan(standalone, iscsi) {
			switch {
			case s.Kind == rules.Report && s.Node == "n2":
				return
			case s.Node == "n3" && s.Kind == rules.Unreport, s.Node == "n3" && s.Kind == rules.ProveAbsent:
				next.play(t, Do(s), replies(Done, third("9")))
			case s.Node == "n1":
				next.play(t, Do(s), replies(NotFound))
			}
		}
		next.now = next.now.Add(time.Minute)
	}
	t.Errorf("the pod at n2 waits for ever: %+v", next.holdNow())
}

var iscsiOnly = []ledger.VolumeID{iscsi}

func neverByTime() ledger.Policy {
	never := time.Duration(-1)
	return ledger.Policy{Name: "m", Version: "2", Driver: "kubernetes.io/iscsi", AfterPodGone: &never, LiveMigration: true, Says: ledger.FieldLiveMigration}
}

func TestRuleOutlivesItsNode(t *testing.T) {
	for name, plays := range map[string]bool{"read answered": true, "read not answered": false} {
		t.Run(name, func(t *testing.T) {
			boots := func(n *ledger.NodeState) { n.BootID, n.SystemUUID, n.ReadySince = "b1", "m1", 50 }
			third := node("1", func(n *ledger.NodeState) { n.Name, n.UID, n.BootID, n.SystemUUID = "n3", "o", "b3", "m3" })
			p := iscsiWorld(third, neverByTime())
			p.ledger.Apply(p.now, node("2", boots))
			p.ledger.Apply(p.now, iscsiPod("p", "n1"))
			p.settles(t, standalone)
			p.play(t, Do(*stepOf(p.plan(standalone, iscsi), rules.Report)), replies(Done, node("3", boots, reportedFirst)))
			p.ledger.Apply(p.now, node("4", boots, reportedFirst, tainted))
			p.settles(t, standalone)
			if f, _ := p.holdNow().Fence("n1"); f.Rule != rules.OutOfService {
				t.Fatalf("%+v", p.holdNow())
			}
			p.ledger.Apply(p.now, ledger.NodeGone{Name: "n1"}) // the machine is off, and its Node deleted
			p.ledger.Apply(p.now, ledger.PodGone{UID: "p"})
			p.ledger.Apply(p.now, iscsiPod("q", "n3"))
			for range 20 {
				for _, s := range p.plan(standalone, iscsi) {
					switch {
					case s.Kind == rules.WriteHold:
						h := s.Hold
						h.Version = s.Expect + "1"
						p.play(t, Do(s), replies(Done, ledger.HoldSeen{Volume: iscsi, Hold: h}))
					case s.Node == "n1" && s.Kind == rules.Unreport && !plays:
						p.play(t, Do(s), replies(Unknown)) // once
						plays = true
					case s.Node == "n1" && s.Kind == rules.Unreport:
						p.play(t, Do(s), replies(NotFound))
					case s.Node == "n3" && s.Kind == rules.Report:
						return
					}
				}
				p.now = p.now.Add(time.Minute)
			}
			t.Errorf("the pod at n3 waits for ever, though n1 was out of service when its Node was deleted: %+v", p.holdNow())
		})
	}
}

func TestRuleAtAMigrationsTargetOutlivesItsNode(t *testing.T) {
	p, r, ticket := migrating(t)
	p.ledger.Apply(p.now, neverByTime())
	is := func(v string, more ...func(*ledger.NodeState)) ledger.NodeState {
		n := inBoot(secondNode(v, iscsi), "m", "b")
		n.InUse, n.ReadySince = iscsiOnly, 50
		for _, c := range more {
			c(&n)
		}
		return n
	}
	p.play(t, Do(r), replies(Done, is("3")))
	p.ledger.Apply(p.now, is("4", tainted))
	p.ledger.Apply(p.now, ledger.TicketGone{ID: ticket.ID, UID: ticket.UID})
	p.settles(t, standalone)
	if f, _ := p.holdNow().Fence("n2"); f.Rule != rules.OutOfService {
		t.Fatalf("%+v", p.holdNow())
	}
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
	w := stepOf(p.plan(standalone, iscsi), rules.WriteHold)
	if w == nil {
		return
	}
	f, _ := w.Hold.Fence("n2")
	if f.Rule == "" {
		t.Errorf("the rule that proves that n2 has lost it is taken out of the hold, by another entry for it: %+v", f)
	}
	h := w.Hold
	h.Version = "1000"
	p.play(t, Do(*w), replies(Done, ledger.HoldSeen{Volume: iscsi, Hold: h}))
	for range 60 {
		p.settles(t, standalone)
		for _, s := range p.plan(standalone, iscsi) {
			if s.Node == "n2" {
				return
			}
		}
		p.now = p.now.Add(time.Minute)
	}
	t.Errorf("it stays at n2 for ever: %+v", p.ledger.Snapshot().Volume(iscsi).OnNode("n2"))
}

func TestFenceOfABootThatHadNothing(t *testing.T) {
	p := goneAfterReport(t)
	p.ledger.Apply(p.now, neverByTime())
	p.ledger.Apply(p.now, inBoot(secondNode("9"), "again", "c"))
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
	p.settles(t, standalone)
	if f, found := p.holdNow().Fence("n2"); found {
		t.Errorf("boot c never had it in volumesAttached: %+v", f)
	}
}

func TestFenceKeepsBootAndMachine(t *testing.T) {
	p := goneAfterReport(t)
	next := p.leaderAfter()
	steps := func() {
		for _, s := range next.plan(standalone, iscsi) {
			if s.Node == "n1" && s.Kind == rules.ProveAbsent {
				next.play(t, Do(s), replies(Done, node("1")))
			}
		}
	}
	next.settles(t, standalone)
	steps()
	next.settles(t, standalone)
	next.ledger.Apply(next.now, iscsiPod("q", "n3"))
	for range 9 {
		next.settles(t, standalone)
		next.now = next.now.Add(time.Minute)
		if w := stepOf(next.plan(standalone, iscsi), rules.WriteHold); w != nil && w.Hold.Node == "n3" {
			break
		}
	}
	next.settles(t, standalone)
	if f, found := next.holdNow().Fence("n2"); found && f.BootID == "" {
		t.Errorf("the fence does not say the boot any more: %+v", f)
	}
	n3 := node("1", func(n *ledger.NodeState) { n.Name, n.UID = "n3", "o" })
	last := iscsiWorld(n3, ledger.HoldSeen{Volume: iscsi, Hold: *next.holdNow()}, ledger.NodeGone{Name: "n2"}, iscsiPod("q", "n3"))
	last.now = next.now
	last.ledger.Apply(last.now, ledger.TookOver{})
	last.ledger.Apply(last.now, inBoot(secondNode("9"), "again", "c"))
	for range 60 {
		last.settles(t, standalone)
		for _, s := range last.plan(standalone, iscsi) {
			switch {
			case s.Node == "n2" && (s.Kind == rules.Unreport || s.Kind == rules.ProveAbsent):
				last.play(t, Do(s), replies(Done, inBoot(secondNode("9"), "again", "c")))
			case s.Node == "n3" && s.Kind == rules.Report:
				return
			}
		}
		last.now = last.now.Add(time.Minute)
	}
	t.Errorf("the machine has booted, and the pod at n3 waits for ever: %+v", last.holdNow())
}

// The hold informs the next leader.
func TestHoldOfASharedVolumeThatSomebodyTookOut(t *testing.T) {
	p := sharedISCSI()
	is := func(v string, reported, inUse []ledger.VolumeID) ledger.NodeState {
		n := inBoot(secondNode(v, reported...), "m", "b")
		n.InUse = inUse
		return n
	}
	p.ledger.Apply(p.now, is("2", nil, nil))
	p.play(t, Do(*stepOf(p.plan(standalone, iscsi), rules.Report)), replies(Done, is("3", iscsiOnly, nil)))
	p.ledger.Apply(p.now, is("4", iscsiOnly, iscsiOnly))
	p.ledger.Apply(p.now, is("5", nil, iscsiOnly)) // another component takes it out
	p.settles(t, standalone)
	p.ledger.Apply(p.now, is("6", nil, nil)) // the kubelet restarts
	p.settles(t, standalone)
	if p.holdNow() == nil || len(p.holdNow().Fences) == 0 {
		t.Errorf("doubted: %v; the hold says nothing: %+v", isUnknown(p.ledger.Snapshot(), iscsi, "n2"), p.holdNow())
	}
}

// The time counts for the earlier machine; the present machine has no name.
func TestForcedDetachFromAMachineOfBefore(t *testing.T) {
	p := goneAfterReport(t)
	other := inBoot(secondNode("9"), "other", "c")
	other.SystemUUID = "m9"
	p.ledger.Apply(p.now, other)
	for range 40 {
		p.settles(t, standalone)
		for _, s := range p.plan(standalone, iscsi) {
			if s.Kind != rules.Unreport || s.Node != "n2" {
				continue
			}
			p.play(t, Do(s), replies(Done, other))
			p.settles(t, standalone)
			if h := p.holdNow(); h.Reason == rules.InUseUnexplained {
				t.Errorf("%s: but its kubelet lists nothing", h.Message)
			}
			if place := p.ledger.Snapshot().Volume(iscsi).OnNode("n2"); place != nil {
				t.Errorf("%+v", place)
			}
			return
		}
		p.now = p.now.Add(time.Minute)
	}
	t.Error("never forced")
}

// The hold also says that the deleted Node named it.
func TestReportAtANodeWithAFence(t *testing.T) {
	p, r, _ := migrating(t)
	p.ledger.Apply(p.now, inBoot(secondNode("2"), "m", "b"))
	h := *p.holdNow()
	h.Version, h.Fences = "500", []ledger.Fence{{Node: "n2", NodeUID: "m", BootID: "b", SystemUUID: "m", InUse: true}}
	p.ledger.Apply(p.now, ledger.HoldSeen{Volume: iscsi, Hold: h})
	p.writesHolds(t)
	p.play(t, Do(r), replies(Done, inBoot(secondNode("3", iscsi), "m", "b")))
	p.writesHolds(t)
	p.ledger.Apply(p.now, ledger.NodeGone{Name: "n2"})
	p.writesHolds(t)
	next := p.leaderAfter(node("6"), iscsiPod("q", "n3"))
	if !next.looksAtSecond(t) {
		t.Errorf("it is put into volumesAttached of n3; the machine of n2 may have it mounted: %+v", next.holdNow().Fences)
	}
}
