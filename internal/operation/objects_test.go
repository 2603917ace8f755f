// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func expanded(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "uid"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv",
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	change(c)
	return c
}

// The claim's spec asks; its status shows only a refusal.
func TestExpansionOf(t *testing.T) {
	resizing := func(status corev1.ClaimResourceStatus) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
		}
	}
	for name, test := range map[string]struct {
		change     func(*corev1.PersistentVolumeClaim)
		due, never bool // never: it is infeasible
	}{
		"asked for":                            {func(*corev1.PersistentVolumeClaim) {}, true, false},
		"nothing asked for":                    {func(c *corev1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil }, false, false},
		"it says it is as large":               {func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = c.Spec.Resources.Requests }, true, false},
		"no status":                            {func(c *corev1.PersistentVolumeClaim) { c.Status = corev1.PersistentVolumeClaimStatus{} }, true, false},
		"being deleted":                        {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }, false, false},
		"controller at work":                   {resizing(corev1.PersistentVolumeClaimControllerResizeInProgress), true, false},
		"controller gave up":                   {resizing(corev1.PersistentVolumeClaimControllerResizeInfeasible), true, true},
		"it says it is the node's turn":        {resizing(corev1.PersistentVolumeClaimNodeResizePending), true, false},
		"a status that this release knows not": {resizing("Something"), true, false},
	} {
		w := ClaimOf(expanded(test.change))
		if (w != nil) != test.due || w != nil && (w.Operation != ledger.OperationExpansion || w.Infeasible != test.never || w.Claim != (ledger.ClaimKey{Namespace: "shop", Name: "a"}) || w.Wants != 2<<30) {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

func TestCloneOf(t *testing.T) {
	group, other := "snapshot.storage.k8s.io", "other"
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolumeClaimSpec)
		from   string
	}{
		"nothing": {func(*corev1.PersistentVolumeClaimSpec) {}, ""},
		"a claim": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "b"}
		}, "shop/b"},
		"a snapshot": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: "b"}
		}, ""},
		"a claim, no claim": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "PersistentVolumeClaim", Name: "b"}
		}, ""},
		"a claim, by reference": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "b"}
		}, "shop/b"},
		"of another namespace": {func(s *corev1.PersistentVolumeClaimSpec) {
			s.DataSourceRef = &corev1.TypedObjectReference{Kind: "PersistentVolumeClaim", Name: "b", Namespace: &other}
		}, "other/b"},
	} {
		c := expanded(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Status = "", corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
			test.change(&c.Spec)
		})
		w := ClaimOf(c)
		switch {
		case test.from == "" && w != nil, test.from != "" && (w == nil || w.Operation != ledger.OperationClone || w.Claim.String() != test.from || w.Outside != (test.from == "other/b")):
			t.Errorf("%s: %+v", name, w)
		}
		c.Status.Phase = corev1.ClaimBound
		if again := ClaimOf(c); (again == nil) != (w == nil) {
			t.Errorf("%s: it says that it is bound: %+v", name, again)
		}
		c.Spec.VolumeName = "pv"
		if w := ClaimOf(c); w != nil && w.Operation != ledger.OperationExpansion {
			t.Errorf("%s: bound, and work: %+v", name, w)
		}
	}
}

func TestContents(t *testing.T) {
	content := func(fields map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: fields}
		o.SetAPIVersion("snapshot.storage.k8s.io/v1")
		o.SetName("s")
		return o
	}
	spec := func() map[string]any {
		return map[string]any{"driver": "d", "source": map[string]any{"volumeHandle": "h", "volumeHandles": []any{"h", "g", "h"}},
			"volumeSnapshotRef": map[string]any{"namespace": "shop", "name": "snap", "uid": "u"}}
	}
	for name, test := range map[string]struct {
		o           *unstructured.Unstructured
		due, groups bool
	}{
		"new":     {content(map[string]any{"spec": spec()}), true, true},
		"cut":     {content(map[string]any{"spec": spec(), "status": map[string]any{"creationTime": int64(1), "readyToUse": false}}), true, true},
		"ready":   {content(map[string]any{"spec": spec(), "status": map[string]any{"readyToUse": true}}), false, false},
		"failed":  {content(map[string]any{"spec": spec(), "status": map[string]any{"error": map[string]any{"message": "m"}}}), true, true},
		"of old":  {content(map[string]any{"spec": map[string]any{"driver": "d", "source": map[string]any{"snapshotHandle": "s"}}}), false, false},
		"strange": {content(map[string]any{"spec": []any{"x"}, "status": "y"}), false, false},
		"member": {func() *unstructured.Unstructured {
			o := content(map[string]any{"spec": spec()})
			o.SetAnnotations(map[string]string{"groupsnapshot.storage.k8s.io/volumeGroupSnapshotHandle": "g"}) // as external-snapshotter v8 writes it
			return o
		}(), false, true},
		"deleted": {func() *unstructured.Unstructured {
			o := content(map[string]any{"spec": spec()})
			o.SetDeletionTimestamp(&metav1.Time{Time: epoch})
			return o
		}(), false, false},
	} {
		w, due := SnapshotOf(test.o)
		if due != test.due || due && (w.Told.String() != "VolumeSnapshot shop/snap" || len(w.Handles) != 1 || w.Cut != (name == "cut")) {
			t.Errorf("%s: %t, %+v", name, due, w)
		}
		g, due := GroupOf(test.o)
		if due != test.groups || due && (len(g.Handles) != 2 || g.Told != g.Object) {
			t.Errorf("%s, as a group: %t, %+v", name, due, g)
		}
	}
}
