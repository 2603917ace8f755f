// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A doubt about a volume without a VolumeAttachment asks to delete none.
func TestDoubtNamesWhatIsThere(t *testing.T) {
	for name, test := range map[string]struct {
		volume   ledger.VolumeID
		stays    bool
		attached bool
		want     bool
	}{
		"attached":                {volume: ledger.VolumeID{Driver: "disk", Handle: "a"}, attached: true, want: true},
		"left without attachment": {volume: ledger.VolumeID{Driver: "disk", Handle: "a"}, stays: true},
		"iSCSI":                   {volume: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "a"}},
		"Fibre Channel":           {volume: ledger.VolumeID{Driver: "kubernetes.io/fc", Handle: "a"}},
	} {
		l := ledger.New()
		l.Apply(auditTime, ledger.PersistentVolume{Name: "a", UID: "a", Version: "1", Volume: test.volume, Access: ledger.AccessNode})
		if test.attached {
			l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(test.volume, "n1"), UID: "u", Version: "1", Driver: "disk", Node: "n1", PersistentVolume: "a", Attached: true})
		}
		l.Apply(auditTime, ledger.HoldSeen{Volume: test.volume, Hold: ledger.Hold{Version: "1", Node: "n1", NodeUID: "before", BootID: "b", Stays: test.stays}})
		l.Apply(auditTime, ledger.NodeState{Name: "n1", UID: "made-again", BootID: "b", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		s := l.Snapshot()
		v := s.Volume(test.volume)
		verdict, _ := Arbiter{}.SafeToDetach(s, v, v.OnNode("n1"), auditTime)
		message := verdict.First().Message()
		if verdict.First().Code != InUseUnknown || !strings.Contains(message, "rebooted") || !strings.Contains(message, "out-of-service") {
			t.Errorf("%s: %s %s", name, verdict.First().Code, message)
		}
		if got := strings.Contains(message, "deletes its VolumeAttachment"); got != test.want {
			t.Errorf("%s: names a VolumeAttachment to delete: %t: %s", name, got, message)
		}
	}
}

func TestDoubtOfADeletedNodeNamesWhatIsThere(t *testing.T) {
	v := ledger.VolumeID{Driver: "disk", Handle: "a"}
	node := func(uid, version, machine, boot string, reported ...ledger.VolumeID) ledger.Event {
		return ledger.NodeState{Name: "n1", UID: uid, Version: version, SystemUUID: machine, BootID: boot, Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: reported, InUse: reported}
	}
	attached := ledger.Attachment{Name: ledger.AttachmentName(v, "n1"), UID: "u", Version: "1", Driver: "disk", Node: "n1", PersistentVolume: "a", Attached: true}
	before, gone := node("u", "1", "m", "b", v), ledger.NodeGone{Name: "n1"}
	for name, test := range map[string]struct {
		events         []ledger.Event
		boots, deletes bool
	}{
		"made again, attached":      {[]ledger.Event{before, attached, gone, node("w", "7", "m", "b")}, true, true},
		"another machine, attached": {[]ledger.Event{before, attached, gone, node("w", "7", "z", "c")}, true, true},
		"both machines, attached":   {[]ledger.Event{before, attached, gone, node("w", "7", "z", "c", v), node("w", "8", "z", "c")}, false, true},
	} {
		l := ledger.New()
		l.Apply(auditTime, ledger.PersistentVolume{Name: "a", UID: "a", Version: "1", Volume: v, Access: ledger.AccessMany})
		for _, e := range test.events {
			l.Apply(auditTime, e)
		}
		s := l.Snapshot()
		verdict, _ := Arbiter{}.SafeToDetach(s, s.Volume(v), s.Volume(v).OnNode("n1"), auditTime)
		message := verdict.First().Message()
		if verdict.First().Code != InUseUnknown || !strings.Contains(message, "out-of-service") {
			t.Errorf("%s: %s %s", name, verdict.First().Code, message)
		}
		if boots, deletes := strings.Contains(message, "is rebooted"), strings.Contains(message, "deletes its VolumeAttachment"); boots != test.boots || deletes != test.deletes {
			t.Errorf("%s: it names a boot: %t, a VolumeAttachment: %t: %s", name, boots, deletes, message)
		}
	}
}
