// SPDX-License-Identifier: Apache-2.0

package ledger

import "testing"

type proofCase struct {
	events []Event
	want   ProofStage
}

// A proof concerns the present attachment, skips no stage, and is void after a possible change.
func proofCases(v VolumeID, n NodeName) map[string]proofCase {
	name := AttachmentName(v, n)
	attachment := func(uid, version string) Event { return proofAttachment(v, n, uid, version) }
	node := func(version string) Event { return proofNode(n, version) }
	listed := func(version string) Event {
		s := proofNode(n, version)
		s.Reported = []VolumeID{v}
		return s
	}
	booted, again := proofNode(n, "8"), proofNode(n, "10")
	booted.BootID, again.BootID, again.UID = "b", "b", "another"
	used := func(version string) Event {
		s := proofNode(n, version)
		s.InUse = []VolumeID{v}
		return s
	}
	unreported := func(uid, version string) Event {
		return Unreported{Volume: v, Node: n, UID: proofUID(uid), Version: version}
	}
	unwanted := func(uid, version string) Event {
		return Unwanted{Volume: v, Node: n, UID: proofUID(uid), Version: version}
	}
	pod := Pod{UID: "p", Version: "50", Namespace: "ns", Name: "p", Node: n, Volumes: []PodVolume{{Name: "v", Inline: v}}}
	manual := Ticket{ID: TicketID{"ns", "t"}, UID: "t", Version: "50", Type: TypeManual, Node: n, Volumes: []TicketVolume{{PersistentVolume: "pv"}}}
	foreign := Attachment{Name: "theirs", UID: "f", Version: "50", Driver: "disk", Node: n, Inline: v}

	return map[string]proofCase{
		"both stages":                         {[]Event{unreported("a", "2"), unwanted("a", "2")}, ProofUnwanted},
		"the second without the first":        {[]Event{unwanted("a", "2")}, ProofNone},
		"of an older version":                 {[]Event{unreported("a", "1")}, ProofNone},
		"of another attachment":               {[]Event{unreported("b", "2")}, ProofNone},
		"the version moves":                   {[]Event{unreported("a", "2"), attachment("a", "9")}, ProofNone},
		"the version moves in between":        {[]Event{unreported("a", "2"), attachment("a", "9"), unwanted("a", "9")}, ProofNone},
		"an older version comes late":         {[]Event{unreported("a", "2"), unwanted("a", "2"), attachment("a", "1")}, ProofUnwanted},
		"it is made again":                    {[]Event{unreported("a", "2"), attachment("b", "9")}, ProofNone},
		"it is gone":                          {[]Event{unreported("a", "2"), AttachmentGone{name}}, ProofNone},
		"the node reports it":                 {[]Event{unreported("a", "2"), unwanted("a", "2"), listed("9")}, ProofNone},
		"the node uses it":                    {[]Event{unreported("a", "2"), unwanted("a", "2"), used("9")}, ProofNone},
		"the node says nothing new":           {[]Event{unreported("a", "2"), unwanted("a", "2"), node("9")}, ProofUnwanted},
		"a pod comes":                         {[]Event{unreported("a", "2"), unwanted("a", "2"), pod}, ProofNone},
		"a ticket comes":                      {[]Event{unreported("a", "2"), unwanted("a", "2"), manual}, ProofNone},
		"it is gone, and a foreign one stays": {[]Event{foreign, unreported("a", "2"), AttachmentGone{name}}, ProofNone},
		"a foreign one goes":                  {[]Event{foreign, unreported("a", "2"), unwanted("a", "2"), AttachmentGone{"theirs"}}, ProofUnwanted},
		"a foreign one comes":                 {[]Event{unreported("a", "2"), unwanted("a", "2"), foreign}, ProofUnwanted},
	}
}

func proofAttachment(v VolumeID, n NodeName, uid, version string) Attachment {
	return Attachment{Name: AttachmentName(v, n), UID: proofUID(uid), Version: version, Driver: v.Driver, Node: n, Inline: v, Attached: true}
}

func proofUID(letter string) string { return "00000000-0000-0000-0000-00000000000" + letter }

func proofNode(n NodeName, version string) NodeState {
	return NodeState{Name: n, UID: "n", Version: version, Ready: ReadyTrue, Managed: true, Reporting: true}
}

func TestProofs(t *testing.T) {
	v, n := VolumeID{"disk", "h"}, NodeName("n")
	for name, test := range proofCases(v, n) {
		for _, freeze := range []bool{false, true} {
			l := New()
			for _, e := range []Event{PersistentVolume{Name: "pv", Version: "1", Volume: v}, proofNode(n, "3"), proofAttachment(v, n, "a", "2")} {
				l.Apply(start, e)
			}
			for _, e := range test.events {
				l.Apply(start, e)
				if freeze {
					l.Snapshot()
				}
			}
			got := ProofNone
			if p := l.Snapshot().Volume(v).OnNode(n); p != nil {
				got = p.Proof.Stage
			}
			if got != test.want {
				t.Errorf("%s (a snapshot after each: %t): %s, want %s", name, freeze, got, test.want)
			}
		}
	}
}

// By the kubelet's word the use ends. By force it continues, in doubt, except at a deleted node.
func TestUnreported(t *testing.T) {
	v, n := VolumeID{"disk", "h"}, NodeName("n")
	lists := proofNode(n, "1")
	lists.BootID, lists.Reported, lists.InUse = "b", []VolumeID{v}, []VolumeID{v}
	again := proofNode(n, "2")
	again.UID, again.BootID = "w", "b"
	own, gone := proofAttachment(v, n, "a", "2"), AttachmentGone{AttachmentName(v, n)}
	theirs := Attachment{Name: "theirs", UID: "f", Version: "50", Driver: "disk", Node: n, Inline: v}
	left := HoldSeen{v, Hold{Version: "1", Node: n, Stays: true}}
	of := Unreported{Volume: v, Node: n, UID: own.UID, Version: own.Version}
	forced, ofNone, older := of, Unreported{Volume: v, Node: n, Forced: true}, of
	forced.Forced, older.Version = true, "1"
	for name, test := range map[string]struct {
		events                   []Event
		reported, inUse, doubted bool
	}{
		"nothing is proved":                     {[]Event{lists, own}, true, true, false},
		"by its word":                           {[]Event{lists, own, of}, false, false, false},
		"by force":                              {[]Event{lists, own, forced}, false, true, true},
		"by force, and it was doubted":          {[]Event{lists, own, again, forced}, false, false, true},
		"by its word, and it was doubted":       {[]Event{lists, own, again, of}, false, false, false},
		"by force, and its attachment goes":     {[]Event{lists, own, forced, gone}, false, true, false},
		"by force, doubted, and it goes":        {[]Event{lists, own, again, forced, gone}, false, false, false},
		"it goes, and its use does not":         {[]Event{lists, own, gone}, true, true, false},
		"by force, and the Node is gone":        {[]Event{lists, own, NodeGone{n}, forced}, false, false, true},
		"by force, and none but theirs":         {[]Event{lists, theirs, ofNone}, false, true, false},
		"by force, and it was left":             {[]Event{lists, left, ofNone}, false, true, true},
		"of an older version":                   {[]Event{lists, own, older}, true, true, false},
		"of none, and it is attached":           {[]Event{lists, own, ofNone}, true, true, false},
		"of an attachment, and none is there":   {[]Event{lists, forced}, true, true, false},
		"of an older version, and then of this": {[]Event{lists, own, older, of}, false, false, false},
	} {
		l := New()
		for _, e := range test.events {
			l.Apply(start, e)
		}
		p := atNode(l, v, n)
		if p == nil {
			p = &VolumeOnNode{}
		}
		if doubted := isUnknown(l, v, n); p.Reported != test.reported || p.InUse != test.inUse || doubted != test.doubted {
			t.Errorf("%s: reported %t, in use %t, doubted %t", name, p.Reported, p.InUse, doubted)
		}
	}
	for _, e := range []Event{ofNone, Unwanted{Volume: v, Node: n}} {
		l := New()
		if touched := l.Apply(start, e); len(touched.Volumes)+len(touched.Nodes) > 0 || l.Snapshot().Volume(v) != nil {
			t.Errorf("%T of what is not there touches %+v", e, touched)
		}
	}
}
