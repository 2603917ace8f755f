// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func pvAt(name, uid, version, handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version},
		Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
			CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: handle}}},
	}
}

func pvFeed(stored ...*corev1.PersistentVolume) (*Observer, *feed) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	for _, pv := range stored {
		_ = store.Add(pv) // fails only without a key
	}
	o := &Observer{config: Config{Now: func() time.Time { return time.Unix(0, 0) }}, ledger: ledger.New()}
	return o, &feed{
		kind: PersistentVolumes, observer: o, ahead: map[string]answer{}, informer: behind{received: "9", store: store},
		seen: func(object runtime.Object) (ledger.Event, error) {
			return convert.PersistentVolume(object.(*corev1.PersistentVolume))
		},
		gone: func(_ runtime.Object, m metav1.Object) ledger.Event {
			return ledger.PersistentVolumeGone{Name: m.GetName()}
		},
	}
}

func handleOf(o *Observer, name string) string {
	if pv := o.Snapshot().PersistentVolume(name); pv != nil {
		return pv.Volume.Handle
	}
	return ""
}

// After a relist an informer delivers in no order: one delivery says nothing about other objects.
func TestAnswerDuringARelist(t *testing.T) {
	for name, stored := range map[string][]*corev1.PersistentVolume{
		"in the store": {pvAt("late", "u", "7", "h")},
		"not yet":      nil,
	} {
		o, f := pvFeed(stored...)
		f.OnAdd(pvAt("other", "o", "9", "o"), false)
		f.saw(pvAt("late", "u", "7", "h"))
		if handleOf(o, "late") != "h" {
			t.Errorf("%s: the answer is dropped", name)
		}
		for after := range 5 {
			f.sweepVanished(time.Unix(0, 0).Add(time.Duration(after) * time.Second))
		}
		if handleOf(o, "late") != "h" {
			t.Errorf("%s: it is taken for gone before the informer has delivered it", name)
		}
		f.OnAdd(pvAt("late", "u", "8", "new"), false)
		f.saw(pvAt("late", "u", "7", "h"))
		if got := handleOf(o, "late"); got != "new" {
			t.Errorf("%s: an old answer is taken in over a newer version: %q", name, got)
		}
	}
}

// A late answer does not bring back a deleted object; a namesake is another object.
func TestAnswerAfterTheDeletion(t *testing.T) {
	o, f := pvFeed()
	f.OnAdd(pvAt("pv", "u", "7", "h"), false)
	gone := pvAt("pv", "u", "9", "h")
	f.OnDelete(gone)
	f.saw(pvAt("pv", "u", "8", "h"))
	if handleOf(o, "pv") != "" {
		t.Error("it is back")
	}
	f.saw(pvAt("pv", "w", "6", "before"))
	if handleOf(o, "pv") != "" {
		t.Error("one that was there before it is known")
	}
	f.saw(pvAt("pv", "v", "10", "again"))
	if handleOf(o, "pv") != "again" {
		t.Error("the one that was made after it is not known")
	}
	f.sweepVanished(time.Unix(0, 0).Add(2 * settlePatience))
	if len(f.deleted) > 0 {
		t.Errorf("%d deletions are remembered for ever", len(f.deleted))
	}
}

// A fault is logged when the object changes, not at each event.
func TestWhatIsWrongIsLoggedOnce(t *testing.T) {
	_, f := pvFeed()
	first, second := errors.New("no handle"), errors.New("no driver")
	for i, step := range []struct {
		err  error
		want bool
	}{{first, true}, {first, false}, {second, true}, {nil, false}, {second, true}} {
		if got := f.newlyBroken("pv", step.err); got != step.want {
			t.Errorf("step %d, %v: to be logged %t, want %t", i, step.err, got, step.want)
		}
	}
	f.OnDelete(pvAt("pv", "u", "9", ""))
	if len(f.broken) != 0 {
		t.Errorf("what is gone is remembered: %v", f.broken)
	}
}
