// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A hold is written only for a boot if a report is due and the API server keeps the field.
func TestLacksBoot(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	dropped := ledger.HoldBoots{Dropped: true}
	for name, test := range map[string]struct {
		arbiter Arbiter
		was, is string // the boots
		facts   []ledger.Event
		want    bool
	}{
		"to be reported":        {Arbiter{}, "", "b", []ledger.Event{lives}, true},
		"beside another":        {Arbiter{Cooperative: true}, "", "b", []ledger.Event{lives}, false},
		"it names one already":  {Arbiter{}, "a", "b", []ledger.Event{lives}, false},
		"there is none to name": {Arbiter{}, "", "", []ledger.Event{lives}, false},
		"it would be dropped":   {Arbiter{}, "", "b", []ledger.Event{lives, dropped}, false},
		"it is reported":        {Arbiter{}, "", "b", []ledger.Event{lives, nodeAs("well", reporting)}, false},
		"nobody wants it":       {Arbiter{}, "", "b", []ledger.Event{madeAt("well")}, false},
		"nothing is there":      {Arbiter{}, "", "b", nil, false},
	} {
		p := plannerOf(t, test.arbiter, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		p.hold.BootID = test.is
		if got := p.lacksBoot(ledger.Hold{BootID: test.was}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func settled(t *testing.T, p *planner) ledger.Hold {
	t.Helper()
	h := p.nextHold(hold(p.volume))
	if again := p.nextHold(h); !sameHold(h, again) {
		t.Fatalf("a hold that is written is to be another: %+v, and then %+v", h, again)
	}
	return h
}

func TestWhenAHoldIsWritten(t *testing.T) {
	booted := nodeAs("well", func(n *ledger.NodeState) { n.BootID = "b" })
	lives := dataAt("q", "well", ledger.PodLive)
	first := ledger.Hold{State: ledger.HoldUnknown, Stays: true, Transitions: 1}
	facts := []ledger.Event{alive, booted, lives, madeAt("well", func(a *ledger.Attachment) { a.Attached = false })}
	h := settled(t, plannerOf(t, Arbiter{}, "well", first, facts...))
	h.Version = "2"
	unnamed, older := h, h
	unnamed.BootID = ""
	older.Message = "of an older release"
	for name, test := range map[string]struct {
		is   ledger.Hold
		more []ledger.Event
		want bool
	}{
		"it says so":          {h, nil, false},
		"it says otherwise":   {older, nil, true},
		"somebody deleted it": {h, []ledger.Event{ledger.HoldGone{Volume: disk}}, true},
		"it names no boot":    {unnamed, nil, true},
	} {
		more := append([]ledger.Event{ledger.HoldSeen{Volume: disk, Hold: test.is}}, test.more...)
		p := plannerOf(t, Arbiter{}, "well", first, append(slices.Clone(facts), more...)...)
		p.decideHold()
		if got := only(p) == WriteHold; got != test.want || len(p.plan.Steps) > 0 != test.want {
			t.Errorf("%s: %+v", name, p.plan.Steps)
		}
		if test.want && p.plan.Steps[0].Expect != p.volume.Hold.Version {
			t.Errorf("%s: replaces version %q", name, p.plan.Steps[0].Expect)
		}
	}
}

// A hold is deleted without PersistentVolume, node and older mount.
func TestForgotten(t *testing.T) {
	gone := ledger.PersistentVolumeGone{Name: "pv"}
	booted := nodeAs("well", func(n *ledger.NodeState) { n.BootID = "b" })
	mount := func(boot string) ledger.Hold {
		return ledger.Hold{State: ledger.HoldFree, Fences: []ledger.Fence{{Node: "well", NodeUID: "w", BootID: boot, InUse: true}}}
	}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  bool
	}{
		"nothing is left":           {ledger.Hold{State: ledger.HoldFree}, []ledger.Event{alive, gone}, true},
		"there is the volume":       {ledger.Hold{State: ledger.HoldFree}, []ledger.Event{alive}, false},
		"it is somewhere":           {ledger.Hold{State: ledger.HoldFree}, []ledger.Event{gone}, false},
		"it may be mounted":         {mount("b"), []ledger.Event{alive, booted, gone}, false},
		"it was, in another boot":   {mount("a"), []ledger.Event{alive, booted, gone}, true},
		"it is, and there are both": {mount("b"), []ledger.Event{booted}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", test.hold, test.facts...)
		if got := p.forgotten(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, alive, gone)
	p.volume.Hold.Version = ""
	if p.forgotten() {
		t.Error("one that is not written is forgotten")
	}
}

func TestUnwritten(t *testing.T) {
	q, r := ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}, ledger.Requester{Namespace: "shop", Name: "r", UID: "r"}
	of := func(state ledger.HoldState, list ...ledger.Requester) ledger.Hold {
		return ledger.Hold{Node: "well", State: state, Requesters: list}
	}
	for name, test := range map[string]struct {
		is, was ledger.Hold
		after   time.Duration
		want    []ledger.Requester
		recheck bool
	}{
		"left lately":         {of(ledger.HoldHeld), of(ledger.HoldHeld, q), 0, []ledger.Requester{q}, true},
		"both left lately":    {of(ledger.HoldHeld), of(ledger.HoldHeld, q, r), 0, []ledger.Requester{q, r}, true},
		"left long ago":       {of(ledger.HoldHeld), of(ledger.HoldHeld, q), time.Minute, nil, false},
		"another has come":    {of(ledger.HoldHeld, r), of(ledger.HoldHeld, q), 0, []ledger.Requester{r}, false},
		"nobody was there":    {of(ledger.HoldHeld), of(ledger.HoldHeld), 0, nil, false},
		"something is new":    {of(ledger.HoldDetachPending), of(ledger.HoldHeld, q), 0, nil, false},
		"all is as it was":    {of(ledger.HoldHeld, q), of(ledger.HoldHeld, q), 0, []ledger.Requester{q}, false},
		"somebody has joined": {of(ledger.HoldHeld, q, r), of(ledger.HoldHeld, q), 0, []ledger.Requester{q, r}, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, alive, madeAt("well"))
		p.now = auditTime.Add(test.after)
		got := p.unwritten(test.is, test.was, p.at("well"))
		if !slices.Equal(got.Requesters, test.want) || got.State != test.is.State || p.plan.Recheck.IsZero() == test.recheck {
			t.Errorf("%s: %+v, looked at again at %s", name, got, p.plan.Recheck)
		}
	}
}

func TestNextHold(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	left := ledger.Hold{Stays: true, Transitions: 4}
	anew := nodeAs("dead", silent, func(n *ledger.NodeState) { n.UID, n.Reporting = "anew", false })
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		says   func(ledger.Hold) bool
	}{
		"it moves":               {"dead", ledger.Hold{Transitions: 4}, []ledger.Event{alive, lives}, func(h ledger.Hold) bool { return h.Node == "well" && h.Transitions == 5 }},
		"it stays":               {"well", ledger.Hold{Transitions: 4}, []ledger.Event{alive, lives}, func(h ledger.Hold) bool { return h.Node == "well" && h.Transitions == 4 }},
		"nobody has it":          {"well", ledger.Hold{Transitions: 4}, []ledger.Event{alive}, func(h ledger.Hold) bool { return h.Node == "" && h.Transitions == 4 && h.State == ledger.HoldFree }},
		"somebody waits":         {"well", ledger.Hold{}, []ledger.Event{alive, lives, dataAt("r", "dead", ledger.PodLive)}, func(h ledger.Hold) bool { return len(h.Waiting) == 1 && h.Waiting[0].UID == "r" }},
		"a ticket is to be told": {"well", ledger.Hold{}, []ledger.Event{alive, madeAt("well"), asksAt("m", ledger.TypeManual, "well", grantedNow), nodeAs("well", outOfOrder)}, func(h ledger.Hold) bool { return h.Reason == NodeFenced }},
		"it was left": {"well", left, []ledger.Event{alive}, func(h ledger.Hold) bool {
			return h.Stays && h.State == ledger.HoldUnknown && h.Reason == "" && h.Message != ""
		}},
		"left at a silent node": {"dead", left, []ledger.Event{alive, ledger.NodeGone{Name: "dead"}, anew}, func(h ledger.Hold) bool { return h.Stays && h.State == ledger.HoldUnknown }},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, test.facts...)
		if h := p.nextHold(*p.volume.Hold); !test.says(h) {
			t.Errorf("%s: %+v", name, h)
		}
	}
	delay := ledger.Policy{Name: "p", Version: "1", Driver: "d", DetachDelay: time.Minute}
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, alive, delay, madeAt("well"))
	p.now = auditTime.Add(31 * time.Second)
	if h := p.nextHold(*p.volume.Hold); h.Reason != DetachDelayed {
		t.Errorf("kept for a while: %+v", h)
	}
	// A departed user is not named if the volume may have been left and nothing else binds it.
	h := settled(t, plannerOf(t, Arbiter{}, "well", left, alive, lives))
	h.Version = "2"
	p = plannerOf(t, Arbiter{}, "well", left, alive, lives, ledger.HoldSeen{Volume: disk, Hold: h}, ledger.PodGone{UID: "q"})
	if is := p.nextHold(*p.volume.Hold); len(h.Requesters) != 1 || len(is.Requesters) != 0 {
		t.Errorf("left: for %+v, and then for %+v", h.Requesters, is.Requesters)
	}
}

func TestHolderNodeOfADoubt(t *testing.T) {
	booted := nodeAs("well", func(n *ledger.NodeState) { n.BootID = "b" })
	for name, test := range map[string]struct {
		boot      string // in the hold
		want      string // the UID
		wantsBoot string
	}{
		"it may be mounted":    {"b", "old", "b"},
		"the boot was another": {"a", "w", "b"},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{NodeUID: "old", BootID: test.boot}, alive, booted, madeAt("well"))
		if uid, boot, _ := p.holderNode(*p.volume.Hold, "well", p.at("well")); uid != test.want || boot != test.wantsBoot {
			t.Errorf("%s: %q %q", name, uid, boot)
		}
	}
}

func TestClock(t *testing.T) {
	unread := func(elapsed time.Duration) *ledger.Force {
		return &ledger.Force{Rule: AfterPodGone, Node: "dead", NodeUID: "x", Since: 40, Renewed: 7, Elapsed: elapsed}
	}
	away := deadNode("2", "x", "b", func(*ledger.NodeState) {})
	for name, test := range map[string]struct {
		reason  ledger.Code
		was     *ledger.Force
		facts   []ledger.Event
		after   time.Duration
		rule    string // empty: nothing is kept
		elapsed time.Duration
	}{
		"it waits for the node":        {NodeUnreachable, nil, nil, 2 * time.Minute, AfterPodGone, 2 * time.Minute},
		"it is over":                   {NodeUnreachable, nil, nil, DefaultAfterPodGone, "", 0},
		"it waits for something else":  {DetachFailed, nil, nil, 2 * time.Minute, "", 0},
		"the node's own rule":          {"", nil, []ledger.Event{unreachableAfter(10 * time.Minute), dataAt("q", "dead", ledger.PodLive)}, 100 * time.Second, AfterUnreachable, 100 * time.Second},
		"more was said, and may go on": {NodeUnreachable, unread(3 * time.Minute), []ledger.Event{away}, 2 * time.Minute, AfterPodGone, 3 * time.Minute},
		"less was said":                {NodeUnreachable, unread(time.Minute), []ledger.Event{away}, 2 * time.Minute, AfterPodGone, 2 * time.Minute},
		"more was said, and is over":   {NodeUnreachable, unread(3 * time.Minute), []ledger.Event{away, ledger.NodeLease{Node: "dead", Renewed: 8}}, 2 * time.Minute, AfterPodGone, 2 * time.Minute},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, append([]ledger.Event{madeAt("dead")}, test.facts...)...)
		p.now = auditTime.Add(test.after)
		h := ledger.Hold{Node: "dead", Reason: test.reason}
		p.clock(ledger.Hold{Force: test.was}, &h, p.at("dead"))
		if (h.Force != nil) != (test.rule != "") || h.Force != nil && (h.Force.Rule != test.rule || h.Force.Elapsed != test.elapsed) || p.plan.Recheck.IsZero() != (test.rule == "") {
			t.Errorf("%s: %+v, looked at again at %s", name, h.Force, p.plan.Recheck)
		}
	}
	p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{})
	h := ledger.Hold{Node: "dead", Reason: NodeUnreachable}
	if p.clock(ledger.Hold{}, &h, nil); h.Force != nil {
		t.Errorf("nowhere: %+v", h.Force)
	}
}
