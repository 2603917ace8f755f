// SPDX-License-Identifier: Apache-2.0

package csidriver

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (d *Driver) ControllerExpandVolume(ctx context.Context, r *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	size := r.GetCapacityRange().GetRequiredBytes()
	switch {
	case !d.config.Expansion:
		return nil, status.Error(codes.Unimplemented, "this driver does not offer EXPAND_VOLUME")
	case r.GetVolumeId() == "":
		return nil, missing("volume_id")
	case r.GetCapacityRange() == nil:
		return nil, missing("capacity_range")
	}
	if limit := r.GetCapacityRange().GetLimitBytes(); limit > 0 && limit < size {
		return nil, status.Errorf(codes.OutOfRange, "limit_bytes %d is below required_bytes %d", limit, size)
	}
	a, err := d.ask(ctx, diskapi.Request{Call: diskapi.ControllerExpand, Volume: r.GetVolumeId(), Args: diskapi.Args{SizeBytes: size}})
	if err != nil {
		return nil, err
	}
	return &csi.ControllerExpandVolumeResponse{
		CapacityBytes:         a.SizeBytes,
		NodeExpansionRequired: r.GetVolumeCapability().GetBlock() == nil,
	}, nil
}
