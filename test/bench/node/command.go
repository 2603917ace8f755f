// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/node/result"
	"github.com/moorage-dev/moorage/test/bench/origin"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type flags struct {
	binary            string
	volumes, pods     int
	rest              time.Duration
	changes           int
	out, render, from string
}

func NewCommand(s bench.Session) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "bench-node",
		Short: "Measure moorage-node at rest, and how soon it tells of a mount",
		Long: "Measures a moorage-node at a node with many volumes, and at one with none, see\n" +
			"docs/internals/node-at-rest.md. It mounts things in a mount namespace of its own, and has to be root.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.render != "" && f.out == "" {
				return f.write(f.from)
			}
			return f.measure(cmd.Context(), s)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.binary, "moorage-node", "bin/moorage-node", "the binary that is measured")
	fs.IntVar(&f.volumes, "volumes", 128, "how many volumes the node has that has any")
	fs.IntVar(&f.pods, "pods", 100, "how many pods it has")
	fs.DurationVar(&f.rest, "rest", 5*time.Minute, "for how long nothing changes: moorage-node looks by itself every five minutes")
	fs.IntVar(&f.changes, "changes", 10, "how often a volume comes and goes")
	fs.StringVar(&f.out, "out", "", "store the result as JSON in this file")
	fs.StringVar(&f.render, "render", "", "write the result into this document; without --out nothing is measured, and that of --from is written")
	fs.StringVar(&f.from, "from", "test/bench/results/node.json", "the result to write")
	return cmd
}

func (f *flags) write(from string) error {
	r, err := result.Read(from)
	if err != nil {
		return err
	}
	return result.Page().Write(f.render, result.Render(r))
}

func (f *flags) measure(ctx context.Context, s bench.Session) error {
	l, err := f.load()
	if err != nil {
		return err
	}
	measured := result.Result{Schema: result.Schema, Head: record.Begin(f.commandLine(), origin.OfBinaryOrTree(ctx))}
	runner := &sandbox.Runner{Options: s.Options(), Seed: 1, Log: func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "    "+format+"\n", args...)
	}}
	outcome := runner.Run(ctx, l.scenario(&measured), sandbox.Standalone)
	if err := errors.Join(context.Cause(ctx), runner.Close()); err != nil {
		return err
	}
	if !outcome.Passed {
		return fmt.Errorf("it could not be measured: %s", outcome.Error)
	}
	fmt.Println(result.Render(measured))
	if f.out == "" {
		return nil
	}
	if err := record.Save(f.out, measured); err != nil || f.render == "" {
		return err
	}
	return f.write(f.out)
}

func (f *flags) load() (load, error) {
	switch {
	case f.volumes < 1 || f.pods < 1 || f.changes < 1:
		return load{}, errors.New("--volumes, --pods and --changes: at least one of each is needed")
	case f.rest < probeEvery:
		return load{}, fmt.Errorf("--rest=%s: it is probed every %s, and rests for that long at least", f.rest, probeEvery)
	}
	binary, err := filepath.Abs(f.binary)
	if err == nil {
		_, err = os.Stat(binary)
	}
	if err != nil {
		return load{}, fmt.Errorf("--moorage-node: %w: build it with `make bin/moorage-node`", err)
	}
	return load{binary: binary, cases: []size{{f.volumes, f.pods}, {0, 0}}, rest: f.rest, changes: f.changes}, nil
}

func (f *flags) commandLine() string {
	return fmt.Sprintf("moorage-sandbox bench-node --volumes=%d --pods=%d --rest=%s --changes=%d", f.volumes, f.pods, f.rest, f.changes)
}
