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

// Backend carries calls out. Its methods are safe for parallel use.
type Backend interface {
	// Do takes a call; a refusal is an Answer.
	Do(ctx context.Context, r diskapi.Request) diskapi.Answer
	// Disks returns every disk, sorted by handle.
	Disks() []diskapi.Disk
	// Snapshots returns every snapshot, sorted by handle.
	Snapshots() []diskapi.Snapshot
	// CutOff lists the CIDRs of clients that the storage refuses.
	CutOff() []string
}

// Config sets up a Driver.
type Config struct {
	// Name is the driver's name, as in CSIDriver and StorageClass.
	Name string
	// ListVolumes offers LIST_VOLUMES and LIST_VOLUMES_PUBLISHED_NODES, which
	// makes external-attacher compare its attachments with the cloud's.
	ListVolumes bool
	// GetVolume offers GET_VOLUME.
	GetVolume bool
	// VolumeHealth offers GET_VOLUME_HEALTH and LIST_VOLUME_HEALTH.
	VolumeHealth bool
	// Snapshots offers CREATE_DELETE_SNAPSHOT and LIST_SNAPSHOTS, and volumes that are made from
	// a snapshot.
	Snapshots bool
	// Clones offers CLONE_VOLUME.
	Clones bool
	diskapi.Services
}

// Driver serves Identity, Controller, and what the controller part of a driver has of
// csi-addons' FenceController. It is safe for parallel use.
type Driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	fence.UnimplementedFenceControllerServer
	config  Config
	backend Backend
}

// New returns a driver in front of a backend.
func New(c Config, b Backend) (*Driver, error) {
	if c.Name == "" {
		return nil, errors.New("driver name is empty: use a name such as disk.moorage.dev")
	}
	if c.GroupSnapshots && !c.Snapshots {
		return nil, errors.New("a driver that makes group snapshots makes snapshots: offer those, too")
	}
	return &Driver{config: c, backend: b}, nil
}

// Register adds the driver's services to a gRPC server.
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

// GetPluginCapabilities says which services there are, and how volumes are expanded.
func (d *Driver) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return d.config.Services.Capabilities(), nil
}

// Probe says that the driver is ready.
func (d *Driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

// ControllerGetCapabilities lists what the driver can do.
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

// ask hands a call to the backend and turns a refusal into a gRPC error.
func (d *Driver) ask(ctx context.Context, r diskapi.Request) (diskapi.Answer, error) {
	a := d.backend.Do(ctx, r)
	return a, a.Err()
}
