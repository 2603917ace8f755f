// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/csinode"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (w *world) attachedTo(volume string) []string {
	w.t.Helper()
	disks, err := w.api.Disks(w.ctx)
	w.must(err)
	var nodes []string
	for _, d := range disks {
		if d.Volume == volume {
			for _, a := range d.Attached {
				nodes = append(nodes, a.Node)
			}
		}
	}
	return nodes
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Fatalf("code %s (%v), want %s", status.Code(err), err, want)
	}
}

func calls(c ...diskapi.Call) []diskapi.Call { return c }

func TestFailedAttach(t *testing.T) {
	w := newWorld(t)
	a := w.node("worker-1", 4)
	vol, other := w.create("v"), w.create("w")
	w.fault(disk.Fault{Calls: calls(diskapi.ControllerPublish), Volume: vol, Action: diskapi.Fail, Code: "Internal", Times: 2})
	for range 2 {
		_, err := w.publish(vol, a)
		wantCode(t, err, codes.Internal)
		_, err = w.publish(other, a)
		w.must(err)
	}
	if nodes := w.attachedTo(vol); len(nodes) > 0 {
		t.Errorf("attached to %v by a call that failed", nodes)
	}
	_, err := w.publish(vol, a)
	w.must(err)
	faults, err := w.api.Faults(w.ctx)
	w.must(err)
	if len(faults) != 1 || faults[0].Hits != 2 {
		t.Errorf("faults %+v, want one with two hits", faults)
	}
}

func TestLie(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 4), w.node("worker-2", 4)
	vol := w.create("v")
	w.fault(disk.Fault{Calls: calls(diskapi.ControllerPublish), Action: diskapi.FailAfter, Code: "ResourceExhausted", Times: 1})
	_, err := w.publish(vol, a)
	wantCode(t, err, codes.ResourceExhausted)
	if nodes := w.attachedTo(vol); len(nodes) != 1 {
		t.Errorf("attached to %v, want %s", nodes, a.id())
	}
	_, err = w.publish(vol, b)
	wantCode(t, err, codes.FailedPrecondition)
	if rules := w.rules(); len(rules) != 1 || rules[0] != diskapi.TwoNodes {
		t.Errorf("rules %v", rules)
	}
}

// A detach without an effect is answered with success. Believing it breaks no rule; the cloud refuses.
func TestSuccessWithoutEffect(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 4), w.node("worker-2", 4)
	vol, _ := w.attach("v", a)
	f := w.fault(disk.Fault{Calls: calls(diskapi.ControllerUnpublish), Node: a.id(), Action: diskapi.Ignore})
	w.must(w.unpublish(vol, a))
	_, err := w.publish(vol, b)
	wantCode(t, err, codes.FailedPrecondition)
	if rules := w.rules(); len(rules) > 0 {
		t.Errorf("rules %v", rules)
	}
	w.must(w.api.ClearFault(w.ctx, f.ID))
	w.must(w.unpublish(vol, a))
	if nodes := w.attachedTo(vol); len(nodes) > 0 {
		t.Errorf("attached to %v", nodes)
	}
}

func TestDelay(t *testing.T) {
	w := newWorld(t)
	a := w.node("worker-1", 4)
	f := w.fault(disk.Fault{Calls: calls(diskapi.ControllerPublish), Action: diskapi.Delay, DelayMs: 20})
	w.attach("v", a)
	if e := w.await(disk.Filter{FaultID: f.ID, Phase: diskapi.Returned}); e.Outcome != diskapi.OK || e.DurationMs < 20 {
		t.Errorf("%s after %v ms", e.Outcome, e.DurationMs)
	}
}

func TestHang(t *testing.T) {
	w := newWorld(t)
	a := w.node("worker-1", 4)
	vol := w.create("v")
	f := w.fault(disk.Fault{Calls: calls(diskapi.ControllerPublish), Action: diskapi.Hang})
	done := make(chan error, 1)
	go func() { _, err := w.publish(vol, a); done <- err }()
	w.await(disk.Filter{FaultID: f.ID, Phase: diskapi.Arrived})
	if nodes := w.attachedTo(vol); len(nodes) > 0 {
		t.Errorf("attached to %v while it hangs", nodes)
	}
	w.must(w.api.ClearFaults(w.ctx))
	w.must(<-done)
	if nodes := w.attachedTo(vol); len(nodes) != 1 {
		t.Errorf("attached to %v, want %s", nodes, a.id())
	}
}

func TestHangAfter(t *testing.T) {
	w := newWorld(t)
	a := w.node("worker-1", 4)
	vol := w.create("v")
	f := w.fault(disk.Fault{Calls: calls(diskapi.ControllerPublish), Action: diskapi.HangAfter, Times: 1})
	ctx, giveUp := context.WithCancel(w.ctx)
	defer giveUp()
	done := make(chan error, 1)
	go func() {
		_, err := w.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
			VolumeId: vol, NodeId: a.id(), VolumeCapability: writer(),
		})
		done <- err
	}()
	w.await(disk.Filter{Call: diskapi.ControllerPublish, Volume: vol, Phase: diskapi.Applied})
	giveUp()
	wantCode(t, <-done, codes.Canceled)
	e := w.await(disk.Filter{FaultID: f.ID, Phase: diskapi.Returned})
	if e.Outcome != diskapi.Abandoned {
		t.Errorf("outcome %s", e.Outcome)
	}
	if nodes := w.attachedTo(vol); len(nodes) != 1 {
		t.Errorf("attached to %v, want %s", nodes, a.id())
	}
}

func TestLatencyAtRunTime(t *testing.T) {
	w := newWorld(t, "--detach-latency", "1h")
	a := w.node("worker-1", 4)
	w.must(w.api.SetLatency(w.ctx, diskapi.ControllerUnpublish, 0))
	w.must(w.api.SetLatency(w.ctx, diskapi.ControllerPublish, 20*time.Millisecond))
	vol, _ := w.attach("v", a)
	w.must(w.unpublish(vol, a))
	e := w.await(disk.Filter{Call: diskapi.ControllerPublish, Phase: diskapi.Returned})
	if e.DurationMs < 20 {
		t.Errorf("the attach took %v ms, less than its latency", e.DurationMs)
	}
}

func TestStageFault(t *testing.T) {
	w := newWorld(t)
	a := w.node("worker-1", 4)
	vol, ctx := w.attach("v", a)
	w.fault(disk.Fault{Calls: calls(diskapi.NodeStage), Node: a.id(), Action: diskapi.Fail, Code: "Unavailable", Message: "no route to storage", Times: 1})
	err := a.stage(vol, ctx)
	wantCode(t, err, codes.Unavailable)
	if status.Convert(err).Message() != "no route to storage" {
		t.Errorf("message %q", status.Convert(err).Message())
	}
	w.must(a.stage(vol, ctx))
}

// A seed fails the same calls, also over a restart.
func TestSeededFaults(t *testing.T) {
	outcomes := func(restart bool) string {
		w := newWorld(t)
		a := w.node("worker-1", 4)
		vol := w.create("v")
		w.fault(disk.Fault{Calls: calls(diskapi.ControllerPublish), Action: diskapi.Fail, Code: "Internal", Probability: 0.5, Seed: 42})
		out := ""
		for i := range 40 {
			if restart && i == 20 {
				w.stop()
				w.start()
			}
			if _, err := w.publish(vol, a); err == nil {
				out += "."
			} else {
				out += "x"
			}
		}
		return out
	}
	first := outcomes(false)
	if again := outcomes(true); again != first {
		t.Errorf("first %s\nthen  %s", first, again)
	}
	hits := 0
	for _, c := range first {
		if c == 'x' {
			hits++
		}
	}
	if hits == 0 || hits == len(first) {
		t.Errorf("half of %s should fail", first)
	}
}

// A node can be stopped before and after each step of a volume's way, and is found so after a kill.
func TestStopsAtEveryStep(t *testing.T) {
	for _, call := range diskapi.MountCalls() {
		for _, action := range []diskapi.Action{diskapi.Hang, diskapi.HangDone} {
			t.Run(string(action)+" "+string(call), func(t *testing.T) {
				w := newWorld(t)
				a := w.node("worker-1", 4)
				vol, ctx := w.attach("v", a)
				way := []func() error{
					func() error { return a.stage(vol, ctx) }, func() error { return a.mount(vol, ctx, writer()) },
					func() error { return a.unmount(vol) }, func() error { return a.unstage(vol) },
				}
				step := slices.Index(diskapi.MountCalls(), call)
				for _, do := range way[:step] {
					w.must(do())
				}
				before := a.mounts()
				f := w.fault(disk.Fault{Calls: calls(call), Node: a.id(), Action: action, Times: 1})
				ended := make(chan error, 1)
				go func() { ended <- way[step]() }()
				stopped := disk.Filter{Call: call, Phase: diskapi.Arrived, FaultID: f.ID}
				if action == diskapi.HangDone {
					stopped = disk.Filter{Call: diskapi.Held, FaultID: f.ID}
				}
				if e := w.await(stopped); e.Volume != vol || e.Node != a.id() {
					t.Errorf("stopped is %+v", e)
				}
				if changed := a.mounts() != before; changed != (action == diskapi.HangDone) {
					t.Errorf("before:\n%s\nnow:\n%s", before, a.mounts())
				}
				a.stop()
				if err := <-ended; err == nil {
					t.Error("the call has succeeded at a node that was killed")
				}
				then := a.mounts()
				a.start()
				if now := a.mounts(); now != then {
					t.Errorf("killed:\n%s\nstarted again:\n%s", then, now)
				}
				for _, do := range way[step:] {
					w.must(do())
				}
				if rules := w.rules(); len(rules) != 0 {
					t.Errorf("broken are %v", rules)
				}
			})
		}
	}
}

func (n *nodeUnderTest) mounts() string {
	n.w.t.Helper()
	data, err := os.ReadFile(filepath.Join(n.root, "plugins", disk.DefaultDriver, csinode.MountTable))
	n.w.must(err)
	return string(data)
}

func TestBadFaultsAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, f := range map[string]disk.Fault{
		"no calls":        {Action: diskapi.Hang},
		"unknown call":    {Calls: calls("Attach"), Action: diskapi.Hang},
		"unknown action":  {Calls: calls(diskapi.NodeStage), Action: "explode"},
		"unknown code":    {Calls: calls(diskapi.NodeStage), Action: diskapi.Fail, Code: "Oops"},
		"code OK":         {Calls: calls(diskapi.NodeStage), Action: diskapi.Fail, Code: "OK"},
		"delay of 0":      {Calls: calls(diskapi.NodeStage), Action: diskapi.Delay},
		"probability 2":   {Calls: calls(diskapi.NodeStage), Action: diskapi.Hang, Probability: 2},
		"not of a node":   {Calls: calls(diskapi.NodeStage, diskapi.ControllerPublish), Action: diskapi.HangDone},
		"negative number": {Calls: calls(diskapi.NodeStage), Action: diskapi.Hang, Times: -1},
	} {
		if _, err := w.api.SetFault(w.ctx, f); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := w.api.ClearFault(w.ctx, "fault-99"); err == nil {
		t.Error("a fault that isn't set was cleared")
	}
}
