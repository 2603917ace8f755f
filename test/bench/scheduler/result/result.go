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

const Schema = "moorage.dev/bench-scheduler/v1"

const (
	Stock   = "stock"
	Moorage = "moorage"
)

// Size5000 has its own page: its runs take too long for repetitions.
const Size5000 = "5000Nodes"

type Result struct {
	Schema string `json:"schema"`
	record.Head
	Runs []Run `json:"runs"`
}

type Run struct {
	Workload string `json:"workload"`
	Size     string `json:"size"`
	Profile  string `json:"profile"`
	// Failure is empty for a complete run.
	Failure string `json:"failure,omitempty"`
	Pods    int    `json:"pods,omitempty"`
	// PodsPerSecond is scheduler_perf's SchedulingThroughput: the mean per second, without the first.
	PodsPerSecond float64 `json:"podsPerSecond,omitempty"`
	// Seconds is from the first creation to the last binding, as a watch shows them.
	Seconds float64 `json:"seconds,omitempty"`
	// Attempt is from queue to binding, of successful attempts. Algorithm omits looks at other pods.
	Attempt   Times `json:"attempt"`
	Algorithm Times `json:"algorithm"`
	// Plugins are kube-scheduler's times, by "plugin/extension point": one pod of ten, in buckets from 10
	// µs.
	Plugins map[string]Times `json:"plugins,omitempty"`
	Points  map[string]Times `json:"points,omitempty"`
	Writes  map[string]int   `json:"writes,omitempty"`
	// Failed is by kube-scheduler's message, with … for names and numbers.
	Failed map[string]int `json:"failed,omitempty"`
	// CPUSeconds is of API server, scheduler and benchmark; without etcd.
	CPUSeconds  float64 `json:"cpuSeconds,omitempty"`
	EtcdSeconds float64 `json:"etcdSeconds,omitempty"`
	// MachineBusy is the used share of all cores, by all processes.
	MachineBusy float64 `json:"machineBusy,omitempty"`
}

type Times struct {
	Count int64         `json:"count,omitempty"`
	Mean  time.Duration `json:"meanNanoseconds,omitempty"`
	P50   time.Duration `json:"p50Nanoseconds,omitempty"`
	P99   time.Duration `json:"p99Nanoseconds,omitempty"`
}

func (r Run) WritesPerPod() float64 {
	total := 0
	for _, n := range r.Writes {
		total += n
	}
	return float64(total) / float64(max(r.Pods, 1))
}

// FirstToLast is pods per second overall. PodsPerSecond weighs each second alike, also the last with few
// pods left.
func (r Run) FirstToLast() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Pods) / r.Seconds
}

// LoopBusy near 1 means that the single scheduling loop bounds the speed.
func (r Run) LoopBusy() float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Algorithm.Count) * r.Algorithm.Mean.Seconds() / r.Seconds
}

func Read(name string) (Result, error) { return record.Read[Result](name, Schema) }

type pair struct {
	name           string
	stock, moorage []Run
}

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

func (r Result) failures() []string {
	var list []string
	for _, run := range r.Runs {
		if run.Failure != "" {
			list = append(list, fmt.Sprintf("%s %s, %s: %s", run.Workload, run.Size, run.Profile, strings.TrimSpace(run.Failure)))
		}
	}
	return list
}

func (r Result) writeKinds() []string {
	kinds := map[string]bool{}
	for _, run := range r.Runs {
		for kind := range run.Writes {
			kinds[kind] = true
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}
