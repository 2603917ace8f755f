// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

func ledgerOf(nodes ...NodeState) *Ledger {
	l := New()
	for _, n := range nodes {
		l.Apply(time.Unix(1000, 0), n)
	}
	l.Apply(time.Unix(1000, 0), Complete{})
	return l
}

// The Node is gone or another, and its boot may last.
func TestGrantedForANodeBefore(t *testing.T) {
	is := func(change func(*NodeState)) []NodeState {
		n := NodeState{Name: "n", UID: "u", Version: "1", SystemUUID: "m", BootID: "b", Ready: ReadyTrue, Reporting: true}
		change(&n)
		return []NodeState{n}
	}
	same := func(*NodeState) {}
	told := func(change func(*Hold)) *Hold {
		h := Hold{Node: "n", NodeUID: "u", SystemUUID: "m", BootID: "b"}
		change(&h)
		return &h
	}
	asIs := func(*Hold) {}
	for name, test := range map[string]struct {
		nodes []NodeState
		hold  *Hold
		gone  bool
		want  bool
	}{
		"this Node":                         {is(same), told(asIs), false, false},
		"another Node":                      {is(func(n *NodeState) { n.UID = "v" }), told(asIs), false, true},
		"another Node, and another boot":    {is(func(n *NodeState) { n.UID, n.BootID = "v", "c" }), told(asIs), false, false},
		"another machine":                   {is(func(n *NodeState) { n.SystemUUID = "z" }), told(asIs), false, true},
		"another machine, and another boot": {is(func(n *NodeState) { n.SystemUUID, n.BootID = "z", "c" }), told(asIs), false, true},
		"the Node names no machine":         {is(func(n *NodeState) { n.SystemUUID = "" }), told(asIs), false, false},
		"the hold names none":               {is(same), told(func(h *Hold) { h.SystemUUID = "" }), false, false},
		"the Node is gone":                  {is(same), told(asIs), true, true},
		"nobody knows it":                   {nil, told(asIs), false, true},
		"no hold":                           {is(same), nil, false, false},
		"a hold of no node":                 {nil, told(func(h *Hold) { h.Node = "" }), false, false},
		"a hold of no Node":                 {is(same), told(func(h *Hold) { h.NodeUID = "" }), false, false},
		"a hold of no boot":                 {is(func(n *NodeState) { n.UID = "v" }), told(func(h *Hold) { h.BootID = "" }), false, false},
	} {
		l := ledgerOf(test.nodes...)
		if test.gone {
			l.Apply(time.Unix(1000, 0), proofAttachment(edge, "n", "a", "1")) // so that something is known of the node
			l.Apply(time.Unix(1000, 0), NodeGone{Name: "n"})
		}
		if got := l.Snapshot().GrantedBefore(test.hold); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAnotherBootOrMachine(t *testing.T) {
	node := func(machine, boot string) *Node {
		return &Node{Exists: true, NodeState: NodeState{SystemUUID: machine, BootID: boot}}
	}
	for name, test := range map[string]struct {
		n             *Node
		f             Fence
		boot, machine bool
	}{
		"the same":            {node("m", "b"), Fence{SystemUUID: "m", BootID: "b"}, false, false},
		"others":              {node("z", "c"), Fence{SystemUUID: "m", BootID: "b"}, true, true},
		"the Node says none":  {node("", ""), Fence{SystemUUID: "m", BootID: "b"}, false, false},
		"the entry says none": {node("z", "c"), Fence{}, false, false},
		"there is no Node":    {nil, Fence{SystemUUID: "m", BootID: "b"}, false, false},
	} {
		if got := anotherBoot(test.n, test.f); got != test.boot {
			t.Errorf("%s: another boot: %t", name, got)
		}
		if got := test.f.Boot().IsOfAnother(test.n); got != test.machine {
			t.Errorf("%s: another machine: %t", name, got)
		}
	}
}

// The hold's machine, or else its Node's, if it concerns the present attachment.
func TestDoubtOfWhatWasTaken(t *testing.T) {
	iscsi := VolumeID{"kubernetes.io/iscsi", "h"}
	entry := func(change func(*Fence)) Fence {
		f := Fence{Node: "n", NodeUID: "u", SystemUUID: "m", BootID: "b", Attachment: proofUID("a"), InUse: true}
		change(&f)
		return f
	}
	same := func(*Fence) {}
	node := func(machine, boot string) NodeState {
		return NodeState{Name: "n", UID: "u", Version: "1", SystemUUID: machine, BootID: boot, Ready: ReadyTrue, Reporting: true}
	}
	attached := proofAttachment(edge, "n", "a", "1")
	for name, test := range map[string]struct {
		volume VolumeID
		facts  []Event
		hold   Hold
		want   bool
		at     [2]string
	}{
		"as it is":                         {edge, []Event{node("m", "b"), attached}, Hold{Fences: []Fence{entry(same)}}, true, [2]string{"m", "b"}},
		"written before machines were":     {edge, []Event{node("m", "b"), attached}, Hold{Fences: []Fence{entry(func(f *Fence) { f.SystemUUID = "" })}}, true, [2]string{"", "b"}},
		"before, of another Node":          {edge, []Event{node("m", "b"), attached}, Hold{Fences: []Fence{entry(func(f *Fence) { f.SystemUUID, f.NodeUID = "", "v" })}}, true, [2]string{"", "b"}},
		"of another machine by now":        {edge, []Event{node("z", "b"), attached}, Hold{Fences: []Fence{entry(same)}}, true, [2]string{"m", "b"}},
		"its boot is over":                 {edge, []Event{node("m", "c"), attached}, Hold{Fences: []Fence{entry(same)}}, false, [2]string{}},
		"another boot of another machine":  {edge, []Event{node("z", "c"), attached}, Hold{Fences: []Fence{entry(same)}}, true, [2]string{"m", "b"}},
		"of another boot, attached anew":   {edge, []Event{node("z", "c"), attached}, Hold{Fences: []Fence{entry(func(f *Fence) { f.Attachment = proofUID("b") })}}, false, [2]string{}},
		"in this boot, attached anew":      {edge, []Event{node("m", "b"), attached}, Hold{Fences: []Fence{entry(func(f *Fence) { f.Attachment = proofUID("b") })}}, true, [2]string{"m", "b"}},
		"of another boot, left there":      {edge, []Event{node("z", "c")}, Hold{Node: "n", Stays: true, Fences: []Fence{entry(func(f *Fence) { f.Attachment = "" })}}, true, [2]string{"m", "b"}},
		"of another boot, held there":      {iscsi, []Event{node("z", "c")}, Hold{Node: "n", Fences: []Fence{entry(func(f *Fence) { f.Attachment = "" })}}, true, [2]string{"m", "b"}},
		"of another boot, and not held":    {iscsi, []Event{node("z", "c"), NodeState{Name: "n", UID: "u", Version: "2", SystemUUID: "z", BootID: "c", Reporting: true, Reported: []VolumeID{iscsi}}}, Hold{Fences: []Fence{entry(func(f *Fence) { f.Attachment = "" })}}, false, [2]string{}},
		"it was not in use":                {edge, []Event{node("m", "b"), attached}, Hold{Fences: []Fence{entry(func(f *Fence) { f.InUse = false })}}, false, [2]string{}},
		"granted for a Node before":        {edge, []Event{node("m", "b"), attached}, Hold{Node: "n", NodeUID: "v", SystemUUID: "m", BootID: "b"}, true, [2]string{"m", "b"}},
		"granted, and it is not there":     {edge, []Event{node("m", "b"), NodeState{Name: "n", UID: "u", Version: "2", SystemUUID: "m", BootID: "b", Reporting: true, Reported: []VolumeID{edge}}}, Hold{Node: "n", NodeUID: "v", SystemUUID: "m", BootID: "b"}, false, [2]string{}},
		"granted, and nothing is anywhere": {edge, []Event{node("m", "b"), proofAttachment(edge, "o", "a", "1")}, Hold{Node: "n", NodeUID: "v", SystemUUID: "m", BootID: "b"}, false, [2]string{}},
		"granted, and taken, another boot": {edge, []Event{node("z", "c"), attached}, Hold{Node: "n", NodeUID: "v", SystemUUID: "m", BootID: "b", Fences: []Fence{entry(func(f *Fence) { f.SystemUUID, f.BootID = "y", "y" })}}, true, [2]string{OtherMachine, ""}},
	} {
		l := ledgerOf()
		for _, e := range test.facts {
			l.Apply(time.Unix(1000, 0), e)
		}
		test.hold.Version = "1"
		l.Apply(time.Unix(1000, 0), HoldSeen{Volume: test.volume, Hold: test.hold})
		l.Apply(time.Unix(1000, 0), TookOver{})
		machine, boot := unknownAt(l, test.volume, "n")
		if isUnknown(l, test.volume, "n") != test.want || [2]string{machine, boot} != test.at {
			t.Errorf("%s: doubted: %t, at %q in %q", name, isUnknown(l, test.volume, "n"), machine, boot)
		}
	}
}

// The machine may have booted, or the Node was made again after Complete.
func TestTakenIsLookedAtAgain(t *testing.T) {
	taken := HoldSeen{Volume: edge2, Hold: Hold{Version: "1", Fences: []Fence{{Node: "n", NodeUID: "q", SystemUUID: "q", BootID: "q"}}}}
	node := func(version, uid, machine, boot string) NodeState {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: machine, BootID: boot, Ready: ReadyTrue, Reporting: true}
	}
	for name, test := range map[string]struct {
		complete bool
		was, is  NodeState
		want     bool
	}{
		"nothing has changed":           {true, node("1", "u", "m", "b"), node("2", "u", "m", "b"), false},
		"another boot":                  {true, node("1", "u", "m", "b"), node("2", "u", "m", "c"), true},
		"another boot, another machine": {true, node("1", "u", "m", "b"), node("2", "u", "z", "c"), true},
		"made again":                    {true, node("1", "u", "m", "b"), node("2", "v", "m", "b"), true},
		"made again, before all seen":   {false, node("1", "u", "m", "b"), node("2", "v", "m", "b"), false},
		"it names its boot":             {true, node("1", "u", "m", ""), node("2", "u", "m", "b"), false},
		"it names none any more":        {true, node("1", "u", "m", "b"), node("2", "u", "m", ""), false},
		"another machine, no boot":      {true, node("1", "u", "m", "b"), node("2", "u", "z", ""), false},
	} {
		l := New()
		at := time.Unix(1000, 0)
		l.Apply(at, test.was)
		l.Apply(at, proofAttachment(edge, "n", "a", "1"))
		l.Apply(at, proofAttachment(edge2, "o", "b", "1"))
		l.Apply(at, taken)
		if test.complete {
			l.Apply(at, Complete{})
		}
		if touched := l.Apply(at, test.is); slices.Contains(touched.Volumes, edge2) != test.want {
			t.Errorf("%s: %v", name, touched.Volumes)
		}
	}
}

// systemUUID or providerID differs, if both states have one.
func TestSeenMachines(t *testing.T) {
	then, now := time.Unix(1000, 0), time.Unix(1001, 0)
	is := func(machine, provider string) *NodeState {
		return &NodeState{SystemUUID: machine, ProviderID: provider}
	}
	for name, test := range map[string]struct {
		was, is *NodeState
		before  time.Time
		at      time.Time
		want    bool
	}{
		"the same":               {is("m", "p"), is("m", "p"), then, then, false},
		"another systemUUID":     {is("m", "p"), is("z", "p"), then, now, true},
		"another by the cloud":   {is("m", "p"), is("m", "q"), then, now, true},
		"the cloud says now":     {is("m", ""), is("m", "q"), then, then, false},
		"the cloud says no more": {is("m", "p"), is("m", ""), then, then, false},
		"none is named":          {is("m", "p"), is("", "p"), then, time.Time{}, true},
		"it is seen first":       {is("", ""), is("m", "p"), time.Time{}, now, true},
		"the same, not dated":    {is("m", "p"), is("m", "p"), time.Time{}, now, false},
		"none, and none was":     {is("", "p"), is("", "p"), time.Time{}, time.Time{}, false},
		"none, another cloud's":  {is("", "p"), is("", "q"), time.Time{}, time.Time{}, true},
	} {
		n := &Node{MachineAt: test.before}
		if got := n.seeMachine(test.was, test.is, now); got != test.want || !n.MachineAt.Equal(test.at) {
			t.Errorf("%s: %t, since %s", name, got, n.MachineAt)
		}
	}
}

func TestBootEndsADoubtOnceACloneIsGone(t *testing.T) {
	v := VolumeID{"d", "h"}
	node := func(name NodeName, version, uid, machine, boot string, lists ...VolumeID) NodeState {
		return NodeState{Name: name, UID: uid, Version: version, SystemUUID: machine, BootID: boot, Ready: ReadyTrue, Reporting: true, Reported: lists}
	}
	for name, last := range map[string]Event{
		"its Node is gone":         NodeGone{Name: "clone"},
		"it is of another machine": node("clone", "2", "c", "other", "cb"),
	} {
		l := New()
		for _, e := range []Event{
			node("clone", "1", "c", "m", "cb"), proofAttachment(v, "n", "a", "1"), node("n", "1", "u", "m", "b", v), NodeGone{Name: "n"},
			node("n", "3", "u2", "m", "b"), node("n", "4", "u2", "m", "b2"),
		} {
			l.Apply(start, e)
		}
		if !isUnknown(l, v, "n") {
			t.Errorf("%s: nothing is doubted before", name)
		}
		touched := l.Apply(start, last)
		if isUnknown(l, v, "n") || !slices.Contains(touched.Volumes, v) {
			t.Errorf("%s: doubted: %t, touched: %t", name, isUnknown(l, v, "n"), slices.Contains(touched.Volumes, v))
		}
	}
}

func TestBootIsTheNodes(t *testing.T) {
	for name, test := range map[string]struct {
		boot Boot
		is   NodeState
		want bool
	}{
		"the same":                   {Boot{"m", "b"}, NodeState{SystemUUID: "m", BootID: "b"}, true},
		"another machine":            {Boot{"m", "b"}, NodeState{SystemUUID: "z", BootID: "b"}, false},
		"another boot":               {Boot{"m", "b"}, NodeState{SystemUUID: "m", BootID: "c"}, false},
		"no machine is known":        {Boot{"", "b"}, NodeState{BootID: "b"}, false},
		"no boot is known":           {Boot{"m", ""}, NodeState{SystemUUID: "m"}, false},
		"neither is":                 {Boot{}, NodeState{}, false},
		"the Node names no machine":  {Boot{"m", "b"}, NodeState{BootID: "b"}, false},
		"none is, and the Node does": {Boot{"", "b"}, NodeState{SystemUUID: "m", BootID: "b"}, false},
	} {
		if got := test.boot.Is(&Node{NodeState: test.is}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (Boot{"m", "b"}).Is(nil) {
		t.Error("the boot of no node")
	}
}

// With a clone, no boot of the machine tells.
func TestUnknownInSeveralBoots(t *testing.T) {
	hold := HoldSeen{edge, Hold{Version: "1", Node: "n", NodeUID: "u", SystemUUID: "m", BootID: "granted",
		Fences: []Fence{{Node: "n", NodeUID: "v", SystemUUID: "m", BootID: "fenced", Attachment: proofUID("a"), InUse: true}}}}
	node := func(name NodeName, boot string) Event {
		return NodeState{Name: name, UID: "w", Version: "1", SystemUUID: "m", BootID: boot, Ready: ReadyTrue, Reporting: true}
	}
	for name, test := range map[string]struct {
		then []Event
		want []string
		here bool
	}{
		"no Node":                     {nil, []string{"granted", "fenced"}, false},
		"a Node that names no boot":   {[]Event{node("n", "")}, []string{"granted", "fenced"}, false},
		"the boot of the grant":       {[]Event{node("n", "granted")}, []string{"granted"}, true},
		"the boot of the entry":       {[]Event{node("n", "fenced")}, []string{"fenced"}, true},
		"a third boot":                {[]Event{node("n", "third")}, nil, false},
		"a third boot after one":      {[]Event{node("n", "granted"), NodeGone{"n"}, node("n", "third")}, nil, false},
		"a third boot beside a clone": {[]Event{node("clone", "z"), node("n", "third")}, []string{"granted", "fenced"}, false},
	} {
		l := New()
		l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: edge})
		for _, e := range append([]Event{proofAttachment(edge, "n", "a", "1"), hold, Complete{}}, test.then...) {
			l.Apply(start, e)
		}
		s := l.Snapshot()
		var got []string
		for _, b := range s.Unknown(s.Volume(edge), s.Volume(edge).OnNode("n")) {
			got = append(got, b.BootID)
		}
		if !slices.Equal(got, test.want) || s.IsUnknownHere(s.Volume(edge), s.Volume(edge).OnNode("n")) != test.here {
			t.Errorf("%s: %q", name, got)
		}
	}
}
