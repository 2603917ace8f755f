// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type Config struct {
	Command string
	Cases   []Case
	Setups  []Setup
	// Repeat counts runs per case and setup; their samples count together.
	Repeat int
	// Options are for every cluster; each run's shape replaces theirs.
	Options sandbox.Options
	Log     func(format string, args ...any)
	// Partial is called after each run; nil means never.
	Partial func(Result) error
}

func (c Config) Validate() error {
	switch {
	case len(c.Cases) == 0 || len(c.Setups) == 0:
		return errors.New("nothing to measure: name a case and a mode")
	case c.Repeat < 1:
		return fmt.Errorf("repeat %d times: at least 1 is needed", c.Repeat)
	case c.Log == nil:
		return errors.New("no Log to report to")
	}
	for _, kase := range c.Cases {
		if err := kase.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// Measure keeps failed runs in the result. An error is about the benchmark itself; the result then has the
// measurements so far.
func Measure(ctx context.Context, config Config) (Result, error) {
	r := Result{Schema: Schema, Head: record.Begin(config.Command, origin.OfBinaryOrTree(ctx))}
	if err := config.Validate(); err != nil {
		return r, err
	}
	plan := config.plan()
	for i, run := range plan {
		config.Log("[%d/%d] %s, %s", i+1, len(plan), run.Case.Name(), run.Setup)
		config.run(ctx, &run)
		if err := ctx.Err(); err != nil {
			return r, fmt.Errorf("interrupted after %d of %d runs: %w", i, len(plan), context.Cause(ctx))
		}
		r.Runs = append(r.Runs, run)
		if config.Partial == nil {
			continue
		}
		if err := config.Partial(r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// Setups alternate within a case, and the first setup changes between cases.
func (c Config) plan() []Run {
	var out []Run
	turn := 0
	for repeat := range c.Repeat {
		for _, kase := range c.Cases {
			for _, setup := range rotate(c.Setups, turn) {
				out = append(out, Run{Case: kase, Setup: setup, Repeat: repeat + 1})
			}
			turn++
		}
	}
	return out
}

func (c Config) run(ctx context.Context, run *Run) {
	run.Started = time.Now().UTC().Truncate(time.Second)
	options, mode := run.Setup.apply(c.Options)
	runner := &sandbox.Runner{Options: options, Seed: 1, Log: c.Log}
	outcome := runner.Run(ctx, scenario(run.Case, mode, run), mode)
	err := runner.Close()
	switch {
	case !outcome.Passed:
		run.Failed = outcome.Error
	case err != nil:
		run.Failed = err.Error()
	}
	if run.Failed == "" {
		c.Log("    done in %.0f s", time.Since(run.Started).Seconds())
		return
	}
	c.Log("    FAILED: %s\n%s", run.Failed, outcome.Diagnosis)
}
