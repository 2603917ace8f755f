// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPackedAttachments(t *testing.T) {
	usual := Attachment{
		UID: "01234567-89ab-cdef-0123-456789abcdef", Version: "12", Driver: "disk", Node: "n", PersistentVolume: "pv", NodeID: "i-1", Transitions: 3,
		Attached: true, Ours: true, Name: AttachmentName(VolumeID{"disk", "h"}, "n"),
	}
	for name, test := range map[string]struct {
		change func(*Attachment)
		odd    bool
	}{
		"as usual":               {func(*Attachment) {}, false},
		"no transitions":         {func(a *Attachment) { a.Transitions = 0 }, false},
		"as many as there are":   {func(a *Attachment) { a.Transitions = math.MaxUint32 }, false},
		"more than there are":    {func(a *Attachment) { a.Transitions = math.MaxUint32 + 1 }, false},
		"fewer than none":        {func(a *Attachment) { a.Transitions = -1 }, false},
		"no version":             {func(a *Attachment) { a.Version = "" }, false},
		"a version in letters":   {func(a *Attachment) { a.Version = "a12" }, true},
		"a version with a zero":  {func(a *Attachment) { a.Version = "012" }, true},
		"a UID in capitals":      {func(a *Attachment) { a.UID = strings.ToUpper(a.UID) }, true},
		"a short UID":            {func(a *Attachment) { a.UID = "u" }, true},
		"no UID":                 {func(a *Attachment) { a.UID = "" }, false},
		"a name of its own":      {func(a *Attachment) { a.Name = "theirs" }, true},
		"another driver's":       {func(a *Attachment) { a.Driver = "other" }, true},
		"it could not be":        {func(a *Attachment) { a.AttachError = CallError{Code: 9, Message: "no"} }, true},
		"it could not end":       {func(a *Attachment) { a.DetachError = CallError{Code: 9, Message: "no"} }, true},
		"since when it goes":     {func(a *Attachment) { a.DeletedAt = 7 }, true},
		"being deleted":          {func(a *Attachment) { a.Deleting = true }, false},
		"of a pod's own volume":  {func(a *Attachment) { a.Inline, a.PersistentVolume = VolumeID{"disk", "h"}, "" }, false},
		"wanted and confirmed":   {func(a *Attachment) { a.Wanted, a.Confirmed = true, true }, false},
		"neither ours, nor done": {func(a *Attachment) { a.Ours, a.Attached = false, false }, false},
	} {
		a := usual
		test.change(&a)
		r := a.pack("h", &machine{node: "n", driver: "disk", nodeID: a.NodeID}, a.PersistentVolume, a.Name == usual.Name)
		a.own = a.Name == usual.Name
		if got := r.unpack(); *got != a || (r.odd != nil) != test.odd {
			t.Errorf("%s: %+v\nwant %+v (odd: %t)", name, *got, a, r.odd != nil)
		}
		if !r.named(a.Name) || r.named(a.Name+"x") || r.named("csi-") {
			t.Errorf("%s: it is not named %s", name, a.Name)
		}
		if !r.is(a.UID) || r.is("another") || r.is("01234567-89ab-cdef-0123-456789abcdee") || a.UID != "" && r.is("") {
			t.Errorf("%s: it is not the one of UID %q", name, a.UID)
		}
	}
}

// By numbers if both are, else by Newer.
func TestOlderRecords(t *testing.T) {
	for _, is := range []string{"", "1", "9", "10", "a", "b", "09", "18446744073709551615", "18446744073709551616"} {
		for _, next := range []string{"", "1", "9", "10", "a", "b", "09", "18446744073709551615", "18446744073709551616"} {
			a := Attachment{Version: is}
			r := a.pack("h", &machine{}, "", false)
			if got, want := r.olderThan(next), Newer(next, is); got != want {
				t.Errorf("%q is older than %q: %t, want %t", is, next, got, want)
			}
		}
	}
}

// A prefix and 64 lower-case hexadecimal digits.
func TestUsualNames(t *testing.T) {
	digest := strings.Repeat("0189abcf", 8)
	for name, want := range map[string]bool{
		"csi-" + digest: true, "": false, "csi-": false, digest: false, "xsi-" + digest: false, "csi-" + digest[1:]: false, "csi-" + digest + "0": false,
		"csi-" + digest[:63] + "g": false, "csi-" + digest[:63] + "A": false, "csi-/" + digest[1:]: false, "csi-:" + digest[1:]: false, "csi-`" + digest[1:]: false,
		digest + "0000": false,
	} {
		if got := usualName(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
	v := VolumeID{"disk", "h"}
	if name := AttachmentName(v, "n"); !leadsTo(name, v, "n") || leadsTo(name, v, "m") || leadsTo(name, VolumeID{"disk", "i"}, "n") || leadsTo("theirs", v, "n") {
		t.Error("a name leads elsewhere")
	}
	if v := UnboundClaim("disk", "u"); leadsTo(AttachmentName(v, "n"), v, "n") {
		t.Error("a name leads to what is no volume")
	}
}

func TestLabelValues(t *testing.T) {
	for v, want := range map[string]bool{
		"": true, "a": true, "z": true, "A": true, "Z": true, "0": true, "9": true, "a-b": true, "a.b": true, "a_b": true, "a--b": true,
		"-a": false, "a-": false, ".a": false, "a.": false, "_a": false, "a_": false, "-": false,
		"a/b": false, "a:b": false, "a@b": false, "a[b": false, "a`b": false, "a{b": false, "a b": false, "é": false, "a,b": false, "a^b": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
	} {
		if got := labelValue(v); got != want {
			t.Errorf("%q: %t", v, got)
		}
	}
}

// The attachment's own ID counts; it is fixed after the attach.
func TestNodeIDOfAttachments(t *testing.T) {
	v := VolumeID{"disk", "h"}
	drivers := func(id string, names ...string) Event {
		d := NodeDrivers{Node: "n", Version: "1"}
		for _, name := range names {
			d.Drivers = append(d.Drivers, DriverOnNode{Name: name, NodeID: id, Limit: NoLimit})
		}
		return d
	}
	says := func(version, id string) Event {
		a := proofAttachment(v, "n", "a", version)
		a.NodeID = id
		return a
	}
	begun := func(version, id string) Event {
		a := says(version, id).(Attachment)
		a.Attached = false
		return a
	}
	again := says("2", "j").(Attachment)
	again.UID = "another"
	uses := proofNode("n", "1")
	uses.InUse = []VolumeID{v}
	for name, test := range map[string]struct {
		events []Event
		want   string
	}{
		"nobody has said one":         {[]Event{says("1", "")}, ""},
		"of a node that is not known": {[]Event{says("1", "i")}, "i"},
		"as the CSINode says":         {[]Event{drivers("i", "disk"), says("1", "i")}, "i"},
		"other than the CSINode says": {[]Event{drivers("j", "disk"), says("1", "i")}, "i"},
		"other than another driver's": {[]Event{drivers("j", "before", "other"), says("1", "i")}, "i"},
		"no CSINode, and it is used":  {[]Event{uses, says("1", "i")}, "i"},
		"another one than before":     {[]Event{begun("1", "i"), begun("2", "j")}, "j"},
		"before it was attached":      {[]Event{begun("1", "i"), says("2", "j")}, "j"},
		"since it was attached":       {[]Event{says("1", "i"), says("2", "j")}, "i"},
		"twice since":                 {[]Event{says("1", "i"), says("2", "j"), says("3", "k")}, "i"},
		"attached by one unsaid":      {[]Event{says("1", ""), says("2", "j")}, "j"},
		"of another attachment":       {[]Event{says("1", "i"), again}, "j"},
		"the same as before":          {[]Event{drivers("j", "disk"), says("1", "i"), says("2", "i")}, "i"},
		"the CSINode's from now on":   {[]Event{drivers("j", "disk"), begun("1", "i"), begun("2", "j")}, "j"},
	} {
		l := New()
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if got := atNode(l, v, "n").Own().NodeID; got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestUnmatchedNodes(t *testing.T) {
	l := New()
	l.Apply(start, HoldSeen{VolumeID{"disk", "held"}, Hold{Version: "1", Node: "m"}})
	if got := l.unmatchedNodes("disk"); len(got) != 0 {
		t.Errorf("attachments wait at %q", got)
	}
	for _, driver := range []string{"disk", "other"} {
		l.Apply(start, Attachment{Name: AttachmentName(VolumeID{driver, "h"}, NodeName("n-"+driver)), UID: "u", Version: "1", Driver: driver, Node: NodeName("n-" + driver), PersistentVolume: "unseen"})
	}
	if got := l.unmatchedNodes("disk"); !slices.Equal(got, []NodeName{"n-disk"}) {
		t.Errorf("attachments wait at %q, want n-disk", got)
	}
}

func TestInterruptedSince(t *testing.T) {
	later := start.Add(time.Minute)
	ticket := func(version, uid string, times int64) Ticket {
		return Ticket{ID: TicketID{"ns", "t"}, UID: uid, Version: version, Type: TypeManual, Node: "n", Interruptions: times}
	}
	for name, test := range map[string]struct {
		next Ticket
		want time.Time
	}{
		"as often as before": {ticket("2", "t", 1), start},
		"once more":          {ticket("2", "t", 2), later},
		"another ticket":     {ticket("2", "u", 1), later},
		"seen again":         {ticket("1", "t", 1), start},
	} {
		l := New()
		l.Apply(start, ticket("1", "t", 1))
		l.Apply(later, test.next)
		s := l.Snapshot()
		if got := s.Interrupted(s.Ticket(TicketID{"ns", "t"})); !got.Equal(test.want) {
			t.Errorf("%s: since %s, want %s", name, got, test.want)
		}
	}
}

func TestWhereTicketsWait(t *testing.T) {
	id := TicketID{"ns", "t"}
	ticket := func(version string, n NodeName, phase TicketPhase) Event {
		return Ticket{ID: id, UID: "t", Version: version, Type: TypeManual, Node: n, Phase: phase, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	}
	for name, test := range map[string]struct {
		next  Event
		waits []NodeName
	}{
		"as before":      {ticket("2", "n", TicketPending), []NodeName{"n"}},
		"at another one": {ticket("2", "m", TicketPending), []NodeName{"m"}},
		"granted":        {ticket("2", "n", TicketGranted), nil},
		"gone":           {TicketGone{ID: id}, nil},
		"an older one":   {ticket("1", "m", TicketPending), []NodeName{"n"}},
	} {
		l := New()
		for _, e := range []Event{proofNode("n", "1"), proofNode("m", "1"), ticket("1", "n", TicketPending), test.next} {
			l.Apply(start, e)
		}
		var waits []NodeName
		for _, n := range []NodeName{"n", "m"} {
			if slices.Contains(l.Snapshot().Node(n).Tickets, id) {
				waits = append(waits, n)
			}
		}
		if !slices.Equal(waits, test.waits) {
			t.Errorf("%s: it waits at %q, want %q", name, waits, test.waits)
		}
	}
}

// A step's owner has no news from its own proofs.
func TestOwnEvents(t *testing.T) {
	v := VolumeID{"disk", "h"}
	for _, e := range []Event{AttachSent{Volume: v, Node: "n"}, AttachResolved{Volume: v, Node: "n"}, Unreported{Volume: v, Node: "n"}, Unwanted{Volume: v, Node: "n"}, HoldBoots{}, HoldDropped{v, "1"}} {
		if l := New(); !l.Apply(start, e).Own {
			t.Errorf("%T is news", e)
		}
	}
	if New().Apply(start, proofNode("n", "1")).Own {
		t.Error("a node is no news")
	}
}

func TestHoldsTouchTheirVolume(t *testing.T) {
	v := VolumeID{"disk", "h"}
	for _, stays := range []bool{false, true} {
		l := New()
		l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
		if got := l.Apply(start, HoldSeen{v, Hold{Version: "1", Node: "n", Stays: stays}}).Volumes; !slices.Contains(got, v) {
			t.Errorf("a hold touches %v", got)
		}
		if got := l.Apply(start, HoldGone{Volume: v}).Volumes; !slices.Contains(got, v) {
			t.Errorf("that a hold has gone touches %v", got)
		}
	}
	l := New()
	if got := l.Apply(start, HoldGone{Volume: v}).Volumes; len(got) > 0 {
		t.Errorf("that a hold has gone that was never seen touches %v", got)
	}
}

// A node with a CSINode, volume or waiting ticket stays.
func TestForgottenNodes(t *testing.T) {
	v := VolumeID{"disk", "h"}
	drivers := NodeDrivers{Node: "n", Version: "1", Drivers: []DriverOnNode{{Name: "disk", Limit: 2}}}
	ticket := Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n"}
	full := Attachment{Name: "full", UID: "f", Version: "1", Driver: "disk", Node: "n", Inline: v, AttachError: CallError{Code: ResourceExhausted, Message: "full"}}
	for name, test := range map[string]struct {
		events []Event
		known  bool
	}{
		"gone":                         {nil, false},
		"with its drivers":             {[]Event{drivers}, true},
		"without them":                 {[]Event{drivers, NodeDriversGone{"n"}}, false},
		"with a volume":                {[]Event{proofAttachment(v, "n", "a", "1")}, true},
		"with a volume gone":           {[]Event{proofAttachment(v, "n", "a", "1"), AttachmentGone{AttachmentName(v, "n")}}, false},
		"with a ticket":                {[]Event{ticket}, true},
		"with a ticket gone":           {[]Event{ticket, TicketGone{ID: ticket.ID}}, false},
		"it was full, and is no more":  {[]Event{full, AttachmentGone{"full"}, RefusalsOver{start}}, false},
		"with a hold that gives it it": {[]Event{HoldSeen{v, Hold{Version: "1", Node: "n"}}}, false},
	} {
		l := New()
		for _, e := range append([]Event{proofNode("n", "1")}, test.events...) {
			l.Apply(start, e)
		}
		l.Apply(start, NodeGone{"n"})
		if got := l.Snapshot().Node("n") != nil; got != test.known {
			t.Errorf("%s: known: %t", name, got)
		}
	}
}

func TestNodeThatIsSeenAgain(t *testing.T) {
	n := proofNode("n", "3")
	n.InUse = []VolumeID{{"disk", "h"}}
	for name, again := range map[string]func(*NodeState){
		"as it was": func(*NodeState) {}, "an older state": func(n *NodeState) { n.Version = "2" }, "another one of its name": func(n *NodeState) { n.UID, n.Version = "m", "2" },
	} {
		l, is := New(), n
		again(&is)
		for _, e := range []Event{n, NodeGone{"n"}, is} {
			l.Apply(start, e)
		}
		if got := l.Snapshot().Node("n"); !got.Exists || got.Version != is.Version || got.UID != is.UID || !got.NotReady.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestForgottenNodesWithoutANode(t *testing.T) {
	id := TicketID{"ns", "t"}
	asks := Ticket{ID: id, UID: "t", Version: "1", Type: TypeManual, Node: "n"}
	granted := asks
	granted.Version, granted.Phase = "2", TicketGranted
	for name, events := range map[string][2]Event{
		"its CSINode":       {NodeDrivers{Node: "n", Version: "1", Drivers: []DriverOnNode{{Name: "disk", Limit: NoLimit}}}, NodeDriversGone{"n"}},
		"a ticket":          {asks, TicketGone{ID: id}},
		"a ticket, granted": {asks, granted},
		"an attachment":     {Attachment{Name: "a", UID: "a", Version: "1", Driver: "disk", Node: "n", Inline: VolumeID{"disk", "h"}}, AttachmentGone{"a"}},
	} {
		l := New()
		if l.Apply(start, events[0]); l.Snapshot().Node("n") == nil || l.Snapshot().Node("n").Exists {
			t.Errorf("%s: known of it: %+v", name, l.Snapshot().Node("n"))
		}
		if l.Apply(start, events[1]); l.Snapshot().Node("n") != nil {
			t.Errorf("%s: still known of it: %+v", name, l.Snapshot().Node("n"))
		}
	}
}

func TestForceEnds(t *testing.T) {
	v := VolumeID{"disk", "h"}
	state := func(version string, ready Readiness, change func(*NodeState)) NodeState {
		n := proofNode("n", version)
		n.Ready = ready
		change(&n)
		return n
	}
	is := func(*NodeState) {}
	tainted := func(n *NodeState) { n.OutOfService = true }
	for name, test := range map[string]struct {
		before, after NodeState
		forced, void  bool
	}{
		"goes on":                 {state("2", ReadyUnknown, is), state("3", ReadyUnknown, is), true, false},
		"Ready":                   {state("2", ReadyUnknown, is), state("3", ReadyTrue, is), true, true},
		"Ready all the while":     {state("2", ReadyTrue, is), state("3", ReadyTrue, is), true, false},
		"made again":              {state("2", ReadyUnknown, is), state("3", ReadyUnknown, func(n *NodeState) { n.UID = "m" }), true, true},
		"the taint goes":          {state("2", ReadyUnknown, tainted), state("3", ReadyUnknown, is), true, true},
		"the taint stays":         {state("2", ReadyUnknown, tainted), state("3", ReadyUnknown, tainted), true, false},
		"a taint comes":           {state("2", ReadyUnknown, is), state("3", ReadyUnknown, tainted), true, false},
		"its kubelet writes":      {state("2", ReadyUnknown, is), state("3", ReadyFalse, is), true, true},
		"Ready, and not by force": {state("2", ReadyUnknown, is), state("3", ReadyTrue, is), false, false},
	} {
		l := New()
		for _, e := range []Event{PersistentVolume{Name: "pv", Version: "1", Volume: v}, test.before, proofAttachment(v, "n", "a", "2")} {
			l.Apply(start, e)
		}
		l.Apply(start, Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "2", Forced: test.forced})
		if l.Snapshot().Volume(v).OnNode("n").Proof.Stage != ProofUnreported {
			t.Fatalf("%s: nothing is proved", name)
		}
		l.Apply(start.Add(time.Second), test.after)
		if got := l.Snapshot().Volume(v).OnNode("n").Proof.Stage == ProofNone; got != test.void {
			t.Errorf("%s: void: %t", name, got)
		}
	}
}

// The caller's lists stay unchanged.
func TestListsOfANode(t *testing.T) {
	a, b := VolumeID{"disk", "a"}, VolumeID{"disk", "b"}
	for name, list := range map[string][]VolumeID{
		"in order": {a, b}, "in another order": {b, a}, "twice": {a, b, b}, "twice, and apart": {b, a, b}, "twice the first": {a, a, b},
	} {
		told := slices.Clone(list)
		n := proofNode("n", "1")
		n.InUse, n.Reported = told, told
		l := New()
		l.Apply(start, n)
		if !slices.Equal(told, list) {
			t.Errorf("%s: the list has become %v", name, told)
		}
		is := l.facts.nodes.get("n")
		if is.inUse != 2 || is.reported != 2 || is.Driver("disk").Used != 2 {
			t.Errorf("%s: %d in use, %d reported, %d slots used", name, is.inUse, is.reported, is.Driver("disk").Used)
		}
	}
}

func TestTouchedNamesAll(t *testing.T) {
	var touched Touched
	for _, handle := range []string{"", "a", "b", "a", "c", "b"} {
		v := VolumeID{}
		if handle != "" {
			v = VolumeID{"disk", handle}
		}
		touched.volume(v)
		touched.node(NodeName(handle))
		touched.ticket(TicketID{"ns", handle})
	}
	if want := []VolumeID{{"disk", "a"}, {"disk", "b"}, {"disk", "c"}}; !slices.Equal(touched.Volumes, want) {
		t.Errorf("volumes %v, want %v", touched.Volumes, want)
	}
	if want := []NodeName{"a", "b", "c"}; !slices.Equal(touched.Nodes, want) {
		t.Errorf("nodes %v, want %v", touched.Nodes, want)
	}
	if want := []TicketID{{"ns", ""}, {"ns", "a"}, {"ns", "b"}, {"ns", "c"}}; !slices.Equal(touched.Tickets, want) {
		t.Errorf("tickets %v, want %v", touched.Tickets, want)
	}
}

// A pod's own reference counts only without a claim.
func TestWhereTicketVolumesLead(t *testing.T) {
	v := VolumeID{"disk", "h"}
	for name, test := range map[string]struct {
		volume TicketVolume
		want   VolumeID
		link   Link
	}{
		"a claim":                 {TicketVolume{Claim: "data"}, v, LinkVolume},
		"the claim that is meant": {TicketVolume{Claim: "data", ClaimUID: "c"}, v, LinkVolume},
		"another one":             {TicketVolume{Claim: "data", ClaimUID: "d"}, VolumeID{}, LinkMissing},
		"none of that name":       {TicketVolume{Claim: "other"}, VolumeID{}, LinkMissing},
		"none, and one is meant":  {TicketVolume{Claim: "other", ClaimUID: "d"}, VolumeID{}, LinkMissing},
		"a PersistentVolume":      {TicketVolume{PersistentVolume: "pv"}, v, LinkVolume},
		"none that was seen":      {TicketVolume{PersistentVolume: "other"}, VolumeID{}, LinkUnseen},
	} {
		l := New()
		key := ClaimKey{Namespace: "ns", Name: "data"}
		for _, e := range []Event{
			PersistentVolume{Name: "pv", Version: "1", Volume: v, Claim: key}, Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true},
		} {
			l.Apply(start, e)
		}
		got, link := l.Snapshot().ResolveTicket(&Ticket{ID: TicketID{"ns", "t"}}, test.volume)
		if got != test.want || link != test.link {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got, link, test.want, test.link)
		}
	}
}

func TestToldTicketsAreTakenAsTheyAre(t *testing.T) {
	v, id := VolumeID{"disk", "h"}, TicketID{"ns", "t"}
	pv := PersistentVolume{Name: "pv", Version: "1", Volume: v}
	told := Ticket{ID: id, UID: "t", Version: "1", Type: TypeManual, Node: "n", InDoubt: true, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	for range 2 {
		l := New()
		l.Apply(start, pv)
		l.Apply(start, told)
		k := l.Snapshot().Ticket(id)
		if p := atNode(l, v, "n"); k.InDoubt || p == nil || len(p.Users) != 1 {
			t.Errorf("%+v uses %+v", k, p)
		}
		told = *k
	}
}

// The ticket gets another volume only when granted again, or as another ticket.
func TestLostVolumeIsNotReplaced(t *testing.T) {
	first, second := VolumeID{"disk", "first"}, VolumeID{"disk", "second"}
	ticket := func(uid, version string, phase TicketPhase) Event {
		return Ticket{ID: TicketID{"ns", "t"}, UID: uid, Version: version, Type: TypeManual, Node: "n", Phase: phase, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	}
	granted := ticket("t", "1", TicketGranted)
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"it has lost it":               {nil, false},
		"and is written":               {[]Event{ticket("t", "2", TicketGranted)}, false},
		"and is written twice":         {[]Event{ticket("t", "2", TicketGranted), ticket("t", "3", TicketGranted)}, false},
		"and asks anew":                {[]Event{ticket("t", "2", TicketPending)}, true},
		"and is granted anew":          {[]Event{ticket("t", "2", TicketPending), ticket("t", "3", TicketGranted)}, true},
		"and another one has its name": {[]Event{ticket("u", "2", TicketGranted)}, true},
	} {
		l := New()
		for _, e := range append([]Event{
			PersistentVolume{Name: "pv", Version: "1", Volume: first}, granted, PersistentVolumeGone{"pv"}, PersistentVolume{Name: "pv", Version: "2", Volume: second},
		}, test.events...) {
			l.Apply(start, e)
		}
		if got := atNode(l, second, "n") != nil; got != test.want {
			t.Errorf("%s: it uses the other one: %t", name, got)
		}
	}
}

func TestForceEndsWithALease(t *testing.T) {
	v := VolumeID{"disk", "h"}
	for renewed, void := range map[int64]bool{7: false, 8: true} {
		away := proofNode("n", "2")
		away.Ready = ReadyUnknown
		l := New()
		for _, e := range []Event{
			PersistentVolume{Name: "pv", Version: "1", Volume: v}, away, proofAttachment(v, "n", "a", "2"), NodeLease{Node: "n", Renewed: 7},
			Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "2", Forced: true},
		} {
			l.Apply(start, e)
		}
		l.Apply(start.Add(time.Second), NodeLease{Node: "n", Renewed: renewed})
		if got := l.Snapshot().Volume(v).OnNode("n").Proof.Stage == ProofNone; got != void {
			t.Errorf("renewed at %d: void: %t", renewed, got)
		}
	}

	// A Ready node's Lease ends nothing.
	l := New()
	for _, e := range []Event{
		PersistentVolume{Name: "pv", Version: "1", Volume: v}, proofNode("n", "2"), proofAttachment(v, "n", "a", "2"), NodeLease{Node: "n", Renewed: 7},
		Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "2", Forced: true}, NodeLease{Node: "n", Renewed: 8},
	} {
		l.Apply(start, e)
	}
	if n := l.Snapshot().Node("n"); !n.Heard.IsZero() || atNode(l, v, "n").Proof.Stage == ProofNone {
		t.Errorf("Ready: heard of at %s, and the proof is %+v", n.Heard, atNode(l, v, "n").Proof)
	}
}
