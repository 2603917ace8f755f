// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

type socketDriver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	path string

	mu        sync.Mutex
	server    *grpc.Server
	ready     bool
	can       []csi.ControllerServiceCapability_RPC_Type
	calls     []string
	published map[string][]string
	publish   func(ctx context.Context) error // before the usual answer
	unpublish error                           // in place of the usual answer
	secrets   map[string]string               // that came with the last publish
	failures  map[string][]failure            // to come, by method
}

type failure struct {
	code codes.Code
	// the call takes effect all the same
	done bool
	// if not nil, the answer waits for it, deaf to its context
	hang <-chan struct{}
}

func (d *socketDriver) fail(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	d.mu.Lock()
	list := d.failures[method]
	if len(list) > 0 {
		d.failures[method] = list[1:]
	}
	d.mu.Unlock()
	if len(list) == 0 {
		return handler(ctx, request)
	}
	f := list[0]
	if f.done {
		if _, err := handler(ctx, request); err != nil {
			return nil, err
		}
	}
	if f.hang != nil {
		<-f.hang
	}
	return nil, status.Error(f.code, "the disk said no")
}

func newSocketDriver(t *testing.T) *socketDriver {
	t.Helper()
	folder, err := os.MkdirTemp("", "csi") // t.TempDir is too long a name for a socket
	if err != nil {
		t.Fatal(err)
	}
	d := &socketDriver{
		path: filepath.Join(folder, "csi.sock"), ready: true, published: map[string][]string{},
		can: []csi.ControllerServiceCapability_RPC_Type{
			csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
			csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
			csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES,
			csi.ControllerServiceCapability_RPC_GET_VOLUME,
		},
	}
	t.Cleanup(func() {
		d.stop()
		_ = os.RemoveAll(folder)
	})
	return d
}

func (d *socketDriver) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("unix", d.path)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(d.fail))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	d.mu.Lock()
	d.server = server
	d.mu.Unlock()
	go func() { _ = server.Serve(listener) }() // ends with stop
}

func (d *socketDriver) stop() {
	d.mu.Lock()
	server := d.server
	d.server = nil
	d.mu.Unlock()
	if server != nil {
		server.Stop()
	}
}

func (d *socketDriver) change(f func(*socketDriver)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

func (d *socketDriver) heard() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.calls)
}

func (d *socketDriver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: testDriver}, nil
}

func (d *socketDriver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(d.ready)}, nil
}

func (d *socketDriver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}},
	}}}, nil
}

func (d *socketDriver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	answer := &csi.ControllerGetCapabilitiesResponse{}
	for _, c := range d.can {
		answer.Capabilities = append(answer.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: c}},
		})
	}
	return answer, nil
}

func (d *socketDriver) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	d.mu.Lock()
	d.calls = append(d.calls, "publish "+r.GetVolumeId()+" "+r.GetNodeId())
	publish := d.publish
	d.secrets = r.GetSecrets()
	d.mu.Unlock()
	if publish != nil {
		if err := publish(ctx); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.published[r.GetVolumeId()]; len(at) > 0 && !slices.Contains(at, r.GetNodeId()) {
		return nil, status.Error(codes.FailedPrecondition, "the volume is at "+at[0])
	}
	d.published[r.GetVolumeId()] = []string{r.GetNodeId()}
	return &csi.ControllerPublishVolumeResponse{PublishContext: map[string]string{"device": r.GetVolumeId() + "@" + r.GetNodeId()}}, nil
}

func (d *socketDriver) ControllerUnpublishVolume(_ context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "unpublish "+r.GetVolumeId()+" "+r.GetNodeId())
	if d.unpublish != nil {
		return nil, d.unpublish
	}
	d.published[r.GetVolumeId()] = slices.DeleteFunc(d.published[r.GetVolumeId()], func(n string) bool { return n == r.GetNodeId() })
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *socketDriver) ListVolumes(_ context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "list")
	handles := sortedKeys(d.published)
	i := 0
	if r.GetStartingToken() != "" {
		i = slices.Index(handles, r.GetStartingToken())
	}
	answer := &csi.ListVolumesResponse{}
	if i < 0 || i >= len(handles) {
		return answer, nil
	}
	answer.Entries = []*csi.ListVolumesResponse_Entry{{
		Volume: &csi.Volume{VolumeId: handles[i]},
		Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: d.published[handles[i]]},
	}}
	if i+1 < len(handles) {
		answer.NextToken = handles[i+1]
	}
	return answer, nil
}

func (d *socketDriver) ControllerGetVolume(_ context.Context, r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, "look "+r.GetVolumeId())
	return &csi.ControllerGetVolumeResponse{
		Volume: &csi.Volume{VolumeId: r.GetVolumeId()},
		Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: d.published[r.GetVolumeId()]},
	}, nil
}
