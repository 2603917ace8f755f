// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"slices"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (n *nodeUnderTest) tick() {
	written := make(chan struct{})
	n.ticks <- func() { close(written) }
	<-written
}

func (w *world) use(volume string, n *nodeUnderTest) disk.Entry {
	w.t.Helper()
	mark, err := w.api.Mark(w.ctx)
	w.must(err)
	ctx, err := w.publish(volume, n)
	w.must(err)
	w.must(n.stage(volume, ctx))
	w.must(n.mount(volume, ctx, writer()))
	e, err := w.api.WaitFor(w.ctx, mark, disk.Filter{Call: diskapi.WriteBegan, Volume: volume, Node: n.id()})
	w.must(err)
	return e
}

func (w *world) written(volume string) (calls []diskapi.Call) {
	w.t.Helper()
	entries, err := w.api.Log(w.ctx, 0, disk.Filter{Volume: volume, Phase: diskapi.Noted})
	w.must(err)
	for _, e := range entries {
		calls = append(calls, e.Call)
	}
	return calls
}

func TestPodsWrite(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 2), w.node("worker-2", 2)
	vol := w.create("v")
	first := w.use(vol, a)
	if first.Write.Written != 1 || first.Write.Flushed != 0 {
		t.Errorf("the first write of a new disk is %+v", *first.Write)
	}
	for range 5 {
		a.tick()
	}
	if got := w.written(vol); len(got) != 1 {
		t.Errorf("the log has %v, want the first write only", got)
	}
	w.must(a.unmount(vol))
	end := w.await(disk.Filter{Call: diskapi.NodeUnpublish, Phase: diskapi.Applied})
	if end.Write == nil || end.Write.Session != first.Seq || end.Write.Flushed < 6 || end.Write.Written != end.Write.Flushed {
		t.Fatalf("the pod ends with %+v", end.Write)
	}
	a.tick()
	w.must(a.unstage(vol))
	w.must(w.unpublish(vol, a))
	next := w.use(vol, b)
	if next.Write.Flushed != end.Write.Flushed || next.Write.Written != end.Write.Flushed+1 {
		t.Errorf("the next node begins with %+v, the last one ended with %+v", *next.Write, *end.Write)
	}
	if broken := w.rules(); len(broken) > 0 {
		t.Errorf("the judge saw %v", broken)
	}
}

func TestWhoReadsWritesNothing(t *testing.T) {
	w := newWorld(t)
	n := w.node("worker-1", 4)
	vol, ctx := w.attach("reads", n)
	w.must(n.stage(vol, ctx))
	_, err := n.NodePublishVolume(w.ctx, &csi.NodePublishVolumeRequest{
		VolumeId: vol, StagingTargetPath: n.staging(vol), TargetPath: n.target(vol),
		PublishContext: ctx, VolumeCapability: writer(), Readonly: true,
	})
	w.must(err)
	only, ctx := w.attach("only", n)
	w.must(n.stage(only, ctx))
	w.must(n.mount(only, ctx, capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY)))
	w.use(w.create("writes"), n)
	n.tick()
	for _, v := range []string{vol, only} {
		if got := w.written(v); len(got) > 0 {
			t.Errorf("%v", got)
		}
	}
}

// A machine goes on writing when its plugin starts anew, but not after a boot.
func TestWriterOutlivesItsPlugin(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 2), w.node("worker-2", 2)
	vol := w.create("v")
	w.use(vol, a)
	a.stop()
	a.start()
	a.tick() // it asks how far it was
	a.tick()
	a.stop()
	w.must(w.api.Fence(w.ctx, a.id()))
	if got := w.written(vol); len(got) < 2 || !slices.Equal(got[:2], []diskapi.Call{diskapi.WriteBegan, diskapi.Wrote}) {
		t.Errorf("the log has %v, want one writer and how far it came", got)
	}
	last := w.await(disk.Filter{Call: diskapi.Wrote})
	if last.Write.Written <= last.Write.Flushed {
		t.Errorf("everything was flushed: %+v", *last.Write)
	}
	w.must(w.unpublish(vol, a))
	if next := w.use(vol, b); next.Write.Flushed != last.Write.Flushed {
		t.Errorf("the next node finds %+v, flushed was %+v", *next.Write, *last.Write)
	}
	w.must(w.api.Unfence(w.ctx, a.id()))
	a.start()
	a.tick()
	if broken := w.rules(); len(broken) > 0 {
		t.Errorf("the judge saw %v", broken)
	}
}

// The last unmount flushes the machine's memory, also if its plugin has written nothing.
func TestUnmountFlushesWhatAnotherPluginWrote(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 2), w.node("worker-2", 2)
	vol := w.create("v")
	w.use(vol, a)
	a.tick()
	a.tick()
	a.stop()
	a.start()
	w.must(a.unmount(vol))
	end := w.await(disk.Filter{Call: diskapi.NodeUnpublish, Phase: diskapi.Applied})
	if end.Write == nil || end.Write.Written < 3 || end.Write.Flushed != end.Write.Written {
		t.Fatalf("the pod ends with %+v", end.Write)
	}
	w.must(a.unstage(vol))
	w.must(w.unpublish(vol, a))
	w.use(vol, b)
	if broken := w.rules(); len(broken) > 0 {
		t.Errorf("the judge saw %v", broken)
	}
}

// A cut-off writer stops at the first refusal until the volume is unmounted.
func TestWriterThatIsCutOff(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 2), w.node("worker-2", 2)
	vol := w.create("v")
	w.use(vol, a)
	w.must(w.cutOff(a))
	a.tick()
	w.await(disk.Filter{Call: diskapi.WriteRefused, Volume: vol, Node: a.id()})
	w.must(w.unpublish(vol, a))
	w.use(vol, b)
	w.must(b.unmount(vol))
	w.must(b.unstage(vol))
	w.must(w.unpublish(vol, b))
	w.must(w.letIn(a))
	_, err := w.publish(vol, a)
	w.must(err)
	a.tick()
	a.stop()
	a.start()
	a.tick()
	if broken := w.rules(); !slices.Equal(broken, []diskapi.Rule{diskapi.LetInMounted}) {
		t.Errorf("the judge saw %v", broken)
	}
	w.must(a.unmount(vol))
	w.must(a.unstage(vol))
	w.must(w.unpublish(vol, a))
	w.use(vol, a)
	if broken := w.rules(); len(broken) != 1 {
		t.Errorf("the judge saw %v", broken)
	}
}

// A node that was cut off and let in unawares writes over the other writer's data.
func TestWriterThatSlept(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 2), w.node("worker-2", 2)
	vol := w.create("v")
	w.use(vol, a)
	a.tick() // a write that is under way would be refused
	w.must(w.cutOff(a))
	w.must(w.unpublish(vol, a))
	w.use(vol, b)
	b.tick()
	b.tick()
	w.must(b.unmount(vol))
	w.must(b.unstage(vol))
	w.must(w.unpublish(vol, b))
	w.must(w.letIn(a))
	ctx, err := w.publish(vol, a)
	w.must(err)
	a.tick()
	w.must(a.unmount(vol))
	w.must(a.stage(vol, ctx))
	w.must(a.unstage(vol))
	w.use(vol, a)
	want := []diskapi.Rule{diskapi.LetInMounted, diskapi.WrittenByTwo, diskapi.WriteLost}
	if broken := w.rules(); !slices.Equal(broken, want) {
		t.Errorf("the judge saw %v, want %v", broken, want)
	}
}

// The unmount failed after the disk service had carried it out.
func TestWriterGoesOn(t *testing.T) {
	w := newWorld(t)
	n := w.node("worker-1", 2)
	vol := w.create("v")
	first := w.use(vol, n)
	w.fault(disk.Fault{Calls: calls(diskapi.NodeUnpublish), Action: diskapi.FailAfter, Code: "Unavailable", Times: 1})
	if err := n.unmount(vol); err == nil {
		t.Fatal("the fault did not hit")
	}
	n.tick() // the old writer is told that it has ended
	n.tick()
	again, err := w.api.WaitFor(w.ctx, first.Seq, disk.Filter{Call: diskapi.WriteBegan})
	w.must(err)
	if again.Write.Flushed < first.Write.Written {
		t.Errorf("it goes on at %+v, after %+v", *again.Write, *first.Write)
	}
	w.must(n.unmount(vol))
	w.must(n.unstage(vol))
	w.must(w.unpublish(vol, n))
	if broken := w.rules(); len(broken) > 0 {
		t.Errorf("the judge saw %v", broken)
	}
}
