// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func attachFault(id string, edit func(*diskapi.Fault)) diskapi.Fault {
	f := diskapi.Fault{ID: id, Calls: []diskapi.Call{diskapi.ControllerPublish}, Action: diskapi.Hang}
	edit(&f)
	return f
}

func hits(b *Book, n int) string {
	out := ""
	for range n {
		if _, hit := b.Hit(diskapi.ControllerPublish, "v", "a"); hit {
			out += "x"
		} else {
			out += "."
		}
	}
	return out
}

func TestTimesAndSkip(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*diskapi.Fault)
		want string
	}{
		"until cleared": {func(*diskapi.Fault) {}, "xxxxx"},
		"two times":     {func(f *diskapi.Fault) { f.Times = 2 }, "xx..."},
		"after two":     {func(f *diskapi.Fault) { f.Skip = 2 }, "..xxx"},
		"one after two": {func(f *diskapi.Fault) { f.Skip, f.Times = 2, 1 }, "..x.."},
		"this volume":   {func(f *diskapi.Fault) { f.Volume = "v" }, "xxxxx"},
		"other volume":  {func(f *diskapi.Fault) { f.Volume = "w" }, "....."},
		"other node":    {func(f *diskapi.Fault) { f.Node = "b" }, "....."},
		"other call":    {func(f *diskapi.Fault) { f.Calls = []diskapi.Call{diskapi.NodeStage} }, "....."},
	} {
		t.Run(name, func(t *testing.T) {
			var b Book
			b.Set(attachFault("f", tc.edit))
			if got := hits(&b, 5); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// A later fault has its turn when the first is spent or cleared.
func TestFirstFaultDecides(t *testing.T) {
	var b Book
	b.Set(attachFault("first", func(f *diskapi.Fault) { f.Times = 1 }))
	b.Set(attachFault("second", func(f *diskapi.Fault) {}))
	for _, want := range []string{"first", "second", "second"} {
		if f, _ := b.Hit(diskapi.ControllerPublish, "v", "a"); f.ID != want {
			t.Errorf("hit by %q, want %q", f.ID, want)
		}
	}
	if cleared := b.Clear("second"); len(cleared) != 1 || hits(&b, 1) != "." {
		t.Errorf("cleared %v", cleared)
	}
	if cleared := b.Clear(""); len(cleared) != 1 || len(b.List()) != 0 {
		t.Errorf("cleared %v, left %v", cleared, b.List())
	}
}

func TestPropertySeedDecides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		p := rapid.Float64Range(0.2, 0.8).Draw(t, "probability")
		set := attachFault("f", func(f *diskapi.Fault) { f.Seed, f.Probability = seed, p })
		var one, two Book
		one.Set(set)
		two.Set(set)
		const n = 1000
		if a, b := hits(&one, n), hits(&two, n); a != b {
			t.Fatalf("seed %d: %s and %s", seed, a, b)
		}
		share := float64(one.List()[0].Hits) / n
		if share < p-0.1 || share > p+0.1 {
			t.Fatalf("seed %d: share %v, want about %v", seed, share, p)
		}
	})
}
