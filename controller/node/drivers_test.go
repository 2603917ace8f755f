// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// plugin is a driver's node plugin, and its registration.
type plugin struct {
	csi.UnimplementedNodeServer
	registerapi.UnimplementedRegistrationServer
	info   registerapi.PluginInfo
	stages bool
	cannot error // answers if it can
	err    error
	calls  []string
}

func (p *plugin) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{Type: p.info.Type, Name: p.info.Name, Endpoint: p.info.Endpoint}, nil
}

func (p *plugin) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	out := &csi.NodeGetCapabilitiesResponse{}
	if p.stages {
		rpc := &csi.NodeServiceCapability_RPC{Type: csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME}
		out.Capabilities = append(out.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: rpc}})
	}
	return out, p.cannot
}

func (p *plugin) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	p.calls = append(p.calls, r.GetVolumeId()+" "+r.GetStagingTargetPath())
	return &csi.NodeUnstageVolumeResponse{}, p.err
}

func (p *plugin) serve(t *testing.T, socket string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterNodeServer(server, p)
	registerapi.RegisterRegistrationServer(server, p)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
}

// A driver is found by the registration sockets, and unstages where it stages at all.
func TestDrivers(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*plugin)
		calls  int
		err    string
	}{
		"it unstages":         {func(*plugin) {}, 1, ""},
		"it fails":            {func(p *plugin) { p.err = status.Error(codes.Internal, "busy") }, 1, "busy"},
		"it does not stage":   {func(p *plugin) { p.stages = false }, 0, ""},
		"it does not answer":  {func(p *plugin) { p.cannot = status.Error(codes.Unavailable, "it starts") }, 0, "what it can"},
		"another driver":      {func(p *plugin) { p.info.Name = "other" }, 0, "not registered"},
		"a device plugin":     {func(p *plugin) { p.info.Type = registerapi.DevicePlugin }, 0, "not registered"},
		"it serves elsewhere": {func(p *plugin) { p.info.Endpoint = "/run/csi.sock" }, 0, "not below the kubelet's folder"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := os.MkdirTemp("", "k") // sockets' paths are short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(root) })
			p := &plugin{stages: true}
			p.info.Type, p.info.Name, p.info.Endpoint = registerapi.CSIPlugin, testDriver, filepath.Join(root, "plugins/d/csi.sock")
			test.change(p)
			p.serve(t, filepath.Join(root, "plugins/d/csi.sock"))
			p.serve(t, filepath.Join(root, "plugins_registry/d-reg.sock"))
			hidden := &plugin{stages: true}
			hidden.info.Type, hidden.info.Name, hidden.info.Endpoint = registerapi.CSIPlugin, testDriver, filepath.Join(root, "plugins/hidden/csi.sock")
			hidden.serve(t, filepath.Join(root, "plugins/hidden/csi.sock"))
			hidden.serve(t, filepath.Join(root, "plugins_registry/.d-reg.sock"))
			if err := os.WriteFile(filepath.Join(root, "plugins_registry/file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			called := 0
			err = drivers{root}.Unstage(t.Context(), testDriver, "vol-1", "/path", func() { called++ })
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			if len(p.calls) != test.calls || test.calls > 0 && p.calls[0] != "vol-1 /path" {
				t.Errorf("it is called with %q", p.calls)
			}
			if called != test.calls {
				t.Errorf("it says of %d calls that they are sent", called)
			}
		})
	}
}
