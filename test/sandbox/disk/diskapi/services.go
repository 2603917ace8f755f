// SPDX-License-Identifier: Apache-2.0

package diskapi

import "github.com/container-storage-interface/spec/lib/go/csi"

// Services are optional services of a driver. By CSI each part of a driver names the services of the whole
// driver.
type Services struct {
	GroupSnapshots bool
	// Expansion offers EXPAND_VOLUME; with ExpandOffline only for detached volumes.
	Expansion, ExpandOffline bool
	Zones                    bool
}

// ZoneKey is the driver's topology key and a label of each node.
const ZoneKey = "topology.disk.moorage.dev/zone"

// Topology is nil without a zone.
func Topology(zone string) *csi.Topology {
	if zone == "" {
		return nil
	}
	return &csi.Topology{Segments: map[string]string{ZoneKey: zone}}
}

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
