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

type Subject struct {
	Command, Short, Long string
	Results              string
	Scenario             func(repeat int) sandbox.Scenario
	// Repeat is the default number; 0: the scenario has none.
	Repeat                 int
	RepeatFlag, RepeatHelp string
	// Disks permits lenient disks, Node a run without moorage-node.
	Disks, Node bool
}

type flags struct {
	subject              Subject
	mode                 string
	seed                 uint64
	repeat               int
	lenient, withoutNode bool
	out, render, from    string
}

func NewCommand(s bench.Session, subject Subject) *cobra.Command {
	f := flags{subject: subject}
	cmd := &cobra.Command{
		Use:   subject.Command,
		Short: subject.Short,
		Long:  subject.Long,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.render != "" && f.out == "" {
				return f.write(f.from)
			}
			return f.run(cmd.Context(), s, subject.Scenario(f.repeat))
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.mode, "mode", string(sandbox.Standalone), "the mode that is put through it")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of what is done; what comes of it depends on more")
	if subject.Repeat > 0 {
		fs.IntVar(&f.repeat, subject.RepeatFlag, subject.Repeat, subject.RepeatHelp)
	}
	if subject.Disks {
		fs.BoolVar(&f.lenient, "lenient", false, "with disks that let themselves be attached to a second node, and past a node's limit, instead of refusing that")
	}
	if subject.Node {
		fs.BoolVar(&f.withoutNode, "without-node", false, "with Moorage, and without moorage-node")
	}
	fs.StringVar(&f.out, "out", "", "store the result as JSON in this file, beside those of other modes")
	fs.StringVar(&f.render, "render", "", "write the result into this document; without --out nothing runs, and the result of --from is written")
	fs.StringVar(&f.from, "from", subject.Results, "the result to write")
	return cmd
}

func (f *flags) write(from string) error {
	r, err := result.Read(from)
	if err != nil {
		return err
	}
	return result.Page(f.subject.Command).Write(f.render, result.Render(r))
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
	outcome := runner.Run(ctx, f.variant(scenario), mode)
	if err := errors.Join(context.Cause(ctx), runner.Close()); err != nil {
		return err
	}
	run := result.Of(head, outcome)
	run.Lenient, run.WithoutNode = f.lenient, f.withoutNode
	if err := f.keep(run); err != nil {
		return err
	}
	if !outcome.Passed {
		fmt.Fprintln(os.Stderr, outcome.Diagnosis)
		return fmt.Errorf("%s: %s", mode, outcome.Error)
	}
	return nil
}

func (f *flags) command(mode sandbox.Mode) string {
	line := fmt.Sprintf("moorage-sandbox %s --mode=%s --seed=%d", f.subject.Command, mode, f.seed)
	if f.repeat != 0 {
		line += fmt.Sprintf(" --%s=%d", f.subject.RepeatFlag, f.repeat)
	}
	if f.lenient {
		line += " --lenient"
	}
	if f.withoutNode {
		line += " --without-node"
	}
	return line
}

func (f *flags) variant(scenario sandbox.Scenario) sandbox.Scenario {
	shape := scenario.Shape
	scenario.Shape = func(s *sandbox.Shape) {
		shape(s)
		s.LenientDisks = f.lenient
		if f.withoutNode {
			s.MoorageNode = false
		}
	}
	return scenario
}

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
