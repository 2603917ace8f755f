// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

func TestNoWord(t *testing.T) {
	var w *NodeWord
	var n *Node
	if w.Forgot(edge) || w.has(edge) || w.doubtsOf(edge) || n.SaysHas(edge) || n.Looked(1) || (&Node{}).SaysHas(edge) {
		t.Error("nobody says something")
	}
	if w := (&NodeWord{BootID: "a", Has: []VolumeID{edge}}); !(&Node{Word: w}).SaysHas(edge) || (&Node{NodeState: NodeState{BootID: "b"}, Word: w}).SaysHas(edge) {
		t.Error("a word counts only where the Node says no boot, or the same one")
	}
}

// A part of the volume must be there, without a pod's folder.
func TestForgottenRecords(t *testing.T) {
	for name, test := range map[string]struct {
		unread Unread
		of     []VolumeID
		want   bool
	}{
		"by its digest":         {Unread{Driver: "d", Digest: HandleDigest("h"), There: true, Forgotten: true}, nil, true},
		"nothing is there":      {Unread{Driver: "d", Digest: HandleDigest("h"), Forgotten: true}, nil, false},
		"a pod's folder has it": {Unread{Driver: "d", Digest: HandleDigest("h"), There: true}, nil, false},
		"of another volume":     {Unread{Driver: "d", Digest: HandleDigest("i"), There: true, Forgotten: true}, nil, false},
		"by its name":           {Unread{PersistentVolume: "p", There: true, Forgotten: true}, []VolumeID{edge}, true},
		"by a name of another":  {Unread{PersistentVolume: "p", There: true, Forgotten: true}, []VolumeID{edge2}, false},
		"by a name, not there":  {Unread{PersistentVolume: "p", Forgotten: true}, []VolumeID{edge}, false},
	} {
		w := &NodeWord{Unread: []Unread{test.unread}, unreadOf: map[unreadKey][]VolumeID{test.unread.key(): test.of}}
		if got := w.Forgot(edge); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A volume that a partly unreadable report omitted is not unstaged by the next.
func TestWordsInARow(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(1000+s, 0) }
	l := spoken(edge)
	l.Apply(at(1), wordOf("1", 5, 4))
	anew := wordOf("1", 5, 4)
	anew.UID = "x"
	l.Apply(at(3), anew)
	if got := l.Snapshot().Node("n").AskedAt; !got.Equal(at(3)) {
		t.Errorf("another object owes an answer since %s", got)
	}
	partly := wordOf("2", 0, 0)
	partly.Whole = false
	proof := func(events ...Event) Proof {
		return spoken(edge, events...).Snapshot().Volume(edge).OnNode("n").Proof
	}
	if p := proof(wordOf("1", 0, 0, edge), wordOf("2", 0, 0)); !p.Named || !p.Unstaged {
		t.Errorf("it came and went: %+v", p)
	}
	if p := proof(wordOf("1", 0, 0, edge), partly, wordOf("3", 0, 0)); p.Unstaged {
		t.Errorf("it may have been left out: %+v", p)
	}
	ticket := Ticket{ID: TicketID{"s", "t"}, UID: "t", Version: "1", Type: "Manual", Node: "n", Phase: TicketGranted, Volumes: []TicketVolume{{PersistentVolume: "p"}}}
	if p := proof(PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: edge}, ticket, wordOf("1", 0, 0, edge), wordOf("2", 0, 0)); !p.Unstaged {
		t.Errorf("a ticket mounts nothing: %+v", p)
	}
}

// A report touches all volumes when it begins to speak or has answered, else only the news.
func TestWhatAWordTouches(t *testing.T) {
	word := func(version, boot string, whole bool, look int64, has ...VolumeID) NodeWord {
		w := wordOf(version, look, 0, has...)
		w.BootID, w.Whole = boot, whole
		return w
	}
	answered := wordOf("2", 1, 1)
	for name, test := range map[string]struct {
		was, is NodeWord
		want    bool
	}{
		"nothing is new":         {word("1", "b", true, 0), word("2", "b", true, 0), false},
		"it answers now":         {word("1", "a", false, 0), word("2", "b", false, 0), true},
		"it answers no more":     {word("1", "b", false, 0), word("2", "a", false, 0), true},
		"it speaks now":          {word("1", "b", false, 0), word("2", "b", true, 0), true},
		"it speaks no more":      {word("1", "b", true, 0), word("2", "b", false, 0), true},
		"it has answered":        {word("1", "b", true, 1), answered, true},
		"it owes an answer":      {word("1", "b", true, 1), word("2", "b", true, 1), false},
		"it begins to owe one":   {word("1", "b", true, 0), word("2", "b", true, 1), false},
		"it names it no more":    {word("1", "b", false, 0, edge), word("2", "b", false, 0), true},
		"it names it as before":  {word("1", "b", false, 0, edge), word("2", "b", false, 0, edge), false},
		"it names another's now": {word("1", "b", false, 0), word("2", "b", false, 0, edge2), false},
	} {
		l := spoken(edge, test.was)
		if touched := l.Apply(time.Unix(1001, 0), test.is); slices.Contains(touched.Volumes, edge) != test.want {
			t.Errorf("%s: %v", name, touched.Volumes)
		}
	}
}

// Records with unknown names keep a node from speaking.
func TestUnreadNames(t *testing.T) {
	unread := func(version string, list ...Unread) NodeWord {
		w := wordOf(version, 0, 0)
		w.Unread = list
		return w
	}
	x := Unread{PersistentVolume: "x", Pod: "p"}
	own := Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n", OwnCSI: []string{"x"}}
	unseen := Claim{Key: ClaimKey{"s", "c"}, UID: "c", Version: "1", PersistentVolume: "x", Bound: true}
	for name, test := range map[string]struct {
		facts []Event
		want  bool
	}{
		"nobody knows it":       {[]Event{unread("1", x)}, false},
		"nor the second time":   {[]Event{unread("1", x), unread("2", x)}, false},
		"it is a pod's own":     {[]Event{own, unread("1", x)}, true},
		"own, and a claim's":    {[]Event{own, unseen, unread("1", x)}, false},
		"of another pod":        {[]Event{own, unread("1", Unread{PersistentVolume: "x", Pod: "q"})}, false},
		"of no pod":             {[]Event{own, unread("1", Unread{PersistentVolume: "x"})}, false},
		"it is known":           {[]Event{PersistentVolume{Name: "x", UID: "x", Version: "1", Volume: edge2}, unread("1", x)}, true},
		"known, and gone since": {[]Event{PersistentVolume{Name: "x", UID: "x", Version: "1", Volume: edge2}, unread("1", x), PersistentVolumeGone{"x"}, unread("2", x)}, true},
	} {
		if got := spoken(edge, test.facts...).Snapshot().Node("n").Speaks(); got != test.want {
			t.Errorf("%s: it speaks: %t", name, got)
		}
	}
	pv := func(name string, v VolumeID) Event {
		return PersistentVolume{Name: name, UID: name, Version: "1", Volume: v}
	}
	third := VolumeID{"d", "j"}
	n := spoken(edge, pv("x", third), pv("y", edge), pv("z", edge2), unread("1", Unread{PersistentVolume: "x"}, Unread{PersistentVolume: "y"}, Unread{PersistentVolume: "z"})).Snapshot().Node("n")
	for _, v := range []VolumeID{edge, edge2, third} {
		if n.SpeaksOf(v) {
			t.Errorf("it speaks of %s", v)
		}
	}
}

// Its records go with it, and a node without other facts.
func TestWordsThatAreGone(t *testing.T) {
	now := time.Unix(1000, 0)
	w := wordOf("1", 0, 0)
	w.Unread = []Unread{{PersistentVolume: "x"}}
	for uid, gone := range map[string]bool{"": true, "w": true, "other": false} {
		l := spoken(edge, w)
		l.Apply(now, NodeWordGone{Node: "n", UID: uid})
		if got := l.Snapshot().Node("n").Word == nil; got != gone {
			t.Errorf("of UID %q: gone: %t", uid, got)
		}
		l.Apply(now, PersistentVolume{Name: "x", UID: "x", Version: "1", Volume: edge2})
	}
	l := New()
	l.Apply(now, NodeWordGone{Node: "n"})
	if touched := l.Apply(now, NodeWordGone{Node: "nowhere", UID: "w"}); len(touched.Volumes) > 0 {
		t.Errorf("of a node that nobody knows: %+v", touched)
	}
	l.Apply(now, w)
	l.Apply(now, NodeWordGone{Node: "n"})
	if n := l.Snapshot().Node("n"); n != nil {
		t.Errorf("of a node of which nothing else is known: %+v", n)
	}
}

// A second look's question names the start of the absence.
func TestLooksAreFirst(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		look   int64
		vacant time.Time
		want   Proof
	}{
		"the first":          {3, time.Time{}, Proof{Stage: ProofUnreported, Look: 3}},
		"since another time": {3, now, Proof{Stage: ProofUnreported, Look: 3}},
		"the highest number": {MaxNumber, time.Time{}, Proof{Stage: ProofUnreported, Look: MaxNumber}},
		"higher than that":   {MaxNumber + 1, time.Time{}, Proof{Stage: ProofUnreported}},
	} {
		l := spoken(edge, wordOf("1", 0, 0), Unreported{Volume: edge, Node: "n", UID: proofUID("a"), Version: "1"},
			LookAsked{Volume: edge, Node: "n", UID: proofUID("a"), Version: "1", Look: test.look, Vacant: test.vacant})
		if got := l.Snapshot().Volume(edge).OnNode("n").Proof; got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	l := spoken(edge, wordOf("1", 0, 0))
	l.makeUnknown(now, &Touched{}, edge, "n", Boot{"z", "z"})
	l.changeVolumeOnNode(now, &Touched{}, edge, "n", func(p *VolumeOnNode) { p.Proof = Proof{Stage: ProofUnreported, Look: 1, Again: true, vacant: 1} })
	if l.Apply(now, wordOf("2", 1, 1)); !isUnknown(l, edge, "n") {
		t.Error("a look ends the doubt of another machine")
	}
}

func TestNodeStatesThatMatter(t *testing.T) {
	now := time.Unix(1000, 0)
	state := func(version string, change func(*NodeState)) NodeState {
		n := NodeState{Name: "n", UID: "u", Version: version, BootID: "b", SystemUUID: "m", Ready: ReadyUnknown, Reporting: true, ReadySince: 5}
		change(&n)
		return n
	}
	same := func(*NodeState) {}
	off := func(n *NodeState) { n.Shutdown = true }
	cut := func(n *NodeState) { n.CutOff = []string{"d"} }
	told := func(n *NodeState) { n.Fenced = []FencedCondition{{Type: "Cut", Since: 7}} }
	for name, test := range map[string]struct {
		was, is       func(*NodeState)
		void, touched bool
	}{
		"as before":                  {same, same, false, false},
		"it is off":                  {same, off, false, true},
		"it is off still":            {off, off, false, false},
		"it is not off any more":     {off, same, true, true},
		"another machine":            {same, func(n *NodeState) { n.SystemUUID = "z" }, true, true},
		"it is cut off":              {same, cut, false, true},
		"cut off still":              {cut, cut, false, false},
		"it is let in":               {cut, same, true, true},
		"somebody vouches for it":    {same, told, false, true},
		"and does still":             {told, told, false, false},
		"and does not any more":      {told, same, true, true},
		"out of service":             {same, func(n *NodeState) { n.OutOfService = true }, false, true},
		"another label, and no more": {same, func(n *NodeState) { n.Labels = map[string]string{"a": "b"} }, false, false},
	} {
		l := New()
		l.Apply(now, proofAttachment(edge, "n", "a", "1"))
		l.Apply(now, state("1", test.was))
		l.Apply(now, Complete{})
		l.Apply(now, Unreported{Volume: edge, Node: "n", UID: proofUID("a"), Version: "1", Forced: true})
		touched := l.Apply(now.Add(time.Second), state("2", test.is))
		if got := l.Snapshot().Volume(edge).OnNode("n").Proof == (Proof{}); got != test.void {
			t.Errorf("%s: void: %t", name, got)
		}
		if got := slices.Contains(touched.Volumes, edge); got != test.touched {
			t.Errorf("%s: touched: %t", name, got)
		}
	}
}

func TestSeenConditions(t *testing.T) {
	now := time.Unix(1000, 0)
	c := FencedCondition{Type: "Cut", Since: 7}
	for name, test := range map[string]struct {
		before        []FencedAt
		was, is       NodeState
		known         bool
		void          bool // of the present machine
		changed, ends bool
	}{
		"it is new":                    {nil, NodeState{}, NodeState{Fenced: []FencedCondition{c}}, true, false, true, false},
		"it is there still":            {[]FencedAt{{FencedCondition: c}}, NodeState{}, NodeState{Fenced: []FencedCondition{c}}, true, false, false, false},
		"still, by the kubelet's word": {[]FencedAt{{FencedCondition: c}}, NodeState{Ready: ReadyFalse}, NodeState{Ready: ReadyFalse, Fenced: []FencedCondition{c}}, true, false, false, false},
		"the kubelet has written":      {[]FencedAt{{FencedCondition: c}}, NodeState{}, NodeState{Ready: ReadyFalse, Fenced: []FencedCondition{c}}, true, true, true, true},
		"another boot":                 {[]FencedAt{{FencedCondition: c}}, NodeState{BootID: "a"}, NodeState{BootID: "b", Fenced: []FencedCondition{c}}, true, true, true, true},
		"it is Ready":                  {[]FencedAt{{FencedCondition: c}}, NodeState{}, NodeState{Ready: ReadyTrue, Fenced: []FencedCondition{c}}, true, true, true, true},
		"it is gone":                   {[]FencedAt{{FencedCondition: c}}, NodeState{}, NodeState{}, true, false, true, true},
		"a void one is gone":           {[]FencedAt{{FencedCondition: c, Void: true}}, NodeState{}, NodeState{}, true, false, true, false},
	} {
		n := &Node{NodeState: test.is, FencedAt: test.before}
		changed, ends := n.seeFenced(&test.was, test.known, now)
		if changed != test.changed || ends != test.ends || len(n.FencedAt) > 0 && n.FencedAt[0].Void != test.void {
			t.Errorf("%s: changed: %t, ends: %t, %+v", name, changed, ends, n.FencedAt)
		}
	}
}

func TestHeldByAnotherMachine(t *testing.T) {
	now, iscsi := time.Unix(1000, 0), VolumeID{"kubernetes.io/iscsi", "h"}
	for name, test := range map[string]struct {
		machine string
		want    bool
	}{"the same machine": {"m", true}, "another machine": {"z", false}} {
		l := New()
		held := func(version, machine string) HoldSeen {
			return HoldSeen{Volume: iscsi, Hold: Hold{Version: version, Node: "n", NodeUID: "u", SystemUUID: machine, State: HoldHeld, Transitions: 1}}
		}
		l.Apply(now, NodeState{Name: "n", UID: "u", Version: "1", SystemUUID: "z", Ready: ReadyTrue, Reporting: true})
		l.Apply(now, held("1", "m"))
		l.makeUnknown(now, &Touched{}, iscsi, "n", Boot{"m", "b"})
		next := held("2", test.machine)
		next.Hold.Message = "it has changed"
		if l.Apply(now, next); isUnknown(l, iscsi, "n") != test.want {
			t.Errorf("%s: in doubt: %t", name, !test.want)
		}
	}
	if got := (&Hold{Node: Detached}).held(iscsi); got != "" {
		t.Errorf("what is kept detached is held at %q", got)
	}
	if got := (&Hold{Node: "n"}).held(iscsi); got != "n" {
		t.Errorf("held at %q", got)
	}
	for name, test := range map[string]struct {
		a, b *Force
		want bool
	}{
		"none": {nil, nil, true}, "one": {&Force{Rule: "r"}, nil, false}, "the other": {nil, &Force{Rule: "r"}, false},
		"the same": {&Force{Rule: "r"}, &Force{Rule: "r"}, true}, "another": {&Force{Rule: "r"}, &Force{Rule: "s"}, false},
	} {
		if got := (&Hold{Version: "1", Force: test.a}).saysTheSame(&Hold{Version: "2", Force: test.b}); got != test.want {
			t.Errorf("rules of force, %s: the same: %t", name, got)
		}
	}
}

// The kubelet's list still says whether it is in use.
func TestUnreportedInDoubt(t *testing.T) {
	now := time.Unix(1000, 0)
	for _, unknown := range []bool{true, false} {
		l := spoken(edge, NodeState{Name: "n", UID: "u", Version: "2", BootID: "b", Ready: ReadyTrue, Reporting: true, InUse: []VolumeID{edge}})
		l.makeUnknown(now, &Touched{}, edge, "n", Boot{"", "b"})
		l.Apply(now, Unreported{Volume: edge, Node: "n", UID: proofUID("a"), Version: "1", Unknown: unknown})
		if p := l.Snapshot().Volume(edge).OnNode("n"); p.InUse != unknown || isUnknown(l, edge, "n") != unknown {
			t.Errorf("unknown: %t, in use: %t", isUnknown(l, edge, "n"), p.InUse)
		}
	}
}

// A machine named first, or no longer, is not another.
func TestDoubtsThatABootEnds(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		boot Boot
		want bool // it stays
	}{
		"of the boot before":               {Boot{"m", "b"}, false},
		"of this machine":                  {Boot{"m", ""}, false},
		"of no known machine":              {Boot{}, false},
		"of another machine":               {Boot{"q", ""}, true},
		"of another boot of another":       {Boot{"q", "q"}, true},
		"of no known machine, in one boot": {Boot{"", "b"}, false},
	} {
		l := New()
		l.Apply(now, proofAttachment(edge, "n", "a", "1"))
		l.Apply(now, machineAs("1", "u", "m", "b"))
		l.makeUnknown(now, &Touched{}, edge, "n", test.boot)
		if l.Apply(now, machineAs("2", "u", "m", "c")); isUnknown(l, edge, "n") != test.want {
			t.Errorf("%s: it stays: %t", name, !test.want)
		}
	}
	using := func(n *NodeState) { n.InUse = []VolumeID{edge} }
	for name, test := range map[string]struct {
		was, is NodeState
		want    bool
	}{
		"another machine":      {machineAs("1", "u", "m", "b", using), machineAs("2", "u", "z", "b", using), true},
		"it names none now":    {machineAs("1", "u", "m", "b", using), machineAs("2", "u", "", "b", using), false},
		"it named none before": {machineAs("1", "u", "", "b", using), machineAs("2", "u", "m", "b", using), false},
		"the same":             {machineAs("1", "u", "m", "b", using), machineAs("2", "u", "m", "b", using), false},
	} {
		l := New()
		for _, e := range []Event{proofAttachment(edge, "n", "a", "1"), test.was, Complete{}, test.is} {
			l.Apply(now, e)
		}
		if got := isUnknown(l, edge, "n"); got != test.want {
			t.Errorf("%s: in doubt: %t", name, got)
		}
	}
}

// Only volumes at the zone's unreachable nodes are touched.
func TestLifted(t *testing.T) {
	now := start.Add(time.Hour)
	l := New()
	zone := Zone{Name: "z"}
	l.facts.zones.put(l.gen, zone, &ZoneNodes{Zone: zone, Nodes: 10, Unreachable: 10, lifted: start})
	for _, test := range []struct {
		name               string
		at                 time.Time
		nodes, unreachable int32
		want               time.Time
	}{
		{"while too many are", start.Add(time.Minute), 1, 0, start},
		{"when they are not any more", now, 0, -10, now},
		{"later", now.Add(time.Hour), 1, 0, now},
		{"without nodes", now.Add(time.Hour), -12, 0, now},
	} {
		l.changeZone(test.at, &Touched{}, zone, test.nodes, test.unreachable)
		if z := l.facts.zones.get(zone); z == nil || !z.lifted.Equal(test.want) {
			t.Errorf("%s: %+v", test.name, z)
		}
	}

	cluster := storm()
	for i := range 4 {
		cluster.Apply(start, stormNode(i, "2", ReadyUnknown))
	}
	for zone, want := range map[Zone][]string{{Name: "a"}: {"n0", "n2"}, {Name: "b"}: {"n1", "n3"}, {Whole: true}: {"n0", "n1", "n2", "n3"}, {Name: "c"}: nil} {
		var touched Touched
		cluster.touchUnreachable(&touched, zone)
		var got []string
		for i, n := range touched.Nodes {
			got = append(got, string(n))
			if len(touched.Volumes) != len(touched.Nodes) || touched.Volumes[i].Handle != string(n) {
				t.Errorf("%+v: %v", zone, touched)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%+v: %q, want %q", zone, got, want)
		}
	}
}

// It may be of any volume attached under the PersistentVolume's name.
func TestUnreadOfAReplacedDisk(t *testing.T) {
	first, second := VolumeID{"d", "h1"}, VolumeID{"d", "h2"}
	attached := Attachment{Name: AttachmentName(first, "n"), UID: proofUID("a"), Version: "1", Driver: "d", Node: "n", PersistentVolume: "pv", Attached: true}
	again := PersistentVolume{Name: "pv", UID: "2", Version: "5", Volume: second}
	gone := PersistentVolumeGone{Name: "pv"}
	hold := HoldSeen{first, Hold{Version: "1", Node: "n", PVs: []string{"pv"}}}
	node := NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true}
	word := wordOf("1", 1, 1)
	word.Unread = []Unread{{PersistentVolume: "pv"}}
	for name, events := range map[string][]Event{
		"the word last":                     {again, hold, attached, node, word},
		"the word first":                    {word, again, hold, node, attached},
		"the attachment last":               {again, hold, node, word, attached},
		"the PersistentVolume last":         {hold, node, word, attached, again},
		"the hold last":                     {again, node, word, attached, hold},
		"the hold last, and gone":           {again, node, word, attached, gone, hold},
		"gone before the attachment":        {again, hold, node, word, gone, attached},
		"and gone":                          {again, hold, attached, node, word, gone},
		"it has named the first":            {PersistentVolume{Name: "pv", UID: "1", Version: "1", Volume: first}, attached, node, word, again, gone},
		"it has named the first, and again": {PersistentVolume{Name: "pv", UID: "1", Version: "1", Volume: first}, node, word, again, attached, hold, gone},
	} {
		for _, complete := range []bool{false, true} {
			l := New()
			if complete {
				l.Apply(start, Complete{})
			}
			for _, e := range events {
				l.Apply(start, e)
			}
			if s := l.Snapshot(); !atNode(l, first, "n").HasAttachments() || s.Node("n").SpeaksOf(first) {
				t.Errorf("%s, complete %t: attached %t, speaks of it %t", name, complete, atNode(l, first, "n").HasAttachments(), s.Node("n").SpeaksOf(first))
			}
		}
	}
}
