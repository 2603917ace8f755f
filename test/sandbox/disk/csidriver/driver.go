// SPDX-License-Identifier: Apache-2.0

package csidriver

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Backend's methods are safe for parallel use.
type Backend interface {
	Do(ctx context.Context, r diskapi.Request) diskapi.Answer
	Disks() []diskapi.Disk
	Snapshots() []diskapi.Snapshot
	CutOff() []string
}

type Config struct {
	Name string
	// ListVolumes offers LIST_VOLUMES and LIST_VOLUMES_PUBLISHED_NODES: external-attacher then compares its
	// attachments with the cloud's.
	ListVolumes  bool
	GetVolume    bool
	VolumeHealth bool
	// Snapshots offers CREATE_DELETE_SNAPSHOT, LIST_SNAPSHOTS, and volumes from snapshots.
	Snapshots bool
	Clones    bool
	diskapi.Services
}

// Driver serves Identity, Controller, and the controller's part of csi-addons' FenceController. It is safe
// for parallel use.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	fence.UnimplementedFenceControllerServer
	config  Config
	backend Backend
}

func New(c Config, b Backend) (*Driver, error) {
	if c.Name == "" {
		return nil, errors.New("driver name is empty: use a name such as disk.moorage.dev")
	}
	if c.GroupSnapshots && !c.Snapshots {
		return nil, errors.New("a driver that makes group snapshots makes snapshots: offer those, too")
	}
	return &Driver{config: c, backend: b}, nil
}

func (d *Driver) Register(s *grpc.Server) {
	csi.RegisterIdentityServer(s, d)
	csi.RegisterControllerServer(s, d)
	if d.config.GroupSnapshots {
		csi.RegisterGroupControllerServer(s, d)
	}
	fence.RegisterFenceControllerServer(s, d)
}

func (d *Driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.config.Name, VendorVersion: diskapi.DriverVersion}, nil
}

func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return d.config.Services.Capabilities(), nil
}

func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (d *Driver) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	rpcs := []csi.ControllerServiceCapability_RPC_Type{
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME,
		csi.ControllerServiceCapability_RPC_PUBLISH_READONLY,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if d.config.ListVolumes {
		rpcs = append(rpcs, csi.ControllerServiceCapability_RPC_LIST_VOLUMES,
			csi.ControllerServiceCapability_RPC_LIST_VOLUMES_PUBLISHED_NODES)
	}
	if d.config.GetVolume {
		rpcs = append(rpcs, csi.ControllerServiceCapability_RPC_GET_VOLUME)
	}
	if d.config.VolumeHealth {
		rpcs = append(rpcs, csi.ControllerServiceCapability_RPC_GET_VOLUME_HEALTH,
			csi.ControllerServiceCapability_RPC_LIST_VOLUME_HEALTH)
	}
	if d.config.Snapshots {
		rpcs = append(rpcs, csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
			csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS)
	}
	if d.config.Clones {
		rpcs = append(rpcs, csi.ControllerServiceCapability_RPC_CLONE_VOLUME)
	}
	if d.config.Expansion {
		rpcs = append(rpcs, csi.ControllerServiceCapability_RPC_EXPAND_VOLUME)
	}
	out := &csi.ControllerGetCapabilitiesResponse{}
	for _, rpc := range rpcs {
		out.Capabilities = append(out.Capabilities, &csi.ControllerServiceCapability{
			Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{Type: rpc}},
		})
	}
	return out, nil
}

func (d *Driver) ask(ctx context.Context, r diskapi.Request) (diskapi.Answer, error) {
	a := d.backend.Do(ctx, r)
	return a, a.Err()
}
