// SPDX-License-Identifier: Apache-2.0

package csidriver

import (
	"context"

	"github.com/csi-addons/spec/lib/go/fence"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (d *Driver) FenceClusterNetwork(ctx context.Context, r *fence.FenceClusterNetworkRequest) (*fence.FenceClusterNetworkResponse, error) {
	_, err := d.ask(ctx, diskapi.Request{Call: diskapi.FenceNetwork, Args: diskapi.Args{CIDRs: texts(r.GetCidrs())}})
	return &fence.FenceClusterNetworkResponse{}, err
}

func (d *Driver) UnfenceClusterNetwork(ctx context.Context, r *fence.UnfenceClusterNetworkRequest) (*fence.UnfenceClusterNetworkResponse, error) {
	_, err := d.ask(ctx, diskapi.Request{Call: diskapi.UnfenceNetwork, Args: diskapi.Args{CIDRs: texts(r.GetCidrs())}})
	return &fence.UnfenceClusterNetworkResponse{}, err
}

func (d *Driver) ListClusterFence(context.Context, *fence.ListClusterFenceRequest) (*fence.ListClusterFenceResponse, error) {
	out := &fence.ListClusterFenceResponse{}
	for _, text := range d.backend.CutOff() {
		out.Cidrs = append(out.Cidrs, &fence.CIDR{Cidr: text})
	}
	return out, nil
}

func texts(cidrs []*fence.CIDR) []string {
	list := make([]string, 0, len(cidrs))
	for _, c := range cidrs {
		list = append(list, c.GetCidr())
	}
	return list
}
