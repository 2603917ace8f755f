// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type Session interface {
	JSON() bool
	Options() sandbox.Options
}

type flags struct {
	quick      bool
	out        string
	modes      []string
	cases      []string
	repeat     int
	nodes      int
	pods       int
	firstUse   bool
	notOptedIn bool
	attacher   string
	keep       bool
	list       bool
	render     string
	resultDir  string
}

func NewCommand(s Session) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure attach and detach, in Moorage and upstream side by side",
		Long: "Measures how long volumes take to attach and detach and what that costs the API server,\n" +
			"each case in each mode on a fresh cluster. docs/internals/benchmarks.md describes the method.\n" +
			"A case that fails is reported as failed, and the exit code is 1.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.do(cmd, s) },
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.quick, "quick", false, "one case, a few minutes")
	fs.StringVar(&f.out, "out", "", "store the result as JSON in this file, after each run")
	fs.StringSliceVar(&f.modes, "modes", nil, fmt.Sprintf("only in these modes: some of %v", Setups()))
	fs.StringSliceVar(&f.cases, "cases", nil, "only the cases that match one of these patterns, such as burst-50/*/status-1s; see --list")
	fs.IntVar(&f.repeat, "repeat", 1, "run each case this often; samples of all runs count together")
	fs.IntVar(&f.nodes, "nodes", 0, "this many nodes instead of the case's own")
	fs.IntVar(&f.pods, "pods", 0, "this many pods instead of the case's own")
	fs.BoolVar(&f.firstUse, "first-use", false, "have each volume provisioned when its pod is placed, and not before")
	fs.BoolVar(&f.notOptedIn, "not-opted-in", false, "have the pods in a namespace that has not opted in, so that they get no VolumeStatus")
	fs.BoolVar(&f.list, "list", false, "list the cases and do nothing")
	fs.StringVar(&f.attacher, "attacher", "", "the csi-attacher binary (default: beside this one, or $"+sandbox.AttacherEnv+")")
	fs.BoolVar(&f.keep, "keep", false, "keep the clusters' folders, with their logs")
	fs.StringVar(&f.render, "render", "", "measure nothing: write the results of --results into this document")
	fs.StringVar(&f.resultDir, "results", "test/bench/results", "folder of the results for --render")
	return cmd
}

func (f *flags) do(cmd *cobra.Command, s Session) error {
	if f.render != "" {
		return RenderDocument(f.render, f.resultDir)
	}
	cases, err := f.chosen()
	if err != nil {
		return err
	}
	if f.list {
		return list(cmd.OutOrStdout(), cases)
	}
	config, err := f.config(cmd, cases, s)
	if err != nil {
		return err
	}
	result, err := Measure(cmd.Context(), config)
	if err == nil || len(result.Runs) > 0 {
		if printErr := print(cmd.OutOrStdout(), result, s.JSON()); err == nil {
			err = printErr
		}
	}
	if failures := result.Failures(); err == nil && len(failures) > 0 {
		err = fmt.Errorf("%d of %d runs failed, the first: %w", len(failures), len(result.Runs), failures[0])
	}
	return err
}

func (f *flags) chosen() ([]Case, error) {
	cases := Cases()
	if f.quick {
		cases = QuickCases()
	}
	cases, err := Select(cases, f.cases)
	if err != nil {
		return nil, err
	}
	for i := range cases {
		cases[i].FirstUse, cases[i].NotOptedIn = f.firstUse, f.notOptedIn
		if f.nodes > 0 {
			cases[i].Nodes = f.nodes
		}
		if f.pods > 0 {
			cases[i].Pods = f.pods
		}
	}
	return cases, nil
}

func (f *flags) setups() ([]Setup, error) {
	switch {
	case len(f.modes) > 0:
		return ParseSetups(f.modes)
	case f.quick:
		return QuickSetups(), nil
	}
	return Setups(), nil
}

func (f *flags) config(cmd *cobra.Command, cases []Case, s Session) (Config, error) {
	setups, err := f.setups()
	if err != nil {
		return Config{}, err
	}
	config := Config{
		Command: commandLine(cmd.Flags()), Cases: cases, Setups: setups, Repeat: f.repeat, Options: s.Options(),
		Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}
	config.Options.Attacher, config.Options.Keep = f.attacher, f.keep
	config.Options.Progress = func(string) {}
	if f.out != "" {
		if err := os.MkdirAll(filepath.Dir(f.out), 0o755); err != nil {
			return config, fmt.Errorf("folder of the result: %w", err)
		}
		config.Partial = func(r Result) error { return r.Save(f.out) }
	}
	return config, nil
}

// Without the flags for places on this machine.
func commandLine(set *pflag.FlagSet) string {
	line := "moorage-sandbox bench"
	set.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "quick", "first-use":
			line += " --" + flag.Name
		case "modes", "cases":
			values, _ := set.GetStringSlice(flag.Name) // both are string slices
			line += " --" + flag.Name + "=" + strings.Join(values, ",")
		case "repeat", "nodes", "pods":
			line += " --" + flag.Name + "=" + flag.Value.String()
		}
	})
	return line
}

func list(w io.Writer, cases []Case) error {
	for _, c := range cases {
		if _, err := fmt.Fprintf(w, "%-32s %s\n", c.Name(), c.Title()); err != nil {
			return err
		}
	}
	return nil
}

func print(w io.Writer, r Result, asJSON bool) error {
	text := []byte(Render(r))
	if asJSON {
		var err error
		if text, err = r.Encode(); err != nil {
			return err
		}
	}
	_, err := w.Write(text)
	return err
}
