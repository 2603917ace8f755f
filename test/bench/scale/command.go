// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
	"github.com/moorage-dev/moorage/test/bench/scale/result"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type flags struct {
	sizes       []int
	modes, skip []string
	attacher    string
	repeat      int
	plan        plan
	out, render string
	results     string
}

func NewCommand(s bench.Session) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "bench-scale",
		Short: "Measure clusters of many nodes: a start, a rest, a zone that fails, a drain, a change of leader",
		Long: "Measures Moorage and the attach/detach controller in clusters of many nodes without machines, see\n" +
			"docs/internals/benchmarks-scale.md. With 100 nodes a run takes some ten minutes, with 1,000 more than half an hour.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.render != "" && f.out == "" {
				return f.write(f.results)
			}
			return f.measure(cmd, s)
		},
	}
	fs := cmd.Flags()
	fs.IntSliceVar(&f.sizes, "nodes", []int{100}, "how many nodes; several are measured one after the other")
	fs.IntVar(&f.plan.perNode, "volumes", 20, "how many volumes there are for each node")
	fs.IntVar(&f.plan.perPod, "per-pod", 1, "how many of them a pod has")
	fs.StringSliceVar(&f.modes, "modes", []string{string(sandbox.Standalone), string(sandbox.UpstreamTuned)}, "what to measure, in turn")
	fs.IntVar(&f.repeat, "repeat", 1, "measure everything this often, the modes in turn")
	fs.DurationVar(&f.plan.latency, "latency", time.Second, "how long an attach takes, and a detach")
	fs.DurationVar(&f.plan.status, "status-interval", time.Second, "the nodes' nodeStatusUpdateFrequency")
	fs.DurationVar(&f.plan.rest, "rest", time.Minute, "for how long nothing happens")
	fs.DurationVar(&f.plan.quiet, "quiet", time.Minute, "for how long only bystanders come")
	fs.DurationVar(&f.plan.patience, "patience", 30*time.Minute, "give a run up where something takes longer")
	fs.StringVar(&f.attacher, "attacher", "external-attacher", "external-attacher or moorage-attacher, in all modes")
	fs.StringSliceVar(&f.skip, "skip", nil, "leave out some of storm, drain, change")
	fs.StringVar(&f.out, "out", "", "store the result as JSON in this file, after each run")
	fs.StringVar(&f.render, "render", "", "write the results of the folder of --out into this document; without --out nothing is measured, and those of --results are written")
	fs.StringVar(&f.results, "results", "test/bench/results", "folder of the results for --render")
	return cmd
}

func (f *flags) write(folder string) error {
	text, err := result.RenderFolder(folder)
	if err != nil {
		return err
	}
	return result.Page().Write(f.render, text)
}

// The modes take turns, and the first mode changes each time.
func (f *flags) plans() ([]plan, error) {
	base := f.plan
	switch f.attacher {
	case "moorage-attacher":
		base.moorageAttacher = true
	case "external-attacher":
	default:
		return nil, fmt.Errorf("--attacher=%s: use external-attacher or moorage-attacher", f.attacher)
	}
	for _, phase := range f.skip {
		switch phase {
		case "storm":
			base.skipStorm = true
		case "drain":
			base.skipDrain = true
		case "change":
			base.skipChange = true
		default:
			return nil, fmt.Errorf("--skip=%s: use some of storm, drain and change", phase)
		}
	}
	if f.repeat < 1 || len(f.modes) == 0 || len(f.sizes) == 0 {
		return nil, errors.New("--repeat, --modes and --nodes: at least one of each is needed")
	}
	var out []plan
	for _, nodes := range f.sizes {
		for round := range f.repeat {
			for i := range f.modes {
				p := base
				p.nodes = nodes
				mode := sandbox.Mode(f.modes[(i+round)%len(f.modes)])
				if mode != sandbox.Standalone && mode != sandbox.UpstreamTuned {
					return nil, fmt.Errorf("--modes=%s: use %s, %s, or both", mode, sandbox.Standalone, sandbox.UpstreamTuned)
				}
				p.mode = mode
				if err := p.validate(); err != nil {
					return nil, err
				}
				out = append(out, p)
			}
		}
	}
	return out, nil
}

func (f *flags) measure(cmd *cobra.Command, s bench.Session) error {
	ctx := cmd.Context()
	plans, err := f.plans()
	if err != nil {
		return err
	}
	all := result.Result{Schema: result.Schema, Head: record.Begin(f.commandLine(), origin.OfBinaryOrTree(ctx))}
	failed := 0
	for i, p := range plans {
		log("%d of %d: %s, %s", i+1, len(plans), p.mode, p.load())
		run := measure(ctx, p, s.Options(), log)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if run.Failed != "" {
			failed++
		}
		all.Runs = append(all.Runs, run)
		if f.out != "" {
			if err := record.Save(f.out, all); err != nil {
				return err
			}
		}
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), result.Render(all)); err != nil {
		return err
	}
	if f.render != "" {
		if err := f.write(filepath.Dir(f.out)); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, len(plans))
	}
	return nil
}

func log(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format(time.TimeOnly)+" "+format+"\n", args...)
}

func (f *flags) commandLine() string {
	var sizes []string
	for _, n := range f.sizes {
		sizes = append(sizes, strconv.Itoa(n))
	}
	line := fmt.Sprintf("moorage-sandbox bench-scale --nodes=%s --volumes=%d --per-pod=%d --modes=%s --repeat=%d --latency=%s --status-interval=%s --rest=%s --quiet=%s --attacher=%s",
		strings.Join(sizes, ","), f.plan.perNode, f.plan.perPod, strings.Join(f.modes, ","), f.repeat, f.plan.latency, f.plan.status, f.plan.rest, f.plan.quiet, f.attacher)
	if len(f.skip) > 0 {
		line += " --skip=" + strings.Join(f.skip, ",")
	}
	return line
}
