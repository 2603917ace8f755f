// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (c Client) Nodes(ctx context.Context) ([]diskapi.Node, error) {
	var v []diskapi.Node
	err := c.do(ctx, http.MethodGet, "/nodes", nil, &v)
	return v, err
}

func (c Client) Node(ctx context.Context, id string) (diskapi.Node, error) {
	var v diskapi.Node
	err := c.do(ctx, http.MethodGet, "/nodes/"+segment(id), nil, &v)
	return v, err
}

// SetSlots reaches the cluster by the node's next NodeGetInfo.
func (c Client) SetSlots(ctx context.Context, node string, slots int) error {
	return c.do(ctx, http.MethodPatch, "/nodes/"+segment(node), diskapi.NodeChange{Slots: &slots}, nil)
}

// Fence declares a node's machine off. Call it after the node's processes are gone.
func (c Client) Fence(ctx context.Context, node string) error { return c.fence(ctx, node, true) }

// Unfence declares that a dead machine boots, with nothing mounted. Call it before the node's processes
// start.
func (c Client) Unfence(ctx context.Context, node string) error { return c.fence(ctx, node, false) }

func (c Client) fence(ctx context.Context, node string, fenced bool) error {
	return c.do(ctx, http.MethodPatch, "/nodes/"+segment(node), diskapi.NodeChange{Fenced: &fenced}, nil)
}

func (c Client) SetFault(ctx context.Context, f diskapi.Fault) (diskapi.Fault, error) {
	err := c.do(ctx, http.MethodPost, "/faults", f, &f)
	return f, err
}

func (c Client) ClearFault(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/faults/"+segment(id), nil, nil)
}

func (c Client) ClearFaults(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/faults", nil, nil)
}

func (c Client) Faults(ctx context.Context) ([]diskapi.FaultStatus, error) {
	var v []diskapi.FaultStatus
	err := c.do(ctx, http.MethodGet, "/faults", nil, &v)
	return v, err
}

func (c Client) SetHealth(ctx context.Context, volume string, wrong ...diskapi.Health) error {
	return c.do(ctx, http.MethodPut, "/disks/"+segment(volume)+"/health", append([]diskapi.Health{}, wrong...), nil)
}

func (c Client) SetLatency(ctx context.Context, call diskapi.Call, d time.Duration) error {
	return c.do(ctx, http.MethodPut, "/latency", diskapi.Latency{Call: call, LatencyMs: d.Milliseconds()}, nil)
}
