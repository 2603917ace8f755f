// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func usual() flags {
	return flags{
		sizes: []int{100}, modes: []string{"standalone", "upstream-tuned"}, repeat: 1, attacher: "external-attacher",
		plan: plan{perNode: 20, perPod: 1, patience: time.Minute},
	}
}

func TestModesTakeTurns(t *testing.T) {
	f := usual()
	f.sizes, f.repeat = []int{100, 1000}, 2
	plans, err := f.plans()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range plans {
		got = append(got, fmt.Sprintf("%d %s", p.nodes, p.mode))
	}
	want := []string{
		"100 standalone", "100 upstream-tuned", "100 upstream-tuned", "100 standalone",
		"1000 standalone", "1000 upstream-tuned", "1000 upstream-tuned", "1000 standalone",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the plan is %q, want %q", got, want)
	}
}

func TestPlansAreRefused(t *testing.T) {
	for name, change := range map[string]func(*flags){
		"two nodes":                        func(f *flags) { f.sizes = []int{2} },
		"no size":                          func(f *flags) { f.sizes = nil },
		"another mode":                     func(f *flags) { f.modes = []string{"cooperative"} },
		"no round":                         func(f *flags) { f.repeat = 0 },
		"another attacher":                 func(f *flags) { f.attacher = "mine" },
		"another phase":                    func(f *flags) { f.skip = []string{"rest"} },
		"volumes that don't fit":           func(f *flags) { f.plan.perPod = 3 },
		"more pods than there is room for": func(f *flags) { f.plan.perNode = 200 },
		"no patience":                      func(f *flags) { f.plan.patience = 0 },
	} {
		f := usual()
		change(&f)
		if _, err := f.plans(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestZonesAreThirds(t *testing.T) {
	p := plan{nodes: 100, perNode: 20, perPod: 4, mode: sandbox.Standalone}
	seen := map[string]bool{}
	for zone := range zones {
		nodes := p.inZone(zone)
		if len(nodes) < 33 || len(nodes) > 34 {
			t.Errorf("zone %d has %d nodes", zone, len(nodes))
		}
		for _, node := range nodes {
			if seen[node] {
				t.Errorf("%s is in two zones", node)
			}
			seen[node] = true
		}
	}
	if load := p.load(); len(seen) != 100 || load.Pods != 500 || load.Volumes != 2000 || load.Slots != 40 {
		t.Errorf("%d nodes have a zone, and the load is %+v", len(seen), load)
	}
}

func TestEachIsDoneOnce(t *testing.T) {
	done := make([]int, 1000)
	if err := each(t.Context(), len(done), func(i int) error { done[i]++; return nil }); err != nil {
		t.Fatal(err)
	}
	if slices.Min(done) != 1 || slices.Max(done) != 1 {
		t.Error("something is done not at all, or twice")
	}
	if err := each(t.Context(), 1000, func(i int) error { return fmt.Errorf("%d", i) }); err == nil {
		t.Error("that all fail is no error")
	}
}
