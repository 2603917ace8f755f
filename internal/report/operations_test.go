// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
)

func TestOperations(t *testing.T) {
	l := ledger.New()
	now := time.Unix(1000, 0)
	attachment := func(driver, handle string) ledger.Attachment {
		v := ledger.VolumeID{Driver: driver, Handle: handle}
		l.Apply(now, ledger.PersistentVolume{Name: driver + handle, Version: "1", Volume: v, Access: ledger.AccessNode})
		return ledger.Attachment{Name: ledger.AttachmentName(v, "n"), UID: handle, Version: "1", Driver: driver, Node: "n", PersistentVolume: driver + handle}
	}
	attached, failed, leaves, refused := attachment("d", "attached"), attachment("d", "failed"), attachment("d", "leaves"), attachment("d", "refused")
	attached.Attached, leaves.Attached, leaves.Deleting = true, true, true
	failed.AttachError = ledger.CallError{Message: "no"}
	refused.Deleting, refused.DetachError = true, ledger.CallError{Message: "no"}
	for _, a := range []ledger.Attachment{attachment("d", "begun"), attached, failed, leaves, refused, attachment("other", "begun")} {
		l.Apply(now, a)
	}
	l.Apply(now, ledger.Policy{Name: "of-d", Version: "1", Created: 1, Driver: "d", Workers: 5})
	l.Apply(now, ledger.Policy{Name: "later", Version: "1", Created: 2, Driver: "d", Workers: 7})
	l.Apply(now, ledger.Policy{Name: "of-a-class", Version: "1", Created: 1, Driver: "d", Class: "fast", Workers: 9})
	m := report.NewMetrics(l.Snapshot)
	wantMetrics(t, m, "moorage_driver_operations{driver=\"d\"} 2\n"+
		"moorage_driver_operations{driver=\"other\"} 1\n"+
		"moorage_driver_workers{driver=\"d\"} 5\n", "moorage_driver_operations", "moorage_driver_workers")
	l.Apply(now, ledger.AttachmentGone{Name: leaves.Name})
	attached.Version, attached.Attached, attached.Deleting = "2", true, true
	l.Apply(now, attached)
	l.Apply(now, ledger.AttachmentGone{Name: ledger.AttachmentName(ledger.VolumeID{Driver: "other", Handle: "begun"}, "n")})
	wantMetrics(t, m, "moorage_driver_operations{driver=\"d\"} 2\n", "moorage_driver_operations")
}
