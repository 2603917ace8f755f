// SPDX-License-Identifier: Apache-2.0

package hollow

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var data = Volume{Handle: "vol-1", Name: "kubernetes.io/csi/d^vol-1"}

func podOf(uid string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: uid}}
}

func leaving(uid string) *corev1.Pod {
	pod := podOf(uid)
	pod.DeletionTimestamp = &metav1.Time{}
	return pod
}

func everything() map[corev1.UniqueVolumeName]bool {
	return map[corev1.UniqueVolumeName]bool{data.Name: true}
}

// In use, reported, attached, staged; and back: unstaged, only then not in use.
func TestInUseBeforeAndAfterStaged(t *testing.T) {
	b := newBooks()
	b.see(podOf("a"), []Volume{data})
	if got := b.inUse(); !slices.Equal(got, []corev1.UniqueVolumeName{data.Name}) {
		t.Fatalf("in use is %v as soon as there is a pod, want the volume", got)
	}
	if got := b.mountable(everything()); len(got) > 0 {
		t.Fatalf("%v can be staged before it is reported", got)
	}
	b.report(b.inUse())
	if got := b.mountable(nil); len(got) > 0 {
		t.Fatalf("%v can be staged before it is attached", got)
	}
	if got := b.mountable(everything()); len(got) != 1 {
		t.Fatal("it can't be staged though it is reported and attached")
	}
	if len(b.startable()) > 0 {
		t.Fatal("the pod runs before its volume is staged")
	}
	b.staged(data.Name)
	if len(b.startable()) != 1 || len(b.mountable(everything())) > 0 {
		t.Fatal("the pod does not run though its volume is staged, or it is staged again")
	}
	b.see(leaving("a"), nil)
	if got := b.inUse(); len(got) != 1 || len(b.unneeded()) != 1 || len(b.endable()) > 0 {
		t.Fatalf("in use is %v while the volume is staged, or the pod ends before it is unstaged", got)
	}
	b.unstaged(data.Name)
	if len(b.inUse()) > 0 || len(b.endable()) != 1 {
		t.Fatal("the volume is in use though it is unstaged, or the pod does not end")
	}
}

func TestAnotherPodKeepsTheVolume(t *testing.T) {
	b := newBooks()
	b.see(podOf("a"), []Volume{data})
	b.see(podOf("b"), []Volume{data})
	b.report(b.inUse())
	b.staged(data.Name)
	b.lose("a")
	if len(b.unneeded()) > 0 || len(b.inUse()) != 1 {
		t.Error("the volume is unstaged under the other pod")
	}
	if ending := b.endable(); len(ending) != 1 || ending[0].pod.UID != "a" || !ending[0].gone {
		t.Errorf("ending are %v, want the pod that is gone", ending)
	}
	b.lose("b")
	if len(b.unneeded()) != 1 {
		t.Error("the volume stays staged for nobody")
	}
}

// A report for a pod that never ran does not count for the next.
func TestReportedAnew(t *testing.T) {
	b := newBooks()
	b.see(podOf("a"), []Volume{data})
	b.report(b.inUse())
	b.see(leaving("a"), nil)
	if len(b.inUse()) > 0 {
		t.Fatal("a volume that was never staged is in use after its pod")
	}
	b.see(podOf("b"), []Volume{data})
	if len(b.mountable(everything())) > 0 {
		t.Error("the volume is staged before it is reported anew")
	}
}

func TestFinishedPodsAreNotStarted(t *testing.T) {
	b := newBooks()
	done := podOf("a")
	done.Status.Phase = corev1.PodFailed
	b.see(done, []Volume{data})
	if len(b.inUse())+len(b.untold()) > 0 {
		t.Error("a pod that has failed uses a volume")
	}
}
