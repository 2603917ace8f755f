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

	"github.com/moorage-dev/moorage/test/sandbox/disk/cloud"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func (d *Driver) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if r.GetName() == "" {
		return nil, missing("name")
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, missing("volume_capabilities")
	}
	from, err := d.contents(r.GetVolumeContentSource())
	if err != nil {
		return nil, err
	}
	size := r.GetCapacityRange().GetRequiredBytes()
	if limit := r.GetCapacityRange().GetLimitBytes(); limit > 0 && limit < size {
		return nil, status.Errorf(codes.OutOfRange, "limit_bytes %d is below required_bytes %d", limit, size)
	}
	zones, err := d.zones(r.GetAccessibilityRequirements())
	if err != nil {
		return nil, err
	}
	a, err := d.ask(ctx, diskapi.Request{Call: diskapi.CreateVolume, Args: diskapi.Args{Name: r.GetName(), SizeBytes: size, Zones: zones, Operated: from}})
	if err != nil {
		return nil, err
	}
	made := volume(diskapi.Disk{Volume: a.Volume, SizeBytes: a.SizeBytes, Zone: a.Zone})
	made.ContentSource = r.GetVolumeContentSource()
	return &csi.CreateVolumeResponse{Volume: made}, nil
}

func (d *Driver) zones(r *csi.TopologyRequirement) ([]string, error) {
	if !d.config.Zones {
		return nil, nil
	}
	var zones []string
	for _, t := range slices.Concat(r.GetPreferred(), r.GetRequisite()) {
		zone := t.GetSegments()[diskapi.ZoneKey]
		if zone == "" {
			return nil, status.Errorf(codes.InvalidArgument, "accessibility_requirements: a topology has no segment %s", diskapi.ZoneKey)
		}
		if !slices.Contains(zones, zone) {
			zones = append(zones, zone)
		}
	}
	return zones, nil
}

func (d *Driver) contents(from *csi.VolumeContentSource) (diskapi.Operated, error) {
	snapshot, source := from.GetSnapshot().GetSnapshotId(), from.GetVolume().GetVolumeId()
	switch {
	case from == nil:
		return diskapi.Operated{}, nil
	case snapshot != "" && d.config.Snapshots:
		return diskapi.Operated{Snapshot: snapshot}, nil
	case source != "" && d.config.Clones:
		return diskapi.Operated{Source: source}, nil
	}
	return diskapi.Operated{}, status.Error(codes.InvalidArgument, "volume_content_source: this driver can't make a volume from it")
}

func (d *Driver) DeleteVolume(ctx context.Context, r *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.DeleteVolume, Volume: r.GetVolumeId()}); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, nil
}

func (d *Driver) ValidateVolumeCapabilities(ctx context.Context, r *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if r.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	if len(r.GetVolumeCapabilities()) == 0 {
		return nil, missing("volume_capabilities")
	}
	if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.ValidateVolumeCapabilities, Volume: r.GetVolumeId()}); err != nil {
		return nil, err
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: r.GetVolumeContext(), VolumeCapabilities: r.GetVolumeCapabilities(), Parameters: r.GetParameters(),
	}}, nil
}

// The token for the next page is the last handle of this page.
func (d *Driver) ListVolumes(ctx context.Context, r *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	if !d.config.ListVolumes {
		return nil, status.Error(codes.Unimplemented, "this driver does not offer LIST_VOLUMES")
	}
	if err := pageAsked(r); err != nil {
		return nil, err
	}
	if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.ListVolumes}); err != nil {
		return nil, err
	}
	disks, next := page(d.backend.Disks(), r.GetStartingToken(), int(r.GetMaxEntries()))
	out := &csi.ListVolumesResponse{NextToken: next}
	for _, disk := range disks {
		out.Entries = append(out.Entries, &csi.ListVolumesResponse_Entry{
			Volume: volume(disk),
			Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: nodesOf(disk)},
		})
	}
	return out, nil
}

func pageAsked(r interface {
	GetMaxEntries() int32
	GetStartingToken() string
}) error {
	if r.GetMaxEntries() < 0 {
		return status.Error(codes.InvalidArgument, "max_entries is negative")
	}
	if after := r.GetStartingToken(); after != "" && !strings.HasPrefix(after, cloud.HandlePrefix) {
		return status.Errorf(codes.Aborted, "starting_token %q is none that this driver gave", after)
	}
	return nil
}

// page returns at most limit disks (0: all) with a larger handle than after, and the next token.
func page(disks []diskapi.Disk, after string, limit int) (part []diskapi.Disk, next string) {
	disks = disks[sort.Search(len(disks), func(i int) bool { return disks[i].Volume > after }):]
	if limit == 0 || len(disks) <= limit {
		return disks, ""
	}
	return disks[:limit], disks[limit-1].Volume
}

func (d *Driver) ControllerGetVolume(ctx context.Context, r *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if !d.config.GetVolume {
		return nil, status.Error(codes.Unimplemented, "this driver does not offer GET_VOLUME")
	}
	if r.GetVolumeId() == "" {
		return nil, missing("volume_id")
	}
	if _, err := d.ask(ctx, diskapi.Request{Call: diskapi.ControllerGetVolume, Volume: r.GetVolumeId()}); err != nil {
		return nil, err
	}
	for _, disk := range d.backend.Disks() {
		if disk.Volume == r.GetVolumeId() {
			return &csi.ControllerGetVolumeResponse{
				Volume: volume(disk),
				Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: nodesOf(disk)},
			}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "volume %q was deleted meanwhile", r.GetVolumeId())
}

func volume(d diskapi.Disk) *csi.Volume {
	v := &csi.Volume{VolumeId: d.Volume, CapacityBytes: d.SizeBytes}
	if t := diskapi.Topology(d.Zone); t != nil {
		v.AccessibleTopology = []*csi.Topology{t}
	}
	return v
}

func nodesOf(d diskapi.Disk) []string {
	var nodes []string
	for _, a := range d.Attached {
		nodes = append(nodes, a.Node)
	}
	return nodes
}

func missing(field string) error {
	return status.Errorf(codes.InvalidArgument, "%s is missing", field)
}
