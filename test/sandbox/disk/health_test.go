// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func TestVolumeHealth(t *testing.T) {
	w := newWorld(t, "--volume-health")
	var volumes []string
	for _, name := range []string{"v", "w", "x", "y"} {
		volumes = append(volumes, w.create(name))
	}
	for _, volume := range volumes[:3] {
		w.must(w.api.SetHealth(w.ctx, volume, diskapi.Health{Status: diskapi.Degraded, Reason: "ReplicaLost", Message: "one of two replicas is gone"}))
	}
	w.must(w.api.SetHealth(w.ctx, volumes[0], diskapi.Health{Status: diskapi.DataLoss, Reason: "ReplicasLost"}, diskapi.Health{Status: diskapi.Inaccessible, Reason: "ReplicasLost"}))
	w.stop()
	w.start()
	if got := w.unwell(2); len(got) != 3 || len(got[volumes[0]]) != 2 {
		t.Errorf("unwell are %v, not the first three of %v", got, volumes)
	}
	r, err := w.controller.ControllerGetVolumeHealth(w.ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: volumes[1]})
	w.must(err)
	if s := r.GetVolumeHealth().GetHealthStatuses(); len(s) != 1 || s[0].GetStatus() != csi.VolumeHealthErrorType_DEGRADED || s[0].GetReason() != "ReplicaLost" || s[0].GetMessage() == "" {
		t.Errorf("the second one is %v", s)
	}
	w.must(w.api.SetHealth(w.ctx, volumes[1]))
	if got := w.unwell(0); len(got) != 2 || got[volumes[1]] != nil {
		t.Errorf("unwell are %v, after %s is well", got, volumes[1])
	}
}

func TestVolumeHealthRefuses(t *testing.T) {
	w := newWorld(t, "--volume-health")
	volume := w.create("v")
	for what, err := range map[string]error{
		"another status": w.api.SetHealth(w.ctx, volume, diskapi.Health{Status: "POORLY", Reason: "Some"}),
		"no reason":      w.api.SetHealth(w.ctx, volume, diskapi.Health{Status: diskapi.Degraded}),
		"the same twice": w.api.SetHealth(w.ctx, volume, diskapi.Health{Status: diskapi.Degraded, Reason: "Some"}, diskapi.Health{Status: diskapi.Degraded, Reason: "Some"}),
		"another disk":   w.api.SetHealth(w.ctx, "disk-none", diskapi.Health{Status: diskapi.Degraded, Reason: "Some"}),
	} {
		if err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if got := w.unwell(0); len(got) != 0 {
		t.Errorf("unwell are %v", got)
	}
	for token, want := range map[string]codes.Code{"else": codes.Aborted, "": codes.InvalidArgument} {
		_, err := w.controller.ControllerListVolumeHealth(w.ctx, &csi.ControllerListVolumeHealthRequest{MaxEntries: int32(len(token)) - 1, StartingToken: token})
		if status.Code(err) != want {
			t.Errorf("token %q: %v, not %s", token, err, want)
		}
	}
	_, err := w.controller.ControllerGetVolumeHealth(w.ctx, &csi.ControllerGetVolumeHealthRequest{VolumeId: "disk-none"})
	if status.Code(err) != codes.NotFound {
		t.Errorf("of a disk that is not there it says %v", err)
	}
	plain := newWorld(t)
	_, err = plain.controller.ControllerListVolumeHealth(plain.ctx, &csi.ControllerListVolumeHealthRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("a driver without LIST_VOLUME_HEALTH says %v", err)
	}
}

func (w *world) unwell(limit int32) map[string][]*csi.VolumeHealth_VolumeHealthEntry {
	w.t.Helper()
	found, token := map[string][]*csi.VolumeHealth_VolumeHealthEntry{}, ""
	for {
		r, err := w.controller.ControllerListVolumeHealth(w.ctx, &csi.ControllerListVolumeHealthRequest{MaxEntries: limit, StartingToken: token})
		w.must(err)
		for _, e := range r.GetEntries() {
			found[e.GetVolumeId()] = e.GetHealthStatuses()
		}
		if token = r.GetNextToken(); token == "" {
			return found
		}
	}
}
