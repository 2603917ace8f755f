// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func at(second int) time.Time { return time.Unix(int64(1000+second), 0) }

func testView() *View {
	v := &View{seen: map[types.UID]*seenPod{}, claimed: map[string]seenVolume{}, changed: make(chan struct{})}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "db", UID: "u"}}
	pod.Spec = PodSpec("data")
	pod.Spec.NodeName = "worker-1"
	v.rememberPod(nil, pod)
	v.rememberVolume(nil, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-1"},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "n", Name: "data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: DriverName, VolumeHandle: "vol-1"},
			},
		},
	})
	return v
}

func TestTimelinePutsTogetherWhatBelongsToAPod(t *testing.T) {
	v := testView()
	own := func(second int, stage Stage) fact { return fact{at: at(second), stage: stage, pod: "u"} }
	volume := func(second int, stage Stage, name, node string) fact {
		return fact{at: at(second), stage: stage, volume: name, node: node}
	}
	for _, f := range []fact{
		volume(-5, AttachmentCreated, "pv-1", "worker-1"), // an earlier pod's
		volume(-1, Detached, "pv-1", "worker-1"),
		own(0, Created), own(1, Bound),
		volume(2, AttachmentCreated, "pv-1", "worker-1"),
		volume(2, AttachmentCreated, "pv-1", "worker-2"), // another node's
		volume(3, PublishCalled, "vol-1", "worker-1"),
		volume(4, PublishCalled, "vol-1", "worker-1"), // the attempt that succeeded
		own(6, Running), own(10, Deleted),
		volume(7, PublishCalled, "vol-1", "worker-1"), // after it ran
		volume(12, Detached, "pv-1", "worker-1"),
		volume(20, Detached, "pv-1", "worker-1"), // a later pod's
	} {
		v.recorder.add(f)
	}
	pods := v.Timeline("n").Pods()
	if len(pods) != 1 {
		t.Fatalf("got %d pods", len(pods))
	}
	for stage, second := range map[Stage]int{
		Created: 0, Bound: 1, AttachmentCreated: 2, PublishCalled: 4, Running: 6, Deleted: 10, Detached: 12,
	} {
		if got := pods[0].At[stage]; !got.Equal(at(second)) {
			t.Errorf("%s at %s, want second %d", stage, got, second)
		}
	}
	if d, ok := pods[0].Between(Bound, Running); !ok || d != 5*time.Second {
		t.Errorf("bound to running: %s, %v", d, ok)
	}
	if _, ok := pods[0].Between(Bound, Stamped); ok {
		t.Error("a stage that was never seen has a time")
	}
	var table strings.Builder
	pods[0].Print(&table)
	for _, want := range []string{"n/db on worker-1, volume vol-1", "+2.000 s", "12.000 s"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}

func TestRecorderTellsStagesFromEvents(t *testing.T) {
	var r recorder
	before := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	after := before.DeepCopy()
	after.Status.VolumesInUse = []corev1.UniqueVolumeName{UniqueName("vol-1"), "kubernetes.io/csi/other^x"}
	after.Status.VolumesAttached = []corev1.AttachedVolume{{Name: UniqueName("vol-1")}}
	r.node(before, after)
	r.node(after, before)
	r.call(diskapi.Entry{Call: diskapi.ControllerPublish, Phase: diskapi.Arrived, Volume: "vol-1", Node: diskapi.NodeID("worker-1")})
	r.call(diskapi.Entry{Call: diskapi.ControllerPublish, Phase: diskapi.Returned, Outcome: diskapi.Failed, Volume: "vol-1", Node: diskapi.NodeID("worker-1")})
	r.call(diskapi.Entry{Call: diskapi.ControllerPublish, Phase: diskapi.Returned, Outcome: diskapi.OK, Volume: "vol-1", Node: diskapi.NodeID("worker-1")})
	var got []Stage
	for _, f := range r.snapshot() {
		if f.volume != "vol-1" || f.node != "worker-1" {
			t.Errorf("fact about %s at %s", f.volume, f.node)
		}
		got = append(got, f.stage)
	}
	want := []Stage{Reported, InUse, Unreported, NotInUse, PublishCalled, Published}
	if strings.Join(asStrings(got), ",") != strings.Join(asStrings(want), ",") {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func asStrings(stages []Stage) []string {
	out := make([]string, len(stages))
	for i, s := range stages {
		out[i] = string(s)
	}
	return out
}
