// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

type behind struct {
	cache.SharedIndexInformer
	received string
	store    cache.Store
}

func (b behind) LastSyncResourceVersion() string { return b.received }
func (b behind) GetStore() cache.Store           { return b.store }

// An object is not gone while the informer may only be slow: a ticket or hold would stop counting.
func TestSlowInformersForgetNothing(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", UID: "pv", ResourceVersion: "7"}}
	known := func(handled string, sweeps ...time.Duration) bool {
		start := time.Unix(0, 0)
		o := &Observer{config: Config{Now: func() time.Time { return start }}, ledger: ledger.New()}
		f := &feed{
			kind: PersistentVolumes, observer: o, handled: "5", ahead: map[string]answer{},
			informer: behind{received: "9", store: cache.NewStore(cache.MetaNamespaceKeyFunc)},
			seen: func(object runtime.Object) (ledger.Event, error) {
				return convert.PersistentVolume(object.(*corev1.PersistentVolume))
			},
			gone: func(_ runtime.Object, m metav1.Object) ledger.Event {
				return ledger.PersistentVolumeGone{Name: m.GetName()}
			},
		}
		f.saw(pv)
		f.handled = handled
		for _, after := range sweeps {
			f.sweepVanished(start.Add(after))
		}
		return o.Snapshot().PersistentVolume("pv") != nil
	}
	for _, test := range []struct {
		name    string
		handled string
		sweeps  []time.Duration
		want    bool
	}{
		{"received, not handled", "5", []time.Duration{time.Second, 2 * time.Second, 20 * time.Second}, true},
		{"a newer one handled, looked at once", "8", []time.Duration{time.Second}, true},
		{"a newer one handled, looked at twice", "8", []time.Duration{time.Second, 2 * time.Second}, false},
		{"received long ago, and nothing since", "5", []time.Duration{settlePatience, settlePatience + time.Second}, false},
	} {
		if got := known(test.handled, test.sweeps...); got != test.want {
			t.Errorf("%s: known is %v, want %v", test.name, got, test.want)
		}
	}
}
