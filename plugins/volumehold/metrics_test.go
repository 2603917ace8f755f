// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// For a histogram: its number of observations. 0: no such metric.
func (r *rig) counted(name string, labels ...string) float64 {
	r.t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var values []string
			for _, pair := range m.GetLabel() {
				values = append(values, pair.GetValue())
			}
			if family.GetName() == name && slices.Equal(values, labels) {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return 0
}

func TestMetrics(t *testing.T) {
	r := newRig(t, all(disk("a", ledger.AccessNode), disk("b", ledger.AccessNode), disk("one", ledger.AccessNode), disk("two", ledger.AccessNode),
		one(slotsAt("n1", 1), slotsAt("n2", 1), slotsAt("n3", 0)))...)
	a, b, gated := podWith("a", "a"), podWith("b", "b"), podWith("gated", "one", "two")
	owner, holder := boundTo(podWith("owner", "one"), "n2"), boundTo(podWith("holder", "two"), "n3")
	absent := podWith("absent", "absent")
	r.known(a, b, owner, holder, gated, absent)

	r.reserve(a, "n1")
	state, _, _ := r.prefilter(b)
	for _, node := range []string{"n1", "n2", "n3"} {
		r.RunFilterPlugins(t.Context(), state, b, r.node(node))
	}
	r.plugin.PostFilter(t.Context(), state, b, nil)
	r.prefilter(absent)
	r.plugin.PreEnqueue(t.Context(), gated)

	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"moorage_scheduler_rejections_total", []string{"NoFreeSlot", "placing"}, 1}, // once, though three nodes are full
		{"moorage_scheduler_rejections_total", []string{"ClaimMissing", "placing"}, 1},
		{"moorage_scheduler_slots_used", []string{driver}, 3},
		{"moorage_scheduler_slots_limit", []string{driver}, 2},
		{"moorage_scheduler_gated_pods", nil, 1},
		{"moorage_scheduler_waiting_pods", nil, 4},
	} {
		if got := r.counted(want.name, want.labels...); got != want.value {
			t.Errorf("%s%v is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
}

// A node that no longer fits at the bind has its own count.
func TestRefusalsAreCounted(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1")
	r.apply(factOf(boundTo(podWith("faster", "data"), "n2")))
	if r.RunBindPlugins(t.Context(), c.state, pod, "n1").IsSuccess() {
		t.Fatal("bound")
	}
	if got := r.counted("moorage_scheduler_rejections_total", "HeldElsewhere", "reserving"); got != 1 {
		t.Errorf("refusals are counted as %v", got)
	}
}

func TestMetricsAreDocumented(t *testing.T) {
	r := newRig(t, disk("data", ledger.AccessNode)...)
	m := r.plugin.core.metrics
	m.rejected(stagePlacing, "NoFreeSlot")
	families, err := r.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var have []string
	for _, family := range families {
		if strings.HasPrefix(family.GetName(), "moorage_scheduler_") {
			have = append(have, family.GetName())
		}
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(moorage_scheduler_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, match[1])
	}
	slices.Sort(listed)
	slices.Sort(have)
	if !slices.Equal(listed, have) {
		t.Errorf("docs/metrics.md lists\n%v, the plugin has\n%v", listed, have)
	}
}
