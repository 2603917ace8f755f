// SPDX-License-Identifier: Apache-2.0

package csidriver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (d *Driver) ControllerPublishVolume(ctx context.Context, r *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	switch {
	case r.GetVolumeId() == "":
		return nil, missing("volume_id")
	case r.GetNodeId() == "":
		return nil, missing("node_id")
	case r.GetVolumeCapability() == nil:
		return nil, missing("volume_capability")
	}
	a, err := d.ask(ctx, diskapi.Request{
		Call: diskapi.ControllerPublish, Volume: r.GetVolumeId(), Node: r.GetNodeId(),
		Args: diskapi.Args{
			AccessMode: r.GetVolumeCapability().GetAccessMode().GetMode().String(),
			ReadOnly:   r.GetReadonly(),
		},
	})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerPublishVolumeResponse{PublishContext: a.Context}, nil
}

// ControllerUnpublishVolume without a node detaches from every node, one by one.
func (d *Driver) ControllerUnpublishVolume(ctx context.Context, r *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	nodes := []string{r.GetNodeId()}
	if r.GetNodeId() == "" {
		nodes = d.attachedTo(r.GetVolumeId())
	}
	for _, node := range nodes {
		if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.ControllerUnpublish, Volume: r.GetVolumeId(), Node: node}); err != nil {
			return nil, err
		}
	}
	return &csi.ControllerUnpublishVolumeResponse{}, nil
}

func (d *Driver) attachedTo(volume string) []string {
	for _, disk := range d.backend.Disks() {
		if disk.Volume == volume {
			return nodesOf(disk)
		}
	}
	return nil
}
