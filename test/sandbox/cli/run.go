// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type runOptions struct {
	cluster  shapeFlags
	all      bool
	except   []string
	modes    []string
	releases []string
	seed     uint64
	timeline bool
	parallel int
}

func newListCommand(s *Session) *cobra.Command {
	return &cobra.Command{
		Use:   "list [TEXT]",
		Short: "List the scenarios; with a text, tell in full those whose name has it",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list := s.Scenarios
			if len(args) > 0 {
				list = slices.DeleteFunc(slices.Clone(list), func(x sandbox.Scenario) bool { return !strings.Contains(x.Name, args[0]) })
				if len(list) == 0 {
					return fmt.Errorf("no scenario has %q in its name: `moorage-sandbox list` has them all", args[0])
				}
			}
			switch {
			case s.json:
				return printJSON(cmd.OutOrStdout(), describe(list))
			case len(args) > 0:
				return tellScenarios(cmd.OutOrStdout(), list)
			}
			return printScenarios(cmd.OutOrStdout(), list)
		},
	}
}

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
			if o.parallel < 0 {
				return fmt.Errorf("--parallel %d: use a positive number, or leave it out", o.parallel)
			}
			jobs, err := s.jobs(args, o)
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), jobs, o, cmd.OutOrStdout())
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.all, "all", false, "run every scenario")
	fs.StringSliceVar(&o.except, "except", nil, "with --all, leave out these scenarios")
	fs.StringSliceVar(&o.modes, "mode", nil, "only in these modes")
	fs.StringSliceVar(&o.releases, "kubernetes", nil, "only those on clusters that emulate these minor releases: "+strings.Join(sandbox.EmulatedReleases(), ", ")+"; "+ownRelease+": those that emulate none")
	fs.Uint64Var(&o.seed, "seed", 0, "seed of the scenarios' random choices (default: a random one, printed)")
	fs.BoolVar(&o.timeline, "timeline", false, "print when each stage of each pod's path was reached")
	fs.IntVar(&o.parallel, "parallel", 0, "how many scenarios run side by side, each on a cluster of its own (default: with --all what this machine can take, else 1)")
	o.cluster.addCommon(fs)
	return cmd
}

const ownRelease = "own"

type job struct {
	scenario sandbox.Scenario
	mode     sandbox.Mode
	place    int // among all jobs
}

func (s *Session) jobs(names []string, o runOptions) ([]job, error) {
	chosen, err := s.choose(names, o.all, o.except)
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
		if o.cluster.shape.Real {
			scenario = scenario.Real()
		}
		wanted := modes
		if len(wanted) == 0 {
			wanted = scenario.Modes
		}
		for _, mode := range wanted {
			if o.cluster.controlPlane+o.cluster.kubelets != "" && scenario.In(mode).Kubernetes != "" {
				continue // a binary of another release emulates none
			}
			if len(o.releases) > 0 && !slices.Contains(o.releases, cmp.Or(scenario.In(mode).Kubernetes, ownRelease)) {
				continue
			}
			if scenario.Supports(mode) {
				out = append(out, job{scenario: scenario, mode: mode})
			} else if !o.all {
				return nil, fmt.Errorf("scenario %s does not run in mode %s: it supports %v", scenario.Name, mode, scenario.Modes)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no scenario to run in these modes and releases: see `list`")
	}
	if o.all || o.parallel > 1 {
		// Scenarios of one mode share clusters.
		slices.SortStableFunc(out, func(a, b job) int {
			return cmp.Compare(slices.Index(sandbox.Modes(), a.mode), slices.Index(sandbox.Modes(), b.mode))
		})
	}
	for i := range out {
		out[i].place = i
	}
	return out, nil
}

func (s *Session) choose(names []string, all bool, except []string) ([]sandbox.Scenario, error) {
	if all {
		if len(names) > 0 {
			return nil, errors.New("name scenarios or use --all, not both")
		}
		left, err := s.choose(except, false, nil)
		if err != nil && len(except) > 0 {
			return nil, fmt.Errorf("--except: %w", err)
		}
		return slices.DeleteFunc(slices.Clone(s.Scenarios), func(each sandbox.Scenario) bool {
			return each.Extra || slices.ContainsFunc(left, func(l sandbox.Scenario) bool { return l.Name == each.Name })
		}), nil
	}
	if len(except) > 0 {
		return nil, errors.New("--except goes with --all")
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

func report(w io.Writer, r sandbox.Result, timeline bool) {
	if timeline {
		for _, p := range r.Pods {
			p.Print(w)
		}
	}
	if r.Passed {
		fmt.Fprintf(w, "PASS %s (%s) %.1f s%s\n", r.Scenario, r.Mode, r.Seconds, costs(r))
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

func costs(r sandbox.Result) string {
	var text string
	if r.CPUSeconds > 0 {
		text = fmt.Sprintf(", %.1f s of CPU", r.CPUSeconds)
	}
	if r.StartSeconds > 0 {
		text += fmt.Sprintf("; cluster %.1f s, %.1f s of CPU", r.StartSeconds, r.StartCPUSeconds)
	}
	return text
}
