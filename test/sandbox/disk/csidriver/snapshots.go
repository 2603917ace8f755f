// SPDX-License-Identifier: Apache-2.0

package csidriver

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/moorage-dev/moorage/test/sandbox/disk/cloud"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// A snapshot that is not ready is requested again until it is.
func (d *Driver) CreateSnapshot(ctx context.Context, r *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	switch {
	case !d.config.Snapshots:
		return nil, status.Error(codes.Unimplemented, "this driver does not offer CREATE_DELETE_SNAPSHOT")
	case r.GetName() == "":
		return nil, missing("name")
	case r.GetSourceVolumeId() == "":
		return nil, missing("source_volume_id")
	}
	a, err := d.ask(ctx, diskapi.Request{Call: diskapi.CreateSnapshot, Volume: r.GetSourceVolumeId(), Args: diskapi.Args{Name: r.GetName()}})
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: snapshot(a.Snapshots[0])}, nil
}

func (d *Driver) DeleteSnapshot(ctx context.Context, r *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	if !d.config.Snapshots {
		return nil, status.Error(codes.Unimplemented, "this driver does not offer CREATE_DELETE_SNAPSHOT")
	}
	if r.GetSnapshotId() == "" {
		return nil, missing("snapshot_id")
	}
	_, err := d.ask(ctx, diskapi.Request{
		Call: diskapi.DeleteSnapshot, Args: diskapi.Args{Operated: diskapi.Operated{Snapshot: r.GetSnapshotId()}},
	})
	if err != nil {
		return nil, err
	}
	return &csi.DeleteSnapshotResponse{}, nil
}

func (d *Driver) ListSnapshots(ctx context.Context, r *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	if !d.config.Snapshots {
		return nil, status.Error(codes.Unimplemented, "this driver does not offer LIST_SNAPSHOTS")
	}
	if r.GetMaxEntries() < 0 {
		return nil, status.Error(codes.InvalidArgument, "max_entries is negative")
	}
	after := r.GetStartingToken()
	if after != "" && !strings.HasPrefix(after, cloud.SnapshotPrefix) {
		return nil, status.Errorf(codes.Aborted, "starting_token %q is none that this driver gave", after)
	}
	if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.ListSnapshots, Volume: r.GetSourceVolumeId()}); err != nil {
		return nil, err
	}
	list := slices.DeleteFunc(d.backend.Snapshots(), func(x diskapi.Snapshot) bool {
		return r.GetSnapshotId() != "" && x.Handle != r.GetSnapshotId() || r.GetSourceVolumeId() != "" && x.Volume != r.GetSourceVolumeId()
	})
	list = list[sort.Search(len(list), func(i int) bool { return list[i].Handle > after }):]
	out := &csi.ListSnapshotsResponse{}
	if limit := int(r.GetMaxEntries()); limit > 0 && len(list) > limit {
		list, out.NextToken = list[:limit], list[limit-1].Handle
	}
	for _, x := range list {
		out.Entries = append(out.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: snapshot(x)})
	}
	return out, nil
}

func snapshot(x diskapi.Snapshot) *csi.Snapshot {
	return &csi.Snapshot{
		SnapshotId: x.Handle, SourceVolumeId: x.Volume, SizeBytes: x.SizeBytes, GroupSnapshotId: x.Group,
		CreationTime: timestamppb.New(x.Created), ReadyToUse: x.Ready,
	}
}
