// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func leaseOf(name string, renewed, seen time.Time) coordinationv1.Lease {
	l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new(name), LeaseDurationSeconds: new(int32(40)), RenewTime: &metav1.MicroTime{Time: renewed}}}
	if !seen.IsZero() {
		fields := metav1.FieldsV1{}
		fields.SetRawString(`{"f:spec":{"f:renewTime":{}}}`)
		l.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &metav1.Time{Time: seen}, FieldsV1: &fields}}
	}
	return l
}

// The API server's clock counts. Without a Lease, the kubelet's own report counts.
func TestKubeletLivesByItsLease(t *testing.T) {
	for _, c := range []struct {
		name          string
		ready         corev1.ConditionStatus
		lease         bool
		renewed, seen time.Time
		want          bool
	}{
		{"renewed just now", corev1.ConditionUnknown, true, noon(), time.Time{}, true},
		{"stopped, and its last word is left", corev1.ConditionFalse, true, noon().Add(-time.Minute), time.Time{}, false},
		{"its clock is behind", corev1.ConditionFalse, true, noon().Add(-time.Hour), noon(), true},
		{"its clock is ahead", corev1.ConditionUnknown, true, noon().Add(time.Hour), noon().Add(-time.Hour), false},
		{"its own word", corev1.ConditionFalse, false, time.Time{}, time.Time{}, true},
		{"not heard of", corev1.ConditionUnknown, false, time.Time{}, time.Time{}, false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.ready}}}}
		o := Objects{Nodes: []*corev1.Node{node}}
		if c.lease {
			o.Leases.Nodes = []coordinationv1.Lease{leaseOf("n", c.renewed, c.seen)}
		}
		if got := NewWorld(o, noon()).kubeletLives(node); got != c.want {
			t.Errorf("%s: it lives: %v, want %v", c.name, got, c.want)
		}
	}
}

// By the API server's clock it lapses after seconds; by the holder's after half a minute.
func TestLapsed(t *testing.T) {
	for _, c := range []struct {
		name          string
		renewed, seen time.Duration // ago; seen 0: not noted by the API server
		want          time.Duration
	}{
		{"renewed just now", 0, 0, 0},
		{"within its time", 39 * time.Second, 39 * time.Second, 0},
		{"over, and noted to the second", 45 * time.Second, 45 * time.Second, 0},
		{"over for longer", 46 * time.Second, 46 * time.Second, 6 * time.Second},
		{"its clock is behind", time.Hour, time.Second, 0},
		{"its clock is ahead", -time.Hour, 46 * time.Second, 6 * time.Second},
		{"nobody has noted it", 46 * time.Second, 0, 0},
		{"nor for long", 71 * time.Second, 0, 31 * time.Second},
	} {
		seen := time.Time{}
		if c.seen > 0 {
			seen = noon().Add(-c.seen)
		}
		l := leaseOf("moorage-controller", noon().Add(-c.renewed), seen)
		if got := Lapsed(&l, noon()); got != c.want {
			t.Errorf("%s: over for %s, want %s", c.name, got, c.want)
		}
	}
}

// A Lease does not expire without a new read.
func TestLeasesAreOfWhenTheyWereRead(t *testing.T) {
	lease := leaseOf("moorage-scheduler", noon(), noon())
	lease.Namespace = DefaultHome
	leases := Leases{Seen: true, Components: []coordinationv1.Lease{lease}, At: noon().Add(time.Second)}
	later := noon().Add(time.Minute)
	if how, _ := NewWorld(Objects{Leases: leases}, later).leads("moorage-scheduler"); how != leads {
		t.Errorf("a minute after it was read in time its Lease says %d, want that it leads", how)
	}
	leases.At = later
	if how, _ := NewWorld(Objects{Leases: leases}, later).leads("moorage-scheduler"); how != lapsed {
		t.Errorf("read late, its Lease says %d, want that it has run out", how)
	}
}
