// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/moorage-dev/moorage/test/sandbox/disk"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// No test passes by reaching patience.
const patience = 30 * time.Second

type world struct {
	t          *testing.T
	dir        string
	args       []string
	services   diskapi.Services // that node plugins tell of
	disks      string           // folder of real disks, or nothing
	zone       string           // of the nodes that are started from now on
	ctx        context.Context
	api        disk.Client
	controller csi.ControllerClient
	identity   csi.IdentityClient
	groups     csi.GroupControllerClient
	fences     fence.FenceControllerClient
	stop       func()
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	// Not t.TempDir: with the test's name, a socket path would be too long.
	dir, err := os.MkdirTemp("", "disk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	w := &world{t: t, dir: dir, ctx: ctx, args: args}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *world) start() {
	w.t.Helper()
	cmd := disk.NewServiceCommand()
	cmd.SetArgs(append(w.serviceArgs(), w.args...))
	out, in := io.Pipe()
	cmd.SetOut(in)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		err := cmd.ExecuteContext(ctx)
		ended <- errors.Join(err, in.CloseWithError(err))
	}()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("service: %v", err)
		}
		w.stop = func() {}
	}
	w.connect(out)
}

func (w *world) serviceArgs() []string {
	return []string{"--csi-endpoint", "unix://" + filepath.Join(w.dir, "csi.sock"), "--state-dir", filepath.Join(w.dir, "state")}
}

func (w *world) connect(out io.Reader) {
	w.t.Helper()
	var admin, socket string
	if _, err := fmt.Fscanf(out, "admin %s csi unix://%s\n", &admin, &socket); err != nil {
		w.t.Fatalf("the service does not say where it listens: %v", err)
	}
	w.api = disk.Client{BaseURL: admin}
	conn := dial(w.t, socket)
	w.controller, w.identity = csi.NewControllerClient(conn), csi.NewIdentityClient(conn)
	w.groups = csi.NewGroupControllerClient(conn)
	w.fences = fence.NewFenceControllerClient(conn)
	if _, err := w.identity.Probe(w.ctx, &csi.ProbeRequest{}); err != nil {
		w.t.Fatalf("probe: %v", err)
	}
	w.must(w.api.Healthy(w.ctx))
}

func (w *world) node(name string, slots int) *nodeUnderTest {
	w.t.Helper()
	n := &nodeUnderTest{w: w, name: name, slots: slots, zone: w.zone, root: filepath.Join(w.dir, name), ticks: make(chan func())}
	n.start()
	w.t.Cleanup(func() { n.stop() })
	return n
}

type nodeUnderTest struct {
	w     *world
	name  string
	slots int
	zone  string
	block bool
	root  string
	ticks chan func()
	csi.NodeClient
	stop func()
}

func (n *nodeUnderTest) id() string { return disk.NodeID(n.name) }

func (n *nodeUnderTest) start() {
	t := n.w.t
	t.Helper()
	p, err := disk.NewNodePlugin(disk.NodeConfig{
		Driver: disk.DefaultDriver, NodeName: n.name, MaxVolumes: n.slots, Zone: n.zone, KubeletRoot: n.root,
		ServiceURL: n.w.api.BaseURL, Block: n.block, WriteTicks: n.ticks,
		Services: n.w.services, Disks: n.w.disks,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	n.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("node plugin: %v", err)
		}
		n.stop = func() {}
	}
	n.NodeClient = csi.NewNodeClient(dial(t, filepath.Join(n.root, "plugins", disk.DefaultDriver, "csi.sock")))
	info, err := n.NodeGetInfo(n.w.ctx, &csi.NodeGetInfoRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatalf("NodeGetInfo: %v", err)
	}
	if info.GetNodeId() != n.id() {
		t.Fatalf("node ID %q, want %q", info.GetNodeId(), n.id())
	}
}

func (n *nodeUnderTest) staging(volume string) string {
	return filepath.Join(n.root, "staging", volume)
}

func (n *nodeUnderTest) target(volume string) string {
	return filepath.Join(n.root, "pods", "1", volume)
}

func (n *nodeUnderTest) stage(volume string, publish map[string]string) error {
	_, err := n.NodeStageVolume(n.w.ctx, &csi.NodeStageVolumeRequest{
		VolumeId: volume, StagingTargetPath: n.staging(volume), PublishContext: publish, VolumeCapability: writer(),
	})
	return err
}

func (n *nodeUnderTest) unstage(volume string) error {
	_, err := n.NodeUnstageVolume(n.w.ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volume, StagingTargetPath: n.staging(volume)})
	return err
}

func (n *nodeUnderTest) mount(volume string, publish map[string]string, c *csi.VolumeCapability) error {
	_, err := n.NodePublishVolume(n.w.ctx, &csi.NodePublishVolumeRequest{
		VolumeId: volume, StagingTargetPath: n.staging(volume), TargetPath: n.target(volume),
		PublishContext: publish, VolumeCapability: c,
	})
	return err
}

func (n *nodeUnderTest) unmount(volume string) error {
	_, err := n.NodeUnpublishVolume(n.w.ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: volume, TargetPath: n.target(volume)})
	return err
}

func (w *world) create(name string) string {
	w.t.Helper()
	r, err := w.controller.CreateVolume(w.ctx, &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{writer()},
	})
	if err != nil {
		w.t.Fatalf("CreateVolume %s: %v", name, err)
	}
	return r.GetVolume().GetVolumeId()
}

func (w *world) publish(volume string, n *nodeUnderTest) (map[string]string, error) {
	r, err := w.controller.ControllerPublishVolume(w.ctx, &csi.ControllerPublishVolumeRequest{
		VolumeId: volume, NodeId: n.id(), VolumeCapability: writer(),
	})
	return r.GetPublishContext(), err
}

func (w *world) unpublish(volume string, n *nodeUnderTest) error {
	_, err := w.controller.ControllerUnpublishVolume(w.ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume, NodeId: n.id()})
	return err
}

func (w *world) delete(volume string) error {
	_, err := w.controller.DeleteVolume(w.ctx, &csi.DeleteVolumeRequest{VolumeId: volume})
	return err
}

func (w *world) rules() []diskapi.Rule {
	w.t.Helper()
	violations, err := w.api.Violations(w.ctx, 0)
	w.must(err)
	var out []diskapi.Rule
	for _, v := range violations {
		out = append(out, v.Rule)
	}
	return out
}

func (w *world) fault(f disk.Fault) disk.Fault {
	w.t.Helper()
	f, err := w.api.SetFault(w.ctx, f)
	w.must(err)
	return f
}

func (w *world) await(f disk.Filter) disk.Entry {
	w.t.Helper()
	e, err := w.api.WaitFor(w.ctx, 0, f)
	w.must(err)
	return e
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func writer() *csi.VolumeCapability {
	return capability(csi.VolumeCapability_AccessMode_SINGLE_NODE_MULTI_WRITER)
}

func capability(mode csi.VolumeCapability_AccessMode_Mode) *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: mode},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
}

func dial(t *testing.T, socket string) *grpc.ClientConn {
	t.Helper()
	soon := backoff.Config{BaseDelay: 5 * time.Millisecond, Multiplier: 1, MaxDelay: 5 * time.Millisecond}
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: soon, MinConnectTimeout: time.Second}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
