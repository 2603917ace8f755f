// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

func TestDryRuns(t *testing.T) {
	var d Delta
	empty := func(want bool, when string) {
		t.Helper()
		if d.Empty() != want {
			t.Errorf("%s: empty: %t", when, !want)
		}
	}
	empty(true, "at first")
	d.Add("p", "n")
	if empty(false, "one is tried"); d.Added["p"] != "n" || len(d.Removed) != 0 {
		t.Errorf("%+v", d)
	}
	d.Remove("p")
	empty(true, "it is tried no more")
	d.Remove("p")
	if empty(false, "one is taken away"); !d.Removed["p"] || len(d.Added) != 0 {
		t.Errorf("%+v", d)
	}
	c := d.Clone()
	d.Add("p", "n")
	empty(true, "it is put back")
	if c.Empty() || !c.Removed["p"] {
		t.Errorf("the copy is %+v", c)
	}
	d.Granted = TicketID{"ns", "t"}
	empty(false, "one is granted")
	if c := d.Clone(); c.Granted != d.Granted {
		t.Errorf("the copy is %+v", c)
	}
	if s := New().Snapshot(); s.Delta() != nil || s.With(&d).Delta() != &d {
		t.Error("a snapshot has another dry run than it was given")
	}
	var none *Delta
	if !none.Empty() || none.Clone() != nil {
		t.Error("none is something")
	}
}

// Trace is the memory beside present reports.
func TestTraces(t *testing.T) {
	v := VolumeID{"disk", "h"}
	node := func(version, uid, boot string, change func(*NodeState)) Event {
		n := NodeState{Name: "n", UID: uid, Version: version, BootID: boot, Ready: ReadyTrue, Managed: true, Reporting: true}
		change(&n)
		return n
	}
	is := func(*NodeState) {}
	lists := func(n *NodeState) { n.Reported, n.InUse = []VolumeID{v}, []VolumeID{v} }
	uses := func(n *NodeState) { n.InUse = []VolumeID{v} }
	usesOthers := func(n *NodeState) { n.InUse = []VolumeID{{"disk", "z"}, v} }
	unreporting := func(n *NodeState) { n.Reporting = false }
	theirs := Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "disk", Node: "n", Inline: v}
	taken := HoldSeen{v, Hold{Version: "1", Fences: []Fence{{Node: "n", NodeUID: "u", InUse: true}}}}
	forced := Unreported{Volume: v, Node: "n", UID: proofUID("a"), Version: "1", Forced: true}
	attached := proofAttachment(v, "n", "a", "1")
	type trace struct {
		LastBoot string
		Unknown  bool
		Boot     string
	}
	for name, test := range map[string]struct {
		events []Event
		want   trace
	}{
		"nothing":                          {[]Event{node("1", "u", "", is)}, trace{}},
		"its boot":                         {[]Event{node("1", "u", "b", is)}, trace{LastBoot: "b"}},
		"its last boot":                    {[]Event{node("1", "u", "b", is), node("2", "u", "", is)}, trace{LastBoot: "b"}},
		"its next boot":                    {[]Event{node("1", "u", "b", is), node("2", "u", "c", is)}, trace{LastBoot: "c"}},
		"booted, and has not said":         {[]Event{node("1", "u", "b", is), node("2", "v", "c", unreporting)}, trace{LastBoot: "c"}},
		"booted, not said, says no boot":   {[]Event{node("1", "u", "b", is), node("2", "v", "c", unreporting), node("3", "v", "", unreporting)}, trace{LastBoot: "c"}},
		"booted, and has said":             {[]Event{node("1", "u", "b", is), node("2", "v", "c", unreporting), node("3", "v", "c", is)}, trace{LastBoot: "c"}},
		"gone, and it was listed":          {[]Event{attached, node("1", "u", "b", lists), NodeGone{"n"}}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"gone, and it was not":             {[]Event{attached, node("1", "u", "b", uses), NodeGone{"n"}}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"made again, and it was listed":    {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "b", is)}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"made again, and it lists it":      {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "b", uses)}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"made again, lists others before":  {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "b", usesOthers)}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"gone, made again, and listed":     {[]Event{attached, node("1", "u", "b", lists), NodeGone{"n"}, node("2", "v", "b", is)}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"made again, it was in use":        {[]Event{attached, node("1", "u", "b", uses), node("2", "v", "b", is)}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"in use without an attachment":     {[]Event{node("1", "u", "b", uses), node("2", "v", "b", is)}, trace{LastBoot: "b"}},
		"made again, and not used":         {[]Event{attached, node("1", "u", "b", is), node("2", "v", "b", is)}, trace{LastBoot: "b"}},
		"made again by another boot":       {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "c", is)}, trace{LastBoot: "c"}},
		"made again by nobody known":       {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "", is)}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"no boot was ever said":            {[]Event{attached, node("1", "u", "", lists), node("2", "v", "", is)}, trace{}},
		"made again, and then a new boot":  {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "", is), node("3", "v", "c", is)}, trace{LastBoot: "c"}},
		"made again, nothing was there":    {[]Event{node("1", "u", "b", is), node("2", "v", "", is)}, trace{LastBoot: "b"}},
		"made again, listed, not attached": {[]Event{node("1", "u", "b", lists), node("2", "v", "b", is)}, trace{LastBoot: "b"}},
		"made again, used, and left there": {[]Event{HoldSeen{v, Hold{Version: "1", Node: "n", Stays: true}}, node("1", "u", "b", uses), node("2", "v", "b", is)}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"booted, not said, and made again": {[]Event{attached, node("1", "u", "b", uses), node("2", "v", "c", unreporting), node("3", "w", "c", unreporting)}, trace{LastBoot: "c"}},
		"by force, in a boot nobody said":  {[]Event{attached, node("1", "u", "b", is), node("2", "v", "", uses), forced}, trace{LastBoot: "b", Unknown: true}},
		"by force, and then a new boot":    {[]Event{attached, node("1", "u", "b", is), node("2", "v", "", uses), forced, node("3", "v", "c", is)}, trace{LastBoot: "c"}},
		"by force, then the boot is said":  {[]Event{attached, node("1", "u", "b", is), node("2", "v", "", uses), forced, node("3", "v", "b", uses)}, trace{LastBoot: "b", Unknown: true}},
		"taken in a boot that nobody said": {[]Event{attached, node("1", "u", "b", is), taken, TookOver{}, node("2", "u", "b", is)}, trace{LastBoot: "b", Unknown: true}},
		"taken, and it has not said":       {[]Event{attached, node("1", "u", "b", unreporting), taken, TookOver{}}, trace{LastBoot: "b", Unknown: true}},
		"taken, and it says none is used":  {[]Event{attached, node("1", "u", "b", is), taken, TookOver{}}, trace{LastBoot: "b", Unknown: true}},
		"taken, and it says it is used":    {[]Event{attached, node("1", "u", "b", uses), taken, TookOver{}}, trace{LastBoot: "b", Unknown: true}},
		"taken, and only theirs is there":  {[]Event{theirs, node("1", "u", "b", is), taken, TookOver{}}, trace{LastBoot: "b"}},
		"made again, then it is written":   {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "b", is), proofAttachment(v, "n", "a", "2")}, trace{LastBoot: "b", Unknown: true, Boot: "b"}},
		"made again, as is what it lists":  {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "b", is), proofAttachment(v, "n", "b", "2")}, trace{LastBoot: "b"}},
		"made again, and then it goes":     {[]Event{attached, node("1", "u", "b", lists), node("2", "v", "b", is), AttachmentGone{attached.Name}}, trace{LastBoot: "b"}},
	} {
		for _, freeze := range []bool{false, true} {
			l := New()
			l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
			l.Apply(start, Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "n"})
			for _, e := range test.events {
				l.Apply(start, e)
				if freeze {
					l.Snapshot()
				}
			}
			got := trace{Unknown: isUnknown(l, v, "n")}
			if n := l.Snapshot().Node("n"); n != nil {
				got.LastBoot = n.LastBoot().BootID
			}
			if _, got.Boot = unknownAt(l, v, "n"); got != test.want {
				t.Errorf("%s (a snapshot after each: %t): %+v, want %+v", name, freeze, got, test.want)
			}
		}
	}
}

func TestWhereClaimsLead(t *testing.T) {
	v, key := VolumeID{"disk", "h"}, ClaimKey{Namespace: "ns", Name: "data"}
	claim := func(change func(*Claim)) Claim {
		c := Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true, Class: "fast"}
		change(&c)
		return c
	}
	is := func(*Claim) {}
	unbound := func(c *Claim) { c.Bound = false }
	csi := []Event{StorageClass{Name: "fast", Version: "1", Driver: "disk"}, Driver{Name: "disk", Version: "1", AttachRequired: true}}
	names := Pod{UID: "q", Version: "1", Namespace: "ns", Name: "q", Volumes: []PodVolume{{Name: "v", Claim: "data"}}}
	pv := PersistentVolume{Name: "pv", Version: "1", Volume: v, Claim: key}
	others := PersistentVolume{Name: "pv", Version: "1", Volume: v, Claim: ClaimKey{Namespace: "ns", Name: "other"}}
	for name, test := range map[string]struct {
		events []Event
		want   VolumeID
		link   Link
	}{
		"none":                          {nil, VolumeID{}, LinkMissing},
		"none, and a pod names it":      {[]Event{names}, VolumeID{}, LinkMissing},
		"gone, and a pod names it":      {[]Event{names, claim(is), ClaimGone{key}}, VolumeID{}, LinkMissing},
		"gone":                          {[]Event{claim(is), ClaimGone{key}}, VolumeID{}, LinkMissing},
		"bound":                         {[]Event{pv, claim(is)}, v, LinkVolume},
		"bound to what is not seen":     {[]Event{claim(is)}, VolumeID{}, LinkUnseen},
		"bound to what has gone":        {[]Event{pv, claim(is), PersistentVolumeGone{"pv"}}, VolumeID{}, LinkUnseen},
		"bound to another's":            {[]Event{others, claim(is)}, VolumeID{}, LinkLost},
		"bound to NFS":                  {[]Event{PersistentVolume{Name: "pv", Version: "1", Claim: key}, claim(is)}, VolumeID{}, LinkNone},
		"lost":                          {[]Event{pv, claim(func(c *Claim) { c.Lost = true })}, VolumeID{}, LinkLost},
		"not bound":                     {append(csi, claim(unbound)), UnboundClaim("disk", "c"), LinkUnbound},
		"bound, it says not to what":    {append(csi, claim(func(c *Claim) { c.PersistentVolume = "" })), UnboundClaim("disk", "c"), LinkUnbound},
		"not bound, of no class":        {append(csi, claim(func(c *Claim) { c.Bound, c.Class = false, "" })), VolumeID{}, LinkUnbound},
		"not bound, of a class of none": {[]Event{StorageClass{Name: "fast", Version: "1"}, claim(unbound)}, VolumeID{}, LinkUnbound},
		"not bound, by no CSI driver":   {append(csi[:1:1], claim(unbound)), VolumeID{}, LinkOutside},
	} {
		l := New()
		for _, e := range test.events {
			l.Apply(start, e)
		}
		s := l.Snapshot()
		got, link := s.ResolvePod(&Pod{UID: "p", Namespace: "ns"}, PodVolume{Name: "v", Claim: "data"})
		if got != test.want || link != test.link {
			t.Errorf("%s: %s (%s), want %s (%s)", name, got, link, test.want, test.link)
		}
	}
	l := New()
	l.Apply(start, pv)
	l.Apply(start, claim(func(c *Claim) { c.OwnerPod = "p" }))
	for uid, want := range map[string]Link{"p": LinkVolume, "q": LinkMissing} {
		if _, link := l.Snapshot().ResolvePod(&Pod{UID: uid, Namespace: "ns"}, PodVolume{Name: "v", Claim: "data", Ephemeral: true}); link != want {
			t.Errorf("an ephemeral volume of pod %s: %s", uid, link)
		}
	}
	if id, link := l.Snapshot().ResolvePod(&Pod{}, PodVolume{Name: "v"}); link != LinkNone || !id.IsZero() {
		t.Errorf("a volume of no claim: %s %s", id, link)
	}
}

// Inline specs count only if there never was a PersistentVolume.
func TestAccessOfVolumes(t *testing.T) {
	v := VolumeID{"disk", "h"}
	pv := func(name string, access Access) Event {
		return PersistentVolume{Name: name, Version: "1", Volume: v, Access: access}
	}
	pod := func(uid string, access Access) Event {
		return Pod{UID: uid, Version: "1", Namespace: "ns", Name: uid, Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v, Access: access}}}
	}
	held := HoldSeen{v, Hold{Version: "1", Node: "n"}}
	for name, test := range map[string]struct {
		events []Event
		want   Access
	}{
		"one":                        {[]Event{pv("a", AccessMany)}, AccessMany},
		"the strictest of two":       {[]Event{pv("a", AccessMany), pv("b", AccessPod), pv("c", AccessNode)}, AccessPod},
		"of those that are there":    {[]Event{pv("a", AccessMany), pv("b", AccessPod), PersistentVolumeGone{"b"}}, AccessMany},
		"none any more":              {[]Event{held, pv("a", AccessNode), PersistentVolumeGone{"a"}}, AccessNode},
		"a pod's word":               {[]Event{pod("p", AccessMany)}, AccessMany},
		"the strictest of two pods'": {[]Event{pod("p", AccessMany), pod("q", AccessNode)}, AccessNode},
		"a pod's, and one is there":  {[]Event{pv("a", AccessMany), pod("p", AccessPod)}, AccessMany},
		"a pod's, and one has been":  {[]Event{held, pv("a", AccessMany), PersistentVolumeGone{"a"}, pod("p", AccessPod)}, AccessMany},
		"of a pod that has gone":     {[]Event{held, pod("p", AccessMany), pod("q", AccessNode), PodGone{"q"}}, AccessMany},
		"nobody's any more":          {[]Event{held, pod("p", AccessMany), PodGone{"p"}}, AccessMany},
		"of a claim's, it says none": {[]Event{Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v, Access: AccessMany}, {Name: "w", Claim: "data", Inline: v, Access: AccessPod}}}}, AccessMany},
		"a ticket says nothing":      {[]Event{pod("p", AccessMany), Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "1", Type: TypeManual, Node: "m", Volumes: []TicketVolume{{PersistentVolume: "v"}}}}, AccessMany},
	} {
		l := New()
		for _, e := range test.events {
			l.Apply(start.Add(time.Second), e)
		}
		if got := l.Snapshot().Volume(v).Access; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestDeletedTickets(t *testing.T) {
	id := TicketID{"ns", "t"}
	l := New()
	deleted := func(want, when string) {
		t.Helper()
		if got := l.Deleted(id); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	l.Apply(start, Ticket{ID: id, UID: "u", Version: "1", Type: TypeManual, Node: "n"})
	deleted("", "it is there")
	l.Apply(start, TicketReleased{ID: id})
	deleted("u", "it is deleted")
	l.Apply(start, TicketGone{ID: id})
	deleted("", "it is seen to be gone")
	l.Apply(start, Ticket{ID: id, UID: "v", Version: "2", Type: TypeManual, Node: "n"})
	l.Apply(start, TicketGone{ID: id})
	l.Apply(start, TicketReleased{ID: id, UID: "v"})
	deleted("", "it was seen to be gone before")
}

// By an attachment, else by PersistentVolumes.
func TestSourceKnown(t *testing.T) {
	v := VolumeID{"disk", "h"}
	pv := PersistentVolume{Name: "pv", Version: "1", Volume: v}
	by := func(name string, n NodeName, source string) Event {
		return Attachment{Name: name, UID: name, Version: "1", Driver: "disk", Node: n, PersistentVolume: source}
	}
	inline := Attachment{Name: "inline", UID: "i", Version: "1", Driver: "disk", Node: "n", Inline: v}
	gone := PersistentVolume{Name: "gone", Version: "1", Volume: v}
	pod := Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "v", Inline: v}}}
	for name, test := range map[string]struct {
		events []Event
		want   bool
	}{
		"a PersistentVolume":       {[]Event{pv}, true},
		"none":                     {[]Event{pod}, false},
		"attached for it":          {[]Event{pv, by("a", "n", "pv")}, true},
		"for one that has gone":    {[]Event{pv, gone, by("a", "n", "gone"), PersistentVolumeGone{"gone"}}, false},
		"one of two, at a node":    {[]Event{pv, gone, by("a", "n", "pv"), by("b", "n", "gone"), PersistentVolumeGone{"gone"}}, false},
		"both, at a node":          {[]Event{pv, by("a", "n", "pv"), by("b", "n", "pv")}, true},
		"one of two, at two nodes": {[]Event{pv, gone, by("a", "m", "gone"), by("b", "n", "pv"), PersistentVolumeGone{"gone"}}, false},
		"the other of two":         {[]Event{pv, gone, by("a", "n", "gone"), by("b", "m", "pv"), PersistentVolumeGone{"gone"}}, false},
		"inline":                   {[]Event{inline}, true},
		"inline, and used beside":  {[]Event{inline, pod, proofNode("m", "1")}, true},
	} {
		l := New()
		for _, e := range test.events {
			l.Apply(start, e)
		}
		if got := l.Snapshot().Volume(v).SourceKnown(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// An unseen PersistentVolume without references leaves nothing.
func TestForgottenPersistentVolumes(t *testing.T) {
	key := ClaimKey{Namespace: "ns", Name: "data"}
	id := TicketID{"ns", "t"}
	for name, events := range map[string][2]Event{
		"a claim":                  {Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true}, ClaimGone{key}},
		"another claim":            {Claim{Key: key, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true}, Claim{Key: key, UID: "c", Version: "2", PersistentVolume: "other", Bound: true}},
		"a ticket":                 {Ticket{ID: id, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{PersistentVolume: "pv"}}}, TicketGone{ID: id}},
		"a ticket for another now": {Ticket{ID: id, UID: "t", Version: "1", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{PersistentVolume: "pv"}}}, Ticket{ID: id, UID: "t", Version: "2", Type: TypeManual, Node: "n", Volumes: []TicketVolume{{PersistentVolume: "other"}}}},
		"an attachment":            {Attachment{Name: "a", UID: "a", Version: "1", Driver: "disk", Node: "n", PersistentVolume: "pv"}, AttachmentGone{"a"}},
		"itself":                   {PersistentVolume{Name: "pv", Version: "1", Volume: VolumeID{"disk", "h"}}, PersistentVolumeGone{"pv"}},
	} {
		l := New()
		if l.Apply(start, events[0]); l.facts.pvs.get("pv") == nil {
			t.Errorf("%s: nothing is known", name)
		}
		if l.Apply(start, events[1]); l.facts.pvs.get("pv") != nil {
			t.Errorf("%s: it is not forgotten", name)
		}
	}
}

// A missing claim without references leaves nothing.
func TestForgottenClaims(t *testing.T) {
	key, id := ClaimKey{Namespace: "ns", Name: "data"}, TicketID{"ns", "t"}
	pod := func(version, claim string) Event {
		return Pod{UID: "p", Version: version, Namespace: "ns", Name: "p", Volumes: []PodVolume{{Name: "v", Claim: claim}}}
	}
	ticket := func(version, claim string) Event {
		return Ticket{ID: id, UID: "t", Version: version, Type: TypeManual, Node: "n", Volumes: []TicketVolume{{Claim: claim}}}
	}
	for name, events := range map[string][2]Event{
		"itself":                   {Claim{Key: key, UID: "c", Version: "1"}, ClaimGone{key}},
		"a pod":                    {pod("1", "data"), PodGone{"p"}},
		"a pod of another now":     {pod("1", "data"), pod("2", "other")},
		"a ticket":                 {ticket("1", "data"), TicketGone{ID: id}},
		"a ticket for another now": {ticket("1", "data"), ticket("2", "other")},
	} {
		l := New()
		if l.Apply(start, events[0]); l.facts.claims.get(key) == nil {
			t.Errorf("%s: nothing is known", name)
		}
		if l.Apply(start, events[1]); l.facts.claims.get(key) != nil {
			t.Errorf("%s: it is not forgotten", name)
		}
	}
}

func TestVolumeSets(t *testing.T) {
	id := func(i int) VolumeID { return VolumeID{"disk", string(rune('a' + i))} }
	for _, n := range []int{0, 1, fewVolumes - 1, fewVolumes, fewVolumes + 1, fewVolumes + 5} {
		var list []VolumeID
		for i := range n {
			list = append(list, id(i))
		}
		s := setOf(list)
		for i := n; i < n+3; i++ {
			if s.has(id(i)) {
				t.Errorf("%d of %d are there", i, n)
			}
			s.add(id(i))
		}
		for i := range n + 3 {
			if !s.has(id(i)) {
				t.Errorf("%d of %d is not there", i, n+3)
			}
		}
		if s.has(id(n + 3)) {
			t.Errorf("of %d there is one too many", n+3)
		}
	}
}
