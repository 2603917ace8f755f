// SPDX-License-Identifier: Apache-2.0

package driver_test

import (
	"context"
	"net"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/moorage-dev/moorage/controller/attacher/driver"
	"github.com/moorage-dev/moorage/test/leaktest"
)

const name = "disk.example.com"

type identity struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer

	mu       sync.Mutex
	code     codes.Code
	failures map[string]int // to come, by method
	without  bool           // the driver has no controller service
	can      []csi.ControllerServiceCapability_RPC_Type
}

func methods() []string {
	return []string{"Probe", "GetPluginInfo", "GetPluginCapabilities", "ControllerGetCapabilities"}
}

func (d *identity) fail(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if method := path.Base(info.FullMethod); d.failures[method] > 0 {
		d.failures[method]--
		return nil, status.Error(d.code, "not now")
	}
	return handler(ctx, request)
}

func (d *identity) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	if d.failures["ready"] > 0 {
		d.failures["ready"]--
		return &csi.ProbeResponse{Ready: wrapperspb.Bool(false)}, nil
	}
	return &csi.ProbeResponse{}, nil // which stands for ready
}

func (d *identity) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: name}, nil
}

func (d *identity) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	if d.without {
		return &csi.GetPluginCapabilitiesResponse{}, nil
	}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}},
	}}}, nil
}

func (d *identity) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	if d.without {
		return nil, status.Error(codes.Unimplemented, "there is no controller service")
	}
	response := &csi.ControllerGetCapabilitiesResponse{}
	for _, can := range d.can {
		response.Capabilities = append(response.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: can}},
		})
	}
	return response, nil
}

func (d *identity) serve(t *testing.T, between grpc.UnaryServerInterceptor) (socket string, stop func()) {
	t.Helper()
	folder, err := os.MkdirTemp("", "csi") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	socket = filepath.Join(folder, "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(between))
	csi.RegisterIdentityServer(server, d)
	csi.RegisterControllerServer(server, d)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // ends with Stop
	}()
	return socket, func() {
		server.Stop()
		<-ended
	}
}

func TestIdentityIsWhatTheDriverSays(t *testing.T) {
	const (
		publish = csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME
		nodes   = csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES
		list    = csi.ControllerServiceCapability_RPC_LIST_VOLUMES
		look    = csi.ControllerServiceCapability_RPC_GET_VOLUME
	)
	for _, test := range []struct {
		without bool
		can     []csi.ControllerServiceCapability_RPC_Type
		want    driver.Identity
	}{
		{true, nil, driver.Identity{}},
		{false, nil, driver.Identity{}},
		{false, can(publish), driver.Identity{Publishes: true}},
		{false, can(nodes, list, look), driver.Identity{}},
		{false, can(publish, list, look), driver.Identity{Publishes: true}},
		{false, can(publish, nodes, list), driver.Identity{Publishes: true, Lists: true}},
		{false, can(publish, nodes, look), driver.Identity{Publishes: true, Looks: true}},
		{false, can(csi.ControllerServiceCapability_RPC_PUBLISH_READONLY), driver.Identity{PublishReadOnly: true}},
		{false, can(csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER), driver.Identity{SingleNodeMultiWriter: true}},
	} {
		d := &identity{without: test.without, can: test.can, failures: map[string]int{}}
		socket, stop := d.serve(t, d.fail)
		connected, what, err := driver.Connect(t.Context(), driver.Config{Address: socket, Timeout: 5 * time.Second, Retry: time.Millisecond})
		if test.want.Name = name; err != nil || what != test.want {
			t.Errorf("with %v it is %+v (%v), want %+v", test.can, what, err, test.want)
		}
		connected.Close()
		stop()
	}
}

func can(list ...csi.ControllerServiceCapability_RPC_Type) []csi.ControllerServiceCapability_RPC_Type {
	return list
}

func TestEveryCodeAboutItself(t *testing.T) {
	ended := leaktest.Check(t, "github.com/moorage-dev/moorage/controller/attacher/driver", "google.golang.org/grpc")
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		d := &identity{code: code, failures: map[string]int{"ready": 2}, can: can(csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME)}
		for _, method := range methods() {
			d.failures[method] = 2
		}
		socket, stop := d.serve(t, d.fail)
		connected, what, err := driver.Connect(t.Context(), driver.Config{Address: socket, Timeout: 5 * time.Second, Retry: time.Millisecond})
		if err != nil || what != (driver.Identity{Name: name, Publishes: true}) {
			t.Fatalf("after %s it is %+v, %v", code, what, err)
		}
		for what, left := range d.failures {
			if left > 0 {
				t.Errorf("%s: it was not asked %d more times for %s", code, left, what)
			}
		}
		connected.Close()
		stop()
	}
	ended()
}

func TestHangsAboutItself(t *testing.T) {
	ended := leaktest.Check(t, "github.com/moorage-dev/moorage/controller/attacher/driver", "google.golang.org/grpc")
	for _, method := range methods() {
		release, heard := make(chan struct{}), make(chan struct{}, 100)
		socket, stop := (&identity{}).serve(t, func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			if path.Base(info.FullMethod) == method {
				heard <- struct{}{}
				<-release // deaf to its context
			}
			return handler(ctx, request)
		})
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() {
			connected, _, err := driver.Connect(ctx, driver.Config{Address: socket, Timeout: 20 * time.Millisecond, Retry: time.Millisecond})
			if err == nil {
				connected.Close()
			}
			over <- err
		}()
		<-heard
		<-heard // asked again
		close(release)
		if err := <-over; err != nil {
			t.Errorf("%s: %v", method, err)
		}
		cancel()
		stop()
	}
	ended()
}

// The next answer may be another driver's.
func TestLostBeforeItIsWatched(t *testing.T) {
	socket, stop := (&identity{}).serve(t, func(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		return handler(ctx, request)
	})
	connected, _, err := driver.Connect(t.Context(), driver.Config{Address: socket, Timeout: time.Second, Retry: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	stop()
	for status.Code(err) != codes.Unavailable { // until it shows
		_, err = connected.List(t.Context())
	}
	lost := make(chan struct{}, 100)
	go connected.Watch(t.Context(), func() { lost <- struct{}{} })
	select {
	case <-lost:
	case <-time.After(20 * time.Second):
		t.Error("nobody was told that the connection had broken")
	}
}
