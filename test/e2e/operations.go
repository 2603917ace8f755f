// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func operating(shape *sandbox.Shape) {
	threeByFour(shape)
	shape.Operations.On = true
}

func (s *story) snapshotOf(name, claim string) {
	s.make(sandbox.SnapshotResource(), "VolumeSnapshot", name, ofClaim(claim))
}

func ofClaim(claim string) map[string]any {
	return map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}}
}

func (s *story) groupSnapshotOf(name, label, value string) {
	s.make(sandbox.GroupSnapshotResource(), "VolumeGroupSnapshot", name, map[string]any{
		"source": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{label: value}}},
	})
}

func (s *story) make(of schema.GroupVersionResource, kind, name string, spec map[string]any) {
	if _, err := s.Dynamic.Resource(of).Namespace(s.Namespace).Create(s.ctx, object(of, kind, name, spec), metav1.CreateOptions{}); err != nil {
		s.must(fmt.Errorf("create %s %s: %w", kind, name, err))
	}
}

func object(of schema.GroupVersionResource, kind, name string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(of.GroupVersion().WithKind(kind))
	o.SetName(name)
	return o
}

func (s *story) snapshotReady(name string) diskapi.Snapshot {
	s.until("snapshot "+name+" is ready", func() error { return ready(s.View.Snapshot(s.Namespace, name)) })
	snapshots, err := s.Disk.Snapshots(s.ctx)
	s.must(err)
	handle := s.snapshotHandle(name)
	for _, x := range snapshots {
		if x.Handle == handle {
			return x
		}
	}
	s.expect(false, "the storage has the snapshot "+name, "it has no %s", handle)
	return diskapi.Snapshot{}
}

func (s *story) snapshotHandle(name string) string {
	content, _, _ := unstructured.NestedString(s.View.Snapshot(s.Namespace, name).Object, "status", "boundVolumeSnapshotContentName")
	o := s.View.SnapshotContent(content)
	s.expect(o != nil, "the snapshot "+name+" has a content", "there is no %q", content)
	handle, _, _ := unstructured.NestedString(o.Object, "status", "snapshotHandle")
	return handle
}

func ready(o *unstructured.Unstructured) error {
	if o == nil {
		return errors.New("there is none")
	}
	if is, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse"); !is {
		return fmt.Errorf("its status is %v", o.Object["status"])
	}
	return nil
}

func (s *story) snapshotRefused(name, code string) {
	s.until("snapshot "+name+" says "+code, func() error {
		o := s.View.Snapshot(s.Namespace, name)
		if ready(o) == nil {
			return sandbox.Never("it is ready")
		}
		if o == nil {
			return errors.New("there is none")
		}
		if message, _, _ := unstructured.NestedString(o.Object, "status", "error", "message"); !strings.Contains(message, code) {
			return fmt.Errorf("its status is %v", o.Object["status"])
		}
		return nil
	})
}

func (s *story) groupReady(name string) []diskapi.Snapshot {
	s.until("group snapshot "+name+" is ready", func() error { return ready(s.View.GroupSnapshot(s.Namespace, name)) })
	snapshots, err := s.Disk.Snapshots(s.ctx)
	s.must(err)
	var members []diskapi.Snapshot
	for _, x := range snapshots {
		if x.Group != "" {
			members = append(members, x)
		}
	}
	return members
}

func (s *story) cloneOf(name, claim string) {
	s.madeFrom(name, corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: claim})
}

func (s *story) restoredFrom(name, snapshot string) {
	s.madeFrom(name, corev1.TypedLocalObjectReference{
		APIGroup: new(sandbox.SnapshotResource().Group), Kind: "VolumeSnapshot", Name: snapshot,
	})
}

func (s *story) madeFrom(name string, source corev1.TypedLocalObjectReference) {
	claim := sandbox.Claim(name, corev1.ReadWriteOnce)
	claim.Spec.StorageClassName, claim.Spec.DataSource = new("disk-immediate"), &source
	s.must(s.CreateClaim(s.ctx, claim))
}

func (s *story) bound(claim string) string {
	s.until("claim "+claim+" is bound", func() error {
		c := s.View.Claim(s.Namespace, claim)
		if c == nil || c.Status.Phase != corev1.ClaimBound {
			return errors.New("it is not")
		}
		_, err := s.Handle(claim)
		return err
	})
	return s.handle(claim)
}

func (s *story) refused(claim, reason, code string) {
	s.until(fmt.Sprintf("claim %s is told %s: %s", claim, reason, code), func() error {
		if s.Event("PersistentVolumeClaim", claim, reason, code) == nil {
			return errors.New("there is no such event yet")
		}
		return nil
	})
}

func (s *story) expand(claim, size string) {
	patch := fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":%q}}}}`, size)
	_, err := s.Client.CoreV1().PersistentVolumeClaims(s.Namespace).Patch(s.ctx, claim, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		s.must(fmt.Errorf("expand claim %s: %w", claim, err))
	}
}

func (s *story) expandedAtStorage(claim, size string) {
	want := resource.MustParse(size)
	s.until("the volume of "+claim+" has "+size, func() error {
		pv := s.View.Volume(s.View.Claim(s.Namespace, claim).Spec.VolumeName)
		if pv == nil {
			return errors.New("there is none")
		}
		if has := pv.Spec.Capacity[corev1.ResourceStorage]; has.Cmp(want) != 0 {
			return fmt.Errorf("it has %s", has.String())
		}
		return nil
	})
}

// A kubelet looks at a pod's volumes when the pod changes, or after a minute: the pod is changed.
func (s *story) expanded(claim, size, pod string) {
	s.expandedAtStorage(claim, size)
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"size-of-%s":%q}}}`, claim, size)
	_, err := s.Client.CoreV1().Pods(s.Namespace).Patch(s.ctx, pod, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	s.must(err)
	want := resource.MustParse(size)
	s.until("claim "+claim+" has "+size, func() error {
		if has := s.View.Claim(s.Namespace, claim).Status.Capacity[corev1.ResourceStorage]; has.Cmp(want) != 0 {
			return fmt.Errorf("it has %s", has.String())
		}
		return nil
	})
}

func (s *story) finds(handle, node string) (found uint64) {
	s.until("the pod at "+node+" writes to the volume", func() error {
		began := s.calls(diskapi.WriteBegan, diskapi.Noted, handle, node)
		if len(began) == 0 {
			return errors.New("it does not")
		}
		found = last(began).Write.Flushed
		return nil
	})
	return found
}

func (s *story) leavesEveryNode(claim string) {
	s.until("the volume of "+claim+" is attached nowhere", func() error {
		for _, node := range s.View.Nodes() {
			if s.attachment(claim, node.Name) != nil {
				return fmt.Errorf("it is at %s", node.Name)
			}
		}
		return nil
	})
}

func (s *story) published(handle string) int {
	return len(s.View.Calls(diskapi.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Arrived, Volume: handle}))
}
