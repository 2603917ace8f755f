// SPDX-License-Identifier: Apache-2.0

package csidriver

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (d *Driver) ControllerGetVolumeHealth(ctx context.Context, r *csi.ControllerGetVolumeHealthRequest) (*csi.ControllerGetVolumeHealthResponse, error) {
	if !d.config.VolumeHealth {
		return nil, status.Error(codes.Unimplemented, "this driver does not offer GET_VOLUME_HEALTH")
	}
	if r.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.ControllerGetVolumeHealth, Volume: r.GetVolumeId()}); err != nil {
		return nil, err
	}
	for _, disk := range d.backend.Disks() {
		if disk.Volume == r.GetVolumeId() {
			return &csi.ControllerGetVolumeHealthResponse{VolumeHealth: health(disk)}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "volume %q was deleted meanwhile", r.GetVolumeId())
}

func (d *Driver) ControllerListVolumeHealth(ctx context.Context, r *csi.ControllerListVolumeHealthRequest) (*csi.ControllerListVolumeHealthResponse, error) {
	if !d.config.VolumeHealth {
		return nil, status.Error(codes.Unimplemented, "this driver does not offer LIST_VOLUME_HEALTH")
	}
	if err := pageAsked(r); err != nil {
		return nil, err
	}
	if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.ControllerListVolumeHealth}); err != nil {
		return nil, err
	}
	unwell := slices.DeleteFunc(d.backend.Disks(), func(disk diskapi.Disk) bool { return len(disk.Health) == 0 })
	unwell, next := page(unwell, r.GetStartingToken(), int(r.GetMaxEntries()))
	out := &csi.ControllerListVolumeHealthResponse{NextToken: next}
	for _, disk := range unwell {
		out.Entries = append(out.Entries, health(disk))
	}
	return out, nil
}

func health(d diskapi.Disk) *csi.VolumeHealth {
	out := &csi.VolumeHealth{VolumeId: d.Volume}
	for _, h := range d.Health {
		out.HealthStatuses = append(out.HealthStatuses, &csi.VolumeHealth_VolumeHealthEntry{
			Status: csi.VolumeHealthErrorType(csi.VolumeHealthErrorType_value[string(h.Status)]),
			Reason: h.Reason, Message: h.Message,
		})
	}
	return out
}
