// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// An attachment whose PersistentVolume has not been seen is of the volume that leads
// to its name, wherever that volume is known from and in whatever order; and of
// none that leads elsewhere.
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
			own := l.Snapshot().Volume(disk).NodeVolume("n1").Own()
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

// What the PersistentVolume says counts for more than the name, once it is seen. That
// it says the same takes nothing back.
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
	if p := l.Snapshot().Volume(disk).NodeVolume("n1"); at(l) != disk || p.Proof.Stage != ledger.ProofUnreported {
		t.Errorf("it is of %s, proof %s", at(l), p.Proof.Stage)
	}
	l.Apply(time.Unix(1002, 0), ledger.PersistentVolumeGone{Name: "late"})
	l.Apply(time.Unix(1003, 0), ledger.PersistentVolume{Name: "late", Version: "7", Volume: other})
	if at(l) != disk {
		t.Errorf("after another PersistentVolume came in the place of its own: it is of %s", at(l))
	}

	l = begin()
	touched := l.Apply(time.Unix(1001, 0), ledger.PersistentVolume{Name: "late", Version: "6", Volume: other})
	if at(l) != other || l.Snapshot().Volume(disk).NodeVolume("n1") != nil || !slices.Contains(touched.Volumes, disk) {
		t.Errorf("it is of %s; touched %v", at(l), touched.Volumes)
	}
}
