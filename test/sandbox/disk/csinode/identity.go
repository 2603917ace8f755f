// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (p *Plugin) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: p.config.Driver, VendorVersion: diskapi.DriverVersion}, nil
}

func (p *Plugin) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	services := p.config.Services
	services.Zones = p.config.Zone != ""
	return services.Capabilities(), nil
}

func (p *Plugin) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{Ready: wrapperspb.Bool(true)}, nil
}

func (p *Plugin) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	out := &csi.NodeGetCapabilitiesResponse{}
	rpcs := []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER,
	}
	if p.config.Expansion {
		rpcs = append(rpcs, csi.NodeServiceCapability_RPC_EXPAND_VOLUME)
	}
	for _, rpc := range rpcs {
		out.Capabilities = append(out.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: rpc}},
		})
	}
	return out, nil
}

func (p *Plugin) NodeGetInfo(ctx context.Context, _ *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	a, err := p.ask(ctx, diskapi.Request{
		Call: diskapi.NodeGetInfo,
		Args: diskapi.Args{Name: p.config.NodeName, Slots: p.config.MaxVolumes, Zone: p.config.Zone},
	})
	if err != nil {
		return nil, err
	}
	return &csi.NodeGetInfoResponse{
		NodeId: p.config.nodeID(), MaxVolumesPerNode: int64(a.Slots), AccessibleTopology: diskapi.Topology(p.config.Zone),
	}, nil
}
