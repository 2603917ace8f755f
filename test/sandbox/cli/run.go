// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// runOptions are the flags of run.
type runOptions struct {
	cluster  shapeFlags
	all      bool
	modes    []string
	seed     uint64
	timeline bool
}

func newListCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the scenarios",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.json {
				return printJSON(cmd.OutOrStdout(), describe(s.Scenarios))
			}
			return printScenarios(cmd.OutOrStdout(), s.Scenarios)
		},
	}
}

// description is a scenario as `list --json` prints it.
type description struct {
	Name  string         `json:"name"`
	Doc   string         `json:"doc"`
	Modes []sandbox.Mode `json:"modes"`
}

func describe(scenarios []sandbox.Scenario) []description {
	out := make([]description, len(scenarios))
	for i, s := range scenarios {
		out[i] = description{Name: s.Name, Doc: s.Doc, Modes: s.Modes}
	}
	return out
}

func newRunCommand(s *Session) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run SCENARIO…",
		Short: "Run scenarios, each in every mode it supports unless --mode chooses",
		RunE: func(cmd *cobra.Command, args []string) error {
			jobs, err := s.jobs(args, o)
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), jobs, o, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.all, "all", false, "run every scenario")
	fs.StringSliceVar(&o.modes, "mode", nil, "only in these modes")
	fs.Uint64Var(&o.seed, "seed", 0, "seed of the scenarios' random choices (default: a random one, printed)")
	fs.BoolVar(&o.timeline, "timeline", false, "print when each stage of each pod's path was reached")
	o.cluster.addCommon(fs)
	return cmd
}

// job is a scenario in a mode.
type job struct {
	scenario sandbox.Scenario
	mode     sandbox.Mode
}

// jobs resolves what is to be run.
func (s *Session) jobs(names []string, o runOptions) ([]job, error) {
	chosen, err := s.choose(names, o.all)
	if err != nil {
		return nil, err
	}
	var modes []sandbox.Mode
	for _, name := range o.modes {
		mode, err := sandbox.ParseMode(name)
		if err != nil {
			return nil, err
		}
		modes = append(modes, mode)
	}
	var out []job
	for _, scenario := range chosen {
		wanted := modes
		if len(wanted) == 0 {
			wanted = scenario.Modes
		}
		for _, mode := range wanted {
			if scenario.Supports(mode) {
				out = append(out, job{scenario, mode})
			} else if !o.all {
				return nil, fmt.Errorf("scenario %s does not run in mode %s: it supports %v", scenario.Name, mode, scenario.Modes)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no scenario to run in these modes: see `list`")
	}
	if o.all {
		// Scenarios of one mode share clusters.
		slices.SortStableFunc(out, func(a, b job) int {
			return cmp.Compare(slices.Index(sandbox.Modes(), a.mode), slices.Index(sandbox.Modes(), b.mode))
		})
	}
	return out, nil
}

// choose finds scenarios by name.
func (s *Session) choose(names []string, all bool) ([]sandbox.Scenario, error) {
	if all {
		if len(names) > 0 {
			return nil, errors.New("name scenarios or use --all, not both")
		}
		return slices.DeleteFunc(slices.Clone(s.Scenarios), func(s sandbox.Scenario) bool { return s.Extra }), nil
	}
	if len(names) == 0 {
		return nil, errors.New("which scenario? See `list`, or use --all")
	}
	var out []sandbox.Scenario
next:
	for _, name := range names {
		for _, scenario := range s.Scenarios {
			if scenario.Name == name {
				out = append(out, scenario)
				continue next
			}
		}
		return nil, fmt.Errorf("no scenario %q: see `list`", name)
	}
	return out, nil
}

// summary is what `run --json` prints.
type summary struct {
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Results []sandbox.Result `json:"results"`
}

// run runs the jobs and reports; ErrReported if one failed.
func (s *Session) run(ctx context.Context, jobs []job, o runOptions, out io.Writer) error {
	options, err := s.options(&o.cluster)
	if err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1<<32) + 1
	}
	runner := &sandbox.Runner{Options: options, Seed: o.seed, Log: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "        "+format+"\n", args...)
	}}
	var sum summary
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(os.Stderr, "=== %s (%s, seed %d)\n", j.scenario.Name, j.mode, o.seed)
		result := runner.Run(ctx, j.scenario, j.mode)
		sum.add(result)
		if !s.json {
			report(out, result, o.timeline)
		}
	}
	if err := runner.Close(); err != nil {
		return err
	}
	if s.json {
		if err := printJSON(out, sum); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "%d passed, %d failed\n", sum.Passed, sum.Failed)
	}
	if sum.Failed > 0 || sum.Passed < len(jobs) {
		return ErrReported
	}
	return nil
}

func (s *summary) add(r sandbox.Result) {
	s.Results = append(s.Results, r)
	if r.Passed {
		s.Passed++
	} else {
		s.Failed++
	}
}

// report writes one result for people.
func report(w io.Writer, r sandbox.Result, timeline bool) {
	if timeline {
		for _, p := range r.Pods {
			p.Print(w)
		}
	}
	if r.Passed {
		fmt.Fprintf(w, "PASS %s (%s) %.1f s\n", r.Scenario, r.Mode, r.Seconds)
		return
	}
	if r.Diagnosis != "" {
		fmt.Fprintln(w, r.Diagnosis)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(w, "violation: %s: %s\n", v.Rule, v.Message)
	}
	for _, d := range r.Denied {
		fmt.Fprintf(w, "denied: %s\n", d)
	}
	if r.Logs != "" {
		fmt.Fprintf(w, "The components' logs are kept in %s.\n", r.Logs)
	}
	fmt.Fprintf(w, "FAIL %s (%s) %.1f s, seed %d: %s\n", r.Scenario, r.Mode, r.Seconds, r.Seed, r.Error)
}
