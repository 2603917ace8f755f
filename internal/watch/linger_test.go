// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Upgrades delete and remake a CSIDriver: a short absence does not change its volumes' need for
// attachments.
func TestDriversThatAreMadeAgain(t *testing.T) {
	now := time.Unix(0, 0)
	o := &Observer{config: Config{Now: func() time.Time { return now }}, ledger: ledger.New()}
	f := &feed{
		kind: Drivers, observer: o, ahead: map[string]answer{},
		informer: behind{received: "0", store: cache.NewStore(cache.MetaNamespaceKeyFunc)},
		seen:     o.event,
		gone:     func(object runtime.Object, m metav1.Object) ledger.Event { return gone(Drivers, object, m) },
	}
	driver := func(version string, attach bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "nfs", ResourceVersion: version}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(attach)}}
	}
	touched := 0
	o.Subscribe(func(ledger.Touched) { touched++ })
	o.Apply(ledger.PersistentVolume{Name: "pv", Version: "1", Volume: ledger.VolumeID{Driver: "nfs", Handle: "share"}})
	needs := func(when string, want bool) {
		t.Helper()
		f.sweepVanished(now)
		if got := o.Snapshot().AttachRequired("nfs"); got != want {
			t.Errorf("%s: volumes need attachments: %t", when, got)
		}
	}
	f.OnAdd(driver("2", false), true)
	needs("it is there", false)

	touched = 0
	f.OnDelete(driver("2", false))
	now = now.Add(lingering - time.Second)
	needs("it was deleted a moment ago", false)
	f.OnAdd(driver("5", false), false)
	now = now.Add(lingering)
	needs("it was made again in time", false)
	if touched > 0 {
		t.Errorf("%d events touched volumes", touched)
	}

	f.OnDelete(driver("5", false))
	now = now.Add(lingering)
	needs("it was not made again", true)

	f.OnAdd(driver("7", false), false)
	f.OnDelete(driver("7", false))
	f.OnAdd(driver("9", true), false)
	needs("it was made again, and says that they do", true)
	f.OnDelete(driver("9", true))
	needs("that one was deleted", true)
	if o.Snapshot().Size() != 1 || len(f.leaving) > 0 {
		t.Errorf("kept: %v", f.leaving)
	}
}
