// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
)

// Schema names the format of result files.
const Schema = "moorage.dev/bench-scheduler/v1"

// The profiles that are compared.
const (
	Stock   = "stock"
	Moorage = "moorage"
)

// Size5000 is the size whose results have a place of their own: those runs take
// too long to be repeated with the others.
const Size5000 = "5000Nodes"

// Result is what one call of the benchmark measured, and where.
type Result struct {
	// Schema names the format of the file.
	Schema string `json:"schema"`
	record.Head
	Runs []Run `json:"runs"`
}

// Run is one workload with one profile.
type Run struct {
	Workload string `json:"workload"`
	Size     string `json:"size"`
	Profile  string `json:"profile"`
	// Failure is why nothing was measured; empty for a run that came to its end.
	Failure string `json:"failure,omitempty"`
	Pods    int    `json:"pods,omitempty"`
	// PodsPerSecond is scheduler_perf's SchedulingThroughput: the mean of how many
	// pods were bound in each second, but for the first.
	PodsPerSecond float64 `json:"podsPerSecond,omitempty"`
	// Seconds is from the first pod's creation to the last pod's binding, as a
	// watch shows them.
	Seconds float64 `json:"seconds,omitempty"`
	// Attempt is kube-scheduler's time for an attempt that bound its pod, from the
	// queue to the binding.
	// Algorithm is the part in which no other pod is looked at.
	Attempt   Times `json:"attempt"`
	Algorithm Times `json:"algorithm"`
	// Plugins are kube-scheduler's own times of those plugins that look at
	// attachments, by "plugin/extension point". It measures one pod of ten, in
	// buckets from 10 µs.
	Plugins map[string]Times `json:"plugins,omitempty"`
	// Points are the times of each call of VolumeHold, by extension point.
	Points map[string]Times `json:"points,omitempty"`
	// Writes counts what was written to the API, by verb and resource, but for
	// what the benchmark itself made.
	Writes map[string]int `json:"writes,omitempty"`
	// Failed counts the attempts that came to nothing, by what kube-scheduler said
	// of them, with … for names and numbers.
	Failed map[string]int `json:"failed,omitempty"`
	// CPUSeconds is what the process took that has API server, scheduler
	// and benchmark in it; without etcd.
	CPUSeconds float64 `json:"cpuSeconds,omitempty"`
	// EtcdSeconds is what etcd took.
	EtcdSeconds float64 `json:"etcdSeconds,omitempty"`
	// MachineBusy is the share of all cores that was used, by whomever.
	MachineBusy float64 `json:"machineBusy,omitempty"`
}

// Times sum up how long something took.
type Times struct {
	Count int64         `json:"count,omitempty"`
	Mean  time.Duration `json:"meanNanoseconds,omitempty"`
	P50   time.Duration `json:"p50Nanoseconds,omitempty"`
	P99   time.Duration `json:"p99Nanoseconds,omitempty"`
}

// WritesPerPod is how much is written to the API for each pod that was measured.
func (r Run) WritesPerPod() float64 {
	total := 0
	for _, n := range r.Writes {
		total += n
	}
	return float64(total) / float64(max(r.Pods, 1))
}

// FirstToLast is how many pods were placed in a second, from the first one's
// creation to the last one's binding. PodsPerSecond weighs each second alike,
// also the last ones, in which few are left.
func (r Run) FirstToLast() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Pods) / r.Seconds
}

// LoopBusy is the share of the time in which the scheduling loop, of which there
// is one, was looking for a node: near 1 it is what bounds the speed.
func (r Run) LoopBusy() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Algorithm.Count) * r.Algorithm.Mean.Seconds() / r.Seconds
}

// Read reads a result file.
func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }

// pair is one workload with both profiles, each as often as it was run.
type pair struct {
	name           string
	stock, moorage []Run
}

// pairs groups runs by workload and size, in the order in which they began.
func (r Result) pairs() []pair {
	var list []pair
	for _, run := range r.Runs {
		name := run.Workload + " " + run.Size
		i := slices.IndexFunc(list, func(p pair) bool { return p.name == name })
		if i < 0 {
			i, list = len(list), append(list, pair{name: name})
		}
		if run.Profile == Stock {
			list[i].stock = append(list[i].stock, run)
		} else {
			list[i].moorage = append(list[i].moorage, run)
		}
	}
	return list
}

// failures lists the runs that came to nothing.
func (r Result) failures() []string {
	var list []string
	for _, run := range r.Runs {
		if run.Failure != "" {
			list = append(list, fmt.Sprintf("%s %s, %s: %s", run.Workload, run.Size, run.Profile, strings.TrimSpace(run.Failure)))
		}
	}
	return list
}

// writeKinds lists what is written in any run.
func (r Result) writeKinds() []string {
	kinds := map[string]bool{}
	for _, run := range r.Runs {
		for kind := range run.Writes {
			kinds[kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}
