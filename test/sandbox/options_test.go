// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/internal/served"
)

func TestOptionsValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // part of the error; empty means valid
	}{
		"default":         {func(*Options) {}, ""},
		"no limit":        {func(o *Options) { o.Slots = 0 }, ""},
		"cooperative":     {func(o *Options) { o.Mode = Cooperative }, ""},
		"nobody to tell":  {func(o *Options) { o.Mode, o.MoorageNode = Upstream, true }, "use standalone"},
		"unknown mode":    {func(o *Options) { o.Mode = "solo" }, "standalone"},
		"no node":         {func(o *Options) { o.Nodes = 0 }, "at least one"},
		"nodes of others": {func(o *Options) { o.Nodes, o.Nodeless = 0, true }, ""},
		"nodes of both":   {func(o *Options) { o.Nodeless = true }, "use 0"},
		"negative slots":  {func(o *Options) { o.Slots = -1 }, "0 for no limit"},
		"zones":           {func(o *Options) { o.Zones, o.Operations.On = 2, true }, ""},
		"fewer than none": {func(o *Options) { o.Zones, o.Operations.On = -1, true }, "0 for a driver without zones"},
		"zones alone":     {func(o *Options) { o.Zones = 2 }, "Operations.On"},
		"busy kubelets":   {func(o *Options) { o.KubeletStatusInterval = time.Millisecond }, "100ms"},
		"backwards":       {func(o *Options) { o.AttachLatency = -1 }, "negative"},
		"an older one":    {func(o *Options) { o.Kubernetes = "1.34" }, ""},
		"too old a one":   {func(o *Options) { o.Kubernetes = "1.33" }, "1.34, 1.35, 1.36"},
		"older twice":     {func(o *Options) { o.Kubernetes, o.Kubelets = "1.34", "bin/kubernetes-1.34" }, "leave one of the two out"},
		"operations": {func(o *Options) {
			o.Operations = Operations{On: true, AttachFor: "snapshot, clone", DetachFor: "expansion"}
		}, ""},
		"no such one":     {func(o *Options) { o.Operations = Operations{On: true, AttachFor: "backup"} }, "snapshot clone expansion"},
		"both ways":       {func(o *Options) { o.Operations = Operations{On: true, AttachFor: "clone", DetachFor: "clone"} }, "both attached and detached"},
		"switched off":    {func(o *Options) { o.Operations.AttachFor = "clone" }, "Operations.On"},
		"name for a path": {func(o *Options) { o.Name = "../x" }, "lower-case"},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{Shape: DefaultShape()}
			c.change(&o)
			err := o.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestEmulatedReleases(t *testing.T) {
	want := []string{}
	for v := version.MustParse(served.OldestRelease); v.LessThan(version.MustParse(served.NewestRelease)); v = v.AddMinor(1) {
		want = append(want, v.String())
	}
	if got := EmulatedReleases(); !slices.Equal(got, want) {
		t.Errorf("%v are emulated, want %v", got, want)
	}
}

func TestBinariesOfOtherReleases(t *testing.T) {
	folder := t.TempDir()
	o := Options{Shape: DefaultShape(), Executable: "sandbox", ControlPlane: filepath.Join(folder, "old")}
	if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), "make "+o.ControlPlane) {
		t.Errorf("a binary that is not there: %v", err)
	}
	o.ControlPlane, o.Kubelets = "new", "old"
	want := map[string]string{
		APIServer: "new", ControllerManager: "new", Scheduler: "new", nodeCommand: "old",
		Etcd: "sandbox", DiskService: "sandbox", MoorageController: "sandbox", MoorageScheduler: "sandbox", MoorageWebhook: "sandbox",
	}
	for command, binary := range want {
		if got := o.executable(command); got != binary {
			t.Errorf("%s is started from %q, want %q", command, got, binary)
		}
	}
	o.ControlPlane, o.Kubelets = "", ""
	if got := o.executable(nodeCommand); got != "sandbox" {
		t.Errorf("without one: %q", got)
	}
}

func TestMissingAttacherSaysWhatToDo(t *testing.T) {
	t.Setenv(AttacherEnv, "")
	o := Options{Shape: DefaultShape(), Executable: "/nowhere/moorage-sandbox"}
	if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Fatalf("got %v", err)
	}
}
