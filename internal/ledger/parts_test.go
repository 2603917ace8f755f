// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPackedUIDs(t *testing.T) {
	good := "01234567-89ab-cdef-0123-456789abcdef"
	if u, ok := packUID(good); !ok || unpackUID(u) != good {
		t.Errorf("%s is not packed", good)
	}
	for i := range good {
		for _, c := range []string{"-", "0", "g", "G", "A", "/", ":", "`", "", "00"} {
			s := good[:i] + c + good[i+1:]
			if u, ok := packUID(s); ok != (s == good || len(s) == 36 && isUID(s)) || ok && unpackUID(u) != s {
				t.Errorf("%q is packed: %t, as that of %q", s, ok, unpackUID(u))
			}
		}
	}
	if _, ok := packUID("00000000-0000-0000-0000-000000000000"); ok {
		t.Error("a UID of zeros is packed, which stands for none")
	}
	if u, ok := packUID(""); !ok || unpackUID(u) != "" {
		t.Error("no UID is not packed")
	}
}

func isUID(s string) bool {
	for i, c := range s {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdef", c) {
			return false
		}
	}
	return true
}

func TestTakeAttachment(t *testing.T) {
	a, b, c := &attachmentRecord{handle: "a"}, &attachmentRecord{handle: "b"}, &attachmentRecord{handle: "c"}
	for n, have := range [][]*attachmentRecord{{a}, {a, b}, {a, b, c}} {
		for _, r := range []*attachmentRecord{a, b, c, {}} {
			p := &VolumeOnNode{}
			p.setRecords(have)
			p.takeAttachment(r)
			var want []*attachmentRecord
			for _, other := range have {
				if other != r {
					want = append(want, other)
				}
			}
			got := p.records()
			if len(got) != len(want) {
				t.Fatalf("%d: %d are left, want %d", n, len(got), len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%d: another one is left at %d", n, i)
				}
			}
		}
	}
}

// The own attachment first, then foreign ones by name.
func TestOrderOfAttachments(t *testing.T) {
	v := VolumeID{Driver: "disk", Handle: "h"}
	own := AttachmentName(v, "n")
	for _, seen := range [][]string{{own, "a", "z"}, {"a", own, "z"}, {"z", own, "a"}, {"a", "z", own}, {"z", "a", own}, {own, "z", "a"}} {
		l := New()
		for _, name := range seen {
			l.Apply(start, Attachment{Name: name, UID: name, Version: "1", Driver: "disk", Node: "n", Inline: v})
		}
		p := atNode(l, v, "n")
		var got []string
		for _, a := range p.Attachments() {
			got = append(got, a.Name)
		}
		if !slices.Equal(got, []string{own, "a", "z"}) || p.Own() == nil || p.Canonical().Name != own {
			t.Errorf("seen in the order %q: %q", seen, got)
		}
		l.Apply(start, AttachmentGone{own})
		if p = atNode(l, v, "n"); p.Own() != nil || p.Canonical().Name != "a" || len(p.Attachments()) != 2 {
			t.Errorf("seen in the order %q, and the own one is gone: %+v", seen, p.Canonical())
		}
	}
}

func TestEarlierIsOfThisHold(t *testing.T) {
	l, id, now := New(), VolumeID{Driver: "d", Handle: "h"}, time.Unix(1000, 0)
	force := &Force{Rule: "AfterPodGone", Node: "n", Elapsed: time.Minute}
	l.Apply(now, PersistentVolume{Name: "pv", Version: "1", Volume: id, Access: AccessNode})
	l.Apply(now, HoldSeen{Volume: id, Hold: Hold{Version: "1", State: HoldDetachPending, Force: force}})
	if got, read := l.Snapshot().Volume(id).Earlier(); got != *force || !read.Equal(now) {
		t.Errorf("an earlier process has measured %+v at %s", got, read)
	}
	l.Apply(now, HoldGone{Volume: id})
	l.Apply(now, HoldSeen{Volume: id, Hold: Hold{Version: "3", State: HoldHeld}})
	if got, _ := l.Snapshot().Volume(id).Earlier(); got != (Force{}) {
		t.Errorf("of a hold made anew it has measured %+v", got)
	}
}

func TestVolumesAreOrdered(t *testing.T) {
	list := []VolumeID{{Driver: "a", Handle: "2"}, {Driver: "a", Handle: "3"}, {Driver: "b", Handle: "1"}, {Driver: "b", Handle: "2"}}
	for i, v := range list {
		for j, w := range list {
			if got := v.Compare(w); got != cmp.Compare(i, j) {
				t.Errorf("%s compared with %s: %d", v, w, got)
			}
		}
	}
}

func TestVolumesCanBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		volume VolumeID
		says   string
	}{
		"a volume":                 {VolumeID{Driver: "disk", Handle: "h"}, "disk^h"},
		"an unbound claim's":       {UnboundClaim("disk", "claim-uid"), "claim-uid"},
		"an attachment's, unknown": {unknownSource("disk", "their-name"), "their-name"},
	} {
		text := test.volume.String()
		if !strings.HasPrefix(text, "disk^") || !strings.Contains(text, test.says) || strings.ContainsRune(text, 0) {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// The larger numeric version, otherwise the last seen.
func TestNewer(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"2", "1", true}, {"1", "2", false}, {"1", "1", false},
		{"10", "9", true}, {"9", "10", false},
		{"x", "12", true}, {"x2", "123", true}, {"1x", "123", true}, {"123", "x", true}, {"12", "345x", true}, {"1", "1234:", true}, {"/", "12", true},
		{"", "1", true}, {"1", "", true}, {"", "", true},
		{"01", "123", true}, {"0", "12", true},
	} {
		if got := Newer(test.a, test.b); got != test.want {
			t.Errorf("%q newer than %q: %t", test.a, test.b, got)
		}
	}
}

// Health touches the node and its volumes, labels the node alone, the version nothing.
func TestWhichChangesOfANodeTouchIt(t *testing.T) {
	v := VolumeID{Driver: "d", Handle: "h"}
	base := NodeState{Name: "n", UID: "u", Version: "1", Ready: ReadyUnknown, ReadySince: 4, BootID: "b", InUse: []VolumeID{v}}
	for name, test := range map[string]struct {
		change        func(*NodeState)
		node, volumes bool
	}{
		"nothing":                {func(*NodeState) {}, false, false},
		"its condition":          {func(n *NodeState) { n.Ready = ReadyFalse }, true, true},
		"out of service":         {func(n *NodeState) { n.OutOfService = true }, true, true},
		"managed":                {func(n *NodeState) { n.Managed = true }, true, true},
		"draining":               {func(n *NodeState) { n.Draining = true }, true, true},
		"its kubelet reports":    {func(n *NodeState) { n.Reporting = true }, true, true},
		"its boot":               {func(n *NodeState) { n.BootID = "c" }, true, true},
		"it is another":          {func(n *NodeState) { n.UID = "v" }, true, true},
		"its labels":             {func(n *NodeState) { n.Labels = map[string]string{"zone": "a"} }, true, false},
		"how long it has lasted": {func(n *NodeState) { n.ReadySince = 5 }, false, false},
	} {
		l, now := New(), time.Unix(1000, 0)
		l.Apply(now, base)
		is := base
		is.Version = "2"
		test.change(&is)
		touched := l.Apply(now, is)
		if got := len(touched.Nodes) > 0; got != test.node {
			t.Errorf("%s touches the node: %t", name, got)
		}
		if got := len(touched.Volumes) > 0; got != test.volumes {
			t.Errorf("%s touches volumes: %t", name, got)
		}
	}
}

func TestAttachmentNameIsTheKubelets(t *testing.T) {
	for _, test := range []struct {
		volume VolumeID
		node   NodeName
	}{{VolumeID{Driver: "disk", Handle: "h"}, "n"}, {VolumeID{Driver: "other", Handle: "h"}, "n"}, {VolumeID{Driver: "disk", Handle: strings.Repeat("h", 300)}, "m"}} {
		// getAttachmentName in pkg/volume/csi/csi_attacher.go
		want := fmt.Sprintf("csi-%x", sha256.Sum256([]byte(test.volume.Handle+test.volume.Driver+string(test.node))))
		if got := AttachmentName(test.volume, test.node); got != want {
			t.Errorf("%s at %s: %s, want %s", test.volume, test.node, got, want)
		}
	}
}

func TestLinksThatNeedNothing(t *testing.T) {
	for link := LinkVolume; link <= LinkOutside; link++ {
		if got := link.NeedsNone(); got != (link == LinkNone || link == LinkOutside) {
			t.Errorf("%s: %t", link, got)
		}
	}
}

// Each fact: does it take the slot, last without users, or only leave the volume?
func TestWhatBindsAVolumeToANode(t *testing.T) {
	user := []User{{Pod: "p"}}
	attachment := &attachmentRecord{}
	for name, test := range map[string]struct {
		place                              VolumeOnNode
		takes, occupies, onlyLeft, nothing bool
	}{
		"nothing":            {VolumeOnNode{}, true, false, false, true},
		"a user":             {VolumeOnNode{Users: user}, true, false, false, false},
		"tickets that wait":  {VolumeOnNode{Users: user, OnlyAsked: true}, false, false, false, false},
		"a report":           {VolumeOnNode{Reported: true}, true, true, false, false},
		"use":                {VolumeOnNode{InUse: true}, true, true, false, false},
		"an attachment":      {VolumeOnNode{first: attachment}, true, true, false, false},
		"one in flight":      {VolumeOnNode{Sent: true}, true, true, false, false},
		"it was left":        {VolumeOnNode{Left: true}, true, true, true, false},
		"left, and in use":   {VolumeOnNode{Left: true, InUse: true}, true, true, false, false},
		"left, and reported": {VolumeOnNode{Left: true, Reported: true}, true, true, false, false},
		"left, and a user":   {VolumeOnNode{Left: true, Users: user}, true, true, false, false},
		"left, and attached": {VolumeOnNode{Left: true, first: attachment}, true, true, false, false},
		"left, and sent":     {VolumeOnNode{Left: true, Sent: true}, true, true, false, false},
		"a hold":             {VolumeOnNode{Held: true}, true, false, false, false},
	} {
		p := test.place
		if p.TakesSlot() != test.takes || p.OccupiesSlot() != test.occupies || p.OnlyLeft() != test.onlyLeft || p.Empty() != test.nothing {
			t.Errorf("%s: takes a slot %t, occupies it %t, only left %t, nothing %t", name, p.TakesSlot(), p.OccupiesSlot(), p.OnlyLeft(), p.Empty())
		}
	}
	var none *VolumeOnNode
	if none.TakesSlot() || none.OnlyLeft() || none.HasAttachments() || none.Canonical() != nil {
		t.Error("what is not there is something")
	}
}

// The driver's refusal is the last word.
func TestAttachFailed(t *testing.T) {
	v := VolumeID{Driver: "disk", Handle: "h"}
	refused := CallError{Code: 13, Message: "no"}
	for name, test := range map[string]struct {
		change func(*Attachment)
		want   bool
	}{
		"refused":                       {func(a *Attachment) { a.AttachError = refused }, true},
		"nothing was said":              {func(*Attachment) {}, false},
		"it could not be detached":      {func(a *Attachment) { a.DetachError = refused }, false},
		"attached since":                {func(a *Attachment) { a.AttachError, a.Attached = refused, true }, false},
		"of a name of another's":        {func(a *Attachment) { a.AttachError, a.Name = refused, "theirs" }, false},
		"being deleted":                 {func(a *Attachment) { a.Deleting = true }, false},
		"refused, and is being deleted": {func(a *Attachment) { a.AttachError, a.Deleting = refused, true }, true},
	} {
		l, a := New(), Attachment{Name: AttachmentName(v, "n"), UID: proofUID("a"), Version: "1", Driver: "disk", Node: "n", Inline: v}
		test.change(&a)
		l.Apply(start, a)
		if got := atNode(l, v, "n").AttachFailed(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (&VolumeOnNode{}).AttachFailed() {
		t.Error("an attach has failed that there is none of")
	}
}

// A ticket without an answer may be granted.
func TestWhichTicketsWait(t *testing.T) {
	for name, test := range map[string]struct {
		ticket               Ticket
		waits, keeps, awaits bool
	}{
		"told nothing":            {Ticket{Type: TypeManual}, false, true, false},
		"nobody has looked":       {Ticket{Type: TypeManual, Reason: string(CodePending)}, false, true, false},
		"about to be granted":     {Ticket{Type: TypeManual, Reason: string(CodeNotGranted)}, false, true, false},
		"told why":                {Ticket{Type: TypeManual, Reason: "HeldElsewhere"}, true, false, false},
		"for slots":               {Ticket{Type: TypeManual, Reason: string(CodeNoFreeSlot)}, true, true, true},
		"for slots, and it would": {Ticket{Type: TypeBackup, Reason: string(CodeNoFreeSlot)}, true, false, false},
		"told why, and in doubt":  {Ticket{Type: TypeManual, Reason: "HeldElsewhere", InDoubt: true}, true, true, false},
		"granted":                 {Ticket{Type: TypeManual, Phase: TicketGranted, Reason: "HeldElsewhere"}, false, true, false},
		"granted, for slots":      {Ticket{Type: TypeManual, Phase: TicketGranted, Reason: string(CodeNoFreeSlot)}, false, true, false},
	} {
		k := test.ticket
		if k.Waits() != test.waits || k.KeepsSlots() != test.keeps || k.AwaitsSlots() != test.awaits {
			t.Errorf("%s: waits %t, keeps slots %t, awaits them %t", name, k.Waits(), k.KeepsSlots(), k.AwaitsSlots())
		}
	}
}

func TestSnapshotsOfWhatIsMissing(t *testing.T) {
	key := ClaimKey{Namespace: "ns", Name: "data"}
	l := New()
	missing := func(when string, pods int) {
		t.Helper()
		s := l.Snapshot()
		if s.Claim(key) != nil || s.PersistentVolume("pv") != nil || len(s.ClaimPods(key)) != pods || s.Attachment("a") != nil || s.Volume(VolumeID{Driver: "disk", Handle: "h"}) != nil {
			t.Errorf("%s: something is there: %+v, %+v, pods %q", when, s.Claim(key), s.PersistentVolume("pv"), s.ClaimPods(key))
		}
	}
	missing("nobody has named it", 0)
	l.Apply(start, Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Volumes: []PodVolume{{Name: "v", Claim: "data"}}})
	l.Apply(start, Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{PersistentVolume: "pv"}}})
	missing("a pod and a ticket have named it", 1)
	if _, leaving := l.Snapshot().Leaving(&VolumeOnNode{}); leaving {
		t.Error("an attachment is leaving where none is")
	}
}

func TestDurationsBeginWithTheFirstEvent(t *testing.T) {
	l, id := New(), TicketID{"ns", "p"}
	l.Apply(start, Ticket{ID: id, UID: "t", Version: "1", Type: TypeManual, Node: "n"})
	l.Apply(start.Add(time.Second), PersistentVolumeGone{"pv"})
	if s := l.Snapshot(); !s.Interrupted(s.Ticket(id)).Equal(start) {
		t.Errorf("it counts from %s", s.Interrupted(s.Ticket(id)))
	}
}

func TestHandlesAtTheEndsOfParts(t *testing.T) {
	var list handles
	var all []string
	for i := range 3 * maxPart {
		all = append(all, fmt.Sprintf("%05d", i))
		list, _ = list.with(all[i])
	}
	for _, h := range all {
		if _, again := list.with(h); again {
			t.Errorf("%s is added twice", h)
		}
		if fewer, gone := list.without(h); !gone || len(slices.Collect(fewer.all())) != len(all)-1 {
			t.Errorf("%s can't be taken out", h)
		}
	}
}

// NoForceOnTimeout counts from its event, a taint from Complete at the earliest.
func TestWhatBeginsWithCompleteness(t *testing.T) {
	l := New()
	if l.Snapshot().NoForceOnTimeout() {
		t.Error("nobody has said that")
	}
	for name, tainted := range map[NodeName]bool{"tainted": true, "plain": false} {
		l.Apply(start, NodeState{Name: name, UID: "u", Version: "1", Ready: ReadyUnknown, OutOfService: tainted})
	}
	later := start.Add(time.Minute)
	l.Apply(later, NoForceOnTimeout{})
	l.Apply(later, Complete{})
	s := l.Snapshot()
	if !s.NoForceOnTimeout() {
		t.Error("it was said, and is not known")
	}
	if tainted, plain := s.Node("tainted"), s.Node("plain"); !tainted.OutOfServiceAt.Equal(later) || !plain.OutOfServiceAt.IsZero() || !plain.NotReady.Equal(later) {
		t.Errorf("tainted since %s, the other one since %s", tainted.OutOfServiceAt, plain.OutOfServiceAt)
	}
}
