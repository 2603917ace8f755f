// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The claim touches no volume and no node.
func TestClaimOfStorageThatNeedsNoAttachmentWakesThePod(t *testing.T) {
	key := ledger.ClaimKey{Namespace: "shop", Name: "data"}
	for name, test := range map[string]struct{ before, after []ledger.Event }{
		"bound to a PersistentVolume of NFS": {
			one(ledger.Claim{Key: key, UID: "claim-data", Version: "1"}),
			one(ledger.PersistentVolume{Name: "nfs", UID: "nfs", Claim: key},
				ledger.Claim{Key: key, UID: "claim-data", Version: "2", Bound: true, PersistentVolume: "nfs"}),
		},
		"made later, for a provisioner that is no CSI driver": {
			one(ledger.StorageClass{Name: "local", Driver: "local.example.com"}),
			one(ledger.Claim{Key: key, UID: "claim-data", Class: "local"}),
		},
		"and its PersistentVolume is seen last": {
			one(ledger.Claim{Key: key, UID: "claim-data", Bound: true, PersistentVolume: "nfs"}),
			one(ledger.PersistentVolume{Name: "nfs", UID: "nfs", Claim: key}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, test.before...)
			pod := podWith("p", "data")
			r.known(pod)
			if _, _, status := r.prefilter(pod); status.IsSuccess() {
				t.Fatal("the pod may be placed before its claim leads anywhere")
			}
			r.apply(test.after...)
			eventually(t, "the pod to be woken", func() bool { return slices.Equal(r.queue.names(), []string{"p"}) })
			if status := r.plugin.PreEnqueue(t.Context(), pod); !status.IsSuccess() {
				t.Errorf("its claim needs no attachment, and it is gated: %v", status)
			}
		})
	}
}
