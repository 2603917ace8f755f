// SPDX-License-Identifier: Apache-2.0

package driver

import (
	"context"
	"slices"
	"strconv"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-lib-utils/connection"

	"github.com/moorage-dev/moorage/controller/attacher/objects"
)

// Publish attaches a volume and returns the publish context. Errors carry the gRPC code.
func (d *Driver) Publish(ctx context.Context, call objects.Call, nodeID string, secrets map[string]string) (map[string]string, error) {
	answer, err := d.controller.ControllerPublishVolume(migrated(ctx, call), &csi.ControllerPublishVolumeRequest{
		VolumeId: call.Handle, NodeId: nodeID, VolumeCapability: call.Capability, Readonly: call.ReadOnly,
		VolumeContext: call.Context, Secrets: secrets,
	})
	if err != nil {
		return nil, err
	}
	return answer.GetPublishContext(), nil
}

// Unpublish detaches a volume. Errors carry the gRPC code.
func (d *Driver) Unpublish(ctx context.Context, call objects.Call, nodeID string, secrets map[string]string) error {
	_, err := d.controller.ControllerUnpublishVolume(migrated(ctx, call), &csi.ControllerUnpublishVolumeRequest{
		VolumeId: call.Handle, NodeId: nodeID, Secrets: secrets,
	})
	return err
}

// Published says whether the driver has a volume published at a node.
func (d *Driver) Published(ctx context.Context, handle, nodeID string) (bool, error) {
	answer, err := d.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: handle})
	if err != nil {
		return false, err
	}
	return slices.Contains(answer.GetStatus().GetPublishedNodeIds(), nodeID), nil
}

// List returns each published volume's nodes, without volumes that the driver does not mention.
func (d *Driver) List(ctx context.Context) (map[string][]string, error) {
	published := map[string][]string{}
	token := ""
	for {
		page, err := d.controller.ListVolumes(ctx, &csi.ListVolumesRequest{StartingToken: token, MaxEntries: d.config.PageSize})
		if err != nil {
			return nil, err
		}
		for _, entry := range page.GetEntries() {
			if entry.GetVolume() != nil && entry.GetStatus() != nil {
				published[entry.GetVolume().GetVolumeId()] = entry.GetStatus().GetPublishedNodeIds()
			}
		}
		if token = page.GetNextToken(); token == "" {
			return published, nil
		}
	}
}

func migrated(ctx context.Context, call objects.Call) context.Context {
	return context.WithValue(ctx, connection.AdditionalInfoKey,
		connection.AdditionalInfo{Migrated: strconv.FormatBool(call.Migrated)})
}
