// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/internal/table"
)

const nothing = "–"

func (r Result) Page() record.Page {
	if len(r.Runs) > 0 && !slices.ContainsFunc(r.Runs, func(run Run) bool { return run.Size != Size5000 }) {
		return record.Page{Command: "make bench-scheduler SIZE=5000"}
	}
	return record.Page{Command: "make bench-scheduler"}
}

func (r Result) Failed() error {
	var errs []error
	for _, f := range r.failures() {
		errs = append(errs, errors.New(f))
	}
	return errors.Join(errs...)
}

// Render shows the median of a workload's several runs.
func Render(r Result) string {
	var out strings.Builder
	out.WriteString(r.Measured() + ".\n\n")
	out.WriteString(speed(r).String())
	out.WriteString("\n### What bounds it\n")
	out.WriteString(bounds(r).String())
	out.WriteString("\n### The plugin's own time\n")
	out.WriteString(plugin(r).String())
	out.WriteString("\n### API writes per pod\n")
	out.WriteString(writes(r).String())
	if again := tried(r); len(again) > 0 {
		out.WriteString("\n### Attempts that came to nothing\n" + strings.Join(again, ""))
	}
	if failures := r.failures(); len(failures) > 0 {
		out.WriteString("\n### Failed\n")
		for _, f := range failures {
			out.WriteString("- " + f + "\n")
		}
	}
	return out.String()
}

func speed(r Result) *table.Table {
	var t table.Table
	t.Add("workload", "stock pods/s", "Moorage pods/s", "Moorage : stock", "first to last stock", "Moorage", "Moorage : stock", "attempt p99 stock", "Moorage", "algorithm mean stock", "Moorage")
	for _, p := range r.pairs() {
		row := []string{p.name}
		row = append(row, both(p, func(r Run) float64 { return r.PodsPerSecond }, rate)...)
		row = append(row, ratio(p, func(r Run) float64 { return r.PodsPerSecond }))
		row = append(row, both(p, Run.FirstToLast, rate)...)
		row = append(row, ratio(p, Run.FirstToLast))
		row = append(row, both(p, func(r Run) float64 { return float64(r.Attempt.P99) }, took)...)
		row = append(row, both(p, func(r Run) float64 { return float64(r.Algorithm.Mean) }, took)...)
		t.Add(row...)
	}
	return &t
}

func bounds(r Result) *table.Table {
	var t table.Table
	t.Add("workload", "CPU s per 1,000 pods stock", "Moorage", "of etcd stock", "Moorage", "machine busy stock", "Moorage", "scheduling loop busy stock", "Moorage")
	perPods := func(seconds func(Run) float64) func(Run) float64 {
		return func(r Run) float64 { return seconds(r) * 1000 / float64(max(r.Pods, 1)) }
	}
	for _, p := range r.pairs() {
		row := []string{p.name}
		row = append(row, both(p, perPods(func(r Run) float64 { return r.CPUSeconds }), rate)...)
		row = append(row, both(p, perPods(func(r Run) float64 { return r.EtcdSeconds }), rate)...)
		row = append(row, both(p, func(r Run) float64 { return r.MachineBusy }, percent)...)
		row = append(row, both(p, Run.LoopBusy, percent)...)
		t.Add(row...)
	}
	return &t
}

func plugin(r Result) *table.Table {
	var t table.Table
	t.Add("workload", "extension point", "calls", "mean", "p50", "p99", "NodeVolumeLimits, mean")
	t.Left = map[int]bool{1: true}
	for _, p := range r.pairs() {
		for _, point := range []string{"PreFilter", "Filter", "Score", "Reserve", "Permit"} {
			times := func(of func(Times) float64) func(Run) float64 {
				return func(r Run) float64 { return of(r.Points[point]) }
			}
			calls, ok := median(p.moorage, times(func(t Times) float64 { return float64(t.Count) }))
			if !ok {
				continue
			}
			t.Add(p.name, point, fmt.Sprintf("%.0f", calls),
				cell(p.moorage, times(func(t Times) float64 { return float64(t.Mean) }), took),
				cell(p.moorage, times(func(t Times) float64 { return float64(t.P50) }), took),
				cell(p.moorage, times(func(t Times) float64 { return float64(t.P99) }), took),
				cell(p.stock, func(r Run) float64 { return float64(r.Plugins["NodeVolumeLimits/"+point].Mean) }, took))
		}
	}
	return &t
}

func writes(r Result) *table.Table {
	var t table.Table
	t.Add("workload", "stock", "Moorage", "of Moorage's")
	t.Left = map[int]bool{3: true}
	kinds := r.writeKinds()
	for _, p := range r.pairs() {
		row := append([]string{p.name}, both(p, Run.WritesPerPod, perPod)...)
		var parts []string
		for _, kind := range kinds {
			n, ok := median(p.moorage, func(r Run) float64 { return float64(r.Writes[kind]) / float64(max(r.Pods, 1)) })
			if ok && n >= 0.05 {
				parts = append(parts, perPod(n)+" "+kind)
			}
		}
		t.Add(append(row, strings.Join(parts, ", "))...)
	}
	return &t
}

const mostTried = 3

func tried(r Result) []string {
	var list []string
	for _, run := range r.Runs {
		messages := slices.SortedFunc(maps.Keys(run.Failed), func(a, b string) int {
			return cmp.Or(cmp.Compare(run.Failed[b], run.Failed[a]), cmp.Compare(a, b))
		})
		for _, message := range messages[:min(len(messages), mostTried)] {
			list = append(list, fmt.Sprintf("- %s %s, %s, %d times: %s\n", run.Workload, run.Size, run.Profile, run.Failed[message], message))
		}
	}
	return list
}

// It is false when no run has measured the value.
func median(runs []Run, value func(Run) float64) (float64, bool) {
	var list []float64
	for _, r := range runs {
		if v := value(r); r.Failure == "" && v > 0 {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return 0, false
	}
	slices.Sort(list)
	return (list[(len(list)-1)/2] + list[len(list)/2]) / 2, true
}

func cell(runs []Run, value func(Run) float64, format func(float64) string) string {
	v, ok := median(runs, value)
	if !ok {
		return nothing
	}
	return format(v)
}

func both(p pair, value func(Run) float64, format func(float64) string) []string {
	return []string{cell(p.stock, value, format), cell(p.moorage, value, format)}
}

func ratio(p pair, value func(Run) float64) string {
	stock, ok := median(p.stock, value)
	moorage, also := median(p.moorage, value)
	if !ok || !also {
		return nothing
	}
	return fmt.Sprintf("%.2f", moorage/stock)
}

func rate(v float64) string    { return fmt.Sprintf("%.1f", v) }
func percent(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }
func perPod(v float64) string  { return fmt.Sprintf("%.2f", v) }

func took(v float64) string {
	d := time.Duration(v)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3g s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", v/float64(time.Millisecond))
	default:
		return fmt.Sprintf("%.3g µs", v/float64(time.Microsecond))
	}
}
