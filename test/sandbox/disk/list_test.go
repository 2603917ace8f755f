// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

func TestListVolumes(t *testing.T) {
	w := newWorld(t, "--list-volumes", "--get-volume")
	a := w.node("worker-1", 4)
	vol, _ := w.attach("v", a)
	w.create("w")
	w.create("x")
	found := map[string][]string{}
	token := ""
	for pages := 1; ; pages++ {
		r, err := w.controller.ListVolumes(w.ctx, &csi.ListVolumesRequest{MaxEntries: 2, StartingToken: token})
		w.must(err)
		for _, e := range r.GetEntries() {
			found[e.GetVolume().GetVolumeId()] = e.GetStatus().GetPublishedNodeIds()
		}
		if token = r.GetNextToken(); token == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if len(found) != 3 || len(found[vol]) != 1 || found[vol][0] != a.id() {
		t.Errorf("found %v", found)
	}
	r, err := w.controller.ControllerGetVolume(w.ctx, &csi.ControllerGetVolumeRequest{VolumeId: vol})
	w.must(err)
	if ids := r.GetStatus().GetPublishedNodeIds(); len(ids) != 1 || ids[0] != a.id() {
		t.Errorf("published at %v", ids)
	}

	plain := newWorld(t)
	if _, err := plain.controller.ListVolumes(plain.ctx, &csi.ListVolumesRequest{}); err == nil {
		t.Error("a driver without LIST_VOLUMES lists")
	}
}
