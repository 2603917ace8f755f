// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const driver = "disk.example.com"

func wants(l *ledger.Ledger, name string) (*corev1.Pod, ledger.Pod) {
	key := ledger.ClaimKey{Namespace: "shop", Name: name}
	l.Apply(time.Now(), ledger.PersistentVolume{
		Name: name, UID: name, Volume: ledger.VolumeID{Driver: driver, Handle: name}, Access: ledger.AccessNode, Claim: key,
	})
	l.Apply(time.Now(), ledger.Claim{Key: key, UID: name, PersistentVolume: name, Bound: true, Access: ledger.AccessNode})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now()}}
	fact := ledger.Pod{UID: name, Namespace: "shop", Name: name, Volumes: []ledger.PodVolume{{Name: "data", Claim: name}}}
	l.Apply(time.Now(), fact)
	return pod, fact
}

func slots(limit int32) ledger.Event {
	return ledger.NodeDrivers{Node: "n1", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "n1", Limit: limit}}}
}

// The first woken pod is refused, the second stays silent: the third is woken when the second's time ends.
func TestSlotOfASilentPodGoesToTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ledger.New()
		l.Apply(time.Now(), slots(0))
		var woken []string
		w := New(Config{
			Facts: facts{l},
			Gone:  func(*corev1.Pod) bool { return false },
			Wake:  func(_ context.Context, pod *corev1.Pod) { woken = append(woken, pod.Name) },
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		defer func() { cancel(); <-done }()
		for _, name := range []string{"refused", "silent", "third"} {
			pod, fact := wants(l, name)
			w.Enter(pod, fact)
			time.Sleep(time.Second) // in the bubble's time: the pods differ in age
		}
		w.Touch(l.Apply(time.Now(), slots(1)))
		time.Sleep(DefaultTurn / 2)
		w.Rejected("refused")
		time.Sleep(DefaultTurn * 9 / 10)
		if want := []string{"refused", "silent"}; !slices.Equal(woken, want) {
			t.Fatalf("woken are %v while the second has its time, want %v", woken, want)
		}
		time.Sleep(DefaultTurn)
		if want := []string{"refused", "silent", "third"}; !slices.Equal(woken, want) {
			t.Errorf("woken are %v, want %v", woken, want)
		}
	})
}
