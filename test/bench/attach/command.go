// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/attach/result"
	"github.com/moorage-dev/moorage/test/bench/internal/file"
	"github.com/moorage-dev/moorage/test/bench/origin"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// setup is an attacher with its limits.
type setup struct {
	name    string
	mode    sandbox.Mode
	moorage bool
}

func setups() []setup {
	return []setup{
		{"upstream", sandbox.Upstream, false},
		{"upstream-tuned", sandbox.UpstreamTuned, false},
		// Only the claims are bound faster: no controller takes part in what is measured.
		{"moorage", sandbox.UpstreamTuned, true},
	}
}

// flags are those of the command.
type flags struct {
	volumes           []int
	latencies         []time.Duration
	attachers         []string
	deadline, stock   time.Duration
	out, render, from string
}

// NewCommand returns the bench-attach command.
func NewCommand(s bench.Session) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "bench-attach",
		Short: "Measure attachers alone: VolumeAttachments that all come at once",
		Long:  "Measures external-attacher with its defaults, with raised limits, and moorage-attacher,\neach on a fresh cluster, see docs/benchmarks-attach.md.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.render != "" {
				return f.write(f.render)
			}
			return f.measure(cmd, s)
		},
	}
	fs := cmd.Flags()
	fs.IntSliceVar(&f.volumes, "volumes", []int{200, 1000}, "how many volumes")
	fs.DurationSliceVar(&f.latencies, "latency", []time.Duration{0, time.Second}, "how long the driver takes")
	fs.StringSliceVar(&f.attachers, "attachers", nil, "only some of upstream, upstream-tuned, moorage")
	fs.DurationVar(&f.deadline, "deadline", 5*time.Minute, "stop a half that takes longer, and say how far it came")
	fs.DurationVar(&f.stock, "stock-deadline", 12*time.Minute, "the same for external-attacher with its defaults")
	fs.StringVar(&f.out, "out", "", "store the result as JSON in this file, after each run")
	fs.StringVar(&f.render, "render", "", "measure nothing: write the result of --from into this document")
	fs.StringVar(&f.from, "from", "test/bench/results/attach.json", "the result to render")
	return cmd
}

// write renders a stored result into a document.
func (f *flags) write(document string) error {
	text, err := os.ReadFile(document)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	data, err := os.ReadFile(f.from)
	if err != nil {
		return fmt.Errorf("result: %w", err)
	}
	r, err := result.Decode(data)
	if err != nil {
		return err
	}
	rendered, err := result.Within(string(text), r)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	return file.Write(document, []byte(rendered))
}

func (f *flags) measure(cmd *cobra.Command, s bench.Session) error {
	ctx := cmd.Context()
	r := result.Result{
		Schema: result.Schema, Command: f.commandLine(), Source: origin.OfBinaryOrTree(ctx), Machine: origin.ThisMachine(),
		Started: time.Now().UTC().Truncate(time.Second),
	}
	failed := 0
	for _, volumes := range f.volumes {
		for _, latency := range f.latencies {
			for _, which := range f.chosen() {
				fmt.Fprintf(os.Stderr, "%s, %d volumes, driver %s\n", which.name, volumes, latency)
				run := f.run(ctx, s, which, volumes, latency)
				if err := ctx.Err(); err != nil {
					return context.Cause(ctx)
				}
				if run.Failed != "" {
					failed++
				}
				r.Runs = append(r.Runs, run)
				if err := f.keep(r); err != nil {
					return err
				}
			}
		}
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), result.Render(r)); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, len(r.Runs))
	}
	return nil
}

// chosen are the setups to measure.
func (f *flags) chosen() []setup {
	return slices.DeleteFunc(setups(), func(s setup) bool { return len(f.attachers) > 0 && !slices.Contains(f.attachers, s.name) })
}

// run makes one run on a cluster of its own.
func (f *flags) run(ctx context.Context, s bench.Session, which setup, volumes int, latency time.Duration) result.Run {
	run := result.Run{Setup: which.name, Volumes: volumes, Nodes: nodes, LatencySeconds: latency.Seconds()}
	deadline := f.deadline
	if which.name == "upstream" {
		deadline = f.stock
	}
	options := s.Options()
	options.Progress = func(string) {}
	log := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "    "+format+"\n", args...) }
	runner := &sandbox.Runner{Options: options, Seed: 1, Log: log}
	outcome := runner.Run(ctx, scenario(which, volumes, latency, deadline, &run), which.mode)
	err := runner.Close()
	switch {
	case !outcome.Passed:
		run.Failed = outcome.Error
		log("FAILED: %s", outcome.Error)
	case err != nil:
		run.Failed = err.Error()
	}
	return run
}

// keep stores the result so far.
func (f *flags) keep(r result.Result) error {
	if f.out == "" {
		return nil
	}
	data, err := r.Encode()
	if err != nil {
		return err
	}
	return file.Write(f.out, data)
}

// commandLine is how the measurement can be repeated.
func (f *flags) commandLine() string {
	var volumes, latencies []string
	for _, n := range f.volumes {
		volumes = append(volumes, fmt.Sprint(n))
	}
	for _, d := range f.latencies {
		latencies = append(latencies, d.String())
	}
	line := fmt.Sprintf("moorage-sandbox bench-attach --volumes=%s --latency=%s --deadline=%s --stock-deadline=%s",
		strings.Join(volumes, ","), strings.Join(latencies, ","), f.deadline, f.stock)
	if len(f.attachers) > 0 {
		line += " --attachers=" + strings.Join(f.attachers, ",")
	}
	return line
}
