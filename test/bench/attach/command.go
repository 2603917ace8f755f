// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/attach/result"
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type flags struct {
	volumes           []int
	drivers           []string
	attachers         []string
	rounds            int
	cut, add          bool
	deadline, stock   time.Duration
	own               string
	out, render, from string
}

type driver struct {
	latency time.Duration
	// 0 is any number.
	parallel int
}

func NewCommand(s bench.Session) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "bench-attach",
		Short: "Measure attachers alone: VolumeAttachments that all come at once",
		Long: "Measures external-attacher with its defaults, with raised limits, and moorage-attacher,\n" +
			"each on a fresh cluster, see docs/internals/benchmarks-attach.md. The whole matrix takes about an hour,\n" +
			"most of it external-attacher with its defaults; --cut has that attach one load only.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.render != "" && f.out == "" {
				return f.write(f.from)
			}
			return f.measure(cmd, s)
		},
	}
	fs := cmd.Flags()
	fs.IntSliceVar(&f.volumes, "volumes", []int{200, 1000}, "how many volumes")
	fs.StringSliceVar(&f.drivers, "driver", []string{"0s", "1s", "1s/50"}, "how long the driver takes for a call, and after a slash how many it carries out at a time")
	fs.StringSliceVar(&f.attachers, "attachers", nil, "only some of upstream, upstream-tuned, moorage")
	fs.IntVar(&f.rounds, "rounds", 1, "measure everything this often, the attachers in turn")
	fs.BoolVar(&f.cut, "cut", false, "external-attacher with its defaults with the first load only")
	fs.DurationVar(&f.deadline, "deadline", 5*time.Minute, "stop a half that takes longer, and say how far it came")
	fs.DurationVar(&f.stock, "stock-deadline", 15*time.Minute, "the same for external-attacher with its defaults")
	fs.StringVar(&f.own, "moorage-attacher", "", "a moorage-attacher binary; without one, the one that is part of the sandbox, which takes more memory")
	fs.StringVar(&f.out, "out", "", "store the result as JSON in this file, after each run")
	fs.BoolVar(&f.add, "add", false, "keep what is in that file: cases that are measured again replace the earlier ones where it is shown")
	fs.StringVar(&f.render, "render", "", "write the result into this document; without --out nothing is measured, and that of --from is written")
	fs.StringVar(&f.from, "from", "test/bench/results/attach.json", "the result to write")
	return cmd
}

func (f *flags) write(from string) error {
	r, err := result.Read(from)
	if err != nil {
		return err
	}
	return result.Page().Write(f.render, result.Render(r))
}

func (f *flags) before() (result.Result, error) {
	switch {
	case !f.add:
		return result.Result{Schema: result.Schema}, nil
	case f.out == "":
		return result.Result{}, errors.New("--add adds to a file: name it with --out")
	}
	return result.Read(f.out)
}

func (f *flags) measure(cmd *cobra.Command, s bench.Session) error {
	ctx := cmd.Context()
	plan, err := f.plan()
	if err != nil {
		return err
	}
	own, err := f.ownAttacher()
	if err != nil {
		return err
	}
	all, err := f.before()
	if err != nil {
		return err
	}
	all.Sessions = append(all.Sessions, result.Session{Head: record.Begin(f.commandLine(), origin.OfBinaryOrTree(ctx))})
	session, failed := &all.Sessions[len(all.Sessions)-1], 0
	for i, c := range plan {
		fmt.Fprintf(os.Stderr, "%s %d of %d: %s, %s\n", time.Now().Format(time.TimeOnly), i+1, len(plan), c.Setup, c.Load())
		run := f.run(ctx, s, c, own)
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if run.Failed != "" {
			failed++
		}
		session.Runs = append(session.Runs, run)
		if err := f.keep(all); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), result.Render(all)); err != nil {
		return err
	}
	if f.render != "" {
		if err := f.write(f.out); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d runs failed", failed, len(plan))
	}
	return nil
}

// It is empty for the sandbox's own attacher.
func (f *flags) ownAttacher() (string, error) {
	if f.own == "" {
		return "", nil
	}
	path, err := filepath.Abs(f.own)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("--moorage-attacher: %w: build it with `make bin/moorage-attacher`", err)
	}
	return path, nil
}

func (f *flags) run(ctx context.Context, s bench.Session, c result.Case, own string) result.Run {
	run := result.Run{Case: c}
	deadline := f.deadline
	if c.Setup == stockName {
		deadline = f.stock
	}
	options := s.Options()
	options.Progress = func(string) {}
	options.OwnAttacher = own
	log := func(format string, args ...any) { fmt.Fprintf(os.Stderr, "    "+format+"\n", args...) }
	runner := &sandbox.Runner{Options: options, Seed: 1, Log: log}
	which := setupOf(c)
	outcome := runner.Run(ctx, scenario(which, c, deadline, &run), which.mode)
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

func (f *flags) keep(r result.Result) error {
	if f.out == "" {
		return nil
	}
	return record.Save(f.out, r)
}
