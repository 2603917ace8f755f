// SPDX-License-Identifier: Apache-2.0

package provisioner

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

const patience = 30 * time.Second

type disks struct {
	csi.ControllerClient
	created, deleted chan string
	failCreate       chan error
}

func newDisks() *disks {
	return &disks{created: make(chan string, 100), deleted: make(chan string, 100), failCreate: make(chan error, 100)}
}

func (d *disks) CreateVolume(_ context.Context, r *csi.CreateVolumeRequest, _ ...grpc.CallOption) (*csi.CreateVolumeResponse, error) {
	select {
	case err := <-d.failCreate:
		return nil, err
	default:
	}
	d.created <- r.GetName()
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "vol-of-" + r.GetName()}}, nil
}

func (d *disks) DeleteVolume(_ context.Context, r *csi.DeleteVolumeRequest, _ ...grpc.CallOption) (*csi.DeleteVolumeResponse, error) {
	d.deleted <- r.GetVolumeId()
	return &csi.DeleteVolumeResponse{}, nil
}

// written gets every write as "verb resource".
func run(t *testing.T, d *disks, objects ...runtime.Object) (ctx context.Context, client kubernetes.Interface, written chan string) {
	t.Helper()
	c := fake.NewClientset(objects...)
	written = make(chan string, 100)
	c.PrependReactor("*", "*", func(a k8stesting.Action) (bool, runtime.Object, error) {
		if a.GetVerb() != "list" && a.GetVerb() != "watch" && a.GetVerb() != "get" {
			written <- a.GetVerb() + " " + a.GetResource().Resource
		}
		return false, nil, nil
	})
	// The fake client takes no notice of finalizers, an API server does.
	c.PrependReactor("delete", "persistentvolumes", func(a k8stesting.Action) (bool, runtime.Object, error) {
		name := a.(k8stesting.DeleteAction).GetName()
		obj, err := c.Tracker().Get(a.GetResource(), "", name)
		if err != nil || len(obj.(*corev1.PersistentVolume).Finalizers) == 0 {
			return false, nil, nil
		}
		written <- "delete persistentvolumes"
		pv := obj.(*corev1.PersistentVolume).DeepCopy()
		pv.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		return true, nil, c.Tracker().Update(a.GetResource(), pv, "")
	})
	// Unlike an API server, the fake client drops events between a list and its watch: tell when a watch is
	// open.
	watched := make(chan string, 100)
	c.PrependWatchReactor("*", func(a k8stesting.Action) (bool, watch.Interface, error) {
		w, err := c.Tracker().Watch(a.GetResource(), a.GetNamespace())
		watched <- a.GetResource().Resource
		return true, w, err
	})
	p, err := New(Config{
		Driver: driver, Client: c, Volumes: d, Workers: 1,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	for _, kind := range []string{"claims", "volumes", "classes", "attachments"} {
		next(t, ctx, watched, "watch of "+kind)
	}
	return ctx, c, written
}

func next(t *testing.T, ctx context.Context, c <-chan string, what string) string {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("no %s", what)
		return ""
	}
}

func TestClaimGetsADisk(t *testing.T) {
	d := newDisks()
	ctx, c, written := run(t, d, testClass(), testClaim())
	if name := next(t, ctx, d.created, "disk"); name != "pvc-uid-1" {
		t.Errorf("disk %q", name)
	}
	if w := next(t, ctx, written, "volume"); w != "create persistentvolumes" {
		t.Errorf("wrote %q", w)
	}
	pv, err := c.CoreV1().PersistentVolumes().Get(ctx, "pvc-uid-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pv.Spec.CSI.VolumeHandle != "vol-of-pvc-uid-1" {
		t.Errorf("handle %q", pv.Spec.CSI.VolumeHandle)
	}
}

func TestFailedCreateIsTriedAgain(t *testing.T) {
	d := newDisks()
	d.failCreate <- status.Error(codes.Unavailable, "not now")
	ctx, _, written := run(t, d, testClass(), testClaim())
	next(t, ctx, d.created, "second try")
	seen := map[string]bool{}
	for !seen["create events"] || !seen["create persistentvolumes"] {
		seen[next(t, ctx, written, "event and volume")] = true
	}
}

func released() *corev1.PersistentVolume {
	pv := volumeFor(driver, testClaim(), testClass(), &csi.Volume{VolumeId: "vol-1"})
	pv.UID = "pv-uid"
	pv.Status.Phase = corev1.VolumeReleased
	return pv
}

// First the disk goes, then the volume, then its finalizer.
func TestReleasedVolumeIsReclaimed(t *testing.T) {
	d := newDisks()
	held := released()
	held.Finalizers = append([]string{"kubernetes.io/pv-protection"}, held.Finalizers...)
	ctx, c, written := run(t, d, held)
	if v := next(t, ctx, d.deleted, "deletion"); v != "vol-1" {
		t.Errorf("deleted %q", v)
	}
	for _, want := range []string{"delete persistentvolumes", "patch persistentvolumes"} {
		if w := next(t, ctx, written, want); w != want {
			t.Errorf("wrote %q, want %q", w, want)
		}
	}
	pv, err := c.CoreV1().PersistentVolumes().Get(ctx, held.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pv.Finalizers) != 1 || pv.Finalizers[0] != "kubernetes.io/pv-protection" {
		t.Errorf("finalizers %v, want those of others", pv.Finalizers)
	}
	// The next volume is behind what the first one caused.
	second := released()
	second.Name, second.UID = "second", "second-uid"
	second.Spec.CSI.VolumeHandle = "vol-2"
	if _, err := c.CoreV1().PersistentVolumes().Create(ctx, second, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if v := next(t, ctx, d.deleted, "second deletion"); v != "vol-2" {
		t.Errorf("deleted %q again", v)
	}
}

// An attached volume passes through the queue, and the next is reclaimed before it: the single worker
// ensures the order.
func TestAttachedVolumeIsNotReclaimed(t *testing.T) {
	d := newDisks()
	attached := released()
	attached.Name, attached.UID = "attached", "other-uid"
	attached.Spec.CSI.VolumeHandle = "vol-attached"
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: driver, NodeName: "worker-1",
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &attached.Name},
		},
	}
	ctx, c, _ := run(t, d, attached, va)
	if _, err := c.CoreV1().PersistentVolumes().Create(ctx, released(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if v := next(t, ctx, d.deleted, "deletion"); v != "vol-1" {
		t.Fatalf("deleted %q while it is attached", v)
	}
	if err := c.StorageV1().VolumeAttachments().Delete(ctx, va.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if v := next(t, ctx, d.deleted, "second deletion"); v != "vol-attached" {
		t.Errorf("deleted %q", v)
	}
}

// While the cache misses an attachment, the volume waits until it is gone at the API server.
func TestAttachmentUnknownToTheCacheIsSeen(t *testing.T) {
	attached := released()
	va := &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "worker-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &attached.Name}},
	}
	d := newDisks()
	c := fake.NewClientset(attached, va)
	p, err := New(Config{Driver: driver, Client: c, Volumes: d, Workers: 1, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	// No informer is started: this is all that the caches know.
	if err := p.factory.Core().V1().PersistentVolumes().Informer().GetStore().Add(attached); err != nil {
		t.Fatal(err)
	}
	if err := p.syncVolume(t.Context(), attached.Name); err == nil {
		t.Error("an attached volume was reclaimed")
	}
	if len(d.deleted) > 0 {
		t.Error("the disk of an attached volume was deleted")
	}
	if err := c.StorageV1().VolumeAttachments().Delete(t.Context(), va.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := p.syncVolume(t.Context(), attached.Name); err != nil {
		t.Fatal(err)
	}
	if len(d.deleted) != 1 {
		t.Errorf("%d disks were deleted, want 1", len(d.deleted))
	}
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("an empty config passes")
	}
}
