// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func TestLifeOfADisk(t *testing.T) {
	w := newWorld(t)
	a := w.node("worker-1", 2)
	b := w.node("worker-2", 2)
	vol := w.create("pvc-1")
	for _, n := range []*nodeUnderTest{a, b} {
		ctx, err := w.publish(vol, n)
		w.must(err)
		w.must(n.stage(vol, ctx))
		w.must(n.mount(vol, ctx, writer()))
		if fi, err := os.Stat(n.target(vol)); err != nil || !fi.IsDir() {
			t.Fatalf("target folder: %v, %v", fi, err)
		}
		w.must(n.unmount(vol))
		if _, err := os.Stat(n.target(vol)); !os.IsNotExist(err) {
			t.Fatalf("target folder is still there: %v", err)
		}
		w.must(n.unstage(vol))
		w.must(w.unpublish(vol, n))
	}
	w.must(w.delete(vol))

	violations, err := w.api.Finish(w.ctx)
	w.must(err)
	if len(violations) > 0 {
		t.Errorf("violations in a legal life: %v", violations)
	}
	wantCalls(t, w, vol, []diskapi.Call{
		diskapi.CreateVolume,
		diskapi.ControllerPublish, diskapi.NodeStage, diskapi.NodePublish,
		diskapi.NodeUnpublish, diskapi.NodeUnstage, diskapi.ControllerUnpublish,
		diskapi.ControllerPublish, diskapi.NodeStage, diskapi.NodePublish,
		diskapi.NodeUnpublish, diskapi.NodeUnstage, diskapi.ControllerUnpublish,
		diskapi.DeleteVolume,
	})
}

func wantCalls(t *testing.T, w *world, volume string, want []diskapi.Call) {
	t.Helper()
	entries, err := w.api.Log(w.ctx, 0, disk.Filter{Volume: volume, Phase: diskapi.Returned, Outcome: diskapi.OK})
	w.must(err)
	var got []diskapi.Call
	for _, e := range entries {
		got = append(got, e.Call)
	}
	if len(got) != len(want) {
		t.Fatalf("calls %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("call %d is %s, want %s", i, got[i], want[i])
		}
	}
}

func TestBlockVolumeGetsAFile(t *testing.T) {
	w := newWorld(t)
	n := w.node("worker-1", 2)
	vol, ctx := w.attach("pvc-1", n)
	block := writer()
	block.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	stage := &csi.NodeStageVolumeRequest{
		VolumeId: vol, StagingTargetPath: n.staging(vol), PublishContext: ctx, VolumeCapability: block,
	}
	_, err := n.NodeStageVolume(w.ctx, stage)
	wantCode(t, err, codes.InvalidArgument)

	n.stop()
	n.block = true
	n.start()
	_, err = n.NodeStageVolume(w.ctx, stage)
	w.must(err)
	w.must(os.MkdirAll(filepath.Dir(n.target(vol)), 0o755))
	w.must(n.mount(vol, ctx, block))
	if fi, err := os.Stat(n.target(vol)); err != nil || !fi.Mode().IsRegular() {
		t.Fatalf("target file: %v, %v", fi, err)
	}
	w.must(n.unmount(vol))
	if _, err := os.Stat(n.target(vol)); !os.IsNotExist(err) {
		t.Fatalf("target file is still there: %v", err)
	}
}

func TestNodePluginRemembers(t *testing.T) {
	w := newWorld(t)
	n := w.node("worker-1", 2)
	vol := w.create("pvc-1")
	ctx, err := w.publish(vol, n)
	w.must(err)
	w.must(n.stage(vol, ctx))
	n.stop()
	n.start()
	w.must(n.mount(vol, ctx, writer()))
	// Finished work takes no time.
	w.must(w.api.SetLatency(w.ctx, diskapi.NodeStage, time.Hour))
	w.must(n.stage(vol, ctx))
	again, err := w.api.Log(w.ctx, 0, disk.Filter{Call: diskapi.NodeStage, Phase: diskapi.Returned})
	w.must(err)
	if len(again) != 2 || again[0].Again || !again[1].Again {
		t.Errorf("want the second of two stages to find it done: %+v", again)
	}
	if rules := w.rules(); len(rules) > 0 {
		t.Errorf("violations %v", rules)
	}
}

func TestServiceRemembers(t *testing.T) {
	w := newWorld(t)
	n := w.node("worker-1", 2)
	vol := w.create("pvc-1")
	before, err := w.publish(vol, n)
	w.must(err)
	seq, err := w.api.Mark(w.ctx)
	w.must(err)
	w.stop()
	w.start()

	after, err := w.publish(vol, n)
	w.must(err)
	if after["attachmentID"] == "" || after["attachmentID"] != before["attachmentID"] {
		t.Errorf("attachment %v after the restart, %v before", after, before)
	}
	e, err := w.api.WaitFor(w.ctx, seq, disk.Filter{Call: diskapi.ServiceStarted})
	w.must(err)
	if e.Seq != seq+1 {
		t.Errorf("the restart has number %d, want %d", e.Seq, seq+1)
	}
	w.must(w.unpublish(vol, n))
	w.must(w.delete(vol))
}
