// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

func machineAs(version, uid, machine, boot string, changes ...func(*NodeState)) NodeState {
	n := NodeState{Name: "n", UID: uid, Version: version, Ready: ReadyTrue, Managed: true, Reporting: true, SystemUUID: machine, BootID: boot}
	for _, change := range changes {
		change(&n)
	}
	return n
}

// The same machine has the same systemUUID, alone, and the same providerID. Another machine's boot ends no
// mounts.
func TestAnotherBootOfTheSameMachine(t *testing.T) {
	v := VolumeID{"d", "h"}
	cloud := func(id string) func(*NodeState) { return func(n *NodeState) { n.ProviderID = id } }
	clone := NodeState{Name: "clone", UID: "c", Version: "1", SystemUUID: "m1", BootID: "x"}
	for name, test := range map[string]struct {
		before []Event
		was    NodeState
		then   []Event
		doubt  bool
	}{
		"another boot of it":                 {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b2")}, false},
		"the same boot":                      {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b1")}, true},
		"another machine, the Node is new":   {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m2", "b2")}, true},
		"another machine, the Node stays":    {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m2", "b2")}, true},
		"which boots anew":                   {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m2", "b2"), machineAs("4", "u", "m2", "b3")}, true},
		"and the first one comes back":       {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m2", "b2"), machineAs("4", "u", "m1", "b3")}, true},
		"an ordinary boot":                   {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m1", "b2")}, false},
		"it does not say its machine":        {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "", "b2")}, true},
		"it never said its machine":          {nil, machineAs("2", "u", "", "b1"), []Event{machineAs("3", "w", "", "b2")}, false},
		"a clone of it":                      {[]Event{clone}, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b2")}, true},
		"a clone of it that was there":       {[]Event{clone, NodeState{Name: "clone", UID: "c", Version: "2", SystemUUID: "m1", BootID: "x", InUse: []VolumeID{{"d", "other"}}, Reporting: true}, NodeGone{"clone"}}, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b2")}, true},
		"a clone of it, an ordinary boot":    {[]Event{clone}, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m1", "b2")}, false},
		"the cloud calls it the same":        {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2", cloud("i-1"))}, false},
		"the cloud says nothing yet":         {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2")}, false},
		"the cloud calls it something else":  {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2", cloud("i-2"))}, true},
		"which boots anew, the cloud's word": {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2", cloud("i-2")), machineAs("4", "w", "m1", "b3", cloud("i-2"))}, true},
	} {
		l, now := New(), time.Unix(1000, 0)
		test.was.InUse, test.was.Reported = []VolumeID{v}, []VolumeID{v}
		events := append([]Event{
			PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: v, Access: AccessNode},
			Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", PersistentVolume: "pv", Attached: true},
		}, test.before...)
		for _, e := range append(append(events, test.was), test.then...) {
			if n, ok := e.(NodeState); ok && n.UID == "u" {
				n.Reported = []VolumeID{v} // a Node that stays still names it
				e = n
			}
			l.Apply(now, e)
		}
		if got := isUnknown(l, v, "n"); got != test.doubt {
			t.Errorf("%s: doubted: %t", name, got)
		}
		if at, boot := unknownAt(l, v, "n"); (at == "") == test.doubt || (boot == "") == test.doubt {
			t.Errorf("%s: doubted at %q, boot %q", name, at, boot)
		}
	}
}

func TestBootOver(t *testing.T) {
	l, now := New(), time.Unix(1000, 0)
	l.Apply(now, machineAs("2", "u", "m1", "b2"))
	for name, test := range map[string]struct {
		machine, boot string
		want          bool
	}{
		"another boot of it":      {"m1", "b1", true},
		"this boot":               {"m1", "b2", false},
		"of another machine":      {"m2", "b1", false},
		"it was never said which": {"", "b1", true},
		"no boot was said":        {"m1", "", false},
	} {
		s := l.Snapshot()
		if got := s.BootOver(s.Node("n"), Boot{test.machine, test.boot}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if s := l.Snapshot(); s.BootOver(s.Node("none"), Boot{"m1", "b1"}) {
		t.Error("a node that nobody knows says nothing")
	}
	l.Apply(now, NodeState{Name: "clone", UID: "c", Version: "1", SystemUUID: "m1", BootID: "x"})
	if s := l.Snapshot(); s.BootOver(s.Node("n"), Boot{"m1", "b1"}) {
		t.Error("a machine that has a clone says nothing by its systemUUID")
	}
}

// Another possible machine or a new process restarts the time.
func TestMachineAt(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0) }
	cloud := func(id string) func(*NodeState) { return func(n *NodeState) { n.ProviderID = id } }
	first := machineAs("2", "u", "m1", "b1", cloud("i-1"))
	for name, test := range map[string]struct {
		then []Event // one a second
		want time.Time
	}{
		"it is seen first":               {nil, at(0)},
		"it goes on, and boots anew":     {[]Event{machineAs("3", "u", "m1", "b2", cloud("i-1"))}, at(0)},
		"its Node is made again":         {[]Event{NodeGone{"n"}, machineAs("3", "w", "m1", "b1", cloud("i-1"))}, at(0)},
		"another one":                    {[]Event{machineAs("3", "u", "m2", "b2")}, at(1)},
		"another one, in a new Node":     {[]Event{NodeGone{"n"}, machineAs("3", "w", "m2", "b2")}, at(2)},
		"and the first one again":        {[]Event{machineAs("3", "u", "m2", "b2"), machineAs("4", "u", "m1", "b1")}, at(2)},
		"one that the cloud calls other": {[]Event{machineAs("3", "u", "m1", "b2", cloud("i-2"))}, at(1)},
		"nobody says which":              {[]Event{machineAs("3", "w", "", "")}, time.Time{}},
		"and then it is said":            {[]Event{machineAs("3", "w", "", ""), machineAs("4", "w", "m1", "b1")}, at(2)},
		"everything has been seen now":   {[]Event{Complete{}}, at(1)},
	} {
		l := New()
		l.Apply(at(-1), Attachment{Name: AttachmentName(VolumeID{"d", "h"}, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", Inline: VolumeID{"d", "h"}})
		l.Apply(at(0), first)
		for i, e := range test.then {
			l.Apply(at(int64(i+1)), e)
		}
		if got := l.Snapshot().Node("n").MachineAt; !got.Equal(test.want) {
			t.Errorf("%s: since %s, want %s", name, got.UTC(), test.want.UTC())
		}
	}
}

// Neither machine's boot ends the first doubt.
func TestDoubtOfTwoMachines(t *testing.T) {
	v := VolumeID{"d", "h"}
	state := func(n NodeState, inUse, reported bool) NodeState {
		if inUse {
			n.InUse = []VolumeID{v}
		}
		if reported {
			n.Reported = []VolumeID{v}
		}
		return n
	}
	second := machineAs("3", "u", "m2", "b2")
	for name, test := range map[string]struct {
		then          []Event
		machine, boot string
		lists         bool
	}{
		"the second one names it as attached, and is made again": {[]Event{state(second, false, true), machineAs("4", "w", "m2", "b2")}, OtherMachine, "", false},
		"it is deleted and made again":                           {[]Event{state(second, false, true), NodeGone{"n"}, machineAs("4", "w", "m2", "b2")}, OtherMachine, "", false},
		"it lists it, and is made again":                         {[]Event{state(second, true, true), machineAs("4", "w", "m2", "b2")}, OtherMachine, "", false},
		"it lists it":                                            {[]Event{state(second, true, true)}, "m1", "b1", true},
		"it neither lists nor names it":                          {[]Event{second, machineAs("4", "w", "m2", "b2")}, "m1", "b1", false},
		"it is taken out by others while it is listed":           {[]Event{state(second, true, true), state(machineAs("4", "u", "m2", "b2"), true, false)}, OtherMachine, "", true},
		"it is taken out while it is not listed":                 {[]Event{state(second, false, true), machineAs("4", "u", "m2", "b2")}, "m1", "b1", false},
		"the first one is made again":                            {[]Event{machineAs("4", "w", "m1", "b1"), machineAs("5", "x", "m1", "b1")}, "m1", "b1", false},
	} {
		l, now := New(), time.Unix(1000, 0)
		l.Apply(now, Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", Inline: v, Attached: true})
		for _, e := range append([]Event{state(machineAs("2", "u", "m1", "b1"), true, true)}, test.then...) {
			l.Apply(now, e)
		}
		if machine, boot := unknownAt(l, v, "n"); machine != test.machine || boot != test.boot {
			t.Errorf("%s: doubted at %q in boot %q", name, machine, boot)
		}
		if got := l.Snapshot().Volume(v).OnNode("n").InUse; got != test.lists {
			t.Errorf("%s: listed: %t", name, got)
		}
	}
}

// The new leader doubts the volumes that the node still reports.
func TestFenceOfTheMachineBefore(t *testing.T) {
	v := VolumeID{"d", "h"}
	for machine, want := range map[string]bool{"m1": true, "m2": false, "": false} {
		l, now := New(), time.Unix(1000, 0)
		n := machineAs("2", "u", "m2", "b2")
		n.Reported = []VolumeID{v}
		for _, e := range []Event{
			Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", Inline: v, Attached: true}, n,
			HoldSeen{v, Hold{Version: "1", Fences: []Fence{{Node: "n", NodeUID: "x", BootID: "b1", SystemUUID: machine, Attachment: "a", Rule: "AfterPodGone", InUse: true}}}},
			TookOver{},
		} {
			l.Apply(now, e)
		}
		if got := isUnknown(l, v, "n"); got != want {
			t.Errorf("by a rule about machine %q: doubted: %t", machine, got)
		}
	}
}

// providerIDs only tell clones apart. The first machine's other boot ends the doubt.
func TestReplacedMachineIsKnownByItsSystemUUID(t *testing.T) {
	node := func(uid, version, machine, provider, boot string, reported, inUse []VolumeID) NodeState {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: machine, BootID: boot, ProviderID: provider,
			Ready: ReadyTrue, Reporting: true, Managed: true, Reported: reported, InUse: inUse}
	}
	v := []VolumeID{edge}
	for name, provider := range map[string][2]string{"without providerIDs": {"", ""}, "with providerIDs": {"cloud://1", "cloud://2"}} {
		t.Run(name, func(t *testing.T) {
			l := New()
			for _, e := range []Event{
				PersistentVolume{Name: "pv", Version: "1", Volume: edge}, proofAttachment(edge, "n", "a", "1"),
				node("u", "1", "m1", provider[0], "b1", v, v), Complete{},
				NodeGone{Name: "n"}, node("w", "9", "m2", provider[1], "c1", nil, nil),
			} {
				l.Apply(start, e)
			}
			if m, b := unknownAt(l, edge, "n"); m != "m1" || b != "b1" {
				t.Errorf("replaced: doubted at machine %q in boot %q", m, b)
			}
			for _, e := range []Event{NodeGone{Name: "n"}, node("x", "19", "m1", provider[0], "b2", nil, nil)} {
				l.Apply(start, e)
			}
			if isUnknown(l, edge, "n") {
				t.Error("the first machine is back in another boot, and nothing ends the doubt")
			}
		})
	}
}

// The clone's Node gets the systemUUID later: that does not end the first machine's boot.
func TestCloneWhoseSystemUUIDIsSaidAfterItsProviderID(t *testing.T) {
	node := func(uid, version, machine, provider, boot string, reporting bool) NodeState {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: machine, BootID: boot, ProviderID: provider,
			Ready: ReadyTrue, Reporting: reporting, Managed: true}
	}
	v := []VolumeID{edge}
	first := node("u", "1", "m1", "cloud://1", "b1", true)
	first.Reported, first.InUse = v, v
	for name, made := range map[string][]Event{
		"with both":                        {node("w", "9", "m1", "cloud://2", "", false)},
		"without a systemUUID":             {node("w", "9", "", "cloud://2", "", false)},
		"without a systemUUID, gone again": {node("w", "9", "", "cloud://2", "", false), NodeGone{"n"}, node("x", "12", "m1", "cloud://2", "", false)},
	} {
		for how, gone := range map[string][]Event{"": {NodeGone{"n"}}, ", its deletion not seen": nil} {
			t.Run(name+how, func(t *testing.T) {
				l := New()
				events := []Event{PersistentVolume{Name: "pv", Version: "1", Volume: edge}, proofAttachment(edge, "n", "a", "1"), first, Complete{}}
				events = append(events, gone...)
				events = append(events, made...)
				last := made[len(made)-1].(NodeState)
				events = append(events, node(last.UID, "19", "m1", "cloud://2", "c1", true))
				for _, e := range events {
					l.Apply(start, e)
				}
				if !isUnknown(l, edge, "n") {
					t.Error("the boot of the first machine counts as over by the word of its clone")
				}
			})
		}
	}
}
