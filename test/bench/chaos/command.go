// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/chaos/result"
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
	"github.com/moorage-dev/moorage/test/sandbox"
)

// flags are those of the command.
type flags struct {
	mode              string
	seed              uint64
	lenient           bool
	out, render, from string
}

// NewCommand returns the bench-chaos command, which runs a scenario.
func NewCommand(s bench.Session, scenario sandbox.Scenario) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "bench-chaos",
		Short: "Put a mode through ten minutes of chaos and keep what came of it",
		Long: "Runs the scenario " + scenario.Name + " in one mode, see docs/internals/chaos.md: between 11 and 20 minutes. With\n" +
			"Moorage it passes or fails; stock Kubernetes is compared with, and what goes wrong is counted.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.render != "" && f.out == "" {
				return f.write(f.from)
			}
			return f.run(cmd.Context(), s, scenario)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.mode, "mode", string(sandbox.Standalone), "the mode that is put through it")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of what is done; what comes of it depends on more")
	fs.BoolVar(&f.lenient, "lenient", false, "with disks that let themselves be attached to a second node, and past a node's limit, instead of refusing that")
	fs.StringVar(&f.out, "out", "", "store the result as JSON in this file, beside those of other modes")
	fs.StringVar(&f.render, "render", "", "write the result into this document; without --out nothing runs, and the result of --from is written")
	fs.StringVar(&f.from, "from", "test/bench/results/chaos.json", "the result to write")
	return cmd
}

// write renders a stored result into the document.
func (f *flags) write(from string) error {
	r, err := result.Read(from)
	if err != nil {
		return err
	}
	return result.Page().Write(f.render, result.Render(r))
}

func (f *flags) run(ctx context.Context, s bench.Session, scenario sandbox.Scenario) error {
	mode, err := sandbox.ParseMode(f.mode)
	if err != nil {
		return err
	}
	if !scenario.Supports(mode) {
		return fmt.Errorf("mode %s: scenario %s runs in %v", mode, scenario.Name, scenario.Modes)
	}
	head := record.Begin(f.command(mode), origin.OfBinaryOrTree(ctx))
	runner := &sandbox.Runner{Options: s.Options(), Seed: f.seed, Log: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "    "+format+"\n", args...)
	}}
	outcome := runner.Run(ctx, f.withDisks(scenario), mode)
	if err := errors.Join(context.Cause(ctx), runner.Close()); err != nil {
		return err
	}
	run := result.Of(head, outcome)
	run.Lenient = f.lenient
	if err := f.keep(run); err != nil {
		return err
	}
	if !outcome.Passed {
		fmt.Fprintln(os.Stderr, outcome.Diagnosis)
		return fmt.Errorf("%s: %s", mode, outcome.Error)
	}
	return nil
}

// command is the command line, as far as it says what to run.
func (f *flags) command(mode sandbox.Mode) string {
	line := fmt.Sprintf("moorage-sandbox bench-chaos --mode=%s --seed=%d", mode, f.seed)
	if f.lenient {
		line += " --lenient"
	}
	return line
}

// withDisks is the scenario with disks of the kind that is asked for.
func (f *flags) withDisks(scenario sandbox.Scenario) sandbox.Scenario {
	shape := scenario.Shape
	scenario.Shape = func(s *sandbox.Shape) {
		shape(s)
		s.LenientDisks = f.lenient
	}
	return scenario
}

// keep stores a run beside those of other modes, if there are any, and shows them.
func (f *flags) keep(run result.Run) error {
	var all result.Result
	if f.out != "" {
		before, err := result.Read(f.out)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		all = before
	}
	all.Add(run)
	fmt.Println(result.Render(all))
	if f.out == "" {
		return nil
	}
	if err := record.Save(f.out, all); err != nil {
		return err
	}
	if f.render == "" {
		return nil
	}
	return f.write(f.out)
}
