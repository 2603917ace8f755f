// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A doubt about a volume that has no VolumeAttachment names none to delete.
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
		verdict, _ := Arbiter{}.SafeToDetach(s, v, v.NodeVolume("n1"), auditTime)
		message := verdict.First().Message()
		if verdict.First().Code != InUseUnknown || !strings.Contains(message, "rebooted") || !strings.Contains(message, "out-of-service") {
			t.Errorf("%s: %s %s", name, verdict.First().Code, message)
		}
		if got := strings.Contains(message, "deletes its VolumeAttachment"); got != test.want {
			t.Errorf("%s: names a VolumeAttachment to delete: %t: %s", name, got, message)
		}
	}
}
