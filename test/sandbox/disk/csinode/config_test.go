// SPDX-License-Identifier: Apache-2.0

package csinode

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestConfigSaysWhatIsWrong(t *testing.T) {
	good := Config{Driver: "d", NodeName: "n", KubeletRoot: "/k", ServiceURL: "http://localhost"}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for want, edit := range map[string]func(*Config){
		"Driver":      func(c *Config) { c.Driver = "" },
		"NodeName":    func(c *Config) { c.NodeName = "" },
		"KubeletRoot": func(c *Config) { c.KubeletRoot = "" },
		"ServiceURL":  func(c *Config) { c.ServiceURL = "" },
		"MaxVolumes":  func(c *Config) { c.MaxVolumes = -1 },
		"shorter":     func(c *Config) { c.KubeletRoot = "/" + strings.Repeat("x", 100) },
	} {
		c := good
		edit(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want it to name %s", err, want)
		}
	}
}

func TestStagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "staged.json")
	mounts := filepath.Join(filepath.Dir(path), MountTable)
	open := func() *staged {
		s, err := openStaged(path, mounts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	if err := s.put("v", volume{StagingPath: "/v"}); err != nil {
		t.Fatal(err)
	}
	if err := s.put("w", volume{StagingPath: "/w"}); err != nil {
		t.Fatal(err)
	}
	if err := s.remove("v"); err != nil {
		t.Fatal(err)
	}
	s = open()
	if _, ok := s.get("v"); ok {
		t.Error("v is staged after it was removed")
	}
	if v, ok := s.get("w"); !ok || v.StagingPath != "/w" {
		t.Errorf("w is %+v, %t", v, ok)
	}
	if err := s.booted(0); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.get("w"); !ok {
		t.Error("w is gone without a reboot")
	}
	if err := s.booted(1); err != nil {
		t.Fatal(err)
	}
	if _, ok := open().get("w"); ok {
		t.Error("w is staged after a reboot")
	}
	if err := os.WriteFile(path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openStaged(path, mounts); err == nil {
		t.Error("a damaged file is accepted")
	}
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	s, err := openStaged(filepath.Join(dir, "staged.json"), filepath.Join(dir, MountTable))
	if err != nil {
		t.Fatal(err)
	}
	writes := func(after string, want bool, lasts ...string) {
		t.Helper()
		if _, got := s.writable()["v"]; got != want {
			t.Errorf("after %s: written to %t", after, got)
		}
		for _, target := range []string{"/1", "/2", "/reader"} {
			if _, last := s.lastWriter(target); last != slices.Contains(lasts, target) {
				t.Errorf("after %s: %s is the last one: %t", after, target, last)
			}
		}
	}
	for _, step := range []struct {
		name  string
		do    func() error
		want  bool
		lasts []string
	}{
		{"a stage", func() error { return s.put("v", volume{StagingPath: "/v"}) }, false, nil},
		{"a reader", func() error { return s.publish("/reader", "v", "") }, false, nil},
		{"a writer", func() error { return s.publish("/1", "v", "mode") }, true, []string{"/1"}},
		{"a second one", func() error { return s.publish("/2", "v", "mode") }, true, nil},
		{"the end of one", func() error { return s.unpublish("/1") }, true, []string{"/2"}},
		{"an unstage", func() error { return s.remove("v") }, false, nil},
		{"a stage anew", func() error { return s.put("v", volume{StagingPath: "/v"}) }, false, nil},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		writes(step.name, step.want, step.lasts...)
	}
}
