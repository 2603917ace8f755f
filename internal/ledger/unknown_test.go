// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

// Only a higher epoch, a decision, or another object ends the doubt.
func TestTicketInDoubt(t *testing.T) {
	now, id := time.Unix(1000, 0), TicketID{"s", "t"}
	first := Ticket{ID: id, UID: "u", Version: "1", Node: "n", Epoch: 3}
	for name, test := range map[string]struct {
		then Ticket
		want bool
	}{
		"another change":   {Ticket{ID: id, UID: "u", Version: "2", Node: "n", Epoch: 3}, false},
		"a higher epoch":   {Ticket{ID: id, UID: "u", Version: "2", Node: "n", Epoch: 4}, false},
		"granted":          {Ticket{ID: id, UID: "u", Version: "2", Node: "n", Epoch: 3, Phase: TicketGranted}, false},
		"another object":   {Ticket{ID: id, UID: "v", Version: "2", Node: "n"}, false},
		"an older version": {Ticket{ID: id, UID: "u", Version: "1", Node: "n", Epoch: 4}, true},
	} {
		l := New()
		l.Apply(now, first)
		if touched := l.Apply(now, TicketInDoubt{ID: id, UID: "other"}); len(touched.Tickets) > 0 || l.Snapshot().Ticket(id).InDoubt {
			t.Errorf("%s: another object's ticket is in doubt", name)
		}
		if touched := l.Apply(now, TicketInDoubt{ID: id, UID: "u"}); len(touched.Tickets) != 1 || !l.Snapshot().Ticket(id).InDoubt {
			t.Fatalf("%s: it is not in doubt", name)
		}
		l.Apply(now, test.then)
		if got := l.Snapshot().Ticket(id).InDoubt; got != test.want {
			t.Errorf("%s: in doubt: %t", name, got)
		}
	}
	l := New()
	first.Phase = TicketGranted
	l.Apply(now, first)
	l.Apply(now, TicketInDoubt{ID: id, UID: "u"})
	if l.Snapshot().Ticket(id).InDoubt {
		t.Error("a granted ticket is in doubt")
	}
}

// A new leader, or a process that sees the volume leave volumesAttached, doubts the node of the hold's
// fence if the volume may have been in use.
func TestTookOver(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	fence := Fence{Node: "n", NodeUID: "u", BootID: "b", Attachment: "a", Rule: "AfterPodGone", InUse: true}
	node := NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true}
	for name, test := range map[string]struct {
		change func(*Fence, *NodeState)
		leads  bool // as this process begins to lead
		sees   bool // as it sees the volume leave volumesAttached
	}{
		"taken out":                   {func(*Fence, *NodeState) {}, true, true},
		"not taken out yet":           {func(_ *Fence, n *NodeState) { n.Reported = []VolumeID{v} }, false, true},
		"put back":                    {func(f *Fence, n *NodeState) { f.Rule, n.Reported = "", []VolumeID{v} }, true, true},
		"another boot":                {func(_ *Fence, n *NodeState) { n.BootID = "c" }, false, false},
		"another attachment":          {func(f *Fence, _ *NodeState) { f.Attachment = "b" }, false, false},
		"it was not in use":           {func(f *Fence, _ *NodeState) { f.InUse = false }, false, false},
		"another node":                {func(f *Fence, _ *NodeState) { f.Node = "m" }, false, false},
		"a boot that nobody has said": {func(f *Fence, _ *NodeState) { f.BootID = "" }, true, true},
	} {
		f, n := fence, node
		test.change(&f, &n)
		begin := func() *Ledger {
			l := New()
			for _, e := range []Event{
				n, Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", PersistentVolume: "p", Attached: true},
				PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: v},
				HoldSeen{Volume: v, Hold: Hold{Version: "1", Fences: []Fence{f}}},
			} {
				l.Apply(now, e)
			}
			return l
		}
		l := begin()
		l.Apply(now, TookOver{})
		if isUnknown(l, v, "n") != test.leads {
			t.Errorf("%s: doubted by a new leader: %t", name, !test.leads)
		}
		l = begin()
		n.Version, n.Reported = "2", []VolumeID{v}
		l.Apply(now, n)
		n.Version, n.Reported = "3", nil
		l.Apply(now, n)
		if got := isUnknown(l, v, "n"); got != test.sees {
			t.Errorf("%s: doubted when it is out of volumesAttached: %t", name, got)
		}
	}
}

// The doubt lasts until that machine has booted. A machine in between has its own doubt.
func TestDoubtOfTheMachineBeforeEndsWithItsBoot(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	node := func(uid, version, machine, boot string, inUse ...VolumeID) Event {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: machine, BootID: boot, Ready: ReadyTrue, Reporting: true, InUse: inUse}
	}
	for name, test := range map[string]struct {
		inUse []VolumeID // at the machine in between
		want  bool
	}{
		"it never had it": {nil, false},
		"it lists it":     {[]VolumeID{v}, true},
	} {
		l := New()
		for _, e := range []Event{
			proofAttachment(v, "n", "a", "1"),
			HoldSeen{Volume: v, Hold: Hold{Version: "1", Node: "n", NodeUID: "first", SystemUUID: "m1", BootID: "b1"}},
			node("second", "1", "m2", "b2", test.inUse...), Complete{}, TookOver{},
		} {
			l.Apply(now, e)
		}
		if machine, boot := unknownAt(l, v, "n"); machine != "m1" || boot != "b1" {
			t.Fatalf("%s: doubted at %q in %q", name, machine, boot)
		}
		l.Apply(now, node("third", "2", "m1", "b3"))
		if isUnknown(l, v, "n") != test.want {
			t.Errorf("%s: doubted when the first machine is back: %t", name, !test.want)
		}
	}
}

// volumesAttached still names the volume: its kubelet has not forgotten it.
func TestNotInUseWhileItIsReported(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	node := func(version string, reported, inUse []VolumeID) Event {
		return NodeState{Name: "n", UID: "u", Version: version, BootID: "b", Ready: ReadyTrue, Reporting: true, Reported: reported, InUse: inUse}
	}
	both := []VolumeID{v}
	l := New()
	for _, e := range []Event{
		proofAttachment(v, "n", "a", "1"), node("1", both, both),
		HoldSeen{Volume: v, Hold: Hold{Version: "1", Fences: []Fence{{Node: "n", NodeUID: "u", BootID: "b", Attachment: proofUID("a"), Rule: "AfterPodGone", InUse: true}}}},
		node("2", both, nil),
	} {
		l.Apply(now, e)
	}
	if isUnknown(l, v, "n") {
		t.Error("it is doubted while it is reported")
	}
	l.Apply(now, node("3", nil, nil))
	if !isUnknown(l, v, "n") {
		t.Error("it is not doubted when it is reported no more")
	}
}

// A foreign attachment changes nothing.
func TestDoubtIsOfTheOwnAttachment(t *testing.T) {
	v := VolumeID{"d", "h"}
	theirs := func(uid, version string) Event {
		return Attachment{Name: "theirs", UID: proofUID(uid), Version: version, Driver: "d", Node: "n", Inline: v}
	}
	own := proofAttachment(v, "n", "a", "1")
	taken := HoldSeen{Volume: v, Hold: Hold{Version: "1", Fences: []Fence{{Node: "n", NodeUID: "u", BootID: "b", InUse: true}}}}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"it is written":                       {[]Event{own, taken, proofAttachment(v, "n", "a", "2")}, true},
		"it is made again":                    {[]Event{own, taken, proofAttachment(v, "n", "b", "2")}, true},
		"another comes beside it":             {[]Event{own, taken, theirs("f", "2")}, true},
		"another beside it is made again":     {[]Event{own, theirs("e", "1"), taken, theirs("f", "2")}, true},
		"doubted, another comes":              {[]Event{taken, own, theirs("f", "2")}, true},
		"doubted, another is made again":      {[]Event{taken, own, theirs("e", "1"), theirs("f", "2")}, true},
		"doubted, another goes":               {[]Event{taken, own, theirs("e", "1"), AttachmentGone{"theirs"}}, true},
		"doubted, and its own goes":           {[]Event{taken, own, theirs("e", "1"), AttachmentGone{own.Name}}, false},
		"doubted, and its own is made again":  {[]Event{taken, own, theirs("e", "1"), proofAttachment(v, "n", "b", "2")}, true},
		"its own comes while another is here": {[]Event{taken, theirs("e", "1"), own}, true},
	} {
		for _, freeze := range []bool{false, true} {
			l := New()
			for _, e := range append([]Event{NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true}}, test.events...) {
				l.Apply(start, e)
				if freeze {
					l.Snapshot()
				}
			}
			if got := isUnknown(l, v, "n"); got != test.want {
				t.Errorf("%s (a snapshot after each: %t): doubted: %t", name, freeze, got)
			}
		}
	}
}

func TestFenceOfAnEarlierBoot(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	l := New()
	for _, e := range []Event{
		Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", PersistentVolume: "p", Attached: true},
		PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: v},
		HoldSeen{Volume: v, Hold: Hold{Version: "1", Fences: []Fence{{Node: "n", BootID: "b", Attachment: "a", InUse: true}}}},
		TookOver{},
	} {
		l.Apply(now, e)
	}
	if !isUnknown(l, v, "n") {
		t.Fatal("it is not doubted")
	}
	touched := l.Apply(now, NodeState{Name: "n", UID: "u", Version: "1", BootID: "c", Ready: ReadyTrue, Reporting: true})
	if isUnknown(l, v, "n") || !slices.Contains(touched.Volumes, v) {
		t.Error("it is in use after the machine has booted anew")
	}
}

func TestDoubtOfVolumeLeft(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	node := NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true}
	hold := Hold{Version: "1", Node: "n", Stays: true, Fences: []Fence{{Node: "n", NodeUID: "u", BootID: "b", Attachment: "a", InUse: true}}}
	va := Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", PersistentVolume: "p", Attached: true, Deleting: true}
	for name, stays := range map[string]bool{"left": true, "detached": false} {
		hold.Stays = stays
		l := New()
		for _, e := range []Event{
			node, va, PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: v}, HoldSeen{Volume: v, Hold: hold}, TookOver{},
			AttachmentGone{Name: va.Name},
		} {
			l.Apply(now, e)
		}
		if got := isUnknown(l, v, "n"); got != stays {
			t.Errorf("%s: doubted by who saw the attachment go: %t", name, got)
		}
		l = New()
		for _, e := range []Event{node, PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: v}, HoldSeen{Volume: v, Hold: hold}, TookOver{}} {
			l.Apply(now, e)
		}
		if got := isUnknown(l, v, "n"); got != stays {
			t.Errorf("%s: doubted by the next leader: %t", name, got)
		}
	}
}

// The volume is doubted in the same boot, unless a rule of force is still stated.
func TestDoubtOfVolumeThatComesBack(t *testing.T) {
	now := time.Unix(1000, 0)
	disk, lun := VolumeID{"d", "h"}, VolumeID{"kubernetes.io/iscsi", "h"}
	for name, test := range map[string]struct {
		volume VolumeID
		change func(*Fence)
		want   bool
	}{
		"attached anew":               {disk, func(*Fence) {}, true},
		"held anew":                   {lun, func(*Fence) {}, true},
		"with a rule":                 {disk, func(f *Fence) { f.Rule = "AfterPodGone" }, false},
		"in another boot":             {disk, func(f *Fence) { f.BootID = "c" }, false},
		"it was known not to be used": {disk, func(f *Fence) { f.InUse = false }, false},
	} {
		f := Fence{Node: "n", NodeUID: "u", BootID: "b", InUse: true}
		if test.volume == disk {
			f.Attachment = "a"
		}
		test.change(&f)
		l := New()
		for _, e := range []Event{
			NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true},
			PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: test.volume},
			HoldSeen{Volume: test.volume, Hold: Hold{Version: "1", Fences: []Fence{f}}},
		} {
			l.Apply(now, e)
		}
		if test.volume == disk {
			l.Apply(now, Attachment{Name: AttachmentName(disk, "n"), UID: "b", Version: "1", Driver: "d", Node: "n", PersistentVolume: "p", Attached: true})
		} else {
			l.Apply(now, HoldSeen{Volume: lun, Hold: Hold{Version: "2", Node: "n", NodeUID: "u", BootID: "b", Fences: []Fence{f}}})
		}
		if isUnknown(l, test.volume, "n") != test.want {
			t.Errorf("%s: doubted %t", name, !test.want)
		}
	}
}

func TestEndOfABootIsToldToWhatWasTaken(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	node := NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true}
	reboot := node
	reboot.Version, reboot.BootID = "2", "c"
	for _, end := range []Event{reboot, NodeGone{Name: "n"}} {
		l := New()
		for _, e := range []Event{
			node, PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: v},
			HoldSeen{Volume: v, Hold: Hold{Version: "1", Fences: []Fence{{Node: "n", BootID: "b", InUse: true}}}},
		} {
			l.Apply(now, e)
		}
		if touched := l.Apply(now, end); !slices.Contains(touched.Volumes, v) {
			t.Errorf("%T: %v", end, touched.Volumes)
		}
	}
}

// The node's list counts, except for volumes detached on evidence that nothing runs there, with a silent
// kubelet since.
func TestNodeGoneWhileOutOfService(t *testing.T) {
	start := time.Unix(1000, 0)
	detached, attached, plain := VolumeID{"d", "detached"}, VolumeID{"d", "attached"}, VolumeID{"kubernetes.io/iscsi", "h"}
	node := NodeState{Name: "n", UID: "u", Version: "1", Reporting: true, OutOfService: true, InUse: []VolumeID{attached, detached, plain}}
	for name, test := range map[string]struct {
		change func(*NodeState)
		heard  bool
		ended  bool
	}{
		"out of service":           {func(*NodeState) {}, false, true},
		"not out of service":       {func(n *NodeState) { n.OutOfService = false }, false, false},
		"Ready":                    {func(n *NodeState) { n.Ready = ReadyTrue }, false, false},
		"by its own word":          {func(n *NodeState) { n.Ready = ReadyFalse }, false, false},
		"its kubelet was heard of": {func(*NodeState) {}, true, false},
	} {
		l, n := New(), node
		test.change(&n)
		l.Apply(start, n)
		l.Apply(start, Attachment{Name: AttachmentName(attached, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", Inline: attached, Attached: true})
		l.Apply(start, NodeLease{Node: "n", Renewed: 1})
		if test.heard {
			l.Apply(start.Add(time.Second), NodeLease{Node: "n", Renewed: 2})
		}
		l.Apply(start.Add(2*time.Second), NodeGone{Name: "n"})
		s := l.Snapshot()
		for v, want := range map[VolumeID]bool{detached: !test.ended, attached: true, plain: true} {
			if p := s.Volume(v).OnNode("n"); (p != nil && p.InUse) != want {
				t.Errorf("%s: %s in use: %t", name, v, !want)
			}
		}
	}
}

func TestDoubtsOfSeveralVolumes(t *testing.T) {
	volumes := []VolumeID{{"d", "a"}, {"d", "b"}, {"d", "c"}}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		l := New()
		l.Apply(start, NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true, InUse: volumes})
		for _, i := range order {
			l.Apply(start, proofAttachment(volumes[i], "n", "a", "1"))
			l.Apply(start, Unreported{Volume: volumes[i], Node: "n", UID: proofUID("a"), Version: "1", Forced: true})
		}
		for gone := range len(order) + 1 {
			if gone > 0 {
				l.Apply(start, AttachmentGone{AttachmentName(volumes[order[gone-1]], "n")})
			}
			for i, at := range order {
				if got := isUnknown(l, volumes[at], "n"); got != (i >= gone) {
					t.Errorf("in the order %v, and %d are gone: %s is doubted: %t", order, gone, volumes[at], got)
				}
			}
		}
	}
}

func TestDoubtEndsWithItsUse(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	state := func(uid, version string, reporting bool, lists ...VolumeID) Event {
		return NodeState{Name: "n", UID: uid, Version: version, BootID: "b", OutOfService: true, Reporting: reporting, Reported: lists, InUse: lists}
	}
	attachment := proofAttachment(v, "n", "a", "1")
	l := New()
	for _, step := range []struct {
		event Event
		want  bool
	}{
		{Ticket{ID: TicketID{"s", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n"}, false},
		{state("u", "1", true, v), false},
		{state("w", "2", false), false}, // made again, and nothing is attached
		{NodeGone{"n"}, false},
		{state("x", "3", true), false},
		{HoldSeen{v, Hold{Version: "1", Node: "n", Fences: []Fence{{Node: "n", NodeUID: "x", BootID: "b", InUse: true}}}}, false},
		{attachment, true}, // attached again
	} {
		l.Apply(now, step.event)
		p, doubted := atNode(l, v, "n"), isUnknown(l, v, "n")
		if doubted != step.want || doubted && p == nil {
			t.Errorf("after %+v: doubted %t, %+v", step.event, doubted, p)
		}
	}
}

// The volume must be attached and maybe in use; the kubelet's report and another Node's entries are exempt.
func TestTakenOutByOthersIsDoubted(t *testing.T) {
	now, v := time.Unix(1000, 0), VolumeID{"d", "h"}
	in := NodeState{Name: "n", UID: "u", Version: "1", BootID: "b", Ready: ReadyTrue, Reporting: true, Reported: []VolumeID{v}, InUse: []VolumeID{v}}
	for name, test := range map[string]struct {
		before []Event
		change func(was, is *NodeState)
		want   bool
	}{
		"in use":                        {nil, func(_, is *NodeState) { is.Reported = nil }, true},
		"in use until then":             {nil, func(_, is *NodeState) { is.Reported, is.InUse = nil, nil }, true},
		"in use from then on":           {nil, func(was, is *NodeState) { was.InUse, is.Reported = nil, nil }, true},
		"another is in its place":       {nil, func(_, is *NodeState) { is.Reported = []VolumeID{{"d", "other"}} }, true},
		"another is taken out":          {nil, func(was, _ *NodeState) { was.Reported = []VolumeID{v, {"d", "other"}} }, false},
		"never in, as another goes":     {nil, func(was, is *NodeState) { was.Reported, is.Reported = []VolumeID{{"d", "other"}}, nil }, false},
		"not in use":                    {nil, func(was, is *NodeState) { is.Reported, was.InUse, is.InUse = nil, nil, nil }, false},
		"still named":                   {nil, func(_, is *NodeState) { is.InUse = nil }, false},
		"not attached":                  {[]Event{AttachmentGone{Name: AttachmentName(v, "n")}}, func(_, is *NodeState) { is.Reported = nil }, false},
		"left attached":                 {[]Event{HoldSeen{Volume: v, Hold: Hold{Version: "1", Node: "n", Stays: true}}, AttachmentGone{Name: AttachmentName(v, "n")}}, func(_, is *NodeState) { is.Reported = nil }, true},
		"this process has taken it out": {[]Event{Unreported{Volume: v, Node: "n", UID: "a", Version: "1"}}, func(_, is *NodeState) { is.Reported, is.InUse = nil, nil }, false},
		"another Node, after a boot":    {nil, func(_, is *NodeState) { is.Reported, is.InUse, is.UID, is.BootID = nil, nil, "w", "c" }, false},
	} {
		was, is := in, in
		is.Version = "2"
		test.change(&was, &is)
		l := New()
		attachment := proofAttachment(v, "n", "a", "1")
		attachment.UID = "a"
		for _, e := range slices.Concat([]Event{was, attachment}, test.before, []Event{is}) {
			l.Apply(now, e)
		}
		is.Version, is.InUse = "3", nil
		l.Apply(now, is)
		p := atNode(l, v, "n")
		if got := isUnknown(l, v, "n"); got != test.want {
			t.Errorf("%s: doubted %t, %+v", name, got, p)
		}
		is.Version, is.BootID = "4", "d"
		l.Apply(now, is)
		if isUnknown(l, v, "n") {
			t.Errorf("%s: it is doubted after a boot", name)
		}
	}
}

// A volume seen detached is not in doubt. A volume not seen to go is: its attachment may be unseen.
func TestDoubtOfWhatWasReportedByANodeBefore(t *testing.T) {
	v, iscsi := VolumeID{"d", "h"}, VolumeID{"kubernetes.io/iscsi", "h"}
	node := func(uid, version string, reporting bool, lists ...VolumeID) Event {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: "m", BootID: "b", Reporting: reporting, Reported: lists, InUse: lists}
	}
	was, made, reports := node("u", "1", true, v), node("w", "7", false), node("w", "8", true)
	unused := NodeState{Name: "n", UID: "u", Version: "1", SystemUUID: "m", BootID: "b", Reporting: true, Reported: []VolumeID{v}}
	attached, gone := proofAttachment(v, "n", "a", "1"), AttachmentGone{Name: AttachmentName(v, "n")}
	force := Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Forced: true}
	theirs := Attachment{Name: "theirs", UID: "a", Version: "1", Driver: "d", Node: "n", PersistentVolume: "p", Attached: true}
	byPV := Attachment{Name: AttachmentName(v, "n"), UID: proofUID("a"), Version: "1", Driver: "d", Node: "n", PersistentVolume: "p", Attached: true}
	pv := PersistentVolume{Name: "p", UID: "p", Version: "1", Volume: v}
	held := func(version string, n NodeName, stays bool) Event {
		return HoldSeen{Volume: v, Hold: Hold{Version: version, Node: n, Stays: stays}}
	}
	given := func(version string, n NodeName) Event {
		return HoldSeen{Volume: iscsi, Hold: Hold{Version: version, Node: n}}
	}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"gone, detached, made again":            {[]Event{was, attached, NodeGone{"n"}, gone, made, reports}, false},
		"detached, gone, made again":            {[]Event{was, attached, gone, NodeGone{"n"}, made, reports}, false},
		"detached, another Node":                {[]Event{was, attached, gone, made, reports}, false},
		"another Node, detached":                {[]Event{was, attached, made, reports, gone}, false},
		"detached by others":                    {[]Event{pv, was, theirs, NodeGone{"n"}, AttachmentGone{"theirs"}, made, reports}, false},
		"another Node, detached by others":      {[]Event{pv, was, theirs, made, reports, AttachmentGone{"theirs"}}, false},
		"another Node, ours is there still":     {[]Event{pv, was, attached, theirs, made, reports, AttachmentGone{"theirs"}}, true},
		"taken, and given to another node":      {[]Event{node("u", "1", true, iscsi), Pod{UID: "p", Version: "1", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: iscsi}}}, given("1", "n"), NodeGone{"n"}, Unreported{Volume: iscsi, Node: "n", Forced: true}, given("2", "o"), made, reports}, false},
		"attached still":                        {[]Event{was, attached, NodeGone{"n"}, made, reports}, true},
		"attached still, another Node":          {[]Event{was, attached, made, reports}, true},
		"left there":                            {[]Event{was, attached, held("1", "n", true), NodeGone{"n"}, gone, made, reports}, true},
		"left, and left no more":                {[]Event{unused, held("1", "n", true), NodeGone{"n"}, held("2", "o", false), made, reports}, false},
		"detached, attached anew, another Node": {[]Event{was, attached, gone, proofAttachment(v, "n", "b", "5"), made, reports}, true},
		"taken by force":                        {[]Event{was, attached, NodeGone{"n"}, force, made, reports}, true},
		"made again, gone, taken by force":      {[]Event{was, attached, NodeGone{"n"}, made, NodeGone{"n"}, force, node("x", "9", false), node("x", "10", true)}, true},
		"taken by force, and detached":          {[]Event{was, attached, NodeGone{"n"}, made, NodeGone{"n"}, force, gone, node("x", "9", false), node("x", "10", true)}, false},
		"detached late, and not in use":         {[]Event{unused, NodeGone{"n"}, attached, gone, made, reports}, false},
		"and after it is made again":            {[]Event{unused, NodeGone{"n"}, made, attached, reports, gone}, false},
		"detached before it is known to be its": {[]Event{unused, NodeGone{"n"}, byPV, gone, made, reports, pv}, false},
		"detached after that":                   {[]Event{unused, NodeGone{"n"}, byPV, made, reports, gone}, false},
		"needs no attachment":                   {[]Event{node("u", "1", true, iscsi), NodeGone{"n"}, made, reports}, true},
	} {
		l, n := New(), v
		l.Apply(start, Complete{})
		for _, e := range test.events {
			l.Apply(start, e)
			if s, is := e.(NodeState); is && slices.Contains(s.InUse, iscsi) {
				n = iscsi
			}
		}
		p := atNode(l, n, "n")
		if got := isUnknown(l, n, "n"); got != test.want {
			t.Errorf("%s: doubted: %t, %+v", name, got, p)
		}
	}
}

// Only a Node that named it as attached meanwhile leaves a doubt.
func TestDoubtOfWhatWasInUseBeforeABoot(t *testing.T) {
	v := VolumeID{"d", "h"}
	node := func(uid, version, machine, boot string, reporting bool, reported, inUse []VolumeID) Event {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: machine, BootID: boot, Reporting: reporting, Reported: reported, InUse: inUse}
	}
	has := []VolumeID{v}
	before := []Event{node("u", "1", "m", "b", true, has, has), proofAttachment(v, "n", "a", "1"), NodeGone{"n"}, node("w", "7", "m", "c", false, nil, nil)}
	reports := node("x", "10", "m", "c", true, nil, nil)
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"seen as it is made":           {[]Event{NodeGone{"n"}, node("x", "9", "m", "c", false, nil, nil), reports}, false},
		"seen as it reports":           {[]Event{NodeGone{"n"}, reports}, false},
		"another Node, as it reports":  {[]Event{reports}, false},
		"it named the volume":          {[]Event{node("w", "8", "m", "c", false, has, nil), NodeGone{"n"}, reports}, true},
		"it has reported":              {[]Event{node("w", "8", "m", "c", true, nil, has), NodeGone{"n"}, reports}, true},
		"another machine that reports": {[]Event{NodeGone{"n"}, node("x", "10", "z", "d", true, nil, nil)}, false},
	} {
		l := New()
		l.Apply(start, Complete{})
		for _, e := range slices.Concat(before, test.events) {
			l.Apply(start, e)
		}
		if got := isUnknown(l, v, "n"); got != test.want {
			t.Errorf("%s: doubted: %t", name, got)
		}
	}
}

// The doubt lasts until the attachment is gone, also for a new leader.
func TestDoubtOutlivesForceAtANodeThatIsGone(t *testing.T) {
	v := VolumeID{"d", "h"}
	node := func(uid, version, machine, boot string, reporting bool, lists ...VolumeID) Event {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: machine, BootID: boot, Reporting: reporting, Reported: lists, InUse: lists}
	}
	attached, gone := proofAttachment(v, "n", "a", "1"), AttachmentGone{Name: AttachmentName(v, "n")}
	force := Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Forced: true}
	taken := Fence{Node: "n", NodeUID: "u", SystemUUID: "m", BootID: "b", Attachment: proofUID("a"), Rule: "AfterUnreachable", InUse: true}
	leads := []Event{attached, HoldSeen{Volume: v, Hold: Hold{Version: "1", Fences: []Fence{taken}}}, TookOver{}}
	other := []Event{node("u", "1", "m", "b", true, v), attached, NodeGone{"n"}, node("w", "7", "z", "d", true), NodeGone{"n"}}
	booted := append(slices.Clip(other), node("x", "8", "z", "e", false), NodeGone{"n"})
	for name, test := range map[string]struct {
		before, after []Event
		want          bool
	}{
		"the next leader":                      {leads, []Event{node("y", "9", "m", "b", false), node("y", "10", "m", "b", true)}, true},
		"the next leader, detached":            {leads, []Event{gone, node("y", "9", "m", "b", false), node("y", "10", "m", "b", true)}, false},
		"the next leader, booted":              {leads, []Event{node("y", "9", "m", "c", true)}, false},
		"another machine, again":               {other, []Event{node("y", "9", "z", "d", true)}, true},
		"another machine, that boots":          {other, []Event{node("y", "9", "z", "d", true), node("y", "10", "z", "e", true)}, true},
		"another machine, detached":            {other, []Event{gone, node("y", "9", "z", "d", true)}, false},
		"the first one is back":                {other, []Event{node("y", "9", "m", "b", true)}, true},
		"the first one is back, booted":        {other, []Event{node("y", "9", "m", "c", true)}, false},
		"the other booted, the first is back":  {booted, []Event{node("y", "9", "m", "b", true)}, true},
		"the other booted, the first, too":     {booted, []Event{node("y", "9", "m", "c", true)}, false},
		"the other booted, and is there again": {booted, []Event{node("y", "9", "z", "e", true)}, true},
	} {
		l := New()
		l.Apply(start, Complete{})
		for _, e := range slices.Concat(test.before, []Event{force}, test.after) {
			l.Apply(start, e)
		}
		p := atNode(l, v, "n")
		if got := isUnknown(l, v, "n"); got != test.want {
			t.Errorf("%s: doubted: %t, %+v", name, got, p)
		}
		if machine, boot := unknownAt(l, v, "n"); test.want && (machine != "m" || boot != "b") {
			t.Errorf("%s: doubted at %q in %q", name, machine, boot)
		}
	}
}

// Both lists may lose it in a single state, as after a gap.
func TestTakenOutIsDoubtedAtBothMachines(t *testing.T) {
	v := VolumeID{"d", "h"}
	node := func(uid, version, machine, boot string, reported, inUse []VolumeID) Event {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: machine, BootID: boot, Reporting: true, Reported: reported, InUse: inUse}
	}
	has := []VolumeID{v}
	for name, test := range map[string]struct {
		after []Event
		want  string
	}{
		"in use":                     {[]Event{node("w", "8", "z", "c", has, has), node("w", "9", "z", "c", nil, has)}, OtherMachine},
		"in use, and then not":       {[]Event{node("w", "8", "z", "c", has, has), node("w", "9", "z", "c", nil, has), node("w", "10", "z", "c", nil, nil)}, OtherMachine},
		"in use until then":          {[]Event{node("w", "8", "z", "c", has, has), node("w", "10", "z", "c", nil, nil)}, OtherMachine},
		"in use until then, at once": {[]Event{node("w", "8", "z", "c", has, has), NodeGone{"n"}, node("x", "10", "z", "c", nil, nil)}, OtherMachine},
		"in use from then on":        {[]Event{node("w", "8", "z", "c", has, nil), node("w", "10", "z", "c", nil, has)}, OtherMachine},
		"not in use":                 {[]Event{node("w", "8", "z", "c", has, nil), node("w", "10", "z", "c", nil, nil)}, "m"},
		"not in use before that":     {[]Event{node("w", "8", "z", "c", has, has), node("w", "9", "z", "c", has, nil), node("w", "10", "z", "c", nil, nil)}, "m"},
	} {
		l := New()
		l.Apply(start, Complete{})
		for _, e := range append([]Event{node("u", "1", "m", "b", has, has), proofAttachment(v, "n", "a", "1"), node("w", "7", "z", "c", nil, nil)}, test.after...) {
			l.Apply(start, e)
		}
		if machine, _ := unknownAt(l, v, "n"); machine != test.want {
			t.Errorf("%s: doubted at %q, want %q", name, machine, test.want)
		}
	}
}

// The cloud's name shows the clone: it ends no doubt.
func TestDoubtOutlivesACloneOfAnotherProviderID(t *testing.T) {
	node := func(uid, version, provider, boot string, reported, inUse []VolumeID) NodeState {
		return NodeState{Name: "n", UID: uid, Version: version, SystemUUID: "m", BootID: boot, ProviderID: provider,
			Ready: ReadyTrue, Reporting: true, Managed: true, Reported: reported, InUse: inUse}
	}
	v := []VolumeID{edge}
	for name, doubted := range map[string]bool{"in doubt before": true, "not in doubt before": false} {
		l := New()
		events := []Event{
			PersistentVolume{Name: "pv", Version: "1", Volume: edge}, proofAttachment(edge, "n", "a", "1"),
			node("u", "1", "cloud://first", "b", v, v), Complete{},
		}
		if doubted {
			events = append(events,
				node("u", "2", "cloud://first", "b", nil, v),   // another component takes it out of volumesAttached
				node("u", "3", "cloud://first", "b", nil, nil)) // and the kubelet has restarted
		}
		for _, e := range events {
			l.Apply(start, e)
		}
		if isUnknown(l, edge, "n") != doubted {
			t.Fatalf("%s: not as it begins", name)
		}
		for _, e := range []Event{NodeGone{Name: "n"}, node("w", "9", "cloud://second", "c", nil, nil)} {
			l.Apply(start, e)
		}
		if !isUnknown(l, edge, "n") {
			machine, boot := unknownAt(l, edge, "n")
			t.Errorf("%s: not doubted any more, though the first machine may go on (%q, %q)", name, machine, boot)
		}
	}
}
