// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"
	"time"
)

// machineAs is a state of node n: of a Node object, a machine and a boot.
func machineAs(version, uid, machine, boot string, changes ...func(*NodeState)) NodeState {
	n := NodeState{Name: "n", UID: uid, Version: version, Ready: ReadyTrue, Managed: true, Reporting: true, SystemUUID: machine, BootID: boot}
	for _, change := range changes {
		change(&n)
	}
	return n
}

// Another boot ends what is said to be mounted only if it is of the same machine: by its
// systemUUID, which no other node has, and by what the cloud calls it. Another machine that
// reports under the name, as of a Node made again or of the same one, shows nothing.
func TestAnotherBootOfTheSameMachine(t *testing.T) {
	v := VolumeID{"d", "h"}
	cloud := func(id string) func(*NodeState) { return func(n *NodeState) { n.ProviderID = id } }
	clone := NodeState{Name: "clone", UID: "c", Version: "1", SystemUUID: "m1", BootID: "x"}
	for name, test := range map[string]struct {
		before []Event
		was    NodeState
		then   []Event
		doubt  bool
	}{
		"another boot of it":                 {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b2")}, false},
		"the same boot":                      {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b1")}, true},
		"another machine, the Node is new":   {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m2", "b2")}, true},
		"another machine, the Node stays":    {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m2", "b2")}, true},
		"which boots anew":                   {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m2", "b2"), machineAs("4", "u", "m2", "b3")}, true},
		"and the first one comes back":       {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m2", "b2"), machineAs("4", "u", "m1", "b3")}, true},
		"an ordinary boot":                   {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m1", "b2")}, false},
		"it does not say its machine":        {nil, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "", "b2")}, true},
		"it never said its machine":          {nil, machineAs("2", "u", "", "b1"), []Event{machineAs("3", "w", "", "b2")}, false},
		"a clone of it":                      {[]Event{clone}, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b2")}, true},
		"a clone of it that was there":       {[]Event{clone, NodeState{Name: "clone", UID: "c", Version: "2", SystemUUID: "m1", BootID: "x", InUse: []VolumeID{{"d", "other"}}, Reporting: true}, NodeGone{"clone"}}, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "w", "m1", "b2")}, true},
		"a clone of it, an ordinary boot":    {[]Event{clone}, machineAs("2", "u", "m1", "b1"), []Event{machineAs("3", "u", "m1", "b2")}, false},
		"the cloud calls it the same":        {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2", cloud("i-1"))}, false},
		"the cloud says nothing yet":         {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2")}, false},
		"the cloud calls it something else":  {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2", cloud("i-2"))}, true},
		"which boots anew, the cloud's word": {nil, machineAs("2", "u", "m1", "b1", cloud("i-1")), []Event{machineAs("3", "w", "m1", "b2", cloud("i-2")), machineAs("4", "w", "m1", "b3", cloud("i-2"))}, true},
	} {
		l, now := New(), time.Unix(1000, 0)
		test.was.InUse, test.was.Reported = []VolumeID{v}, []VolumeID{v}
		events := append([]Event{
			PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: v, Access: AccessNode},
			Attachment{Name: AttachmentName(v, "n"), UID: "a", Version: "1", Driver: "d", Node: "n", PersistentVolume: "pv", Attached: true},
		}, test.before...)
		for _, e := range append(append(events, test.was), test.then...) {
			if n, ok := e.(NodeState); ok && n.UID == "u" {
				n.Reported = []VolumeID{v} // a Node that stays goes on naming it
				e = n
			}
			l.Apply(now, e)
		}
		n := l.Snapshot().Node("n")
		if got := n.Doubts(v); got != test.doubt {
			t.Errorf("%s: doubted: %t", name, got)
		}
		if at := n.DoubtedAt(v); (at == "") == test.doubt {
			t.Errorf("%s: doubted at %q", name, at)
		}
		if p := l.Snapshot().Volume(v).NodeVolume("n"); p.InUse != test.doubt {
			t.Errorf("%s: in use: %t", name, p.InUse)
		}
	}
}

// What a hold says of a boot is over by the same evidence, for a leader that has not seen
// the machine before.
func TestBootOver(t *testing.T) {
	l, now := New(), time.Unix(1000, 0)
	l.Apply(now, machineAs("2", "u", "m1", "b2"))
	for name, test := range map[string]struct {
		machine, boot string
		want          bool
	}{
		"another boot of it":      {"m1", "b1", true},
		"this boot":               {"m1", "b2", false},
		"of another machine":      {"m2", "b1", false},
		"it was never said which": {"", "b1", true},
		"no boot was said":        {"m1", "", false},
	} {
		s := l.Snapshot()
		if got := s.BootOver(s.Node("n"), test.machine, test.boot); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if s := l.Snapshot(); s.BootOver(s.Node("none"), "m1", "b1") {
		t.Error("a node that nobody knows says nothing")
	}
	l.Apply(now, NodeState{Name: "clone", UID: "c", Version: "1", SystemUUID: "m1", BootID: "x"})
	if s := l.Snapshot(); s.BootOver(s.Node("n"), "m1", "b1") {
		t.Error("a machine that has a clone says nothing by its systemUUID")
	}
}
