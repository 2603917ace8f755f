// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestAttachmentByName(t *testing.T) {
	disk := ledger.VolumeID{Driver: "d", Handle: "h"}
	va := ledger.Attachment{
		Name: ledger.AttachmentName(disk, "n1"), UID: "u", Version: "5", Driver: "d", Node: "n1",
		PersistentVolume: "vanished", Attached: true, Transitions: 7,
	}
	imported := ledger.PersistentVolume{Name: "imported", Version: "6", Volume: disk, Access: ledger.AccessNode}
	for name, test := range map[string]struct {
		with ledger.Event
		want bool
	}{
		"a hold that names the node":           {ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "2", Node: "n1"}}, true},
		"the node's own report":                {ledger.NodeState{Name: "n1", UID: "n", Version: "3", Reported: []ledger.VolumeID{disk}}, true},
		"the node's use":                       {ledger.NodeState{Name: "n1", UID: "n", Version: "3", InUse: []ledger.VolumeID{disk}}, true},
		"another volume at the node":           {ledger.NodeState{Name: "n1", UID: "n", Version: "3", Reported: []ledger.VolumeID{{Driver: "d", Handle: "other"}}}, false},
		"the same handle of another driver":    {ledger.NodeState{Name: "n1", UID: "n", Version: "3", Reported: []ledger.VolumeID{{Driver: "e", Handle: "h"}}}, false},
		"another PersistentVolume of the disk": {imported, true},
		"a PersistentVolume of another disk":   {ledger.PersistentVolume{Name: "other", Version: "6", Volume: ledger.VolumeID{Driver: "d", Handle: "other"}}, false},
		"a hold of another volume":             {ledger.HoldSeen{Volume: ledger.VolumeID{Driver: "d", Handle: "other"}, Hold: ledger.Hold{Version: "2", Node: "n1"}}, false},
	} {
		orders := [][]ledger.Event{{va, test.with, ledger.Complete{}}, {test.with, va, ledger.Complete{}}}
		if _, pv := test.with.(ledger.PersistentVolume); pv {
			orders = append(orders, []ledger.Event{va, ledger.Complete{}, test.with})
		} else {
			orders = append(orders, []ledger.Event{va, ledger.Complete{}, test.with}, []ledger.Event{ledger.Complete{}, test.with, va})
		}
		for _, events := range orders {
			l := ledger.New()
			for _, e := range events {
				l.Apply(time.Unix(1000, 0), e)
			}
			own := l.Snapshot().Volume(disk).OnNode("n1").Own()
			if got := own != nil; got != test.want {
				t.Errorf("%s, in the order %T: matched %t", name, events, got)
			} else if got && (own.Name != va.Name || own.Transitions != 7) {
				t.Errorf("%s: the attachment is %+v", name, own)
			}
			if used := l.Snapshot().Node("n1").Driver("d").Used; used < 1 || test.want && used != 1 {
				t.Errorf("%s, in the order %T: %d slots used", name, events, used)
			}
		}
	}
}

func TestPersistentVolumeOfAttachmentByName(t *testing.T) {
	disk, other := ledger.VolumeID{Driver: "d", Handle: "h"}, ledger.VolumeID{Driver: "d", Handle: "other"}
	va := ledger.Attachment{Name: ledger.AttachmentName(disk, "n1"), UID: "u", Version: "5", Driver: "d", Node: "n1", PersistentVolume: "late"}
	begin := func() *ledger.Ledger {
		l := ledger.New()
		for _, e := range []ledger.Event{
			ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "2", Node: "n1"}}, va, ledger.Complete{},
			ledger.Unreported{Volume: disk, Node: "n1", UID: "u", Version: "5"},
		} {
			l.Apply(time.Unix(1000, 0), e)
		}
		return l
	}
	at := func(l *ledger.Ledger) ledger.VolumeID { return l.Snapshot().AttachmentVolume(va.Name) }

	l := begin()
	l.Apply(time.Unix(1001, 0), ledger.PersistentVolume{Name: "late", Version: "6", Volume: disk})
	if p := l.Snapshot().Volume(disk).OnNode("n1"); at(l) != disk || p.Proof.Stage != ledger.ProofUnreported {
		t.Errorf("it is of %s, proof %s", at(l), p.Proof.Stage)
	}
	l.Apply(time.Unix(1002, 0), ledger.PersistentVolumeGone{Name: "late"})
	l.Apply(time.Unix(1003, 0), ledger.PersistentVolume{Name: "late", Version: "7", Volume: other})
	if at(l) != disk {
		t.Errorf("after another PersistentVolume came in the place of its own: it is of %s", at(l))
	}

	l = begin()
	l.Apply(time.Unix(1001, 0), ledger.PersistentVolume{Name: "late", Version: "6", Volume: other})
	if p := l.Snapshot().Volume(disk).OnNode("n1"); at(l) != disk || p.Proof.Stage != ledger.ProofUnreported || l.Snapshot().Volume(other).OnNode("n1") != nil {
		t.Errorf("its PersistentVolume was made again for another disk, and it is of %s, proof %s", at(l), p.Proof.Stage)
	}
}

// The attachment is not the new disk's. For a name that follows from no volume, only the PersistentVolume
// counts.
func TestPersistentVolumeMadeAgainBefore(t *testing.T) {
	first, second := ledger.VolumeID{Driver: "d", Handle: "first"}, ledger.VolumeID{Driver: "d", Handle: "second"}
	again := ledger.PersistentVolume{Name: "pv", Version: "6", Volume: second, Access: ledger.AccessNode}
	for name, known := range map[string]ledger.Event{
		"nothing":                    nil,
		"a hold of the first disk":   ledger.HoldSeen{Volume: first, Hold: ledger.Hold{Version: "2", Node: "n1"}},
		"the node's list":            ledger.NodeState{Name: "n1", UID: "n", Version: "3", Reported: []ledger.VolumeID{first}},
		"a PersistentVolume of it":   ledger.PersistentVolume{Name: "imported", Version: "7", Volume: first},
		"a hold of the second disk":  ledger.HoldSeen{Volume: second, Hold: ledger.Hold{Version: "2", Node: "n1"}},
		"a list of the second disk":  ledger.NodeState{Name: "n1", UID: "n", Version: "3", InUse: []ledger.VolumeID{second}},
		"a PersistentVolume of both": ledger.PersistentVolume{Name: "copy", Version: "7", Volume: second},
	} {
		va := ledger.Attachment{Name: ledger.AttachmentName(first, "n1"), UID: "u", Version: "5", Driver: "d", Node: "n1", PersistentVolume: "pv", Attached: true}
		for _, order := range [][]ledger.Event{
			{again, va, known, ledger.Complete{}}, {va, again, known, ledger.Complete{}}, {known, va, again, ledger.Complete{}}, {known, again, va, ledger.Complete{}},
			{again, va, ledger.Complete{}, known}, {va, known, ledger.Complete{}, again},
		} {
			l := ledger.New()
			for _, e := range order {
				if e != nil {
					l.Apply(time.Unix(1000, 0), e)
				}
			}
			s := l.Snapshot()
			if p := s.Volume(second).OnNode("n1"); p.HasAttachments() {
				t.Errorf("%s, in the order %T: the attachment is of the second disk", name, order)
			}
			if at := s.AttachmentVolume(va.Name); at == second || at.IsReal() && at != first {
				t.Errorf("%s, in the order %T: it is of %s", name, order, at)
			} else if want := name == "a hold of the first disk" || name == "the node's list" || name == "a PersistentVolume of it"; at.IsReal() != want {
				t.Errorf("%s, in the order %T: it is known of what disk it is: %t", name, order, at.IsReal())
			}
			if used := s.Node("n1").Driver("d").Used; used != 1 && name != "a list of the second disk" {
				t.Errorf("%s, in the order %T: %d slots used", name, order, used)
			}
		}
		theirs := va
		theirs.Name = "theirs"
		l := ledger.New()
		l.Apply(time.Unix(1000, 0), again)
		l.Apply(time.Unix(1000, 0), theirs)
		if at := l.Snapshot().AttachmentVolume("theirs"); at != second {
			t.Errorf("an attachment under a name of another form is of %s", at)
		}
	}
}

func TestAttachmentByNameOfAnotherVolume(t *testing.T) {
	before, disk := ledger.VolumeID{Driver: "d", Handle: "before"}, ledger.VolumeID{Driver: "d", Handle: "h"}
	va := ledger.Attachment{Name: ledger.AttachmentName(disk, "n1"), UID: "u", Version: "5", Driver: "d", Node: "n1", PersistentVolume: "vanished"}
	l := ledger.New()
	for _, e := range []ledger.Event{
		ledger.Complete{}, va, ledger.PersistentVolume{Name: "pv", Version: "1", Volume: before}, ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk},
	} {
		l.Apply(time.Unix(1000, 0), e)
	}
	if at := l.Snapshot().AttachmentVolume(va.Name); at != disk {
		t.Errorf("it is of %s", at)
	}
}

// A volume's time does not restart when an attachment proves to be its own.
func TestIdleOfAttachmentMadeForAnother(t *testing.T) {
	first, second := ledger.VolumeID{Driver: "d", Handle: "first"}, ledger.VolumeID{Driver: "d", Handle: "second"}
	again := ledger.PersistentVolume{Name: "pv", Version: "6", Volume: second, Access: ledger.AccessNode}
	va := ledger.Attachment{Name: ledger.AttachmentName(first, "n1"), UID: "u", Version: "5", Driver: "d", Node: "n1", PersistentVolume: "pv", Attached: true}
	state := func(version string, reported, inUse []ledger.VolumeID) ledger.NodeState {
		return ledger.NodeState{Name: "n1", UID: "n", Version: version, Reporting: true, Reported: reported, InUse: inUse}
	}
	both, one := []ledger.VolumeID{first, second}, []ledger.VolumeID{first}
	type event struct {
		at int64
		ledger.Event
	}
	for name, test := range map[string]struct {
		events        []event
		first, second int64 // idle since; 0: not at the node
	}{
		"attachment, then the node":       {[]event{{0, again}, {1, va}, {20, state("1", both, nil)}}, 20, 20},
		"the node, then attachment":       {[]event{{0, again}, {1, state("1", both, nil)}, {20, va}}, 1, 1},
		"both are known before":           {[]event{{0, again}, {1, state("1", nil, both)}, {10, va}, {20, state("2", both, nil)}}, 1, 1},
		"from one list to the other":      {[]event{{0, again}, {1, va}, {5, state("1", one, nil)}, {20, state("2", nil, both)}}, 5, 20},
		"the second was there all along":  {[]event{{0, again}, {1, state("1", nil, []ledger.VolumeID{second})}, {2, va}, {20, state("2", one, []ledger.VolumeID{second})}}, 20, 1},
		"the second leaves as one comes":  {[]event{{0, again}, {1, state("1", nil, []ledger.VolumeID{second})}, {2, va}, {20, state("2", one, nil)}}, 20, 0},
		"the node no longer names it":     {[]event{{0, again}, {1, va}, {5, state("1", one, nil)}, {20, state("2", nil, nil)}}, 5, 0},
		"the PersistentVolume comes last": {[]event{{1, va}, {5, state("1", one, nil)}, {20, again}}, 5, 0},
	} {
		l, epoch := ledger.New(), time.Unix(1000, 0)
		l.Apply(epoch, ledger.Complete{})
		for _, e := range test.events {
			l.Apply(epoch.Add(time.Duration(e.at)*time.Second), e.Event)
		}
		s := l.Snapshot()
		for v, want := range map[ledger.VolumeID]int64{first: test.first, second: test.second} {
			p := s.Volume(v).OnNode("n1")
			if p == nil {
				if want != 0 {
					t.Errorf("%s: %s is not at the node", name, v)
				}
				continue
			}
			if since, idle := s.Idle(p); !idle || since.Unix() != 1000+want || p.HasAttachments() != (v == first) {
				t.Errorf("%s: nobody uses %s since %d (idle: %t), want %d; attached: %t", name, v, since.Unix()-1000, idle, want, p.HasAttachments())
			}
		}
	}
}
