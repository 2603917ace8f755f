// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	"github.com/moorage-dev/moorage/plugins/scheduler"
	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

// configs are the workloads with their objects.
//
//go:embed config
var configs embed.FS

const topic = "moorage"

// The default of scheduler_perf, ten minutes, is too short for PreemptionPVs with 5,000 nodes on few cores.
const patience = 30 * time.Minute

type settings struct {
	profile, workload, size string
	dir                     string // for everything that is written
}

func main() {
	testing.Init()
	var s settings
	flag.StringVar(&s.profile, "profile", result.Stock, "stock or moorage")
	flag.StringVar(&s.workload, "workload", "", "the workload's name")
	flag.StringVar(&s.size, "size", "500Nodes", "the workload's size")
	flag.StringVar(&s.dir, "dir", "", "folder for everything that is written; the result is run.json there")
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	if err := s.prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	testing.Main(regexp.MatchString, nil, []testing.InternalBenchmark{{Name: "BenchmarkPerfScheduling", F: s.benchmark}}, nil)
}

// The current folder is where scheduler_perf finds its files.
func (s *settings) prepare() error {
	if s.dir == "" || s.workload == "" {
		return errors.New("--dir and --workload are needed")
	}
	if s.profile == result.Moorage {
		if err := scheduler.SetDefaults(); err != nil {
			return err
		}
	}
	config, err := fs.Sub(configs, "config")
	if err != nil {
		return err
	}
	if err := os.CopyFS(s.dir, config); err != nil {
		return fmt.Errorf("copy the configuration: %w", err)
	}
	if err := os.Chdir(s.dir); err != nil {
		return err
	}
	if err := os.Rename("scheduler-"+s.profile+".yaml", "scheduler.yaml"); err != nil {
		return fmt.Errorf("--profile=%s: %w", s.profile, err)
	}
	return errors.Join(
		flag.Set("test.run", "^$"), flag.Set("test.benchtime", "1x"), flag.Set("data-items-dir", "."),
		flag.Set("with-data-items-unique-id", "false"),
		flag.Set("test.bench", fmt.Sprintf("^BenchmarkPerfScheduling$/^%s$/^%s$", s.workload, s.size)),
	)
}

// A failed workload ends the process with an error.
func (s *settings) benchmark(b *testing.B) {
	o := newObservation()
	options := []perf.SchedulerPerfOption{perf.WithPodsSchedulingTimeout(patience), perf.WithPreRunFn(o.expect), perf.WithNodeUpdateFn(preload)}
	options = append(options, perf.WithPrepareFn(func(tCtx testContext) error {
		if s.profile == result.Moorage {
			if err := startMoorage(tCtx); err != nil {
				return err
			}
		}
		return o.watch(tCtx)
	}))
	registry, points := registry()
	o.points = points
	perf.RunBenchmarkPerfScheduling(b, "performance-config.yaml", topic, registry, options...)
	run, err := o.result()
	if err != nil {
		b.Fatal(err)
	}
	run.Workload, run.Size, run.Profile = s.workload, s.size, s.profile
	if run.PodsPerSecond, err = throughput("."); err != nil {
		b.Fatal(err)
	}
	data, err := json.Marshal(run)
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile("run.json", data, 0o644); err != nil {
		b.Fatal(err)
	}
}

func throughput(dir string) (float64, error) {
	names, err := filepath.Glob(filepath.Join(dir, "BenchmarkPerfScheduling*.json"))
	if err != nil || len(names) != 1 {
		return 0, fmt.Errorf("scheduler_perf has written %d result files, want 1", len(names))
	}
	data, err := os.ReadFile(names[0])
	if err != nil {
		return 0, fmt.Errorf("result of scheduler_perf: %w", err)
	}
	var items perf.DataItems
	if err := json.Unmarshal(data, &items); err != nil {
		return 0, fmt.Errorf("result of scheduler_perf: %w", err)
	}
	for _, item := range items.DataItems {
		if item.Labels["Metric"] == "SchedulingThroughput" {
			return item.Data["Average"], nil
		}
	}
	return 0, nil // too short to be sampled
}
