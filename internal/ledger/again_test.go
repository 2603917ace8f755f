// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"slices"
	"testing"
)

func TestChangesBetweenSnapshotsAreTouched(t *testing.T) {
	l, v := New(), VolumeID{"d", "h"}
	a := Attachment{Name: AttachmentName(v, "n1"), UID: "00000000-0000-0000-0000-000000000001", Version: "1", Driver: "d", Node: "n1", Inline: v}
	l.Apply(start, a)
	a.Version, a.Attached = "2", true
	if touched := l.Apply(start, a); !slices.Contains(touched.Volumes, v) {
		t.Errorf("touched: %v", touched.Volumes)
	}
	if got := l.Snapshot().Attachment(a.Name); !got.Attached || got.Version != "2" {
		t.Errorf("known: %+v", got)
	}
}

func TestNamesThatAreGivenAnew(t *testing.T) {
	l, v := New(), VolumeID{"d", "h"}
	l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
	ticket := Ticket{ID: TicketID{"ns", "t"}, UID: "a", Version: "1", Type: TypeManual, Node: "n1", Phase: TicketGranted, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	pod := Pod{UID: "p", Version: "1", Namespace: "ns", Name: "p", Node: "n1", Volumes: []PodVolume{{Name: "v", Inline: v}}}
	for _, e := range []Event{ticket, pod} {
		l.Apply(start, e)
	}
	if p := l.Snapshot().Volume(v).OnNode("n1"); p == nil || len(p.Users) != 2 {
		t.Fatalf("at n1: %+v", p)
	}
	ticket.UID, ticket.Version, ticket.Node = "b", "2", "n2"
	pod.Version, pod.Node = "2", "n2"
	for _, e := range []Event{ticket, pod} {
		l.Apply(start, e)
	}
	if p := l.Snapshot().Volume(v).OnNode("n1"); p != nil {
		t.Errorf("at n1: %+v", p)
	}
	if p := l.Snapshot().Volume(v).OnNode("n2"); p == nil || len(p.Users) != 2 {
		t.Errorf("at n2: %+v", p)
	}
}

// The name's volume counts, even if its PersistentVolume now names another disk.
func TestAttachmentMadeAgainAfterItsVolumeVanished(t *testing.T) {
	l, v, other := New(), VolumeID{"d", "h"}, VolumeID{"d", "other"}
	a := Attachment{Name: AttachmentName(v, "n1"), UID: "00000000-0000-0000-0000-000000000001", Version: "1", Driver: "d", Node: "n1", PersistentVolume: "pv"}
	l.Apply(start, PersistentVolume{Name: "pv", Version: "1", Volume: v})
	l.Apply(start, a)
	l.Apply(start, PersistentVolumeGone{"pv"})
	again := a
	again.UID, again.Version = "00000000-0000-0000-0000-000000000002", "2"
	l.Apply(start, again)
	if got := l.Snapshot().AttachmentVolume(a.Name); got != v {
		t.Errorf("it leads to %q", got)
	}
	l.Apply(start, PersistentVolume{Name: "pv", Version: "3", Volume: other})
	if got := l.Snapshot().AttachmentVolume(a.Name); got != v {
		t.Errorf("it leads to %q, after its PersistentVolume has come for %q", got, other)
	}
}

func TestAttachmentMadeAgainElsewhere(t *testing.T) {
	first := Attachment{Name: "theirs", UID: "a", Version: "1", Driver: "disk", Node: "n1", Inline: VolumeID{"disk", "h"}}
	for name, change := range map[string]func(*Attachment){
		"another node":            func(a *Attachment) { a.Node = "n2" },
		"another volume":          func(a *Attachment) { a.Inline.Handle = "i" },
		"another driver's volume": func(a *Attachment) { a.Driver, a.Inline.Driver = "other", "other" },
		"all of it":               func(a *Attachment) { a.Node, a.Driver, a.Inline = "n2", "other", VolumeID{"other", "i"} },
		"an unknown volume":       func(a *Attachment) { a.Inline, a.PersistentVolume = VolumeID{}, "unseen" },
	} {
		l, again := New(), first
		again.UID, again.Version = "b", "2"
		change(&again)
		l.Apply(start, first)
		l.Apply(start, again)
		s := l.Snapshot()
		if p := s.Volume(first.Inline).OnNode("n1"); p != nil {
			t.Errorf("%s: the first volume is at its node still: %+v", name, p)
		}
		if p := s.Volume(s.AttachmentVolume("theirs")).OnNode(again.Node); p == nil || len(p.Attachments()) != 1 || p.Canonical().UID != "b" {
			t.Errorf("%s: it is not where it is: %+v", name, p)
		}
	}
}

func TestTicketsHearOfTheirClaims(t *testing.T) {
	l, key := New(), ClaimKey{Namespace: "ns", Name: "data"}
	l.Apply(start, StorageClass{Name: "late", Version: "1", Driver: "d", WaitForFirst: true})
	asks := Ticket{ID: TicketID{"ns", "t"}, UID: "a", Version: "1", Type: TypeManual, Node: "n1", Volumes: []TicketVolume{{Claim: "data"}}}
	l.Apply(start, asks)
	for _, e := range []Event{Claim{Key: key, UID: "c", Version: "1", Class: "late"}, ClaimGone{Key: key}} {
		if touched := l.Apply(start, e); !slices.Contains(touched.Tickets, asks.ID) {
			t.Errorf("%T touched %+v", e, touched)
		}
	}
}

// The pod may use the volume attached for it at its node, also in a later process.
func TestPodOfALostClaim(t *testing.T) {
	v := VolumeID{"d", "v"}
	key := ClaimKey{"ns", "data"}
	attached := []Event{
		HoldSeen{Volume: v, Hold: Hold{Version: "2", Node: "n", State: HoldHeld, Transitions: 1, PVs: []string{"pv"}}},
		Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "3", Driver: "d", Node: "n", PersistentVolume: "pv", Attached: true},
	}
	later := []Event{
		Claim{Key: key, UID: "c", Version: "5", PersistentVolume: "pv", Lost: true},
		Pod{UID: "p", Version: "6", Namespace: "ns", Name: "p", Node: "n", Volumes: []PodVolume{{Name: "data", Claim: "data"}}},
	}
	seen := []Event{PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: v, Access: AccessNode}}
	for name, events := range map[string][]Event{
		"it has seen it": slices.Concat(seen, attached, []Event{Complete{}, PersistentVolumeGone{Name: "pv"}}, later),
		"it began later": slices.Concat(attached, []Event{Complete{}}, later),
	} {
		l := New()
		for _, e := range events {
			l.Apply(start, e)
		}
		if at := l.Snapshot().PodAt("p"); !slices.Contains(at, v) {
			t.Errorf("%s: the pod uses %v, want %v among it", name, at, v)
		}
	}
}
