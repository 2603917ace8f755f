// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func asStored(t *testing.T, h *v1alpha1.VolumeHold) *v1alpha1.VolumeHold {
	t.Helper()
	raw, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.VolumeHold
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	stored.ResourceVersion = "7"
	return &stored
}

// A protobuf pod may have invalid UTF-8: the hold comes back as another volume's, and must not be written
// repeatedly.
func TestTheHoldOfAnyVolumeComesBack(t *testing.T) {
	sent := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p", UID: "p", ResourceVersion: "1"}, Spec: corev1.PodSpec{
		NodeName: "n1", SchedulerName: v1alpha1.SchedulerName,
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "a\xff"}}}},
	}}
	raw, err := sent.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.Pod
	if err := pod.Unmarshal(raw); err != nil {
		t.Fatal(err)
	}
	fact, err := Pod(&pod)
	if err != nil || len(fact.Volumes) == 0 {
		return // it is not taken, which is as good; that it is refused with words is tested below
	}
	l, now := ledger.New(), time.Unix(1000, 0)
	l.Apply(now, ledger.NodeState{Name: "n1", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(now, ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: fact.Volumes[0].Inline.Driver, NodeID: "n1", Limit: 9}}})
	l.Apply(now, fact)
	v := fact.Volumes[0].Inline
	for round := range 3 {
		plan := rules.Arbiter{}.Plan(l.Snapshot(), v, now)
		var hold *rules.Step
		for i := range plan.Steps {
			if plan.Steps[i].Kind == rules.WriteHold {
				hold = &plan.Steps[i]
			}
		}
		if hold == nil {
			return
		}
		if round > 0 {
			t.Fatalf("in round %d the hold is to be written anew, though it was: %+v", round, *hold)
		}
		l.Apply(now, Hold(asStored(t, HoldObject(HoldContext{Volume: v, Now: now}, hold.Hold))))
	}
}

// The refusal gives the cause, and a node's status does not show the volume.
func TestAHandleThatNoHoldCanNameIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ handle, want string }{
		"too long":  {strings.Repeat("x", v1alpha1.MaxHandleLength+1), "longer than 4096"},
		"not UTF-8": {"a\xff", "not UTF-8"},
		"NUL":       {"a\x00b", "NUL"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: test.handle}}}}}}
			fact, err := Pod(pod)
			if !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), test.want) || len(fact.Volumes) != 0 {
				t.Errorf("inline: %d volumes and %v; want none and an error with %q", len(fact.Volumes), err, test.want)
			}
			pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: test.handle}}}}
			if _, err := PersistentVolume(pv); !errors.Is(err, ErrSource) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("a PersistentVolume: %v", err)
			}
			for _, prefix := range []string{"kubernetes.io/csi/d^", "kubernetes.io/iscsi/", "kubernetes.io/fc/"} {
				if v, ok := VolumeOf(corev1.UniqueVolumeName(prefix + test.handle)); ok {
					t.Errorf("in a node's status: %v", v)
				}
			}
		})
	}
	if v, ok := VolumeOf(corev1.UniqueVolumeName("kubernetes.io/csi/\xff^v")); ok {
		t.Errorf("a driver that is not UTF-8: %v", v)
	}
	longest := strings.Repeat("ä", v1alpha1.MaxHandleLength)
	if v, ok := VolumeOf(corev1.UniqueVolumeName("kubernetes.io/csi/d^" + longest)); !ok || v.Handle != longest {
		t.Error("the longest handle that a VolumeHold can have is refused")
	}
}

func TestTheErrorOfAPodIsShort(t *testing.T) {
	for name, test := range map[string]struct {
		volumes int
		id      string
		want    string
	}{
		"many volumes": {5000, "aws://a/b/c/d", "4997 more volumes of pod a/p"},
		"a long name":  {1, "aws://a/" + strings.Repeat("/", 1<<20), "volume v0"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "p"}}
		for i := range test.volumes {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: test.id}}})
		}
		_, err := Pod(pod)
		if !errors.Is(err, ErrSource) {
			t.Fatalf("%s: the error is %v, want ErrSource", name, err)
		}
		if text := err.Error(); len(text) > 2048 || !strings.Contains(text, test.want) {
			t.Errorf("%s: the error has %d bytes, and is to contain %q: %s …", name, len(text), test.want, text[:120])
		}
	}
}
