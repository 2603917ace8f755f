// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"
	"time"
)

func TestOptionsValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // part of the error; empty means valid
	}{
		"default":         {func(*Options) {}, ""},
		"no limit":        {func(o *Options) { o.Slots = 0 }, ""},
		"cooperative":     {func(o *Options) { o.Mode = Cooperative }, ""},
		"needless":        {func(o *Options) { o.AttachBeforeBind = true }, "cooperative only"},
		"unknown mode":    {func(o *Options) { o.Mode = "solo" }, "standalone"},
		"no node":         {func(o *Options) { o.Nodes = 0 }, "at least one"},
		"negative slots":  {func(o *Options) { o.Slots = -1 }, "0 for no limit"},
		"busy kubelets":   {func(o *Options) { o.KubeletStatusInterval = time.Millisecond }, "100ms"},
		"backwards":       {func(o *Options) { o.AttachLatency = -1 }, "negative"},
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

func TestMissingAttacherSaysWhatToDo(t *testing.T) {
	t.Setenv(AttacherEnv, "")
	o := Options{Shape: DefaultShape(), Executable: "/nowhere/moorage-sandbox"}
	if _, err := o.complete(); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Fatalf("got %v", err)
	}
}
