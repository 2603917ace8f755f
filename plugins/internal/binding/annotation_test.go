// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestAnnotations(t *testing.T) {
	l := ledger.New()
	for _, e := range []ledger.Event{
		ledger.Driver{Name: "unattached", Version: "1"},
		ledger.PersistentVolume{Name: "pv", UID: "pv", Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: "h"}},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, UID: "c", Version: "1", PersistentVolume: "pv", Bound: true},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "unbound"}, UID: "d", Version: "1"},
		ledger.PersistentVolume{Name: "local", UID: "local", Version: "1"},
		ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "local"}, UID: "e", Version: "1", PersistentVolume: "local", Bound: true},
	} {
		l.Apply(time.Unix(1000, 0), e)
	}
	fact := &ledger.Pod{UID: "u", Namespace: "shop", Name: "p", Volumes: []ledger.PodVolume{
		{Name: "data", Claim: "data"},
		{Name: "inline", Inline: ledger.VolumeID{Driver: "disk", Handle: "i"}},
		{Name: "unattached", Inline: ledger.VolumeID{Driver: "unattached", Handle: "u"}},
		{Name: "unbound", Claim: "unbound"},
		{Name: "missing", Claim: "missing"},
		{Name: "local", Claim: "local"},
	}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "u"}}
	if got, err := Annotations(l.Snapshot(), pod, fact, "n1"); err != nil || got != nil {
		t.Errorf("of a pod without a stamp it says %v: %v", got, err)
	}
	pod.Annotations = map[string]string{v1alpha1.AnnotationVolumeStatus: `{"uid":"","volumes":[]}`}
	got, err := Annotations(l.Snapshot(), pod, fact, "n1")
	if err != nil || len(got) != 1 {
		t.Fatalf("it says %v: %v", got, err)
	}
	pod.Annotations = got
	status, ok := v1alpha1.VolumeStatusOf(pod)
	if !ok || status.UID != "u" || len(status.Volumes) != len(fact.Volumes) {
		t.Fatalf("the status is %s", got[v1alpha1.AnnotationVolumeStatus])
	}
	want := map[string]struct {
		pv   string
		safe bool
	}{
		"data": {pv: "pv"}, "inline": {}, "unattached": {safe: true}, "unbound": {}, "missing": {}, "local": {pv: "local", safe: true},
	}
	for i, v := range status.Volumes {
		w := want[v.Name]
		if v.Name != fact.Volumes[i].Name || v.Claim != fact.Volumes[i].Claim || v.PersistentVolume != w.pv || v.SafeToMount != w.safe {
			t.Errorf("volume %d is %+v, want %+v", i, v, w)
		}
		if reserved := v.Node == "n1" && v.Reason == v1alpha1.VolumeReserved && v.Message != ""; reserved == w.safe || w.safe && v.Node+v.Reason+v.Message != "" {
			t.Errorf("of volume %s it says %+v", v.Name, v)
		}
	}
}
