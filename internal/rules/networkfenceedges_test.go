// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Due if the policy of a volume's driver has a class and a time, and the node is unreachable.
func TestNetworkFencesDue(t *testing.T) {
	policy := func(class string, after *time.Duration) ledger.Event {
		return ledger.Policy{Name: "p", Version: "1", Driver: "d", NetworkFence: ledger.NetworkFence{Class: class, After: after}}
	}
	gone := []ledger.Event{ledger.NodeGone{Name: "dead"}}
	other := ledger.VolumeID{Driver: "a", Handle: "h"}
	twoDrivers := []ledger.Event{
		ledger.Policy{Name: "a", Version: "1", Driver: "a", NetworkFence: ledger.NetworkFence{Class: "c", After: new(time.Duration)}},
		nodeAs("dead", silent, func(n *ledger.NodeState) { n.InUse = []ledger.VolumeID{disk, {Driver: "d", Handle: "i"}, other} }),
	}
	for name, test := range map[string]struct {
		node  ledger.NodeName
		facts []ledger.Event
		want  []FenceDue
	}{
		"at once":                    {"dead", []ledger.Event{policy("c", new(time.Duration))}, []FenceDue{{Driver: "d", Class: "c"}}},
		"in a minute":                {"dead", []ledger.Event{policy("c", new(time.Minute))}, []FenceDue{{Driver: "d", Class: "c", Left: time.Minute}}},
		"no policy":                  {"dead", nil, nil},
		"no class":                   {"dead", []ledger.Event{policy("", new(time.Duration))}, nil},
		"no time":                    {"dead", []ledger.Event{policy("c", nil)}, nil},
		"never":                      {"dead", []ledger.Event{policy("c", new(never))}, nil},
		"it is cut off":              {"dead", []ledger.Event{policy("c", new(time.Duration)), nodeAs("dead", silent, using, func(n *ledger.NodeState) { n.CutOff = []string{"d"} })}, nil},
		"nothing is there":           {"dead", []ledger.Event{policy("c", new(time.Duration)), nodeAs("dead", silent)}, nil},
		"it is Ready":                {"well", []ledger.Event{policy("c", new(time.Duration)), madeAt("well")}, nil},
		"out of service":             {"dead", []ledger.Event{policy("c", new(time.Duration)), nodeAs("dead", outOfOrder, using)}, nil},
		"its Node is gone":           {"dead", append([]ledger.Event{policy("c", new(time.Duration))}, gone...), nil},
		"nobody knows it":            {"nowhere", []ledger.Event{policy("c", new(time.Duration))}, nil},
		"of two drivers, in order":   {"dead", append([]ledger.Event{policy("c", new(time.Duration))}, twoDrivers...), []FenceDue{{Driver: "a", Class: "c"}, {Driver: "d", Class: "c"}}},
		"of two, and one has a time": {"dead", twoDrivers, []FenceDue{{Driver: "a", Class: "c"}}},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		got := NetworkFencesDue(p.snapshot, p.snapshot.Node(test.node), auditTime)
		if len(got) != len(test.want) {
			t.Errorf("%s: %+v", name, got)
			continue
		}
		for i := range got {
			if got[i].Driver != test.want[i].Driver || got[i].Class != test.want[i].Class || got[i].Left != test.want[i].Left || got[i].Brake.On {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

// After its boot, or when its moorage-node has looked since and found nothing of the driver.
func TestMayUnfenceMachine(t *testing.T) {
	cut := CutMachine{Driver: "d", Node: "well", NodeUID: "w2", SystemUUID: "m", BootID: "b"}
	was := func(change func(*CutMachine)) CutMachine {
		m := cut
		change(&m)
		return m
	}
	asked1 := was(func(m *CutMachine) { m.Look, m.LookSince, m.LookWord = 1, 40, "word" })
	since40 := func(n *ledger.NodeState) { n.Version, n.ReadySince = "8", 40 }
	node := func(changes ...func(*ledger.NodeState)) ledger.Event { return again(append(changes, since40)...) }
	word := func(changes ...func(*ledger.NodeWord)) []ledger.Event {
		return []ledger.Event{node(), says(changes...)}
	}
	clone := nodeAs("third", ofMachine("m", "x"))
	mounts := func(w *ledger.NodeWord) { finds(w); w.Mounted = w.Has }
	otherDriver := func(w *ledger.NodeWord) { w.Has = []ledger.VolumeID{{Driver: "e", Handle: "h"}} }
	for name, test := range map[string]struct {
		machine CutMachine
		facts   []ledger.Event
		after   time.Duration
		want    Unfencing
	}{
		"another boot":                         {was(func(m *CutMachine) { m.BootID = "a" }), []ledger.Event{node()}, 0, MayUnfence},
		"another boot, and records":            {was(func(m *CutMachine) { m.BootID = "a" }), word(finds), 0, MayUnfence},
		"another boot, and mounted there":      {was(func(m *CutMachine) { m.BootID = "a" }), word(mounts), 0, StaysFenced},
		"mounted, in a word of before":         {was(func(m *CutMachine) { m.BootID = "a" }), word(mounts, ofBoot("a")), 0, MayUnfence},
		"another boot, and not Ready":          {was(func(m *CutMachine) { m.BootID = "a" }), []ledger.Event{node(silent)}, 0, StaysFenced},
		"another boot, of a clone":             {was(func(m *CutMachine) { m.BootID = "a"; m.Look, m.LookSince, m.LookWord = 1, 40, "word" }), append(word(hasLooked), clone), 0, StaysFenced},
		"another Node":                         {was(func(m *CutMachine) { m.NodeUID, m.BootID = "w", "a" }), []ledger.Event{node()}, 0, StaysFenced},
		"another machine":                      {was(func(m *CutMachine) { m.SystemUUID, m.BootID = "z", "a" }), []ledger.Event{node()}, 0, StaysFenced},
		"another machine, and it has looked":   {was(func(m *CutMachine) { m.SystemUUID, m.Look, m.LookSince, m.LookWord = "z", 1, 40, "word" }), word(hasLooked), 0, StaysFenced},
		"no machine was said":                  {was(func(m *CutMachine) { m.SystemUUID, m.BootID = "", "a" }), []ledger.Event{node()}, 0, StaysFenced},
		"no machine is said":                   {was(func(m *CutMachine) { m.SystemUUID, m.BootID = "", "a" }), []ledger.Event{node(ofMachine("", "b"))}, 0, StaysFenced},
		"no boot was said":                     {was(func(m *CutMachine) { m.BootID = "" }), []ledger.Event{node()}, 0, StaysFenced},
		"no boot is said":                      {cut, []ledger.Event{node(ofMachine("m", ""))}, 0, StaysFenced},
		"neither was":                          {was(func(m *CutMachine) { m.BootID = "" }), []ledger.Event{node(ofMachine("m", ""))}, 0, StaysFenced},
		"the same boot, nobody answers":        {cut, []ledger.Event{node()}, 0, StaysFenced},
		"it can be asked":                      {cut, word(), 0, AskBeforeUnfencing},
		"never asked, by all else":             {was(func(m *CutMachine) { m.LookSince, m.LookWord = 40, "word" }), word(hasLooked), 0, AskBeforeUnfencing},
		"asked in another outage":              {was(func(m *CutMachine) { m.Look, m.LookSince, m.LookWord = 1, 39, "word" }), word(hasLooked), 0, AskBeforeUnfencing},
		"its NodeMountReport was made again":   {was(func(m *CutMachine) { m.Look, m.LookSince, m.LookWord = 1, 40, "before" }), word(hasLooked), 0, AskBeforeUnfencing},
		"it has looked, and finds nothing":     {asked1, word(hasLooked), 0, MayUnfence},
		"it has not looked":                    {asked1, word(asked), 0, StaysFenced},
		"it finds a volume of the driver":      {asked1, word(hasLooked, finds), 0, StaysFenced},
		"it finds one of another driver":       {asked1, word(hasLooked, otherDriver), 0, MayUnfence},
		"it can't read everything":             {asked1, word(hasLooked, partly), 0, StaysFenced},
		"it can't read a record":               {asked1, word(hasLooked, func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "pv"}} }), 0, StaysFenced},
		"it has looked, and owes an answer":    {asked1, word(func(w *ledger.NodeWord) { w.Look, w.Looked = 2, 1 }), LookPatience, StaysFenced},
		"found by a word of another boot":      {asked1, word(hasLooked, finds, ofBoot("a")), 0, StaysFenced},
		"nobody answers, and it was asked":     {asked1, word(hasLooked, ofBoot("a")), 0, StaysFenced},
		"the same boot, and the node is gone":  {asked1, append(word(hasLooked), ledger.NodeGone{Name: "well"}), 0, StaysFenced},
		"of a node that nobody knows":          {was(func(m *CutMachine) { m.Node = "nowhere" }), nil, 0, StaysFenced},
		"the same boot, and it is not Ready":   {asked1, []ledger.Event{node(silent), says(hasLooked)}, 0, StaysFenced},
		"it may have two, and found the other": {was(func(m *CutMachine) { m.Driver, m.Look, m.LookSince, m.LookWord = "e", 1, 40, "word" }), word(hasLooked, finds), 0, MayUnfence},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		if got := MayUnfenceMachine(p.snapshot, test.machine, auditTime.Add(test.after)); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

func TestWhatIsCutOff(t *testing.T) {
	cut := func(drivers ...string) ledger.Event {
		return nodeAs("well", func(n *ledger.NodeState) { n.CutOff = drivers })
	}
	policy := ledger.Policy{Name: "p", Version: "1", Driver: "d", NetworkFence: ledger.NetworkFence{Class: "c"}}
	other := ledger.Policy{Name: "e", Version: "1", Driver: "e", NetworkFence: ledger.NetworkFence{Class: "c"}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"it is cut off":            {[]ledger.Event{cut("d"), policy}, true},
		"from another storage":     {[]ledger.Event{cut("e"), policy, other}, false},
		"the policy has no class":  {[]ledger.Event{cut("d")}, false},
		"it is not":                {[]ledger.Event{policy}, false},
		"cut off, and not Ready":   {[]ledger.Event{nodeAs("well", silent, func(n *ledger.NodeState) { n.CutOff = []string{"d"} }), policy}, false},
		"from both, needs the one": {[]ledger.Event{cut("d", "e"), policy, other}, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		w := evaluation{snapshot: p.snapshot, node: "well", now: auditTime, request: Request{Needs: []Need{{Volume: disk, Name: "data"}}}}
		got := w.cutOff()
		if len(got) > 0 != test.want || test.want && (len(got) != 1 || got[0].Code != NodeFenced || got[0].Volume != disk || got[0].Claim != "data" || got[0].Node != "well" || got[0].Driver != "d") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
