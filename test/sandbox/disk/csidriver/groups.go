// SPDX-License-Identifier: Apache-2.0

package csidriver

import (
	"context"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (d *Driver) GroupControllerGetCapabilities(context.Context, *csi.GroupControllerGetCapabilitiesRequest) (*csi.GroupControllerGetCapabilitiesResponse, error) {
	return &csi.GroupControllerGetCapabilitiesResponse{Capabilities: []*csi.GroupControllerServiceCapability{{
		Type: &csi.GroupControllerServiceCapability_Rpc{Rpc: &csi.GroupControllerServiceCapability_RPC{
			Type: csi.GroupControllerServiceCapability_RPC_CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT,
		}},
	}}}, nil
}

func (d *Driver) CreateVolumeGroupSnapshot(ctx context.Context, r *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	if r.GetName() == "" {
		return nil, missing("name")
	}
	if len(r.GetSourceVolumeIds()) == 0 {
		return nil, missing("source_volume_ids")
	}
	var parts []diskapi.Part
	for _, volume := range r.GetSourceVolumeIds() {
		parts = append(parts, diskapi.Part{Volume: volume})
	}
	a, err := d.ask(ctx, diskapi.Request{
		Call: diskapi.CreateGroupSnapshot, Args: diskapi.Args{Name: r.GetName(), Operated: diskapi.Operated{Parts: parts}},
	})
	if err != nil {
		return nil, err
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: group(a)}, nil
}

func (d *Driver) DeleteVolumeGroupSnapshot(ctx context.Context, r *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	if r.GetGroupSnapshotId() == "" {
		return nil, missing("group_snapshot_id")
	}
	_, err := d.ask(ctx, diskapi.Request{
		Call: diskapi.DeleteGroupSnapshot, Args: diskapi.Args{Operated: diskapi.Operated{Group: r.GetGroupSnapshotId()}},
	})
	if err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
}

func (d *Driver) GetVolumeGroupSnapshot(ctx context.Context, r *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if r.GetGroupSnapshotId() == "" {
		return nil, missing("group_snapshot_id")
	}
	a, err := d.ask(ctx, diskapi.Request{
		Call: diskapi.GetGroupSnapshot, Args: diskapi.Args{Operated: diskapi.Operated{Group: r.GetGroupSnapshotId()}},
	})
	if err != nil {
		return nil, err
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: group(a)}, nil
}

func group(a diskapi.Answer) *csi.VolumeGroupSnapshot {
	out := &csi.VolumeGroupSnapshot{
		GroupSnapshotId: a.Group,
		ReadyToUse:      !slices.ContainsFunc(a.Snapshots, func(x diskapi.Snapshot) bool { return !x.Ready }),
	}
	for _, x := range a.Snapshots {
		out.CreationTime = timestamppb.New(x.Created)
		out.Snapshots = append(out.Snapshots, snapshot(x))
	}
	return out
}
