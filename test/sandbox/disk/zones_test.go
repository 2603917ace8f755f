// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// A volume is made in the preferred zone, and can be attached in that zone only.
func TestZones(t *testing.T) {
	w := newWorld(t, "--zones", "--list-volumes")
	w.zone = "north"
	north := w.node("worker-1", 4)
	w.zone = "south"
	south := w.node("worker-2", 4)

	made, err := w.createFor("v", "south", "north")
	w.must(err)
	if got := zoneOf(made.GetAccessibleTopology()...); got != "south" {
		t.Errorf("the volume is accessible from %q, want the preferred zone", got)
	}
	info, err := south.NodeGetInfo(w.ctx, &csi.NodeGetInfoRequest{})
	w.must(err)
	if got := zoneOf(info.GetAccessibleTopology()); got != "south" {
		t.Errorf("the node says that it is in %q", got)
	}
	w.stop()
	w.start()
	_, err = w.publish(made.GetVolumeId(), north)
	w.refused(err, codes.InvalidArgument, "attach it to a node of another zone")
	_, err = w.publish(made.GetVolumeId(), south)
	w.must(err)
	listed, err := w.controller.ListVolumes(w.ctx, &csi.ListVolumesRequest{})
	w.must(err)
	if got := zoneOf(listed.GetEntries()[0].GetVolume().GetAccessibleTopology()...); got != "south" {
		t.Errorf("the volume is listed as accessible from %q", got)
	}

	_, err = w.controller.CreateVolume(w.ctx, &csi.CreateVolumeRequest{
		Name: "other", VolumeCapabilities: []*csi.VolumeCapability{writer()},
		AccessibilityRequirements: &csi.TopologyRequirement{Requisite: []*csi.Topology{{Segments: map[string]string{"rack": "1"}}}},
	})
	w.refused(err, codes.InvalidArgument, "a topology of another driver")
}

func TestWithoutZones(t *testing.T) {
	w := newWorld(t)
	n := w.node("worker-1", 4)
	info, err := n.NodeGetInfo(w.ctx, &csi.NodeGetInfoRequest{})
	w.must(err)
	capabilities, err := w.identity.GetPluginCapabilities(w.ctx, &csi.GetPluginCapabilitiesRequest{})
	w.must(err)
	if info.GetAccessibleTopology() != nil || len(capabilities.GetCapabilities()) != 1 {
		t.Errorf("a node in %v, a driver with %v", info.GetAccessibleTopology(), capabilities.GetCapabilities())
	}
}

func (w *world) createFor(name string, zones ...string) (*csi.Volume, error) {
	r := &csi.TopologyRequirement{Preferred: []*csi.Topology{diskapi.Topology(zones[0])}}
	for _, zone := range zones {
		r.Requisite = append([]*csi.Topology{diskapi.Topology(zone)}, r.Requisite...)
	}
	made, err := w.controller.CreateVolume(w.ctx, &csi.CreateVolumeRequest{
		Name: name, VolumeCapabilities: []*csi.VolumeCapability{writer()}, AccessibilityRequirements: r,
	})
	return made.GetVolume(), err
}

func zoneOf(topologies ...*csi.Topology) string {
	if len(topologies) != 1 {
		return ""
	}
	return topologies[0].GetSegments()[diskapi.ZoneKey]
}
