// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func ofMachine(machine, boot string) func(*ledger.NodeState) {
	return func(n *ledger.NodeState) { n.SystemUUID, n.BootID = machine, boot }
}

// again is node well made again by the same boot of the same machine: its list does not tell whether its
// attached volumes are in use.
func again(changes ...func(*ledger.NodeState)) ledger.Event {
	made := func(n *ledger.NodeState) { n.UID, n.Version, n.SystemUUID, n.BootID = "w2", "7", "m", "b" }
	return nodeAs("well", append([]func(*ledger.NodeState){made}, changes...)...)
}

// inDoubt are facts that put the volume in doubt at node well.
func inDoubt(more ...ledger.Event) []ledger.Event {
	return append([]ledger.Event{nodeAs("well", ofMachine("m", "b"), using), madeAt("well"), again()}, more...)
}

// says is moorage-node's report there: it has looked and found nothing.
func says(changes ...func(*ledger.NodeWord)) ledger.Event {
	w := ledger.NodeWord{Node: "well", UID: "word", Version: "1", NodeUID: "w2", BootID: "b", KubeletStarted: 1, Whole: true, Repairs: true}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func finds(w *ledger.NodeWord) { w.Has = []ledger.VolumeID{disk} }
func isCalling(w *ledger.NodeWord) {
	w.Answers = []ledger.UnstageAnswer{{Volume: disk, Number: 1, Result: ledger.UnstageCalling, Unanswered: true}}
}

// For a doubted volume moorage-node's report of the very boot counts. Without it the use is unknown.
func TestUsageInDoubt(t *testing.T) {
	left := func(p *ledger.NodeVolume) { p.Left = true }
	for name, test := range map[string]struct {
		arbiter Arbiter
		facts   []ledger.Event
		change  func(*ledger.NodeVolume)
		want    usage
	}{
		"it finds nothing":                   {Arbiter{}, inDoubt(says()), nil, usageNone},
		"it finds the volume":                {Arbiter{}, inDoubt(says(finds)), nil, usageStaged},
		"a call may yet unstage it":          {Arbiter{}, inDoubt(says(isCalling)), nil, usageStaged},
		"the kubelet lists it by now":        {Arbiter{}, inDoubt(again(func(n *ledger.NodeState) { n.Version, n.InUse = "8", []ledger.VolumeID{disk} }), says()), nil, usageInUse},
		"it says nothing":                    {Arbiter{}, inDoubt(), nil, usageUnknown},
		"it speaks of another boot":          {Arbiter{}, inDoubt(says(func(w *ledger.NodeWord) { w.BootID = "c" })), nil, usageUnknown},
		"it can't read everything":           {Arbiter{}, inDoubt(says(func(w *ledger.NodeWord) { w.Whole = false })), nil, usageUnknown},
		"the node is silent":                 {Arbiter{}, inDoubt(again(silent, func(n *ledger.NodeState) { n.Version = "8" }), says()), nil, usageUnknown},
		"beside another controller":          {Arbiter{Cooperative: true}, inDoubt(says()), nil, usageUnknown},
		"it may have been left there":        {Arbiter{}, inDoubt(says()), left, usageUnknown},
		"nothing is in doubt":                {Arbiter{}, []ledger.Event{nodeAs("well", ofMachine("m", "b")), madeAt("well")}, nil, usageNone},
		"not in doubt, and in use":           {Arbiter{}, []ledger.Event{nodeAs("well", ofMachine("m", "b"), using), madeAt("well")}, nil, usageInUse},
		"the kubelet has not reported":       {Arbiter{}, []ledger.Event{nodeAs("well", func(n *ledger.NodeState) { n.UID, n.Reporting = "w2", false }), madeAt("well")}, nil, usageUnknown},
		"its Node is gone":                   {Arbiter{}, []ledger.Event{madeAt("well"), ledger.NodeGone{Name: "well"}}, nil, usageUnknown},
		"a rule of force is over":            {Arbiter{}, []ledger.Event{madeAt("well"), nodeAs("well", outOfOrder)}, nil, usageFenced},
		"somebody has asked, and it finds":   {Arbiter{}, []ledger.Event{madeAt("well"), nodeAs("well", func(n *ledger.NodeState) { n.UID, n.BootID = "w2", "b" }), says(finds, func(w *ledger.NodeWord) { w.Looked = 1 })}, func(p *ledger.NodeVolume) { p.Proof.Look = 1 }, usageStaged},
		"nobody has asked, and it has found": {Arbiter{}, []ledger.Event{madeAt("well"), nodeAs("well", func(n *ledger.NodeState) { n.UID, n.BootID = "w2", "b" }), says(finds, func(w *ledger.NodeWord) { w.Looked = 1 })}, nil, usageNone},
	} {
		p := plannerOf(t, test.arbiter, "", ledger.Hold{}, test.facts...)
		place := *p.at("well")
		if test.change != nil {
			test.change(&place)
		}
		if got := test.arbiter.evidenceOf(p.snapshot, p.volume, &place, auditTime).usage; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// moorage-node can tell of a doubted volume only at its possible machine and boot, if there is a
// VolumeAttachment to delete, the node is Ready, and the mode is Standalone.
func TestCouldLook(t *testing.T) {
	none := func(*ledger.Volume, *ledger.NodeVolume) {}
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	for name, test := range map[string]struct {
		arbiter Arbiter
		hold    ledger.Hold
		facts   []ledger.Event
		change  func(*ledger.Volume, *ledger.NodeVolume)
		want    bool
	}{
		"it can":                       {Arbiter{}, ledger.Hold{}, inDoubt(), none, true},
		"beside another controller":    {Arbiter{Cooperative: true}, ledger.Hold{}, inDoubt(), none, false},
		"the node is not Ready":        {Arbiter{}, ledger.Hold{}, inDoubt(again(silent, func(n *ledger.NodeState) { n.Version = "8" })), none, false},
		"nothing is in doubt":          {Arbiter{}, ledger.Hold{}, []ledger.Event{nodeAs("well", ofMachine("m", "b")), madeAt("well")}, none, false},
		"it may have been left there":  {Arbiter{}, ledger.Hold{}, inDoubt(), func(_ *ledger.Volume, p *ledger.NodeVolume) { p.Left = true }, false},
		"another machine is there":     {Arbiter{}, ledger.Hold{}, inDoubt(again(ofMachine("z", "b"), func(n *ledger.NodeState) { n.Version = "8" })), none, false},
		"the hold tells of that boot":  {Arbiter{}, ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}, []ledger.Event{again(), madeAt("well")}, none, true},
		"it needs no attachment":       {Arbiter{}, ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}, []ledger.Event{again(), madeAt("well")}, func(v *ledger.Volume, _ *ledger.NodeVolume) { v.ID = iscsi }, false},
		"it is not attached":           {Arbiter{}, ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}, []ledger.Event{again(), dataAt("q", "well", ledger.PodLive)}, none, false},
		"attached by somebody else":    {Arbiter{}, ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}, []ledger.Event{again(), ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}}, none, false},
		"the hold tells of no machine": {Arbiter{}, ledger.Hold{NodeUID: "w", BootID: "b"}, []ledger.Event{again(), madeAt("well")}, none, false},
	} {
		p := plannerOf(t, test.arbiter, "well", test.hold, test.facts...)
		volume, place := *p.volume, *p.at("well")
		test.change(&volume, &place)
		if got := test.arbiter.couldLook(p.snapshot, &volume, &place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Another systemUUID than the hold's means another machine. A node without a systemUUID, or with another
// boot, may be another machine.
func TestOfAnotherMachine(t *testing.T) {
	is := func(machine, boot string) *ledger.Node {
		return &ledger.Node{Exists: true, NodeState: ledger.NodeState{Name: "well", SystemUUID: machine, BootID: boot}}
	}
	told := &ledger.Hold{Node: "well", SystemUUID: "m", BootID: "b"}
	for name, test := range map[string]struct {
		n           *ledger.Node
		h           *ledger.Hold
		is, may     bool
		machine, of string
	}{
		"the same boot":           {is("m", "b"), told, false, false, "m", "b"},
		"another boot":            {is("m", "c"), told, false, true, "m", "b"},
		"its boot is not said":    {is("m", ""), told, false, false, "m", "b"},
		"another machine":         {is("z", "b"), told, true, true, "m", "b"},
		"its machine is not said": {is("", "b"), told, false, true, "m", "b"},
		"nothing is said":         {is("", ""), told, false, true, "m", "b"},
		"there is no Node":        {nil, told, false, false, "m", "b"},
		"no machine is told":      {is("z", "c"), &ledger.Hold{Node: "well", BootID: "b"}, false, false, "", "b"},
		"no boot is told":         {is("m", "c"), &ledger.Hold{Node: "well", SystemUUID: "m"}, false, false, "m", ""},
		"told of another node":    {is("z", "c"), &ledger.Hold{Node: "dead", SystemUUID: "m", BootID: "b"}, false, false, "", ""},
		"no hold":                 {is("z", "c"), nil, false, false, "", ""},
	} {
		v, place := &ledger.Volume{ID: disk, Hold: test.h}, &ledger.NodeVolume{Node: "well"}
		if got := ofAnotherMachine(test.n, v, place); got != test.is {
			t.Errorf("%s: it is another machine: %t", name, got)
		}
		if got := mayBeOfAnotherMachine(test.n, v, place); got != test.may {
			t.Errorf("%s: it may be another machine: %t", name, got)
		}
		if machine, boot := doubtedAt(test.n, v, place); machine != test.machine || boot != test.of {
			t.Errorf("%s: doubted at machine %q, boot %q", name, machine, boot)
		}
	}
}

// A doubted volume is doubted here only if neither this process nor the hold names another machine or boot.
func TestDoubtedHere(t *testing.T) {
	holds := func(h ledger.Hold) *ledger.Hold {
		if h.Node == "" {
			h.Node = "well"
		}
		return &h
	}
	taken := func(n ledger.NodeName, machine, boot string) *ledger.Hold {
		return &ledger.Hold{Node: "third", Fences: []ledger.Fence{{Node: n, SystemUUID: machine, BootID: boot}}}
	}
	for name, test := range map[string]struct {
		seen bool // by this process, of machine m and boot b
		hold *ledger.Hold
		node ledger.NodeName
		want bool
	}{
		"as seen":                            {true, nil, "well", true},
		"as seen, and the hold is elsewhere": {true, holds(ledger.Hold{Node: "third", NodeUID: "o", SystemUUID: "y", BootID: "y"}), "well", true},
		"as seen, and held by that boot":     {true, holds(ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}), "well", true},
		"as seen, and held by another":       {true, holds(ledger.Hold{NodeUID: "w", SystemUUID: "y", BootID: "y"}), "well", false},
		"held by a boot that is over":        {true, holds(ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "y"}), "well", true},
		"as seen, and taken from that boot":  {true, taken("well", "m", "b"), "well", true},
		"as seen, and taken from another":    {true, taken("well", "m", "y"), "well", false},
		"as seen, and taken from elsewhere":  {true, taken("dead", "m", "y"), "well", true},
		"as the hold has it":                 {false, holds(ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}), "well", true},
		"the hold has another boot":          {false, holds(ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "y"}), "well", false},
		"the hold has another machine":       {false, holds(ledger.Hold{NodeUID: "w", SystemUUID: "y", BootID: "b"}), "well", false},
		"the hold has no machine":            {false, holds(ledger.Hold{NodeUID: "w", BootID: "b"}), "well", false},
		"the hold has no boot":               {false, holds(ledger.Hold{NodeUID: "w", SystemUUID: "m"}), "well", false},
		"of a node that nobody knows":        {false, holds(ledger.Hold{Node: "nowhere", NodeUID: "w", SystemUUID: "m", BootID: "b"}), "nowhere", false},
		"nobody tells":                       {false, nil, "well", false},
	} {
		facts := []ledger.Event{again()}
		if test.seen {
			facts = inDoubt()
		}
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, facts...)
		if got := doubtedHere(p.snapshot, &ledger.Volume{ID: disk, Hold: test.hold}, &ledger.NodeVolume{Node: test.node}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	silentHere := plannerOf(t, Arbiter{}, "", ledger.Hold{}, nodeAs("well")) // names neither machine nor boot
	for _, h := range []ledger.Hold{{Node: "well", BootID: ""}, {Node: "well", SystemUUID: ""}} {
		if doubtedHere(silentHere.snapshot, &ledger.Volume{ID: disk, Hold: &h}, &ledger.NodeVolume{Node: "well"}) {
			t.Errorf("where neither the Node nor the hold %+v names a machine", h)
		}
	}
}

// A node's list does not tell of a volume that the hold says was granted for an earlier Node, and that may
// be mounted there.
func TestDoubted(t *testing.T) {
	before := ledger.Hold{Node: "well", NodeUID: "w", SystemUUID: "m", BootID: "b"}
	change := func(f func(*ledger.Hold)) *ledger.Hold {
		h := before
		f(&h)
		return &h
	}
	there := func(p *ledger.NodeVolume) { p.Left = true }
	for name, test := range map[string]struct {
		facts []ledger.Event
		hold  *ledger.Hold
		node  ledger.NodeName
		place func(*ledger.NodeVolume)
		want  bool
	}{
		"as seen":                {inDoubt(), nil, "well", func(*ledger.NodeVolume) {}, true},
		"for a Node before":      {[]ledger.Event{again()}, &before, "well", there, true},
		"for this Node":          {[]ledger.Event{again()}, change(func(h *ledger.Hold) { h.NodeUID = "w2" }), "well", there, false},
		"held elsewhere":         {[]ledger.Event{again(), ledger.NodeGone{Name: "dead"}}, change(func(h *ledger.Hold) { h.Node = "dead" }), "well", there, false},
		"it is not there":        {[]ledger.Event{again()}, &before, "well", func(*ledger.NodeVolume) {}, false},
		"no hold":                {[]ledger.Event{again()}, nil, "well", there, false},
		"the Node is gone":       {[]ledger.Event{again(), dataAt("q", "well", ledger.PodLive), ledger.NodeGone{Name: "well"}}, &before, "well", there, false},
		"nobody knows the node":  {nil, change(func(h *ledger.Hold) { h.Node = "nowhere" }), "nowhere", there, false},
		"of a boot that is over": {[]ledger.Event{again()}, change(func(h *ledger.Hold) { h.BootID = "a" }), "well", there, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		place := ledger.NodeVolume{Node: test.node}
		test.place(&place)
		if got := Doubted(p.snapshot, &ledger.Volume{ID: disk, Hold: test.hold}, &place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
