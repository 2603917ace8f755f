// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A hold must name the present machine in the API before an attach there.
func TestNamesFormer(t *testing.T) {
	written := ledger.Hold{Node: "well", NodeUID: "w2", SystemUUID: "m", BootID: "b"}
	with := func(change func(*ledger.Hold)) ledger.Hold {
		h := written
		change(&h)
		return h
	}
	is := ledger.Hold{Node: "well", NodeUID: "w2", SystemUUID: "m", BootID: "b"}
	for name, test := range map[string]struct {
		api, is ledger.Hold
		node    ledger.NodeName
		machine string // in the Node
		want    bool
	}{
		"it names this machine":                 {written, is, "well", "m", false},
		"it names another machine":              {with(func(h *ledger.Hold) { h.NodeUID, h.SystemUUID = "", "z" }), is, "well", "m", true},
		"another, and so it will":               {with(func(h *ledger.Hold) { h.NodeUID, h.SystemUUID = "", "z" }), with(func(h *ledger.Hold) { h.SystemUUID = "z" }), "well", "m", false},
		"it names a Node before":                {with(func(h *ledger.Hold) { h.NodeUID = "w" }), is, "well", "m", true},
		"a Node before, and so it will":         {with(func(h *ledger.Hold) { h.NodeUID = "w" }), with(func(h *ledger.Hold) { h.NodeUID = "w" }), "well", "m", false},
		"it names no machine":                   {with(func(h *ledger.Hold) { h.NodeUID, h.SystemUUID = "", "" }), is, "well", "m", false},
		"the Node names none":                   {with(func(h *ledger.Hold) { h.NodeUID, h.SystemUUID = "", "z" }), with(func(h *ledger.Hold) { h.SystemUUID = "" }), "well", "", false},
		"another machine, of another node":      {with(func(h *ledger.Hold) { h.Node, h.NodeUID, h.SystemUUID = "third", "", "z" }), is, "well", "m", false},
		"a Node before, of another node":        {with(func(h *ledger.Hold) { h.Node, h.NodeUID = "third", "o" }), is, "well", "m", false},
		"nobody knows the node":                 {with(func(h *ledger.Hold) { h.Node, h.NodeUID, h.SystemUUID = "nowhere", "o", "z" }), is, "nowhere", "m", false},
		"a Node before in a boot that is over":  {with(func(h *ledger.Hold) { h.NodeUID, h.BootID = "w", "a" }), is, "well", "m", false},
		"no hold":                               {ledger.Hold{}, is, "well", "m", false},
		"another machine, and a Node not known": {with(func(h *ledger.Hold) { h.SystemUUID = "z" }), with(func(h *ledger.Hold) { h.NodeUID = "w" }), "well", "m", true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, again(ofMachine(test.machine, "b"), func(n *ledger.NodeState) { n.Version = "7" }))
		volume := *p.volume
		volume.Hold = &test.api
		p.volume, p.hold = &volume, test.is
		if got := p.namesFormer(p.snapshot.Node(test.node)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// An unknown volume is reported only after the hold says so, if the hold has room.
func TestForgetsDoubt(t *testing.T) {
	entry := ledger.Fence{Node: "well", NodeUID: "w2", SystemUUID: "m", BootID: "b", Attachment: "awell", InUse: true}
	as := func(change func(*ledger.Fence)) ledger.Hold {
		f := entry
		change(&f)
		return ledger.Hold{Fences: []ledger.Fence{f}}
	}
	full := func(n int, more ...ledger.Fence) ledger.Hold {
		var h ledger.Hold
		for i := range n {
			h.Fences = append(h.Fences, ledger.Fence{Node: ledger.NodeName(fmt.Sprintf("n%03d", i)), InUse: true})
		}
		h.Fences = append(h.Fences, more...)
		return h
	}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  bool
	}{
		"it does not say so":                {ledger.Hold{}, inDoubt(), true},
		"it says so":                        {as(func(*ledger.Fence) {}), inDoubt(), false},
		"of another machine":                {as(func(f *ledger.Fence) { f.SystemUUID = "z" }), inDoubt(), true},
		"of another boot":                   {as(func(f *ledger.Fence) { f.BootID = "z" }), inDoubt(), true},
		"nothing is in doubt":               {ledger.Hold{}, []ledger.Event{again(), madeAt("well")}, false},
		"the API drops it":                  {ledger.Hold{}, inDoubt(ledger.HoldBoots{Dropped: true}), false},
		"it has no room":                    {full(maxFences), inDoubt(), false},
		"it has room for one":               {full(maxFences - 1), inDoubt(), true},
		"no room, and it says another boot": {full(maxFences-1, func() ledger.Fence { f := entry; f.BootID = "z"; return f }()), inDoubt(), true},
	} {
		p := plannerOf(t, Arbiter{}, "", test.hold, test.facts...)
		if got := p.forgetsUnknown(p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A ticket with parameters waits while a user without them may have the volume mounted.
func TestMountedOtherwise(t *testing.T) {
	with := func(changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", ledger.TypeManual, "well", append([]func(*ledger.Ticket){grantedNow, func(k *ledger.Ticket) { k.Parameters = "a=b" }}, changes...)...)
	}
	satisfied := func(k *ledger.Ticket) { k.SatisfiedSince = 900 }
	plain := func(k *ledger.Ticket) { k.Parameters = "" }
	usesIt := nodeAs("well", using)
	staying := says(finds, hasLooked)
	asking := func(look bool) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			if look {
				l.Apply(auditTime, ledger.Unreported{Volume: disk, Node: "well", UID: "awell", Version: "1"})
				l.Apply(auditTime, ledger.LookAsked{Volume: disk, Node: "well", UID: "awell", Version: "1", Look: 1})
			}
		}
	}
	for name, test := range map[string]struct {
		ticket ledger.Event
		facts  []ledger.Event
		look   bool
		want   ledger.Code
		detail string
		needed bool // moorage-node's report is required
	}{
		"nothing is there":                {with(), []ledger.Event{madeAt("well")}, false, "", "", false},
		"the kubelet has it in use":       {with(), []ledger.Event{madeAt("well"), usesIt}, false, InUse, "", false},
		"in use, and it has none":         {with(plain), []ledger.Event{madeAt("well"), usesIt}, false, "", "", false},
		"in use, not attached by driver":  {with(), []ledger.Event{madeAt("well"), usesIt, noAttach}, false, "", "", false},
		"in use, by a pod that leaves":    {with(), []ledger.Event{madeAt("well"), usesIt, dataAt("q", "well", ledger.PodTerminating)}, false, IncompatibleParameters, "", false},
		"in use, by a pod that lives":     {with(), []ledger.Event{madeAt("well"), usesIt, dataAt("q", "well", ledger.PodLive)}, false, InUse, "", false},
		"in use, out of service":          {with(), []ledger.Event{madeAt("well"), nodeAs("well", outOfOrder, using)}, false, "", "", false},
		"in doubt":                        {with(), inDoubt(), false, InUseUnknown, forgetful, false},
		"in doubt, and nothing is found":  {with(), inDoubt(says()), false, InUseUnknown, forgetful, false},
		"nobody has reported":             {with(), []ledger.Event{nodeAs("well", func(n *ledger.NodeState) { n.UID, n.Reporting = "w2", false }), madeAt("well")}, false, InUseUnknown, forgetful, false},
		"moorage-node finds it":           {with(), []ledger.Event{again(), madeAt("well"), says(finds)}, false, StagedAtNode, "", false},
		"finds it, it was told":           {with(satisfied), []ledger.Event{again(), madeAt("well"), says(finds)}, false, "", "", false},
		"it was asked, and finds it":      {with(satisfied), []ledger.Event{again(), madeAt("well"), staying}, true, StagedAtNode, "", false},
		"the word is required":            {with(), []ledger.Event{madeAt("well")}, false, InUseUnknown, unsaid, true},
		"required, and it was told":       {with(satisfied), []ledger.Event{madeAt("well")}, false, "", "", true},
		"in use, and it was told":         {with(satisfied), []ledger.Event{madeAt("well"), usesIt}, false, InUse, "", false},
		"leaves, is at no volume of this": {with(), []ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodTerminating)}, false, "", "", false},
	} {
		s, _, need := concerned(t, "", "", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
			for _, e := range append(test.facts, test.ticket) {
				l.Apply(auditTime, e)
			}
			asking(test.look)(l)
		})
		got := Arbiter{RequireNodeReport: test.needed}.mountedOtherwise(s, s.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), need, auditTime)
		if len(got) > 0 != (test.want != "") || test.want != "" && (len(got) != 1 || got[0].Code != test.want || got[0].Node != "well" || got[0].Volume != disk || got[0].Claim != need.Name || got[0].Detail != test.detail && test.want != StagedAtNode) {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
	elsewhere := &ledger.Ticket{Node: "third", Parameters: "a=b"}
	s, _, need := concerned(t, "", "", ledger.Hold{State: ledger.HoldHeld})
	if got := (Arbiter{}).mountedOtherwise(s, elsewhere, need, auditTime); len(got) > 0 {
		t.Errorf("where nothing of the volume is: %+v", got)
	}
}

func TestDisplacers(t *testing.T) {
	yields := func(changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", ledger.TypeBackup, "well", append([]func(*ledger.Ticket){grantedNow, func(k *ledger.Ticket) { k.Parameters = "a=b" }}, changes...)...)
	}
	other := func(kind ledger.TicketType, parameters string, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("o", kind, "well", append([]func(*ledger.Ticket){grantedNow, func(k *ledger.Ticket) { k.Parameters = parameters }}, changes...)...)
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  int
	}{
		"nobody":                        {[]ledger.Event{yields()}, 0},
		"a pod":                         {[]ledger.Event{yields(), dataAt("q", "well", ledger.PodLive)}, 1},
		"a pod that leaves":             {[]ledger.Event{yields(), dataAt("q", "well", ledger.PodTerminating)}, 0},
		"a pod elsewhere":               {[]ledger.Event{yields(), dataAt("q", "dead", ledger.PodLive)}, 0},
		"a ticket with others":          {[]ledger.Event{yields(), other(ledger.TypeManual, "c=d")}, 1},
		"a ticket with the same":        {[]ledger.Event{yields(), other(ledger.TypeManual, "a=b")}, 0},
		"one that only asks":            {[]ledger.Event{yields(), other(ledger.TypeManual, "c=d", isPending)}, 0},
		"one that yields, too":          {[]ledger.Event{yields(), other(ledger.TypeBackup, "c=d")}, 0},
		"it does not yield":             {[]ledger.Event{yields(func(k *ledger.Ticket) { k.Type = ledger.TypeManual }), dataAt("q", "well", ledger.PodLive)}, 0},
		"it has no parameters, nor pod": {[]ledger.Event{yields(func(k *ledger.Ticket) { k.Parameters = "" }), dataAt("q", "well", ledger.PodLive)}, 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		if got := p.displacers(p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"})); len(got) != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
	if got := p.displacers(&ledger.Ticket{Type: ledger.TypeBackup, Node: "third"}); len(got) > 0 {
		t.Errorf("where nothing of the volume is: %+v", got)
	}
}

// A policy's time stops for silent nodes while too many nodes are unreachable.
func TestBraked(t *testing.T) {
	after := func(d time.Duration) *time.Duration { return &d }
	many := []ledger.Event{ledger.NodeState{Name: "other", UID: "o", Version: "1"}, ledger.NodeState{Name: "another", UID: "a", Version: "1"}}
	for name, test := range map[string]struct {
		policy ledger.Policy
		node   ledger.NodeName
		facts  []ledger.Event
		want   bool
	}{
		"a time":                    {ledger.Policy{AfterUnreachable: after(time.Minute)}, "dead", many, true},
		"a time of no length":       {ledger.Policy{AfterUnreachable: after(0)}, "dead", many, true},
		"no time":                   {ledger.Policy{}, "dead", many, false},
		"never":                     {ledger.Policy{AfterUnreachable: after(never)}, "dead", many, false},
		"of a fence":                {ledger.Policy{NetworkFence: ledger.NetworkFence{Class: "c", After: after(time.Minute)}}, "dead", many, true},
		"of a fence, at once":       {ledger.Policy{NetworkFence: ledger.NetworkFence{Class: "c", After: after(0)}}, "dead", many, true},
		"of a fence, never":         {ledger.Policy{NetworkFence: ledger.NetworkFence{Class: "c", After: after(never)}}, "dead", many, false},
		"of a fence without a time": {ledger.Policy{NetworkFence: ledger.NetworkFence{Class: "c"}}, "dead", many, false},
		"a time, and no class":      {ledger.Policy{NetworkFence: ledger.NetworkFence{After: after(time.Minute)}}, "dead", many, false},
		"the node is Ready":         {ledger.Policy{AfterUnreachable: after(time.Minute)}, "well", many, false},
		"few are unreachable":       {ledger.Policy{AfterUnreachable: after(time.Minute)}, "dead", nil, false},
	} {
		test.policy.Name, test.policy.Version, test.policy.Driver = "p", "1", "d"
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{test.policy}, test.facts...)...)
		got := Braked(p.snapshot, p.volume, p.snapshot.Node(test.node))
		if got.On != test.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestFirstOutranker(t *testing.T) {
	pod := func(uid string, n ledger.NodeName, created int64) ledger.Event {
		p := dataAt(uid, n, ledger.PodLive).(ledger.Pod)
		p.Created = created
		return p
	}
	yields := asksAt("m", ledger.TypeBackup, "well", grantedNow)
	for name, test := range map[string]struct {
		facts []ledger.Event
		who   string
		at    ledger.NodeName
	}{
		"nobody":                     {nil, "", ""},
		"one":                        {[]ledger.Event{pod("q", "dead", 5)}, "q", "dead"},
		"the older, listed first":    {[]ledger.Event{pod("q", "dead", 4), pod("r", "dead", 5)}, "q", "dead"},
		"the older, listed last":     {[]ledger.Event{pod("q", "dead", 5), pod("r", "dead", 4)}, "r", "dead"},
		"the older, at another node": {[]ledger.Event{pod("q", "dead", 5), pod("r", "third", 4)}, "r", "third"},
		"of the first node":          {[]ledger.Event{pod("q", "dead", 4), pod("r", "third", 5)}, "q", "dead"},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive, yields}, test.facts...)...)
		at, who := p.firstOutranker(ledger.User{Ticket: ledger.TicketID{Namespace: "shop", Name: "m"}}, "well")
		if at != test.at || who.UID != test.who {
			t.Errorf("%s: %q at %q", name, who.UID, at)
		}
	}
}

func TestPolicyOfNeed(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{},
		ledger.Policy{Name: "all", Version: "1", Driver: "d", Headroom: 1, DetachDelay: 1}, ledger.Policy{Name: "fast", Version: "1", Driver: "d", Class: "fast", DetachDelay: 2})
	for class, want := range map[string]time.Duration{"": 1, "fast": 2, "slow": 1} {
		if got := (Need{Volume: disk, Claim: &ledger.Claim{Class: class}}).Policy(p.snapshot).DetachDelay; got != want {
			t.Errorf("of class %q: %d", class, got)
		}
	}
	if got := (Need{Volume: disk}).Policy(p.snapshot).DetachDelay; got != 1 {
		t.Errorf("without a claim: %d", got)
	}
}
