// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type planted struct {
	args    []string
	plant   func(w *world, a, b *nodeUnderTest)
	attempt diskapi.Attempt
	// Without a breach of first this rule can't be broken; mostly empty.
	first diskapi.Rule
}

func (w *world) attach(name string, n *nodeUnderTest) (volume string, publish map[string]string) {
	w.t.Helper()
	volume = w.create(name)
	publish, err := w.publish(volume, n)
	w.must(err)
	return volume, publish
}

func plants() map[diskapi.Rule][]planted {
	twice := func(w *world, a, b *nodeUnderTest) {
		vol, _ := w.attach("v", a)
		_, _ = w.publish(vol, b)
	}
	overfill := func(w *world, a, _ *nodeUnderTest) {
		w.attach("v", a)
		w.attach("w", a)
		_, _ = w.publish(w.create("x"), a)
	}
	return map[diskapi.Rule][]planted{
		diskapi.TwoNodes: {
			{plant: twice, attempt: diskapi.AttemptRefused},
			{plant: twice, attempt: diskapi.Happened, args: []string{"--lenient"}},
		},
		diskapi.OverLimit: {
			{plant: overfill, attempt: diskapi.AttemptRefused},
			{plant: overfill, attempt: diskapi.Happened, args: []string{"--lenient"}},
		},
		diskapi.UnpublishWhileStaged: {{attempt: diskapi.Happened, plant: func(w *world, a, _ *nodeUnderTest) {
			vol, ctx := w.attach("v", a)
			w.must(a.stage(vol, ctx))
			w.must(w.unpublish(vol, a))
		}}},
		diskapi.StageBeforePublish: {{attempt: diskapi.AttemptRefused, plant: func(w *world, a, _ *nodeUnderTest) {
			_ = a.stage(w.create("v"), nil)
		}}},
		diskapi.WrongNode: {{attempt: diskapi.AttemptRefused, plant: func(w *world, a, b *nodeUnderTest) {
			vol, ctx := w.attach("v", a)
			_ = b.stage(vol, ctx)
		}}},
		diskapi.StagedAtTwo: {{attempt: diskapi.Happened, first: diskapi.UnpublishWhileStaged, plant: func(w *world, a, b *nodeUnderTest) {
			vol, ctx := w.attach("v", a)
			w.must(a.stage(vol, ctx))
			w.must(w.unpublish(vol, a))
			ctx, err := w.publish(vol, b)
			w.must(err)
			w.must(b.stage(vol, ctx))
		}}},
		diskapi.PublishContext: {{attempt: diskapi.Happened, plant: func(w *world, a, _ *nodeUnderTest) {
			vol, old := w.attach("v", a)
			w.must(w.unpublish(vol, a))
			_, err := w.publish(vol, a)
			w.must(err)
			w.must(a.stage(vol, old))
		}}},
		diskapi.PublishBeforeStage: {{attempt: diskapi.AttemptRefused, plant: func(w *world, a, _ *nodeUnderTest) {
			vol, ctx := w.attach("v", a)
			_ = a.mount(vol, ctx, writer())
		}}},
		diskapi.UnstageWhilePublished: {{attempt: diskapi.Happened, plant: func(w *world, a, _ *nodeUnderTest) {
			vol, ctx := w.attach("v", a)
			w.must(a.stage(vol, ctx))
			w.must(a.mount(vol, ctx, writer()))
			w.must(a.unstage(vol))
		}}},
		diskapi.TwoPods: {{attempt: diskapi.AttemptRefused, plant: func(w *world, a, _ *nodeUnderTest) {
			vol, ctx := w.attach("v", a)
			w.must(a.stage(vol, ctx))
			single := capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER)
			w.must(a.mount(vol, ctx, single))
			_, _ = a.NodePublishVolume(w.ctx, &csi.NodePublishVolumeRequest{
				VolumeId: vol, StagingTargetPath: a.staging(vol), TargetPath: a.target("second"),
				PublishContext: ctx, VolumeCapability: single,
			})
		}}},
		diskapi.DeleteWhileAttached: {{attempt: diskapi.AttemptRefused, plant: func(w *world, a, _ *nodeUnderTest) {
			vol, _ := w.attach("v", a)
			_ = w.delete(vol)
		}}},
		diskapi.FencedNode: {{attempt: diskapi.Happened, plant: func(w *world, a, _ *nodeUnderTest) {
			w.must(w.api.Fence(w.ctx, a.id()))
			w.must(a.unstage("vol-none"))
		}}},
		diskapi.LetInMounted: {{attempt: diskapi.Happened, plant: func(w *world, a, b *nodeUnderTest) {
			vol, ctx := w.attach("v", a)
			w.must(a.stage(vol, ctx))
			w.must(w.cutOff(a))
			w.must(w.unpublish(vol, a))
			ctx, err := w.publish(vol, b)
			w.must(err)
			w.must(b.stage(vol, ctx))
			w.must(w.letIn(a))
		}}},
		diskapi.WrittenByTwo: {{attempt: diskapi.Happened, first: diskapi.TwoNodes, args: []string{"--lenient"}, plant: func(w *world, a, b *nodeUnderTest) {
			vol := w.create("v")
			w.use(vol, a)
			w.use(vol, b)
			a.tick()
		}}},
		diskapi.WriteLost: {{attempt: diskapi.Happened, first: diskapi.UnpublishWhileStaged, plant: func(w *world, a, _ *nodeUnderTest) {
			vol := w.create("v")
			w.use(vol, a)
			w.must(w.unpublish(vol, a))
			a.tick()
		}}},
		diskapi.TornOperation: {{attempt: diskapi.Happened, args: operating("--attach-for=snapshot", "--copy-latency=1h"), plant: func(w *world, a, _ *nodeUnderTest) {
			vol, _ := w.attach("v", a)
			snapshot := w.snapshotting("s", vol)
			w.await(disk.Filter{Call: diskapi.WorkBegan})
			w.must(w.unpublish(vol, a))
			if err := <-snapshot; status.Code(err) != codes.Internal {
				w.t.Errorf("the snapshot that lost its volume ends with %v, want Internal", err)
			}
		}}},
		diskapi.Leftover: {{attempt: diskapi.Happened, plant: func(w *world, a, _ *nodeUnderTest) {
			w.attach("v", a)
			_, err := w.api.Finish(w.ctx)
			w.must(err)
		}}},
	}
}

func TestPlantedViolations(t *testing.T) {
	for _, rule := range diskapi.Rules() {
		if len(plants()[rule]) == 0 {
			t.Errorf("nothing breaks rule %s", rule)
		}
		for _, p := range plants()[rule] {
			t.Run(string(rule)+" "+string(p.attempt), func(t *testing.T) {
				w := newWorld(t, p.args...)
				p.plant(w, w.node("worker-1", 2), w.node("worker-2", 2))
				violations, err := w.api.Violations(w.ctx, 0)
				w.must(err)
				if p.first != "" && len(violations) > 0 && violations[0].Rule == p.first {
					violations = violations[1:]
				}
				if len(violations) != 1 || violations[0].Rule != rule || violations[0].Attempt != p.attempt {
					t.Errorf("want one %s (%s), got %+v", rule, p.attempt, violations)
				}
			})
		}
	}
}

func TestFencedNodeIsLetGo(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 2), w.node("worker-2", 2)
	vol, ctx := w.attach("v", a)
	other, otherCtx := w.attach("w", a)
	w.must(a.stage(vol, ctx))
	w.must(a.stage(other, otherCtx))
	a.stop()
	w.must(w.api.Fence(w.ctx, a.id()))
	w.must(w.unpublish(vol, a))
	_, err := w.publish(vol, b)
	w.must(err)

	w.must(w.api.Unfence(w.ctx, a.id()))
	a.start()
	if err := a.mount(other, otherCtx, writer()); err == nil {
		t.Error("a volume is still staged after the node was switched off")
	}
	violations, err := w.api.Violations(w.ctx, 0)
	w.must(err)
	if len(violations) != 1 || violations[0].Rule != diskapi.PublishBeforeStage {
		t.Errorf("violations %+v, want only the mount without a stage", violations)
	}
}

// The storage refuses a cut-off address until it is let in again; the volume may leave the node, with the
// mount in place.
func TestCutOffNode(t *testing.T) {
	w := newWorld(t)
	a, b := w.node("worker-1", 2), w.node("worker-2", 2)
	vol, ctx := w.attach("v", a)
	w.must(a.stage(vol, ctx))
	w.must(w.cutOff(a))
	w.must(w.cutOff(a))
	listed, err := w.fences.ListClusterFence(w.ctx, &fence.ListClusterFenceRequest{})
	w.must(err)
	if len(listed.GetCidrs()) != 1 || listed.GetCidrs()[0].GetCidr() != w.clients(a)[0].GetCidr() {
		t.Errorf("it lists %v", listed.GetCidrs())
	}
	if _, err := w.publish(w.create("w"), a); err == nil {
		t.Error("a volume is attached to a node that is cut off")
	}
	if err := a.mount(vol, ctx, writer()); err == nil {
		t.Error("a node that is cut off mounts")
	}
	w.must(w.unpublish(vol, a))
	elsewhere, err := w.publish(vol, b)
	w.must(err)
	w.must(b.stage(vol, elsewhere))
	w.must(a.unstage(vol))
	w.must(w.letIn(a))
	_, err = w.publish(w.create("x"), a)
	w.must(err)
	if broken := w.rules(); len(broken) > 0 {
		t.Errorf("the judge saw %v", broken)
	}
}

func (w *world) clients(n *nodeUnderTest) []*fence.CIDR {
	w.t.Helper()
	node, err := w.api.Node(w.ctx, n.id())
	w.must(err)
	return []*fence.CIDR{{Cidr: node.Address + "/32"}}
}

func (w *world) cutOff(n *nodeUnderTest) error {
	_, err := w.fences.FenceClusterNetwork(w.ctx, &fence.FenceClusterNetworkRequest{Cidrs: w.clients(n)})
	return err
}

func (w *world) letIn(n *nodeUnderTest) error {
	_, err := w.fences.UnfenceClusterNetwork(w.ctx, &fence.UnfenceClusterNetworkRequest{Cidrs: w.clients(n)})
	return err
}
