// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// lingering is how long a CSIDriver with attachRequired=false may be missing. An upgrade that makes it
// again would otherwise attach, and detach again, all volumes of the driver. The attach/detach controller
// takes up to three minutes to see it (populator, findAndAddActivePods).
const lingering = 30 * time.Second

type departure struct {
	event ledger.Event
	since time.Time
}

// mu is held.
func (f *feed) linger(object runtime.Object, m metav1.Object) bool {
	driver, ok := object.(*storagev1.CSIDriver)
	if !ok || convert.Driver(driver).AttachRequired {
		return false
	}
	if f.leaving == nil {
		f.leaving = map[string]departure{}
	}
	f.leaving[key(m)] = departure{f.gone(object, m), f.observer.config.Now()}
	return true
}

// mu is held.
func (f *feed) depart(now time.Time) {
	for k, d := range f.leaving {
		if now.Sub(d.since) >= lingering {
			delete(f.leaving, k)
			f.observer.Apply(d.event)
		}
	}
}
