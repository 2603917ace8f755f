// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func operating(args ...string) []string {
	return append([]string{"--snapshots", "--group-snapshots", "--clones", "--expansion"}, args...)
}

func (w *world) snapshot(name, volume string) (*csi.Snapshot, error) {
	r, err := w.controller.CreateSnapshot(w.ctx, &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: volume})
	return r.GetSnapshot(), err
}

func (w *world) snapshotting(name, volume string) <-chan error {
	done := make(chan error, 1)
	go func() { _, err := w.snapshot(name, volume); done <- err }()
	return done
}

func (w *world) copyOf(name, snapshot, volume string) (*csi.Volume, error) {
	from := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
		Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: volume},
	}}
	if snapshot != "" {
		from.Type = &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: snapshot}}
	}
	r, err := w.controller.CreateVolume(w.ctx, &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{writer()}, VolumeContentSource: from,
	})
	return r.GetVolume(), err
}

func (w *world) expand(volume string, size int64) (*csi.ControllerExpandVolumeResponse, error) {
	return w.controller.ControllerExpandVolume(w.ctx, &csi.ControllerExpandVolumeRequest{
		VolumeId: volume, CapacityRange: &csi.CapacityRange{RequiredBytes: size}, VolumeCapability: writer(),
	})
}

func (w *world) refused(err error, want codes.Code, what string) {
	w.t.Helper()
	if status.Code(err) != want {
		w.t.Errorf("%s: %v, want %s", what, err, want)
	}
}

func (w *world) snapshots() []diskapi.Snapshot {
	w.t.Helper()
	list, err := w.api.Snapshots(w.ctx)
	w.must(err)
	return list
}

func (w *world) gone(volume string, n *nodeUnderTest) {
	w.t.Helper()
	w.must(n.unmount(volume))
	w.must(n.unstage(volume))
	w.must(w.unpublish(volume, n))
}

// A copy has only what was on the disk when it was made: no write from the machine's memory, and no later
// write.
func TestCopiesHaveWhatWasFlushed(t *testing.T) {
	w := newWorld(t, operating()...)
	a := w.node("worker-1", 4)
	vol := w.create("v")
	w.use(vol, a)
	for range 3 {
		a.tick()
	}
	snap, err := w.snapshot("s", vol)
	w.must(err)
	clone, err := w.copyOf("clone", "", vol)
	w.must(err)
	before := w.await(disk.Filter{Call: diskapi.WorkBegan, Volume: vol}).Write.Flushed
	if before < 3 {
		t.Fatalf("write %d was flushed when the snapshot was made", before)
	}
	for range 3 {
		a.tick()
	}
	w.gone(vol, a)
	again, err := w.snapshot("s", vol)
	if err != nil || again.GetSnapshotId() != snap.GetSnapshotId() || len(w.snapshots()) != 1 || w.snapshots()[0].Flushed != before {
		t.Errorf("asked for again it is %v (%v), of %+v", again, err, w.snapshots())
	}
	w.must(w.delete(vol))
	restored, err := w.copyOf("restored", snap.GetSnapshotId(), "")
	w.must(err)
	for _, copied := range []string{clone.GetVolumeId(), restored.GetVolumeId()} {
		if found := w.use(copied, a).Write.Flushed; found != before {
			t.Errorf("a pod finds write %d on a copy of write %d", found, before)
		}
	}
	if broken := w.rules(); len(broken) > 0 {
		t.Errorf("the judge saw %v", broken)
	}
}

func TestOperationsNeedTheVolumeAttached(t *testing.T) {
	w := newWorld(t, operating("--attach-for=snapshot,clone,expansion")...)
	a := w.node("worker-1", 4)
	vol := w.create("v")
	operations := func() (codes []codes.Code) {
		_, snapshot := w.snapshot("s", vol)
		_, clone := w.copyOf("c", "", vol)
		_, expansion := w.expand(vol, 2<<30)
		_, group := w.groups.CreateVolumeGroupSnapshot(w.ctx, &csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{vol}})
		for _, err := range []error{snapshot, clone, expansion, group} {
			codes = append(codes, status.Code(err))
		}
		return codes
	}
	refused := slices.Repeat([]codes.Code{codes.FailedPrecondition}, 4)
	if got := operations(); !slices.Equal(got, refused) {
		t.Errorf("detached: %v", got)
	}
	_, err := w.publish(vol, a)
	w.must(err)
	w.must(w.api.Fence(w.ctx, a.id()))
	if got := operations(); !slices.Equal(got, refused) {
		t.Errorf("at a machine that is off: %v", got)
	}
	w.must(w.api.Unfence(w.ctx, a.id()))
	if got := operations(); slices.ContainsFunc(got, func(c codes.Code) bool { return c != codes.OK }) {
		t.Errorf("attached: %v", got)
	}
	if got := len(w.snapshots()); got != 2 {
		t.Errorf("there are %d snapshots, want one alone and one in a group", got)
	}
}

func TestOperationsNeedTheVolumeDetached(t *testing.T) {
	w := newWorld(t, operating("--detach-for=expansion,snapshot", "--expand-latency=1h")...)
	a := w.node("worker-1", 4)
	vol, _ := w.attach("v", a)
	_, err := w.expand(vol, 2<<30)
	w.refused(err, codes.FailedPrecondition, "expand an attached volume")
	_, err = w.snapshot("s", vol)
	w.refused(err, codes.FailedPrecondition, "snapshot of an attached volume")
	w.must(w.unpublish(vol, a))
	_, err = w.snapshot("s", vol)
	w.must(err)
	go func() { // until it begins: it is refused while the loop below has the volume attached
		for err := status.Error(codes.FailedPrecondition, ""); status.Code(err) == codes.FailedPrecondition; {
			_, err = w.expand(vol, 2<<30)
		}
	}()
	for { // until the expansion has begun
		if _, err = w.publish(vol, a); status.Code(err) == codes.Aborted {
			break
		}
		w.must(err)
		w.must(w.unpublish(vol, a))
	}
}

func TestGroupSnapshots(t *testing.T) {
	w := newWorld(t, operating("--attach-for=snapshot")...)
	a := w.node("worker-1", 4)
	v, x := w.create("v"), w.create("x")
	w.use(v, a)
	ask := func(volumes ...string) (*csi.VolumeGroupSnapshot, error) {
		r, err := w.groups.CreateVolumeGroupSnapshot(w.ctx, &csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: volumes})
		return r.GetGroupSnapshot(), err
	}
	_, err := ask(v, x)
	w.refused(err, codes.FailedPrecondition, "a group with a detached volume")
	if left := w.snapshots(); len(left) > 0 {
		t.Errorf("a group that was refused left %+v", left)
	}
	w.use(x, a)
	g, err := ask(v, x)
	w.must(err)
	if !g.GetReadyToUse() || len(g.GetSnapshots()) != 2 || g.GetSnapshots()[0].GetGroupSnapshotId() != g.GetGroupSnapshotId() {
		t.Errorf("the group is %v", g)
	}
	again, err := ask(x, v)
	if err != nil || again.GetGroupSnapshotId() != g.GetGroupSnapshotId() {
		t.Errorf("asked for again it is %v (%v)", again, err)
	}
	_, err = ask(v)
	w.refused(err, codes.AlreadyExists, "the same group of other volumes")
	_, err = w.controller.DeleteSnapshot(w.ctx, &csi.DeleteSnapshotRequest{SnapshotId: g.GetSnapshots()[0].GetSnapshotId()})
	w.refused(err, codes.InvalidArgument, "delete a member of a group")
	_, err = w.groups.DeleteVolumeGroupSnapshot(w.ctx, &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: g.GetGroupSnapshotId()})
	w.must(err)
	_, err = w.groups.GetVolumeGroupSnapshot(w.ctx, &csi.GetVolumeGroupSnapshotRequest{GroupSnapshotId: g.GetGroupSnapshotId()})
	w.refused(err, codes.NotFound, "a group that was deleted")
}

// A snapshot in the making can't be restored, outlives the process, and is gone if its volume is detached.
func TestSnapshotsInTheBackground(t *testing.T) {
	w := newWorld(t, operating("--attach-for=snapshot", "--copy-in-background", "--copy-latency=1h")...)
	child := w.spawn()
	a := w.node("worker-1", 4)
	vol, _ := w.attach("v", a)
	snap, err := w.snapshot("s", vol)
	if err != nil || snap.GetReadyToUse() {
		t.Fatalf("the snapshot is %v (%v), want it unready", snap, err)
	}
	_, err = w.copyOf("c", snap.GetSnapshotId(), "")
	w.refused(err, codes.Unavailable, "restore what is not ready")
	w.must(child.Process.Kill())
	_ = child.Wait()
	w.start()
	again, err := w.snapshot("s", vol)
	if err != nil || again.GetSnapshotId() != snap.GetSnapshotId() || again.GetReadyToUse() {
		t.Errorf("after a restart it is %v (%v)", again, err)
	}
	w.must(w.unpublish(vol, a))
	w.await(disk.Filter{Call: diskapi.WorkTorn, Volume: vol})
	if left := w.snapshots(); len(left) > 0 {
		t.Errorf("a torn copy left %+v", left)
	}
	if broken := w.rules(); !slices.Equal(broken, []diskapi.Rule{diskapi.TornOperation}) {
		t.Errorf("the judge saw %v", broken)
	}
	_, err = w.snapshot("s", vol)
	w.refused(err, codes.FailedPrecondition, "ask for it again, detached")
	w.must(w.api.SetLatency(w.ctx, diskapi.CreateSnapshot, 0))
	_, err = w.publish(vol, a)
	w.must(err)
	_, err = w.snapshot("s", vol)
	w.must(err)
	w.await(disk.Filter{Call: diskapi.SnapshotReady})
	if again, err = w.snapshot("s", vol); err != nil || !again.GetReadyToUse() {
		t.Errorf("after it was copied it is %v (%v)", again, err)
	}
}

// An operation that loses its volume with the machine fails, and no detach is to blame.
func TestNoBlameForDeadMachines(t *testing.T) {
	w := newWorld(t, operating("--attach-for=snapshot", "--copy-latency=1h")...)
	a := w.node("worker-1", 4)
	vol, _ := w.attach("v", a)
	snapshot := w.snapshotting("s", vol)
	w.await(disk.Filter{Call: diskapi.WorkBegan})
	w.must(w.api.Fence(w.ctx, a.id()))
	w.refused(<-snapshot, codes.Internal, "a snapshot whose machine died")
	w.must(w.unpublish(vol, a))
	if broken := w.rules(); len(broken) > 0 {
		t.Errorf("the judge saw %v", broken)
	}
}

func TestFaultsOfOperations(t *testing.T) {
	w := newWorld(t, operating()...)
	vol := w.create("v")
	f := w.fault(disk.Fault{Calls: calls(diskapi.CreateSnapshot), Volume: vol, Action: diskapi.FailAfter, Code: "Unavailable", Times: 1})
	_, err := w.snapshot("s", vol)
	w.refused(err, codes.Unavailable, "a lie")
	if got := len(w.snapshots()); got != 1 {
		t.Errorf("after a lie there are %d snapshots, want 1", got)
	}
	snap, err := w.snapshot("s", vol)
	w.must(err)
	w.must(w.api.ClearFault(w.ctx, f.ID))
	f = w.fault(disk.Fault{Calls: calls(diskapi.ControllerExpand, diskapi.DeleteSnapshot), Action: diskapi.Fail, Code: "Internal"})
	_, err = w.expand(vol, 2<<30)
	w.refused(err, codes.Internal, "an expansion")
	_, err = w.controller.DeleteSnapshot(w.ctx, &csi.DeleteSnapshotRequest{SnapshotId: snap.GetSnapshotId()})
	w.refused(err, codes.Internal, "a deletion")
	w.must(w.api.ClearFault(w.ctx, f.ID))
	w.fault(disk.Fault{Calls: calls(diskapi.CreateSnapshot), Action: diskapi.Ignore, Times: 1})
	lie, err := w.snapshot("t", vol)
	w.must(err)
	_, err = w.copyOf("c", lie.GetSnapshotId(), "")
	w.refused(err, codes.NotFound, "a snapshot that was only said to be there")
	r, err := w.expand(vol, 2<<30)
	if err != nil || r.GetCapacityBytes() != 2<<30 || !r.GetNodeExpansionRequired() {
		t.Errorf("the expansion: %v (%v)", r, err)
	}
}

func TestNothingButAttaching(t *testing.T) {
	w := newWorld(t)
	vol := w.create("v")
	_, err := w.snapshot("s", vol)
	w.refused(err, codes.Unimplemented, "a snapshot")
	_, err = w.copyOf("c", "", vol)
	w.refused(err, codes.InvalidArgument, "a clone")
	_, err = w.expand(vol, 2<<30)
	w.refused(err, codes.Unimplemented, "an expansion")
	_, err = w.groups.CreateVolumeGroupSnapshot(w.ctx, &csi.CreateVolumeGroupSnapshotRequest{Name: "g", SourceVolumeIds: []string{vol}})
	w.refused(err, codes.Unimplemented, "a group")
}
