// SPDX-License-Identifier: Apache-2.0

package diskapi

import "github.com/container-storage-interface/spec/lib/go/csi"

// Services are the optional services that a driver offers. By CSI each part of a driver names the services
// of the whole driver.
type Services struct {
	// GroupSnapshots offers CREATE_DELETE_GET_VOLUME_GROUP_SNAPSHOT.
	GroupSnapshots bool
	// Expansion offers EXPAND_VOLUME; with ExpandOffline only for volumes that are attached nowhere, so
	// that the driver reports offline expansion.
	Expansion, ExpandOffline bool
	// Zones offers VOLUME_ACCESSIBILITY_CONSTRAINTS: each node is in a zone, and a disk may be in one,
	// too.
	Zones bool
}

// ZoneKey is the key of the driver's topology: a node has a label of this name.
const ZoneKey = "topology.disk.moorage.dev/zone"

// Topology is a zone by the CSI; nil if it is empty.
func Topology(zone string) *csi.Topology {
	if zone == "" {
		return nil
	}
	return &csi.Topology{Segments: map[string]string{ZoneKey: zone}}
}

// Capabilities is the answer of GetPluginCapabilities.
func (s Services) Capabilities() *csi.GetPluginCapabilitiesResponse {
	out := &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{service(csi.PluginCapability_Service_CONTROLLER_SERVICE)}}
	if s.GroupSnapshots {
		out.Capabilities = append(out.Capabilities, service(csi.PluginCapability_Service_GROUP_CONTROLLER_SERVICE))
	}
	if s.Zones {
		out.Capabilities = append(out.Capabilities, service(csi.PluginCapability_Service_VOLUME_ACCESSIBILITY_CONSTRAINTS))
	}
	if s.Expansion {
		way := csi.PluginCapability_VolumeExpansion_ONLINE
		if s.ExpandOffline {
			way = csi.PluginCapability_VolumeExpansion_OFFLINE
		}
		out.Capabilities = append(out.Capabilities, &csi.PluginCapability{
			Type: &csi.PluginCapability_VolumeExpansion_{VolumeExpansion: &csi.PluginCapability_VolumeExpansion{Type: way}},
		})
	}
	return out
}

func service(t csi.PluginCapability_Service_Type) *csi.PluginCapability {
	return &csi.PluginCapability{Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: t}}}
}
