// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
	"time"
)

func atNode(l *Ledger, v VolumeID, n NodeName) *VolumeOnNode {
	return l.Snapshot().Volume(v).OnNode(n)
}

// The time is exact only if this process saw the last user's departure.
func TestSinceWhenIdle(t *testing.T) {
	v := VolumeID{"disk", "h"}
	uses := func(version string) Event {
		n := proofNode("n", version)
		n.InUse = []VolumeID{v}
		return n
	}
	pod := func(version string, phase PodPhase) Event {
		return Pod{UID: "p", Version: version, Namespace: "ns", Name: "p", Node: "n", Phase: phase, Volumes: []PodVolume{{Name: "v", Inline: v}}}
	}
	ticket := func(version string, phase TicketPhase) Event {
		return Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: version, Type: TypeManual, Node: "n", Phase: phase, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	}
	reports := func(version string) Event {
		n := proofNode("n", version)
		n.InUse, n.Reported = []VolumeID{v}, []VolumeID{v}
		return n
	}
	for name, test := range map[string]struct {
		events []Event // one a second
		idle   int     // the index of the event; -1: none
		seen   bool
	}{
		"listed":                     {[]Event{uses("2")}, 0, false},
		"listed again":               {[]Event{uses("2"), uses("3")}, 0, false},
		"listed, and reported":       {[]Event{uses("2"), reports("3")}, 0, false},
		"a pod":                      {[]Event{uses("2"), pod("1", PodLive)}, -1, false},
		"a pod that leaves":          {[]Event{uses("2"), pod("1", PodLive), pod("2", PodTerminating)}, -1, false},
		"a pod has finished":         {[]Event{uses("2"), pod("1", PodLive), pod("2", PodFinished)}, 2, true},
		"it has gone":                {[]Event{uses("2"), pod("1", PodLive), PodGone{"p"}}, 2, true},
		"gone, and reported":         {[]Event{uses("2"), pod("1", PodLive), PodGone{"p"}, reports("3")}, 2, true},
		"it comes back":              {[]Event{uses("2"), pod("1", PodLive), PodGone{"p"}, pod("3", PodLive)}, -1, false},
		"and goes again":             {[]Event{uses("2"), pod("1", PodLive), PodGone{"p"}, pod("3", PodLive), PodGone{"p"}}, 4, true},
		"a ticket asks":              {[]Event{uses("2"), ticket("1", TicketPending)}, 0, false},
		"a ticket asks for it first": {[]Event{ticket("1", TicketPending), uses("2")}, 0, false},
		"it is granted":              {[]Event{uses("2"), ticket("1", TicketPending), ticket("2", TicketGranted)}, -1, false},
		"and interrupted":            {[]Event{uses("2"), ticket("1", TicketPending), ticket("2", TicketGranted), ticket("3", TicketPending)}, 3, true},
		"and gone":                   {[]Event{uses("2"), ticket("1", TicketGranted), TicketGone{ID: TicketID{"ns", "t"}}}, 2, true},
	} {
		l := New()
		l.Apply(start.Add(-time.Second), proofNode("n", "1"))
		l.Apply(start.Add(-time.Second), PersistentVolume{Name: "pv", Version: "1", Volume: v})
		l.Apply(start.Add(-time.Second), Complete{})
		for i, e := range test.events {
			l.Apply(start.Add(time.Duration(i)*time.Second), e)
		}
		p := atNode(l, v, "n")
		since, idle := l.Snapshot().Idle(p)
		if idle != (test.idle >= 0) || idle && !since.Equal(start.Add(time.Duration(test.idle)*time.Second)) || p.SawLeave != test.seen {
			t.Errorf("%s: idle %t since %s, seen to begin %t; want the time of event %d, %t", name, idle, since, p.SawLeave, test.idle, test.seen)
		}
	}
}

// A report lapses until the volume is no longer reported.
func TestLapsedReports(t *testing.T) {
	v := VolumeID{"disk", "h"}
	reports := func(version string) Event {
		n := proofNode("n", version)
		n.Reported = []VolumeID{v}
		return n
	}
	uses := func(version string) Event {
		n := proofNode("n", version)
		n.InUse = []VolumeID{v}
		return n
	}
	a := func(uid, version string) Event { return proofAttachment(v, "n", uid, version) }
	short := func(uid, version string) Event {
		a := proofAttachment(v, "n", "a", version)
		a.UID = uid
		return a
	}
	theirs := Attachment{Name: "theirs", UID: proofUID("f"), Version: "1", Driver: "disk", Node: "n", Inline: v}
	gone := AttachmentGone{AttachmentName(v, "n")}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"reported":                        {[]Event{a("a", "1"), reports("2")}, false},
		"its attachment is written":       {[]Event{a("a", "1"), reports("2"), a("a", "2")}, false},
		"of no usual UID":                 {[]Event{short("a", "1"), reports("2"), short("a", "2")}, false},
		"of no usual UID, made again":     {[]Event{short("a", "1"), reports("2"), short("b", "2")}, true},
		"its attachment goes":             {[]Event{a("a", "1"), reports("2"), gone}, true},
		"it is made again":                {[]Event{a("a", "1"), reports("2"), a("b", "2")}, true},
		"it goes, and is made again":      {[]Event{a("a", "1"), reports("2"), gone, a("b", "2")}, true},
		"it goes, and it is used, too":    {[]Event{a("a", "1"), reports("2"), gone, Pod{UID: "p", Version: "1", Namespace: "ns", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}}, true},
		"it goes, and reports end":        {[]Event{a("a", "1"), reports("2"), uses("3"), gone, reports("4")}, false},
		"lapsed, and then it is not":      {[]Event{a("a", "1"), reports("2"), a("b", "2"), uses("3")}, false},
		"lapsed, not, and reported again": {[]Event{a("a", "1"), reports("2"), a("b", "2"), uses("3"), reports("4")}, false},
		"reported where none ever was":    {[]Event{reports("2"), a("a", "1")}, false},
		"another's goes":                  {[]Event{a("a", "1"), theirs, reports("2"), AttachmentGone{"theirs"}}, false},
		"only another's goes":             {[]Event{theirs, reports("2"), AttachmentGone{"theirs"}}, false},
		"its own beside another's goes":   {[]Event{a("a", "1"), theirs, reports("2"), gone}, true},
	} {
		l := New()
		l.Apply(start, proofNode("n", "1"))
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if got := atNode(l, v, "n").Lapsed; got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The attachment is another volume's: the report does not lapse.
func TestReportOfAnAttachmentThatWasAnothers(t *testing.T) {
	v, other := VolumeID{"disk", "h"}, VolumeID{"disk", "other"}
	l := New()
	n := proofNode("n", "1")
	n.Reported = []VolumeID{v}
	a := Attachment{Name: AttachmentName(v, "n"), UID: proofUID("a"), Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv"}
	for _, e := range []Event{n, a} {
		l.Apply(start, e)
	}
	if p := atNode(l, v, "n"); !p.HasOwn() {
		t.Fatalf("the name leads nowhere: %+v", p)
	}
	a.Inline, a.PersistentVolume, a.Version = other, "", "2"
	l.Apply(start, a)
	if p := atNode(l, v, "n"); p.HasAttachments() || p.Lapsed {
		t.Errorf("of the first: %+v", p)
	}

	l = New()
	own := proofAttachment(v, "n", "a", "1")
	l.Apply(start, own)
	l.Apply(start, n)
	own.UID, own.Version, own.Inline = proofUID("b"), "2", other
	l.Apply(start, own)
	if p := atNode(l, v, "n"); p.HasAttachments() || !p.Lapsed {
		t.Errorf("of the first, made again: %+v", p)
	}
}

func TestChangesAreCountedAtTheNode(t *testing.T) {
	v := VolumeID{"disk", "h"}
	change := func(l *Ledger, v VolumeID, n NodeName, do func(*VolumeOnNode)) Touched {
		var touched Touched
		l.changeVolumeOnNode(start, &touched, v, n, do)
		return touched
	}
	nothing := func(*VolumeOnNode) {}
	for _, at := range []struct {
		v VolumeID
		n NodeName
	}{{VolumeID{}, "n"}, {v, ""}} {
		l := New()
		if got := change(l, at.v, at.n, func(p *VolumeOnNode) { p.InUse = true }); len(got.Volumes)+len(got.Nodes) > 0 || l.facts.volumes.get(at.v) != nil || l.facts.nodes.get(at.n) != nil {
			t.Errorf("volume %s at node %q: %+v", at.v, at.n, got)
		}
	}
	l := New()
	if got := change(l, v, "n", nothing); len(got.Nodes) > 0 || l.facts.nodes.get("n") != nil || l.facts.volumes.get(v) != nil {
		t.Errorf("nothing has come: %+v", got)
	}
	counts := func(when string, used, asked int32, reported, inUse int) {
		t.Helper()
		n := l.facts.nodes.get("n")
		if d := n.Driver("disk"); d.Used != used || d.OnlyAsked != asked || n.reported != reported || n.inUse != inUse {
			t.Errorf("%s: %d used, %d only asked for, %d reported, %d in use", when, d.Used, d.OnlyAsked, n.reported, n.inUse)
		}
	}
	if got := change(l, v, "n", func(p *VolumeOnNode) { p.InUse = true }); !slices.Equal(got.Nodes, []NodeName{"n"}) {
		t.Errorf("it comes, and touches %q", got.Nodes)
	}
	counts("it comes", 1, 0, 0, 1)
	if n := l.facts.nodes.get("n"); !n.NotReady.Equal(start) {
		t.Errorf("a node that nobody has seen is not Ready since %s", n.NotReady)
	}
	l.changeVolumeOnNode(start.Add(time.Second), &Touched{}, v, "n", func(p *VolumeOnNode) { p.Reported = true })
	if n := l.facts.nodes.get("n"); !n.NotReady.Equal(start) {
		t.Errorf("it is not Ready since %s, when a volume was reported", n.NotReady)
	}
	counts("it is reported", 1, 0, 1, 1)
	if got := change(l, v, "n", func(p *VolumeOnNode) { p.InUse = false }); len(got.Nodes) > 0 || !slices.Equal(got.Volumes, []VolumeID{v}) {
		t.Errorf("it is not in use, and touches %+v", got)
	}
	counts("it is not in use", 1, 0, 1, 0)
	if got := change(l, v, "n", func(p *VolumeOnNode) { p.Reported = false }); !slices.Equal(got.Nodes, []NodeName{"n"}) || l.facts.nodes.get("n") != nil || l.facts.volumes.get(v) != nil {
		t.Errorf("it goes, and touches %q", got.Nodes)
	}
	l.Apply(start, proofNode("n", "1"))
	change(l, v, "n", func(p *VolumeOnNode) { p.InUse = true })
	if n := l.facts.nodes.get("n"); !n.NotReady.IsZero() {
		t.Errorf("a node that is Ready is not since %s", n.NotReady)
	}
}

// Only waiting tickets without a slot bind it.
func TestOnlyAsked(t *testing.T) {
	v := VolumeID{"disk", "h"}
	told := func(version, name string, reason Code, changes ...func(*Ticket)) Event {
		k := Ticket{ID: TicketID{"ns", name}, UID: name, Version: version, Type: TypeManual, Node: "n", Reason: string(reason), Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
		for _, change := range changes {
			change(&k)
		}
		return k
	}
	const held = Code("HeldElsewhere")
	uses := proofNode("n", "2")
	uses.InUse = []VolumeID{v}
	for name, test := range map[string]struct {
		events []Event
		want   int32
	}{
		"it was told why it waits":   {[]Event{told("1", "t", held)}, 1},
		"two were":                   {[]Event{told("1", "t", held), told("1", "u", held)}, 1},
		"one was not":                {[]Event{told("1", "t", held), told("1", "u", "")}, 0},
		"it waits for slots":         {[]Event{told("1", "t", CodeNoFreeSlot)}, 0},
		"it waits for slots, yields": {[]Event{told("1", "t", CodeNoFreeSlot, func(k *Ticket) { k.Type = TypeBackup })}, 1},
		"it is told later":           {[]Event{told("1", "t", ""), told("2", "t", held)}, 1},
		"it asks anew":               {[]Event{told("1", "t", held), told("2", "t", CodeNotGranted)}, 0},
		"it may be granted":          {[]Event{told("1", "t", held), TicketInDoubt{ID: TicketID{"ns", "t"}, UID: "t"}}, 0},
		"a pod comes":                {[]Event{told("1", "t", held), Pod{UID: "p", Version: "1", Namespace: "ns", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}}, 0},
		"it is in use":               {[]Event{told("1", "t", held), uses}, 0},
		"it goes":                    {[]Event{told("1", "t", held), TicketGone{ID: TicketID{"ns", "t"}}}, 0},
	} {
		l := New()
		for _, e := range append([]Event{proofNode("n", "1"), PersistentVolume{Name: "pv", Version: "1", Volume: v}}, test.events...) {
			l.Apply(start, e)
		}
		s := l.Snapshot()
		if p := s.Volume(v).OnNode("n"); s.Node("n").Driver("disk").OnlyAsked != test.want || p != nil && p.OnlyAsked != (test.want > 0) {
			t.Errorf("%s: %d, %+v", name, s.Node("n").Driver("disk").OnlyAsked, p)
		}
		if taken, takes := s.Node("n").Driver("disk").Taken(), s.Volume(v).OnNode("n").TakesSlot(); taken != int32(count(takes)) {
			t.Errorf("%s: %d slots are taken, and it takes one: %t", name, taken, takes)
		}
	}
}

func TestOtherVolumesAtTheSameNode(t *testing.T) {
	id := func(handle string) VolumeID { return VolumeID{"disk", handle} }
	pod := func(version string, n NodeName, handles ...string) Event {
		p := Pod{UID: "p", Version: version, Namespace: "ns", Name: "p", Node: n}
		for _, h := range handles {
			p.Volumes = append(p.Volumes, PodVolume{Name: h, Inline: id(h)})
		}
		return p
	}
	ticket := func(version string, n NodeName, handles ...string) Event {
		k := Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: version, Type: TypeManual, Node: n}
		for _, h := range handles {
			k.Volumes = append(k.Volumes, TicketVolume{PersistentVolume: h})
		}
		return k
	}
	granted := func(version string, n NodeName, handles ...string) Event {
		k := ticket(version, n, handles...).(Ticket)
		k.Phase = TicketGranted
		return k
	}
	for name, asks := range map[string]func(string, NodeName, ...string) Event{"pod": pod, "ticket": ticket, "granted ticket": granted} {
		for next, test := range map[string]struct {
			event Event
			want  string
		}{
			"the same":           {asks("2", "n", "a", "b"), "an bn"},
			"in another order":   {asks("2", "n", "b", "a"), "an bn"},
			"one other":          {asks("2", "n", "b", "c"), "bn cn"},
			"one less":           {asks("2", "n", "b"), "bn"},
			"none":               {asks("2", "n"), ""},
			"at another node":    {asks("2", "m", "a", "b"), "am bm"},
			"others, at another": {asks("2", "m", "b", "c"), "bm cm"},
		} {
			l := New()
			for _, h := range []string{"a", "b", "c"} {
				l.Apply(start, PersistentVolume{Name: h, Version: "1", Volume: id(h)})
			}
			l.Apply(start, asks("1", "n", "a", "b"))
			l.Apply(start, test.event)
			got := ""
			for _, h := range []string{"a", "b", "c"} {
				for _, n := range []NodeName{"m", "n"} {
					if p := atNode(l, id(h), n); p != nil && len(p.Users) == 1 {
						got += " " + h + string(n)
					}
				}
			}
			if got = got[min(1, len(got)):]; got != test.want {
				t.Errorf("a %s, %s: at %q, want %q", name, next, got, test.want)
			}
		}
	}
}

func TestKeepsWhatItUsed(t *testing.T) {
	a, b, unbound := VolumeID{"disk", "a"}, VolumeID{"disk", "b"}, UnboundClaim("disk", "u")
	for name, test := range map[string]struct{ at, was, want []VolumeID }{
		"nothing":         {nil, nil, nil},
		"the same":        {[]VolumeID{a}, []VolumeID{a}, []VolumeID{a}},
		"another one":     {[]VolumeID{a}, []VolumeID{b}, []VolumeID{a, b}},
		"twice":           {[]VolumeID{a}, []VolumeID{b, b}, []VolumeID{a, b}},
		"none":            {[]VolumeID{a}, []VolumeID{{}}, []VolumeID{a}},
		"an unbound one":  {[]VolumeID{a}, []VolumeID{unbound}, []VolumeID{a}},
		"where none is":   {[]VolumeID{{}}, []VolumeID{a}, []VolumeID{{}, a}},
		"of several":      {[]VolumeID{a}, []VolumeID{unbound, {}, a, b}, []VolumeID{a, b}},
		"nothing is left": {nil, []VolumeID{a}, []VolumeID{a}},
	} {
		if got := keep(slices.Clone(test.at), test.was); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

func TestProofEndsWithAUser(t *testing.T) {
	v := VolumeID{"disk", "h"}
	user := Pod{UID: "q", Version: "1", Namespace: "ns", Name: "q", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}
	for name, test := range map[string]struct {
		events []Event
		want   ProofStage
	}{
		"nobody":       {nil, ProofUnreported},
		"who goes":     {[]Event{PodGone{"p"}}, ProofUnreported},
		"who comes":    {[]Event{user}, ProofNone},
		"who comes in": {[]Event{PodGone{"p"}, user}, ProofNone},
	} {
		l := New()
		p := user
		p.UID, p.Name = "p", "p"
		for _, e := range []Event{proofNode("n", "1"), p, proofAttachment(v, "n", "a", "1"), Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1"}} {
			l.Apply(start, e)
		}
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if got := atNode(l, v, "n").Proof.Stage; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestDriversOfANode(t *testing.T) {
	n := &Node{Drivers: []NodeDriver{
		unknownDriver("gone"),
		{DriverOnNode: DriverOnNode{Name: "used", Limit: NoLimit}, Used: 1},
		{DriverOnNode: DriverOnNode{Name: "registered", Limit: NoLimit}, Registered: true},
		{DriverOnNode: DriverOnNode{Name: "full", Limit: NoLimit}, Exhausted: true},
		{DriverOnNode: DriverOnNode{Name: "limited", Limit: 2}},
		{DriverOnNode: DriverOnNode{Name: "named", Limit: NoLimit, NodeID: "i"}},
	}}
	n.inBulk = true
	if n.sweepDrivers(); len(n.Drivers) != 6 {
		t.Errorf("while many come: %v", n.Drivers)
	}
	n.inBulk = false
	n.sweepDrivers()
	var names []string
	for _, d := range n.Drivers {
		names = append(names, d.Name)
	}
	if want := []string{"used", "registered", "full", "limited", "named"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	n = &Node{}
	n.ownDrivers([]string{"b", "a", "b"})
	n.ownDrivers([]string{"c", "a"})
	names = nil
	for _, d := range n.Drivers {
		names = append(names, d.Name)
		if d.Limit != NoLimit {
			t.Errorf("%s has a limit of %d", d.Name, d.Limit)
		}
	}
	if want := []string{"a", "b", "c"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
}

func TestPodWithoutVolumesUsesNone(t *testing.T) {
	v := VolumeID{"disk", "h"}
	held := HoldSeen{v, Hold{Version: "1", Node: "n", Requesters: []Requester{{Namespace: "ns", Name: "p", UID: "p"}}}}
	for handle, want := range map[string]bool{"": false, "other": true} {
		l := New()
		p := Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n"}
		if handle != "" {
			p.Volumes = []PodVolume{{Name: "v", Inline: VolumeID{"disk", handle}}}
		}
		l.Apply(start, held)
		l.Apply(start, p)
		if at := atNode(l, v, "n"); (at != nil) != want {
			t.Errorf("a pod with %q uses the volume of its hold: %t", handle, at != nil)
		}
	}
}

// An agreeing PersistentVolume ends the wait; later ones change nothing.
func TestAttachmentThatWasPlacedByItsName(t *testing.T) {
	v, other := VolumeID{"disk", "h"}, VolumeID{"disk", "other"}
	a := Attachment{Name: AttachmentName(v, "n"), UID: proofUID("a"), Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv"}
	l := New()
	l.Apply(start, HoldSeen{v, Hold{Version: "1", Node: "n"}})
	l.Apply(start, a)
	if r := l.facts.attachments.get(a.Name); !r.byName || r.at() != v || !slices.Contains(l.facts.pvs.get("pv").attachments, a.Name) {
		t.Fatalf("it is of %s, by its name: %t", r.at(), r.byName)
	}
	l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
	if r := l.facts.attachments.get(a.Name); r.byName || r.at() != v || len(l.facts.pvs.get("pv").attachments) > 0 {
		t.Errorf("it is of %s, by its name: %t", r.at(), r.byName)
	}
	l.Apply(start, PersistentVolumeGone{"pv"})
	l.Apply(start, PersistentVolume{Name: "pv", Version: "2", Volume: other})
	if p := atNode(l, v, "n"); !p.HasOwn() {
		t.Errorf("it is another one's: %+v", p)
	}
}

// Its PersistentVolume may be missing, without a volume, or of another disk.
func TestAttachmentOfUnknownVolumeTakesASlot(t *testing.T) {
	unknown := AttachmentName(VolumeID{"disk", "unknown"}, "n")
	for _, name := range []string{"theirs", unknown} {
		for what, pv := range map[string]Event{
			"none":                  nil,
			"one of no CSI volume":  PersistentVolume{Name: "pv", Version: "1"},
			"one that is gone":      PersistentVolumeGone{"pv"},
			"that of another disk":  PersistentVolume{Name: "pv", Version: "1", Volume: VolumeID{"disk", "other"}},
			"the other of its name": PersistentVolume{Name: "another", Version: "1", Volume: VolumeID{"disk", "other"}},
		} {
			l := New()
			a := Attachment{Name: name, UID: "a", Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv"}
			if pv != nil {
				l.Apply(start, pv)
			}
			l.Apply(start, a)
			if used := l.Snapshot().Node("n").Driver("disk").Used; used != 1 {
				t.Errorf("%s, and its PersistentVolume is %s: %d slots used", name, what, used)
			}
		}
	}
}

func TestSlotIsFreeWhereNothingIsAttached(t *testing.T) {
	key := ClaimKey{Namespace: "ns", Name: "data"}
	l := New()
	for i, step := range []struct {
		event Event
		used  int32
	}{
		{Driver{Name: "disk", Version: "1", AttachRequired: true}, 0}, {StorageClass{Name: "fast", Version: "1", Driver: "disk"}, 0},
		{Claim{Key: key, UID: "c", Version: "1", Class: "fast"}, 0},
		{Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Claim: "data"}}}, 1},
		{Claim{Key: key, UID: "c", Version: "2", Class: "fast", PersistentVolume: "nfs", Bound: true}, 1}, {PersistentVolume{Name: "nfs", Version: "1"}, 0},
	} {
		l.Apply(start, step.event)
		if used := l.Snapshot().Node("n").Driver("disk").Used; used != step.used {
			t.Errorf("after event %d: %d slots are used, want %d", i, used, step.used)
		}
	}
}

func TestHeldIsMoreThanAskedFor(t *testing.T) {
	lun := VolumeID{"kubernetes.io/iscsi", "h"}
	n := proofNode("n", "1")
	n.InUse = []VolumeID{lun}
	asks := Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n", Reason: "HeldElsewhere", Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	for _, at := range []NodeName{"n", "m"} {
		l := New()
		for _, e := range []Event{PersistentVolume{Name: "pv", Version: "1", Volume: lun}, HoldSeen{lun, Hold{Version: "1", Node: at}}, asks} {
			l.Apply(start, e)
		}
		if got := atNode(l, lun, "n").OnlyAsked; got == (at == "n") {
			t.Errorf("held at %s: only asked for at n: %t", at, got)
		}
		l.Apply(start, n)
		l.Apply(start, Unreported{Volume: lun, Node: "n", Forced: true})
		if got := isUnknown(l, lun, "n"); got != (at == "n") {
			t.Errorf("held at %s: doubted at n: %t", at, got)
		}
	}
}

func TestWhatComesBack(t *testing.T) {
	v := VolumeID{"disk", "h"}
	pv := func(version string) Event { return PersistentVolume{Name: "pv", Version: version, Volume: v} }
	bound := Claim{Key: ClaimKey{Namespace: "ns", Name: "data"}, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true}
	for name, names := range map[string][]Event{
		"a ticket":       {Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{PersistentVolume: "pv"}}}},
		"a pod's claim":  {bound, Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Claim: "data"}}}},
		"a ticket claim": {bound, Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{Claim: "data"}}}},
		"an attachment":  {Attachment{Name: "theirs", UID: "a", Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv"}},
	} {
		for when, events := range map[string][]Event{
			"before":          append([]Event{pv("1"), PersistentVolumeGone{"pv"}}, append(names, pv("2"))...),
			"after":           append(slices.Clone(names), pv("1")),
			"again":           append(slices.Clone(names), pv("1"), PersistentVolumeGone{"pv"}, pv("2")),
			"told to be gone": append(slices.Clone(names), PersistentVolumeGone{"pv"}, pv("2")),
		} {
			l := New()
			for _, e := range events {
				l.Apply(start, e)
			}
			if atNode(l, v, "n") == nil {
				t.Errorf("%s, whose PersistentVolume is seen %s: it does not lead there", name, when)
			}
		}
	}
}

// Waiting attachments and holds keep the entry.
func TestUnmatchedIsForgottenWithTheLast(t *testing.T) {
	v := VolumeID{"disk", "h"}
	held := HoldSeen{v, Hold{Version: "1", Node: "n"}}
	waits := Attachment{Name: "theirs", UID: proofUID("b"), Version: "1", Driver: "disk", Node: "n", PersistentVolume: "unseen"}
	own := Attachment{Name: AttachmentName(v, "n"), UID: proofUID("a"), Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv"}
	for name, test := range map[string]struct {
		events []Event
		known  bool // a record of it
		named  bool // the attachment that comes next is of the volume
	}{
		"a hold":                         {[]Event{held}, true, true},
		"an attachment waits":            {[]Event{waits}, true, false},
		"both, and the attachment goes":  {[]Event{held, waits, AttachmentGone{"theirs"}}, true, true},
		"both, and the hold goes":        {[]Event{held, waits, HoldGone{Volume: v}}, true, false},
		"both have gone":                 {[]Event{held, waits, HoldGone{Volume: v}, AttachmentGone{"theirs"}}, false, false},
		"the hold names another node":    {[]Event{held, HoldSeen{v, Hold{Version: "2", Node: "m"}}}, false, false},
		"the volume comes to be there":   {[]Event{held, Pod{UID: "p", Version: "1", Namespace: "ns", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}}, false, true},
		"it comes, and leaves the hold":  {[]Event{held, Pod{UID: "p", Version: "1", Namespace: "ns", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}, PodGone{"p"}}, true, true},
		"it comes, and no hold is there": {[]Event{Pod{UID: "p", Version: "1", Namespace: "ns", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}, PodGone{"p"}}, false, false},
	} {
		l := New()
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if got := l.facts.unmatched.get(driverNode{"disk", "n"}) != nil; got != test.known {
			t.Errorf("%s: known: %t", name, got)
		}
		l.Apply(start, own)
		if got := l.facts.attachments.get(own.Name).at() == v; got != test.named {
			t.Errorf("%s: the attachment is of it: %t", name, got)
		}
	}
}

// A granted ticket that has lost a volume uses no later volumes.
func TestTicketsThatLeadFurther(t *testing.T) {
	first, late := VolumeID{"disk", "first"}, VolumeID{"disk", "late"}
	comes := PersistentVolume{Name: "late", Version: "1", Volume: late}
	gone := PersistentVolumeGone{"first"}
	for name, test := range map[string]struct {
		kind   TicketType
		phase  TicketPhase
		events []Event
		want   bool
	}{
		"granted":              {TypeManual, TicketGranted, []Event{comes}, true},
		"granted, it has lost": {TypeManual, TicketGranted, []Event{gone, comes}, false},
		"asks":                 {TypeManual, TicketPending, []Event{comes}, true},
		"asks, it has lost":    {TypeManual, TicketPending, []Event{gone, comes}, true},
		"granted, lost later":  {TypeManual, TicketGranted, []Event{comes, gone}, true},
	} {
		l := New()
		l.Apply(start, PersistentVolume{Name: "first", Version: "1", Volume: first})
		l.Apply(start, Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: test.kind, Node: "n", Phase: test.phase, Volumes: []TicketVolume{{PersistentVolume: "first"}, {PersistentVolume: "late"}}})
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if p := atNode(l, late, "n"); (p != nil) != test.want {
			t.Errorf("%s: it uses what comes: %t", name, p != nil)
		}
	}
}

// Volumes that a pod used before come after the spec's, in order.
func TestOrderOfWhatAPodUses(t *testing.T) {
	key := ClaimKey{Namespace: "ns", Name: "data"}
	l := New()
	l.Apply(start, Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Claim: "data"}}})
	for i, handle := range []string{"a", "b", "c"} {
		version := string(rune('1' + i))
		l.Apply(start, PersistentVolume{Name: handle, Version: "1", Volume: VolumeID{"disk", handle}})
		l.Apply(start, Claim{Key: key, UID: "c" + version, Version: version, PersistentVolume: handle, Bound: true})
	}
	var got []string
	for _, v := range l.Snapshot().PodAt("p") {
		got = append(got, v.Handle)
	}
	if want := []string{"c", "a", "b"}; !slices.Equal(got, want) {
		t.Errorf("it uses %q, want %q", got, want)
	}
}

// The driver's slots and its name for the node are remembered.
func TestDriversThatLeaveTheCSINode(t *testing.T) {
	said := []DriverOnNode{{Name: "limited", Limit: 2}, {Name: "named", Limit: NoLimit, NodeID: "i"}, {Name: "plain", Limit: NoLimit}, {Name: "stays", Limit: NoLimit}}
	for name, test := range map[string]struct {
		next Event
		want []string
	}{
		"they have left it": {NodeDrivers{Node: "n", Version: "2", Drivers: said[3:]}, []string{"limited", "named", "stays"}},
		"it is gone":        {NodeDriversGone{"n"}, []string{"limited", "named"}},
		"nothing changes":   {NodeDrivers{Node: "n", Version: "2", Drivers: said}, []string{"limited", "named", "plain", "stays"}},
	} {
		l := New()
		l.Apply(start, proofNode("n", "1"))
		l.Apply(start, NodeDrivers{Node: "n", Version: "1", Drivers: said})
		l.Apply(start, test.next)
		var got []string
		for _, d := range l.Snapshot().Node("n").Drivers {
			got = append(got, d.Name)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestDoubtEndsWhereTheHoldMoves(t *testing.T) {
	v := VolumeID{"kubernetes.io/iscsi", "h"}
	hold := func(version string, n NodeName) Event {
		return HoldSeen{v, Hold{Version: version, Node: n}}
	}
	node := func(uid, version string, inUse ...VolumeID) Event {
		n := proofNode("n", version)
		n.UID, n.BootID, n.InUse = uid, "b", inUse
		return n
	}
	for name, test := range map[string]struct {
		next           Event
		listed         bool
		doubted, inUse bool
	}{
		"it stays":                    {hold("2", "n"), false, true, false},
		"to another node":             {hold("2", "m"), false, false, false},
		"to another node, and listed": {hold("2", "m"), true, false, true},
		"to none":                     {hold("2", ""), false, false, false},
	} {
		l := New()
		for _, e := range []Event{PersistentVolume{Name: "pv", Version: "1", Volume: v}, hold("1", "n"), node("u", "1", v), node("w", "2")} {
			l.Apply(start, e)
		}
		if test.listed {
			l.Apply(start, node("w", "3", v))
		}
		if !isUnknown(l, v, "n") {
			t.Fatalf("%s: nothing is doubted", name)
		}
		l.Apply(start, test.next)
		p := atNode(l, v, "n")
		if got := isUnknown(l, v, "n"); got != test.doubted || (p != nil && p.InUse) != test.inUse {
			t.Errorf("%s: doubted %t, %+v", name, got, p)
		}
	}
}

func TestSnapshotsStayAsTheyWere(t *testing.T) {
	v, key := VolumeID{"disk", "h"}, ClaimKey{Namespace: "ns", Name: "data"}
	l := New()
	for _, e := range []Event{
		PersistentVolume{Name: "pv", Version: "1", Volume: v}, Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true},
		proofNode("n", "1"), HoldSeen{v, Hold{Version: "1", Node: "n"}},
	} {
		l.Apply(start, e)
	}
	s := l.Snapshot()
	for _, e := range []Event{
		PersistentVolume{Name: "pv", Version: "2", Volume: v}, Claim{Key: key, UID: "c", Version: "2", PersistentVolume: "pv", Bound: true},
		proofNode("n", "2"), HoldSeen{v, Hold{Version: "2", Node: "n"}},
	} {
		l.Apply(start, e)
	}
	if got := s.PersistentVolume("pv").Version + s.Claim(key).Version + s.Node("n").Version + s.Volume(v).Hold.Version; got != "1111" {
		t.Errorf("the versions of PersistentVolume, claim, node and hold are %s", got)
	}
}

// The process began after the claim was made again.
func TestWhoWaitsByTheHoldUsesTheVolume(t *testing.T) {
	v, other := VolumeID{"disk", "h"}, VolumeID{"disk", "i"}
	claim := ClaimKey{"ns", "c"}
	waits := []Requester{{Namespace: "ns", Name: "p", UID: "p"}}
	for name, test := range map[string]struct {
		hold Hold
		want string
	}{
		"it waits":            {Hold{Version: "1", Node: "m", Waiting: waits}, "h i"},
		"it is next":          {Hold{Version: "1", Node: "m", Next: Promise{Node: "n", To: waits[0]}}, "h i"},
		"somebody else waits": {Hold{Version: "1", Node: "m", Waiting: []Requester{{Namespace: "ns", Name: "q", UID: "q"}}}, "i"},
		"a ticket waits":      {Hold{Version: "1", Node: "m", Waiting: []Requester{{Ticket: true, Namespace: "ns", Name: "p", UID: "p"}}}, "i"},
		"its node has it":     {Hold{Version: "1", Node: "n", Requesters: waits}, "h i"},
		"another node has it": {Hold{Version: "1", Node: "m", Requesters: waits}, "i"},
	} {
		l := New()
		for _, e := range []Event{
			HoldSeen{v, test.hold},
			PersistentVolume{Name: "pv", Version: "1", Volume: other, Claim: claim},
			Claim{Key: claim, UID: "made-again", Version: "1", PersistentVolume: "pv", Bound: true},
			Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Claim: "c"}}},
			Complete{},
		} {
			l.Apply(time.Unix(1000, 0), e)
		}
		got := ""
		for _, id := range []VolumeID{v, other} {
			if p := l.Snapshot().Volume(id).OnNode("n"); p != nil && len(p.Users) == 1 {
				got += " " + id.Handle
			}
		}
		if got[min(1, len(got)):] != test.want {
			t.Errorf("%s: the pod uses%s, want %s", name, got, test.want)
		}
	}
}

// Kubelets do not know a ticket's user. Only a later read or write proves a Ready node: a watch event may
// be behind.
func TestUnlistedHolders(t *testing.T) {
	v := VolumeID{"disk", "h"}
	node := func(version string, ready Readiness) Event {
		n := proofNode("n", version)
		n.Ready = ready
		return n
	}
	attached, gone := proofAttachment(v, "n", "a", "1"), TicketGone{ID: TicketID{"ns", "t"}, UID: "t"}
	unreported := func(ready bool) Event {
		return Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Ready: ready}
	}
	lists := func(version string, ready Readiness) Event {
		n := node(version, ready).(NodeState)
		n.InUse = []VolumeID{v}
		return n
	}
	hold := func(n NodeName, list ...Requester) Event {
		return HoldSeen{v, Hold{Version: "1", Node: n, Requesters: list}}
	}
	ticket := Ticket{ID: gone.ID, UID: "t", Version: "1", Type: TypeManual, Node: "n", Phase: TicketGranted, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"it has it":                            {[]Event{node("1", ReadyTrue), attached, ticket}, true},
		"it has gone":                          {[]Event{node("1", ReadyTrue), attached, ticket, gone}, true},
		"it has gone, and it is unreported":    {[]Event{node("1", ReadyTrue), attached, ticket, gone, unreported(true)}, false},
		"unreported from a silent node":        {[]Event{node("1", ReadyTrue), attached, ticket, gone, unreported(false)}, true},
		"unreported, and it has it":            {[]Event{node("1", ReadyTrue), attached, ticket, unreported(true)}, true},
		"its hold names it no more":            {[]Event{node("1", ReadyTrue), attached, ticket, gone, hold("n")}, true},
		"its hold names it":                    {[]Event{node("1", ReadyTrue), attached, ticket, gone, hold("n", Requester{Ticket: true, Namespace: "ns", Name: "t", UID: "t"})}, true},
		"its hold names a pod":                 {[]Event{node("1", ReadyTrue), attached, ticket, gone, hold("n", Requester{Namespace: "ns", Name: "p", UID: "p"})}, true},
		"a read shows the node Ready":          {[]Event{node("1", ReadyTrue), attached, ticket, gone, ReadyShown{v, "n"}}, false},
		"such a read, and it has it":           {[]Event{node("1", ReadyTrue), attached, ticket, ReadyShown{v, "n"}}, true},
		"the kubelet lists it":                 {[]Event{node("1", ReadyTrue), attached, ticket, gone, lists("2", ReadyTrue), node("3", ReadyUnknown)}, false},
		"a silent kubelet has listed it":       {[]Event{node("1", ReadyTrue), attached, ticket, gone, lists("2", ReadyUnknown), node("3", ReadyUnknown)}, true},
		"its hold names no node":               {[]Event{node("1", ReadyTrue), attached, ticket, gone, hold("")}, true},
		"its hold is edited, a silent node":    {[]Event{node("1", ReadyUnknown), attached, ticket, gone, hold("n")}, true},
		"gone while the node is silent":        {[]Event{node("1", ReadyTrue), attached, ticket, node("2", ReadyUnknown), gone}, true},
		"and the node comes back":              {[]Event{node("1", ReadyTrue), attached, ticket, node("2", ReadyUnknown), gone, node("3", ReadyTrue)}, true},
		"and is silent again":                  {[]Event{node("1", ReadyTrue), attached, ticket, node("2", ReadyUnknown), gone, node("3", ReadyTrue), node("4", ReadyUnknown)}, true},
		"silent again, and it has it":          {[]Event{node("1", ReadyTrue), attached, ticket, node("2", ReadyUnknown), node("3", ReadyTrue), node("4", ReadyUnknown), gone}, true},
		"gone before the Node is seen":         {[]Event{attached, ticket, gone, node("1", ReadyTrue), node("2", ReadyUnknown)}, true},
		"gone before the Node is seen, silent": {[]Event{attached, ticket, gone, node("1", ReadyUnknown)}, true},
		"the node comes back as another one":   {[]Event{node("1", ReadyTrue), attached, ticket, NodeGone{"n"}, gone, node("3", ReadyTrue)}, true},
	} {
		if got := isUnlisted(v, test.events); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func isUnlisted(v VolumeID, events []Event) bool {
	l := New()
	l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
	for _, e := range events {
		l.Apply(start, e)
	}
	return atNode(l, v, "n").Unlisted
}

func TestUnlistedHoldersWithoutAttachments(t *testing.T) {
	v := VolumeID{"kubernetes.io/iscsi", "h"}
	node := func(version string, ready Readiness, lists ...VolumeID) Event {
		n := proofNode("n", version)
		n.Ready, n.Reported = ready, lists
		return n
	}
	gone := TicketGone{ID: TicketID{"ns", "t"}, UID: "t"}
	ticket := Ticket{ID: gone.ID, UID: "t", Version: "1", Type: TypeManual, Node: "n", Phase: TicketGranted, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	held := HoldSeen{v, Hold{Version: "1", Node: "n"}}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"it is not there yet":          {[]Event{node("1", ReadyTrue), ticket, node("2", ReadyUnknown)}, false},
		"it is reported":               {[]Event{node("1", ReadyTrue, v), ticket, node("2", ReadyUnknown, v), gone}, true},
		"it is held":                   {[]Event{node("1", ReadyTrue), held, ticket, node("2", ReadyUnknown), gone}, true},
		"gone while the node is Ready": {[]Event{node("1", ReadyTrue, v), held, ticket, gone, node("2", ReadyUnknown, v)}, true},
		"it is unreported":             {[]Event{node("1", ReadyTrue, v), held, ticket, gone, Unreported{Volume: v, Node: "n", Ready: true}}, false},
		"the node comes back":          {[]Event{node("1", ReadyTrue, v), held, ticket, node("2", ReadyUnknown, v), gone, node("3", ReadyTrue, v)}, true},
		"it is not there any more":     {[]Event{node("1", ReadyTrue, v), ticket, node("2", ReadyUnknown, v), node("3", ReadyUnknown)}, false},
	} {
		if got := isUnlisted(v, test.events); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestUnlistedBy(t *testing.T) {
	v := VolumeID{"disk", "h"}
	node := func(version string, ready Readiness) Event {
		n := proofNode("n", version)
		n.Ready = ready
		return n
	}
	ticket := func(name string) Ticket {
		return Ticket{ID: TicketID{"ns", name}, UID: name, Version: "1", Type: TypeManual, Node: "n", Phase: TicketGranted, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	}
	gone := func(name string) Event { return TicketGone{ID: TicketID{"ns", name}, UID: name} }
	lost := ticket("a")
	lost.Version, lost.Phase = "2", TicketPending
	for name, test := range map[string]struct {
		events []Event
		want   string
	}{
		"nobody":                       {[]Event{node("2", ReadyUnknown)}, ""},
		"it has it":                    {[]Event{ticket("a")}, "a"},
		"it has gone":                  {[]Event{ticket("a"), node("2", ReadyUnknown), gone("a")}, "a"},
		"it has lost its grant":        {[]Event{ticket("a"), node("2", ReadyUnknown), lost}, "a"},
		"another one has it since":     {[]Event{ticket("a"), node("2", ReadyUnknown), gone("a"), ticket("b")}, "b"},
		"the first one stays":          {[]Event{ticket("a"), ticket("b")}, "a"},
		"the first one goes":           {[]Event{ticket("a"), ticket("b"), gone("a")}, "b"},
		"the second one goes":          {[]Event{ticket("a"), ticket("b"), node("2", ReadyUnknown), gone("b"), gone("a")}, "a"},
		"they went, and a write tells": {[]Event{ticket("a"), gone("a"), Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Ready: true}}, ""},
		"the node is Ready, they went": {[]Event{ticket("a"), node("2", ReadyUnknown), gone("a"), node("3", ReadyTrue)}, "a"},
	} {
		l := New()
		for _, e := range append([]Event{PersistentVolume{Name: "pv", Version: "1", Volume: v}, node("1", ReadyTrue), proofAttachment(v, "n", "a", "1")}, test.events...) {
			l.Apply(start, e)
		}
		got := ""
		if p := atNode(l, v, "n"); p.UnlistedBy() != nil {
			got = p.UnlistedBy().Name
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
