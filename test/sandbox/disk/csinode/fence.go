// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"context"

	"github.com/csi-addons/spec/lib/go/fence"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// This is the one FenceController call that the node part of a driver answers.
func (p *Plugin) GetFenceClients(ctx context.Context, _ *fence.GetFenceClientsRequest) (*fence.GetFenceClientsResponse, error) {
	n, err := p.service.Node(ctx, p.config.nodeID())
	if err != nil {
		return nil, status.Errorf(codes.Unavailable, "ask the disk service about node %s: %v", p.config.NodeName, err)
	}
	return &fence.GetFenceClientsResponse{Clients: []*fence.ClientDetails{{
		Id: n.ID, Addresses: []*fence.CIDR{{Cidr: n.Address + "/32"}},
	}}}, nil
}
