// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestForces(t *testing.T) {
	attached, plain := ledger.VolumeID{Driver: "d", Handle: "h"}, ledger.VolumeID{Driver: "kubernetes.io/nfs", Handle: "h"}
	for _, test := range []struct {
		do   Kind
		v    ledger.VolumeID
		rule string
		want bool
	}{
		{DeleteAttachment, attached, OutOfService, true},
		{DeleteAttachment, attached, "", false},
		{Unreport, attached, OutOfService, false},
		{Unreport, plain, OutOfService, plain.NoAttach()},
		{Unreport, plain, "", false},
		{Report, plain, OutOfService, false},
	} {
		if got := (Step{Kind: test.do, Volume: test.v, Rule: test.rule}).Forces(); got != test.want {
			t.Errorf("%s of %s by %q: %t", test.do, test.v, test.rule, got)
		}
	}
}

func TestNamesNode(t *testing.T) {
	for name, test := range map[string]struct {
		is, said ledger.Hold
		drops    bool
		want     bool
	}{
		"it does":                     {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u", BootID: "b"}, false, true},
		"another Node":                {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "v", BootID: "b"}, false, false},
		"another boot":                {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u", BootID: "c"}, false, false},
		"no boot is known":            {ledger.Hold{NodeUID: "u"}, ledger.Hold{NodeUID: "u", BootID: "c"}, false, true},
		"it names none":               {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u"}, false, false},
		"it can name none":            {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u"}, true, true},
		"it could, and names another": {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u", BootID: "c"}, true, false},
	} {
		s, v, _ := concerned(t, "well", "well", ledger.Hold{}, func(l *ledger.Ledger) { l.Apply(auditTime, ledger.HoldBoots{Dropped: test.drops}) })
		p := Arbiter{}.planner(s, v, auditTime)
		p.hold = test.is
		if got := p.namesNode(test.said); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestUnknownSaysWhatToDo(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	noPV := func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.PersistentVolumeGone{Name: "pv"})
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true})
	}
	inline := func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Pod{UID: "i", Version: "1", Namespace: "shop", Name: "i", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: id}}})
	}
	both := func(l *ledger.Ledger) {
		inline(l)
		noPV(l)
	}
	for name, test := range map[string]struct {
		change func(*ledger.Ledger)
		state  ledger.HoldState
		want   string
	}{
		"a PersistentVolume":      {func(*ledger.Ledger) {}, ledger.HoldHeld, "anew"},
		"none":                    {noPV, ledger.HoldHeld, "make one, or detach it there by hand"},
		"one, and a pod inline":   {inline, ledger.HoldHeld, "it is being attached anew"},
		"none, but a pod inline":  {both, ledger.HoldHeld, "it is being attached anew"},
		"attached anew, it fails": {func(*ledger.Ledger) {}, ledger.HoldAttachFailed, "it is being attached anew: why"},
	} {
		s, v, _ := concerned(t, "well", "well", ledger.Hold{Stays: true}, test.change)
		p := Arbiter{}.planner(s, v, auditTime)
		h := ledger.Hold{Node: "well", State: test.state, Message: "why", Reason: AttachFailed}
		p.unknown(&h)
		if h.State != ledger.HoldUnknown || h.Reason != "" || !strings.Contains(h.Message, test.want) || strings.Contains(h.Message, "why") != strings.Contains(test.want, "why") {
			t.Errorf("%s: %s %q %q", name, h.State, h.Reason, h.Message)
		}
	}
	s, v, _ := concerned(t, "well", "well", ledger.Hold{Stays: true})
	h := ledger.Hold{Node: "well", State: ledger.HoldDetachPending, Message: "why"}
	Arbiter{}.planner(s, v, auditTime).unknown(&h)
	if h.State != ledger.HoldDetachPending || h.Message != "why" {
		t.Errorf("a detach that waits is told otherwise: %+v", h)
	}
}

// A volume is lost at a fenced node that was deleted.
func TestLost(t *testing.T) {
	tainted := ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true}
	fence := ledger.Hold{State: ledger.HoldHeld, Fences: []ledger.Fence{{Node: "dead", Rule: OutOfService, NodeUID: "x"}}}
	for name, test := range map[string]struct {
		hold ledger.Hold
		node []ledger.Event
		want bool
	}{
		"silent":               {ledger.Hold{State: ledger.HoldHeld}, nil, false},
		"out of service":       {ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{tainted}, false},
		"gone":                 {ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{ledger.NodeGone{Name: "dead"}}, false},
		"taken there and gone": {fence, []ledger.Event{tainted, ledger.NodeGone{Name: "dead"}}, true},
	} {
		s, v, _ := concerned(t, "", "dead", test.hold, func(l *ledger.Ledger) {
			for _, e := range test.node {
				l.Apply(auditTime, e)
			}
		})
		if got := (Arbiter{}).planner(s, v, auditTime).lost("dead"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// In Cooperative mode a shared volume's hold goes with its last opted-in pod.
func TestNoteOfASharedVolumeGoes(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	for name, test := range map[string]struct {
		hold ledger.Hold
		want Kind
	}{
		"all it says is old":           {ledger.Hold{State: ledger.HoldAttachFailed, Reason: AttachFailed, Message: "why"}, DeleteHold},
		"its transitions have to stay": {ledger.Hold{State: ledger.HoldAttachFailed, Reason: AttachFailed, Message: "why", Transitions: 3}, WriteHold},
		"it says nothing":              {ledger.Hold{State: ledger.HoldFree, Transitions: 3}, 0},
	} {
		s, _, _ := concerned(t, "well", "", test.hold, func(l *ledger.Ledger) {
			for _, e := range []ledger.Event{
				ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
				ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
				ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", OptedOut: true, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
			} {
				l.Apply(auditTime, e)
			}
		})
		steps := Arbiter{Cooperative: true}.Plan(s, id, auditTime).Steps
		switch {
		case test.want == 0 && len(steps) == 0:
		case len(steps) != 1 || steps[0].Kind != test.want || steps[0].Expect != "1":
			t.Errorf("%s: planned %+v", name, steps)
		case test.want == WriteHold && (steps[0].Hold.State != ledger.HoldFree || steps[0].Hold.Transitions != 3):
			t.Errorf("%s: written %+v", name, steps[0].Hold)
		}
	}
}

func TestFencesFit(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	s, v, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}})
		for i := range maxFences + 10 {
			n := ledger.NodeName(fmt.Sprintf("n%03d", i))
			l.Apply(auditTime, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}, Reported: []ledger.VolumeID{id}})
			l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, n), UID: "a" + string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Ours: true, Attached: true})
		}
	})
	if got := len(Arbiter{}.planner(s, v, auditTime).fences(ledger.Hold{}, ledger.Hold{})); got != maxFences {
		t.Errorf("%d fences, want %d", got, maxFences)
	}
	if got := (Arbiter{Cooperative: true}).planner(s, v, auditTime).fences(ledger.Hold{}, ledger.Hold{}); got != nil {
		t.Errorf("fences beside the attach/detach controller: %d", len(got))
	}
}

// Another machine under the node's name, another disk, an unmanaged or silent node.
func TestSafeToDetachSaysWhy(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	attachment := func(node ledger.NodeName, change func(*ledger.Attachment)) ledger.Attachment {
		a := ledger.Attachment{Name: ledger.AttachmentName(id, node), UID: "a", Version: "1", Driver: "d", Node: node, PersistentVolume: "pv", Ours: true, Attached: true}
		change(&a)
		return a
	}
	same := func(*ledger.Attachment) {}
	well := ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	used, unmanaged, fresh := well, well, well
	used.InUse, unmanaged.Managed, fresh.UID, fresh.Reporting = []ledger.VolumeID{id}, false, "another", false
	for name, test := range map[string]struct {
		node  ledger.NodeName
		facts []ledger.Event
		want  ledger.Code
	}{
		"not in use":            {"well", []ledger.Event{attachment("well", same)}, ""},
		"in use":                {"well", []ledger.Event{attachment("well", same), used}, InUse},
		"not managed":           {"well", []ledger.Event{attachment("well", same), unmanaged}, NodeUnmanaged},
		"a new node":            {"well", []ledger.Event{attachment("well", same), used, ledger.NodeGone{Name: "well"}, fresh}, InUseUnknown},
		"nobody has seen it":    {"nowhere", []ledger.Event{attachment("nowhere", same)}, NodeUnreachable},
		"new, and not attached": {"well", []ledger.Event{used, ledger.NodeGone{Name: "well"}, fresh}, InUseUnknown},
		"does not answer":       {"dead", []ledger.Event{attachment("dead", same)}, NodeUnreachable},
		"another machine": {"well", []ledger.Event{
			attachment("well", func(a *ledger.Attachment) { a.NodeID = "i-1" }),
			ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2", Limit: 4}}},
		}, NodeReplaced},
		"another disk": {"well", []ledger.Event{
			attachment("well", same), ledger.PersistentVolumeGone{Name: "pv"},
			ledger.PersistentVolume{Name: "pv", UID: "new", Version: "2", Volume: ledger.VolumeID{Driver: "d", Handle: "other"}, Access: ledger.AccessNode},
		}, VolumeReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
				for _, e := range test.facts {
					l.Apply(auditTime, e)
				}
			})
			v := s.Volume(id)
			verdict, rule := Arbiter{}.SafeToDetach(s, v, v.OnNode(test.node), auditTime)
			if verdict.Allowed() != (test.want == "") || !verdict.Allowed() && verdict.First().Code != test.want || rule != "" {
				t.Errorf("%+v by %q, want %q", verdict, rule, test.want)
			}
		})
	}
}

// Unknown: the node is deleted, its kubelet has not reported, or may have forgotten the volume.
func TestEvidence(t *testing.T) {
	doubted := ledger.Hold{NodeUID: "another", BootID: "b"}
	booted := func(n *ledger.NodeState) { n.BootID = "b" }
	used := nodeAs("well", using, booted)
	anew := nodeAs("well", func(n *ledger.NodeState) { n.UID, n.Reporting = "anew", false })
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  usage
	}{
		"not in use":                   {ledger.Hold{}, []ledger.Event{madeAt("well")}, usageNone},
		"in use":                       {ledger.Hold{}, []ledger.Event{madeAt("well"), used}, usageInUse},
		"it has not reported yet":      {ledger.Hold{}, []ledger.Event{madeAt("well"), used, ledger.NodeGone{Name: "well"}, anew}, usageUnknown},
		"the node is gone":             {ledger.Hold{}, []ledger.Event{madeAt("well"), used, ledger.NodeGone{Name: "well"}}, usageUnknown},
		"its kubelet may have forgot":  {doubted, []ledger.Event{madeAt("well"), nodeAs("well", booted)}, usageUnknown},
		"out of service":               {ledger.Hold{}, []ledger.Event{madeAt("well"), nodeAs("well", using, outOfOrder)}, usageFenced},
		"silent, and was not using it": {ledger.Hold{}, []ledger.Event{madeAt("well"), nodeAs("well", silent)}, usageNone},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, test.facts...)
		if got := p.evidenceOf(p.snapshot, p.volume, p.at("well"), auditTime).usage; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// The Node differs from the hold's, with the same or an unknown boot.
func TestDoubtedByTheHold(t *testing.T) {
	of := func(uid, boot string) ledger.Hold { return ledger.Hold{NodeUID: uid, BootID: boot} }
	boot := func(b string) ledger.Event {
		return nodeAs("well", func(n *ledger.NodeState) { n.BootID = b })
	}
	used := nodeAs("well", using, func(n *ledger.NodeState) { n.BootID = "b" })
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   bool
	}{
		"another Node of that boot":  {"well", of("old", "b"), []ledger.Event{madeAt("well"), boot("b")}, true},
		"it says no boot":            {"well", of("old", "b"), []ledger.Event{madeAt("well"), boot("")}, true},
		"left there":                 {"well", ledger.Hold{NodeUID: "old", BootID: "b", Stays: true}, []ledger.Event{boot("b")}, true},
		"of another boot":            {"well", of("old", "b"), []ledger.Event{madeAt("well"), boot("c")}, false},
		"the hold names no boot":     {"well", of("old", ""), []ledger.Event{madeAt("well"), boot("b")}, false},
		"neither names a boot":       {"well", of("old", ""), []ledger.Event{madeAt("well"), boot("")}, false},
		"the same Node":              {"well", of("w", "b"), []ledger.Event{madeAt("well"), boot("b")}, false},
		"the hold names no Node":     {"well", of("", "b"), []ledger.Event{madeAt("well"), boot("b")}, false},
		"it is held elsewhere":       {"dead", of("old", "b"), []ledger.Event{madeAt("well"), boot("b")}, false},
		"the Node is gone":           {"well", of("old", "b"), []ledger.Event{madeAt("well"), boot("b"), ledger.NodeGone{Name: "well"}}, true},
		"listed, and not attached":   {"well", of("old", "b"), []ledger.Event{used}, false},
		"no hold, and it was there":  {"", ledger.Hold{}, []ledger.Event{madeAt("well"), boot("b")}, false},
		"seen to be made again":      {"", ledger.Hold{}, []ledger.Event{madeAt("well"), used, nodeAs("well", func(n *ledger.NodeState) { n.UID, n.BootID = "anew", "b" })}, true},
		"seen to be of another boot": {"", ledger.Hold{}, []ledger.Event{madeAt("well"), used, nodeAs("well", func(n *ledger.NodeState) { n.UID, n.BootID = "anew", "c" })}, false},
		"somebody else's attachment": {"well", of("old", "b"), []ledger.Event{ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}, boot("b")}, false},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, test.facts...)
		if got := p.isUnknown(p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestUnreportedIsLookedAtAgain(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	after := time.Hour
	s, _, _ := concerned(t, "", "dead", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &after})
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "dead"), UID: "a", Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Ours: true, Attached: true})
	})
	for name, a := range map[string]Arbiter{"alone": {}, "beside": {Cooperative: true}} {
		if plan := a.Plan(s, id, auditTime); plan.Recheck.IsZero() || plan.Recheck.After(auditTime.Add(after)) {
			t.Errorf("%s: looked at again at %s, and it is %s", name, plan.Recheck, auditTime)
		}
	}
}

// A shared volume's plan at a node does not wait for other nodes.
func TestPlanOfEachPlace(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	held := ledger.Hold{NodeUID: "w", Transitions: 1, PVs: []string{"pv"}, Requesters: []ledger.Requester{{Namespace: "shop", Name: "q", UID: "q"}}}
	left := ledger.Hold{Stays: true, State: ledger.HoldUnknown, NodeUID: "w", Transitions: 1, PVs: []string{"pv"}}
	sent := ledger.AttachSent{Volume: disk, Node: "well"}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  Kind
		apart bool
	}{
		"wanted":                    {held, []ledger.Event{lives}, CreateAttachment, false},
		"shared, and wanted":        {held, []ledger.Event{lives, sharedDisk}, CreateAttachment, true},
		"sent, and not seen":        {held, []ledger.Event{lives, sent}, FindAttachment, false},
		"sent, and one is there":    {held, []ledger.Event{lives, sent, madeAt("well")}, FindAttachment, false},
		"unwanted":                  {held, []ledger.Event{madeAt("well")}, Unreport, false},
		"left, and nobody wants it": {left, nil, CreateAttachment, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, append([]ledger.Event{alive}, test.facts...)...)
		plan := Arbiter{}.Plan(p.snapshot, disk, auditTime)
		var did []Kind
		for _, step := range plan.Steps {
			if step.Kind != WriteHold {
				did = append(did, step.Kind)
			}
		}
		if len(did) != 1 || did[0] != test.want || plan.Apart != test.apart {
			t.Errorf("%s: %+v, apart: %t", name, plan.Steps, plan.Apart)
		}
	}
}

// A volume is rechecked when time fences a silent node, unless it is only asked for.
func TestPlanAwaitsTheFence(t *testing.T) {
	gone := nodeAs("dead", silent)
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"a pod is there":            {[]ledger.Event{sharedDisk, dataAt("q", "dead", ledger.PodLive)}, true},
		"a granted ticket is there": {[]ledger.Event{dataAt("q", "well", ledger.PodLive), asksAt("m", ledger.TypeManual, "dead", grantedNow)}, true},
		"a ticket asks":             {[]ledger.Event{sharedDisk, asksAt("m", ledger.TypeManual, "dead")}, false},
		"nobody":                    {[]ledger.Event{sharedDisk, dataAt("q", "well", ledger.PodLive)}, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Transitions: 1}, append([]ledger.Event{unreachableAfter(10 * time.Minute), gone}, test.facts...)...)
		got := Arbiter{}.Plan(p.snapshot, disk, auditTime).Recheck
		if got.IsZero() == test.want || test.want && !got.Equal(auditTime.Add(10*time.Minute)) {
			t.Errorf("%s: looked at again at %s", name, got)
		}
	}
}

// A late deletion of the hold costs no further write: the volume is attached again without it.
func TestHoldWithAnEndedRuleIsDeleted(t *testing.T) {
	hold := ledger.Hold{Fences: []ledger.Fence{{Node: "dead", NodeUID: "x", Rule: OutOfService}}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  Kind
	}{
		"deleted":                             {[]ledger.Event{alive, ledger.HoldGone{Volume: disk}}, CreateAttachment},
		"it is there":                         {[]ledger.Event{alive}, DeleteHold},
		"deleted, and the rule has not ended": {[]ledger.Event{nodeAs("dead", outOfOrder), madeAt("dead"), ledger.HoldGone{Volume: disk}}, WriteHold},
	} {
		p := plannerOf(t, Arbiter{}, "", hold, append([]ledger.Event{sharedDisk, dataAt("q", "dead", ledger.PodLive)}, test.facts...)...)
		steps := Arbiter{}.Plan(p.snapshot, disk, auditTime).Steps
		if name == "deleted" && len(steps) == 2 && steps[0].Kind == DeleteHold && steps[0].Expect == "" {
			steps = steps[1:] // nothing is sent: only the ledger has it
		}
		if len(steps) != 1 || steps[0].Kind != test.want {
			t.Errorf("%s: %+v", name, steps)
		}
	}
}

func TestRecheckIsTheEarliest(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
	for _, in := range []time.Duration{2 * time.Minute, time.Minute, 3 * time.Minute} {
		p.recheck(in)
	}
	if !p.plan.Recheck.Equal(auditTime.Add(time.Minute)) {
		t.Errorf("at %s", p.plan.Recheck)
	}
}

// An exclusive volume must be only at its holder's node and a live migration's target.
func TestWanted(t *testing.T) {
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	q := dataAt("q", "dead", ledger.PodLive)
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   bool
	}{
		"at the holder's":            {"dead", ledger.Hold{}, []ledger.Event{q}, true},
		"elsewhere":                  {"well", ledger.Hold{}, []ledger.Event{q}, false},
		"elsewhere, and it's shared": {"well", ledger.Hold{}, []ledger.Event{q, sharedDisk}, true},
		"nobody is there":            {"dead", ledger.Hold{}, []ledger.Event{madeAt("dead")}, false},
		"where it migrates to":       {"well", ledger.Hold{}, []ledger.Event{migrate, asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)}, true},
		"and may not":                {"well", ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)}, false},
		"promised":                   {"dead", ledger.Hold{Requesters: []ledger.Requester{{UID: "m"}}}, []ledger.Event{asksAt("m", ledger.TypeManual, "dead")}, false},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, append([]ledger.Event{alive}, test.facts...)...)
		if got := p.wanted(p.at("dead")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A yielding ticket gives way to users at other unfenced nodes, except beside a live migration.
func TestOutranked(t *testing.T) {
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	kept := asksAt("o", ledger.TypeBackup, "third", grantedNow) // has the volume, and yields to none of these
	at := func(n ledger.NodeName) ledger.Event { return dataAt("q", n, ledger.PodLive) }
	for name, test := range map[string]struct {
		kind   ledger.TicketType
		heldAt ledger.NodeName
		facts  []ledger.Event
		want   bool
	}{
		"by nobody":                          {ledger.TypeBackup, "well", nil, false},
		"by a pod elsewhere":                 {ledger.TypeBackup, "well", []ledger.Event{at("dead")}, true},
		"by a pod at its own node":           {ledger.TypeBackup, "well", []ledger.Event{at("well")}, false},
		"it does not yield":                  {ledger.TypeManual, "well", []ledger.Event{at("dead")}, false},
		"shared":                             {ledger.TypeBackup, "well", []ledger.Event{at("dead"), sharedDisk}, false},
		"by a pod at a fenced node":          {ledger.TypeBackup, "well", []ledger.Event{at("dead"), nodeAs("dead", outOfOrder)}, false},
		"by a ticket elsewhere":              {ledger.TypeBackup, "well", []ledger.Event{asksAt("a", ledger.TypeManual, "dead", grantedNow)}, true},
		"by one that asks":                   {ledger.TypeBackup, "well", []ledger.Event{asksAt("a", ledger.TypeManual, "dead")}, false},
		"by one that yields, too":            {ledger.TypeBackup, "well", []ledger.Event{asksAt("a", ledger.TypeBackup, "dead", grantedNow)}, false},
		"a migration comes to its node":      {ledger.TypeBackup, "", []ledger.Event{migrate, asksAt("a", ledger.TypeLiveMigration, "well", grantedNow), at("dead")}, false},
		"by a pod, one that yields has it":   {ledger.TypeBackup, "third", []ledger.Event{kept, at("dead")}, true},
		"by a pod where others have it":      {ledger.TypeBackup, "third", []ledger.Event{kept, at("third")}, true},
		"by a ticket, others have it":        {ledger.TypeBackup, "third", []ledger.Event{kept, asksAt("a", ledger.TypeManual, "dead", grantedNow)}, true},
		"by a pod where a migration goes to": {ledger.TypeBackup, "third", []ledger.Event{migrate, kept, asksAt("a", ledger.TypeLiveMigration, "dead", grantedNow), at("dead")}, true},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, ledger.Hold{}, append([]ledger.Event{alive, nodeAs("third"), asksAt("m", test.kind, "well", grantedNow)}, test.facts...)...)
		if got := p.outranked(ledger.User{Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}}, "well"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Also where it is listed without users, and without attachments at its hold's node.
func TestMayBeAttached(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	claim := ledger.ClaimKey{Namespace: "shop", Name: "data"}
	plain := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: iscsi, Access: ledger.AccessNode, Claim: claim}
	gives := ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", Node: "well", State: ledger.HoldHeld}}
	anew := nodeAs("well", func(n *ledger.NodeState) { n.UID, n.Reporting = "anew", false })
	lists := nodeAs("well", func(n *ledger.NodeState) { n.InUse = []ledger.VolumeID{iscsi} })
	for name, test := range map[string]struct {
		v     ledger.VolumeID
		facts []ledger.Event
		want  bool
	}{
		"attached":                       {disk, []ledger.Event{madeAt("well")}, true},
		"reported":                       {disk, []ledger.Event{nodeAs("well", reporting)}, true},
		"about to be attached":           {disk, []ledger.Event{dataAt("q", "well", ledger.PodLive), ledger.AttachSent{Volume: disk, Node: "well"}}, true},
		"only wanted":                    {disk, []ledger.Event{dataAt("q", "well", ledger.PodLive)}, false},
		"in use, and nobody is there":    {disk, []ledger.Event{nodeAs("well", using)}, true},
		"in use, and somebody is":        {disk, []ledger.Event{nodeAs("well", using), dataAt("q", "well", ledger.PodLive)}, false},
		"in use, and fenced":             {disk, []ledger.Event{nodeAs("well", using, outOfOrder)}, false},
		"held, and not heard of yet":     {iscsi, []ledger.Event{plain, gives, ledger.NodeGone{Name: "well"}, anew}, true},
		"held, and not in use":           {iscsi, []ledger.Event{plain, gives}, true},
		"held, and proved not to be":     {iscsi, []ledger.Event{plain, gives, ledger.Unreported{Volume: iscsi, Node: "well"}}, false},
		"held, and in use":               {iscsi, []ledger.Event{plain, gives, lists}, true},
		"held, not heard of, and fenced": {iscsi, []ledger.Event{plain, gives, ledger.NodeGone{Name: "well"}, anew, nodeAs("well", outOfOrder, func(n *ledger.NodeState) { n.UID, n.Version = "anew", "7" })}, false},
		"held, not heard of, and used":   {iscsi, []ledger.Event{plain, gives, ledger.NodeGone{Name: "well"}, anew, dataAt("q", "well", ledger.PodLive)}, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append([]ledger.Event{alive}, test.facts...)...)
		p = Arbiter{}.planner(p.snapshot, p.snapshot.Volume(test.v), auditTime)
		if got := p.mayBeAttached(p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestForgetfulKubelet(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	booted := nodeAs("well", func(n *ledger.NodeState) { n.BootID = "b" })
	stays := ledger.Hold{NodeUID: "old", BootID: "b", Stays: true}
	gives := ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", Node: "well", NodeUID: "old", BootID: "b", State: ledger.HoldHeld}}
	for name, test := range map[string]struct {
		v     ledger.VolumeID
		hold  ledger.Hold
		facts []ledger.Event
		want  string
	}{
		"attached":                {disk, ledger.Hold{NodeUID: "old", BootID: "b"}, []ledger.Event{madeAt("well"), booted}, forgetful},
		"left there":              {disk, stays, []ledger.Event{booted}, forgetfulLeft},
		"left, and attached anew": {disk, stays, []ledger.Event{madeAt("well"), booted}, forgetful},
		"needs no attachment":     {iscsi, ledger.Hold{}, []ledger.Event{ledger.PersistentVolume{Name: "plain", Version: "1", Volume: iscsi, Access: ledger.AccessNode}, gives, booted}, forgetful},
	} {
		s := plannerOf(t, Arbiter{}, "well", test.hold, test.facts...).snapshot
		v := s.Volume(test.v)
		verdict, _ := Arbiter{}.SafeToDetach(s, v, v.OnNode("well"), auditTime)
		if got := verdict.First(); got.Code != InUseUnknown || got.Detail != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// Without attachments volumesAttached decides; a driver that never attaches permits any node.
func TestSafeToMount(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	begun := func(a *ledger.Attachment) { a.Attached = false }
	lists := nodeAs("well", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{disk, iscsi} })
	for name, test := range map[string]struct {
		v     ledger.VolumeID
		facts []ledger.Event
		want  bool
	}{
		"attached and reported":         {disk, []ledger.Event{lists, madeAt("well")}, true},
		"not reported":                  {disk, []ledger.Event{madeAt("well")}, false},
		"nowhere":                       {disk, nil, false},
		"reported, not attached":        {disk, []ledger.Event{lists}, false},
		"reported, being attached":      {disk, []ledger.Event{lists, madeAt("well", begun)}, false},
		"reported, being detached":      {disk, []ledger.Event{lists, madeAt("well", goes)}, false},
		"reported, another's":           {disk, []ledger.Event{lists, ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}}, false},
		"its driver attaches nothing":   {disk, []ledger.Event{noAttach}, true},
		"needs no attachment, reported": {iscsi, []ledger.Event{lists}, true},
		"needs none, not reported":      {iscsi, nil, false},
	} {
		s := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, test.facts...).snapshot
		if got := (Arbiter{}).SafeToMount(s, test.v, "well"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
