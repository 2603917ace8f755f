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

func resizing(status corev1.ClaimResourceStatus) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: status}
	}
}

// pending is what a resizer says by a condition only, that the rest is the node's.
func pending(c *corev1.PersistentVolumeClaim) {
	c.Status.Conditions = append(c.Status.Conditions, corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue})
}

// An expansion is work from when it is asked for until what is left is the node's.
func TestExpansionOf(t *testing.T) {
	for name, test := range map[string]struct {
		change     func(*corev1.PersistentVolumeClaim)
		due, never bool // never: it is infeasible
	}{
		"asked for":                   {func(*corev1.PersistentVolumeClaim) {}, true, false},
		"as large as it is":           {func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = c.Spec.Resources.Requests }, false, false},
		"no capacity yet":             {func(c *corev1.PersistentVolumeClaim) { c.Status.Capacity = nil }, false, false},
		"being deleted":               {func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }, false, false},
		"lost":                        {func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }, false, false},
		"controller at work":          {resizing(corev1.PersistentVolumeClaimControllerResizeInProgress), true, false},
		"controller gave up":          {resizing(corev1.PersistentVolumeClaimControllerResizeInfeasible), true, true},
		"node's turn":                 {resizing(corev1.PersistentVolumeClaimNodeResizePending), false, false},
		"node at work":                {resizing(corev1.PersistentVolumeClaimNodeResizeInProgress), false, false},
		"node gave up":                {resizing(corev1.PersistentVolumeClaimNodeResizeInfeasible), false, false},
		"node's turn, by a condition": {pending, false, false},
		"controller again, an old condition": {func(c *corev1.PersistentVolumeClaim) {
			pending(c)
			resizing(corev1.PersistentVolumeClaimControllerResizeInProgress)(c)
		}, true, false},
		"a status that this release knows not": {resizing("Something"), true, false},
	} {
		w := ClaimOf(expanded(test.change))
		if (w != nil) != test.due || w != nil && (w.Operation != ledger.OperationExpansion || w.Infeasible != test.never || w.Claim != (ledger.ClaimKey{Namespace: "shop", Name: "a"})) {
			t.Errorf("%s: %+v", name, w)
		}
	}
}

// A claim that is not bound is to be a clone where it names another claim.
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
		if w := ClaimOf(c); w != nil {
			t.Errorf("%s: bound, and work: %+v", name, w)
		}
	}
}

// A content is work until its snapshot is ready; whatever shape it has, nothing breaks.
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
			o.SetAnnotations(map[string]string{memberAnnotation: "g"})
			return o
		}(), false, true},
		"deleted": {func() *unstructured.Unstructured {
			o := content(map[string]any{"spec": spec()})
			o.SetDeletionTimestamp(&metav1.Time{Time: epoch})
			return o
		}(), false, false},
	} {
		w, due := SnapshotOf(test.o)
		if due != test.due || due && (w.Told.String() != "VolumeSnapshot shop/snap" || len(w.Handles) != 1 || w.Progress == "cut" != (name == "cut")) {
			t.Errorf("%s: %t, %+v", name, due, w)
		}
		g, due := GroupOf(test.o)
		if due != test.groups || due && (len(g.Handles) != 2 || g.Told != g.Object) {
			t.Errorf("%s, as a group: %t, %+v", name, due, g)
		}
	}
}
