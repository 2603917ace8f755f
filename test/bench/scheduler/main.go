// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

type options struct {
	workloads string
	size      string
	repeat    int
	profile   string
	out       string
	profiles  string
	render    string
	timeout   time.Duration
}

func run(ctx context.Context, args []string) error {
	var o options
	set := flag.NewFlagSet("scheduler", flag.ContinueOnError)
	set.StringVar(&o.workloads, "workloads", "*", "run the workloads that match one of these patterns, such as *CSI*,PreemptionPVs")
	set.StringVar(&o.size, "size", sizeMedium, sizeSmall+", "+sizeMedium+" or "+sizeLarge)
	set.IntVar(&o.repeat, "repeat", 1, "run each workload this often with each profile")
	set.StringVar(&o.profile, "profile", "", "only this profile, "+result.Stock+" or "+result.Moorage+", where there is no time for both")
	set.StringVar(&o.out, "out", "", "store the result as JSON in this file")
	set.StringVar(&o.profiles, "pprof", "", "store CPU profiles of what is measured in this folder")
	set.StringVar(&o.render, "render", "", "run nothing: put the result of --out into this document")
	set.DurationVar(&o.timeout, "timeout", 35*time.Minute, "longest time for one run; scheduler_perf gives up after half an hour")
	if err := set.Parse(args); err != nil {
		return err
	}
	if o.render != "" {
		return renderInto(o.render, o.out)
	}
	plan, err := o.plan()
	if err != nil {
		return err
	}
	source, err := origin.OfTree(ctx, ".")
	if err != nil {
		return err
	}
	command := strings.Join(append([]string{"go run ./test/bench/scheduler"}, args...), " ")
	r := result.Result{Schema: result.Schema, Head: record.Begin(command, source)}
	bench, err := build(ctx, o)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bench.dir) }()
	for _, next := range plan {
		fmt.Fprintf(os.Stderr, "%s %s, %s\n", next.Workload, next.Size, next.Profile)
		r.Runs = append(r.Runs, bench.run(ctx, next))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := o.save(r); err != nil {
			return err
		}
	}
	fmt.Print(result.Render(r))
	return r.Failed()
}

func (o options) save(r result.Result) error {
	if o.out == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return fmt.Errorf("folder of the result: %w", err)
	}
	return record.Save(o.out, r)
}

const (
	sizeSmall  = "small"
	sizeMedium = "500"
	sizeLarge  = "5000"
)

type workload struct {
	name  string
	sizes map[string]string
}

func workloads() []workload {
	usual := map[string]string{sizeSmall: "5Nodes", sizeMedium: "500Nodes", sizeLarge: result.Size5000}
	return []workload{
		{"SchedulingCSIPVs", usual},
		{"SchedulingMigratedInTreePVs", usual},
		{"SchedulingCSIPVsRWO", usual},
		{"PremadeCSIPVsRWO", usual},
		{"LoadedNodesCSIPVsRWO", usual},
		{"PreemptionPVs", map[string]string{sizeSmall: "5Nodes", sizeMedium: "1000Nodes", sizeLarge: result.Size5000}},
	}
}

// The profiles alternate, also in who begins: a drift of the machine hits both alike.
func (o options) plan() ([]result.Run, error) {
	var plan []result.Run
	first := 0
	for range o.repeat {
		for _, w := range workloads() {
			matches, err := o.wants(w.name)
			if err != nil {
				return nil, err
			}
			if !matches {
				continue
			}
			size, ok := w.sizes[o.size]
			if !ok {
				return nil, fmt.Errorf("--size=%s: there are %s, %s and %s", o.size, sizeSmall, sizeMedium, sizeLarge)
			}
			profiles := []string{result.Stock, result.Moorage}
			for i := range profiles {
				next := result.Run{Workload: w.name, Size: size, Profile: profiles[(first+i)%len(profiles)]}
				if o.profile == "" || o.profile == next.Profile {
					plan = append(plan, next)
				}
			}
			first++
		}
	}
	if len(plan) == 0 {
		return nil, fmt.Errorf("no workload matches --workloads=%s, or --profile=%s is not a profile", o.workloads, o.profile)
	}
	return plan, nil
}

func (o options) wants(name string) (bool, error) {
	for pattern := range strings.SplitSeq(o.workloads, ",") {
		matches, err := path.Match(pattern, name)
		if err != nil {
			return false, fmt.Errorf("--workloads=%s: %w", o.workloads, err)
		}
		if matches {
			return true, nil
		}
	}
	return false, nil
}
