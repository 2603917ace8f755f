// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func ofMachine(machine, boot string) func(*ledger.NodeState) {
	return func(n *ledger.NodeState) { n.SystemUUID, n.BootID = machine, boot }
}

// The same boot's new Node does not tell about use.
func again(changes ...func(*ledger.NodeState)) ledger.Event {
	made := func(n *ledger.NodeState) { n.UID, n.Version, n.SystemUUID, n.BootID = "w2", "7", "m", "b" }
	return nodeAs("well", append([]func(*ledger.NodeState){made}, changes...)...)
}

func inDoubt(more ...ledger.Event) []ledger.Event {
	return append([]ledger.Event{nodeAs("well", ofMachine("m", "b"), using), madeAt("well"), again()}, more...)
}

func says(changes ...func(*ledger.NodeWord)) ledger.Event {
	w := ledger.NodeWord{Node: "well", UID: "word", Version: "1", NodeUID: "w2", BootID: "b", Whole: true}
	for _, change := range changes {
		change(&w)
	}
	return w
}

func finds(w *ledger.NodeWord) { w.Has = []ledger.VolumeID{disk} }

// Without moorage-node's report of that boot the use is unknown.
func TestUsageInDoubt(t *testing.T) {
	left := func(p *ledger.VolumeOnNode) { p.Left = true }
	for name, test := range map[string]struct {
		arbiter Arbiter
		facts   []ledger.Event
		change  func(*ledger.VolumeOnNode)
		want    usage
	}{
		"it finds nothing":                   {Arbiter{}, inDoubt(says()), nil, usageNone},
		"it finds the volume":                {Arbiter{}, inDoubt(says(finds)), nil, usageStaged},
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
		"somebody has asked, and it finds":   {Arbiter{}, []ledger.Event{madeAt("well"), nodeAs("well", func(n *ledger.NodeState) { n.UID, n.BootID = "w2", "b" }), says(finds, func(w *ledger.NodeWord) { w.Looked = 1 })}, func(p *ledger.VolumeOnNode) { p.Proof.Look = 1 }, usageStaged},
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

// Only in Standalone mode, with a VolumeAttachment, at a Ready node of the possible machine and boot.
func TestCouldLook(t *testing.T) {
	none := func(*ledger.Volume, *ledger.VolumeOnNode) {}
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	for name, test := range map[string]struct {
		arbiter Arbiter
		hold    ledger.Hold
		facts   []ledger.Event
		change  func(*ledger.Volume, *ledger.VolumeOnNode)
		want    bool
	}{
		"it can":                       {Arbiter{}, ledger.Hold{}, inDoubt(), none, true},
		"beside another controller":    {Arbiter{Cooperative: true}, ledger.Hold{}, inDoubt(), none, false},
		"the node is not Ready":        {Arbiter{}, ledger.Hold{}, inDoubt(again(silent, func(n *ledger.NodeState) { n.Version = "8" })), none, false},
		"nothing is in doubt":          {Arbiter{}, ledger.Hold{}, []ledger.Event{nodeAs("well", ofMachine("m", "b")), madeAt("well")}, none, false},
		"it may have been left there":  {Arbiter{}, ledger.Hold{}, inDoubt(), func(_ *ledger.Volume, p *ledger.VolumeOnNode) { p.Left = true }, false},
		"another machine is there":     {Arbiter{}, ledger.Hold{}, inDoubt(again(ofMachine("z", "b"), func(n *ledger.NodeState) { n.Version = "8" })), none, false},
		"the hold tells of that boot":  {Arbiter{}, ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}, []ledger.Event{again(), madeAt("well")}, none, true},
		"it needs no attachment":       {Arbiter{}, ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}, []ledger.Event{again(), madeAt("well")}, func(v *ledger.Volume, _ *ledger.VolumeOnNode) { v.ID = iscsi }, false},
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

// A node without a systemUUID, or with another boot, may be another machine.
func TestOfAnotherMachine(t *testing.T) {
	told := ledger.Hold{NodeUID: "old", SystemUUID: "m", BootID: "b"}
	for name, test := range map[string]struct {
		machine, boot string
		hold          ledger.Hold
		is, may       bool
	}{
		"the same boot":           {"m", "b", told, false, false},
		"another boot":            {"m", "c", told, false, false}, // that boot is over
		"its boot is not said":    {"m", "", told, false, false},
		"another machine":         {"z", "b", told, true, true},
		"its machine is not said": {"", "b", told, false, true},
		"nothing is said":         {"", "", told, false, true},
		"no machine is told":      {"z", "b", ledger.Hold{NodeUID: "old", BootID: "b"}, false, false},
		"of this Node":            {"m", "b", ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}, false, false},
		"no hold":                 {"z", "c", ledger.Hold{}, false, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, madeAt("well"), nodeAs("well", ofMachine(test.machine, test.boot)))
		if got := ofAnotherMachine(p.snapshot, p.volume, p.at("well")); got != test.is {
			t.Errorf("%s: it is another machine: %t", name, got)
		}
		if got := mayBeOfAnotherMachine(p.snapshot, p.volume, p.at("well")); got != test.may {
			t.Errorf("%s: it may be another machine: %t", name, got)
		}
	}
}

func isUnknown(s ledger.Snapshot, v ledger.VolumeID, n ledger.NodeName) bool {
	return s.IsUnknown(s.Volume(v), s.Volume(v).OnNode(n))
}
