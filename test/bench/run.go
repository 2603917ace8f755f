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

// Config says what to measure.
type Config struct {
	// Command repeats the measurement.
	Command string
	Cases   []Case
	Setups  []Setup
	// Repeat is how often each case is run in each setup; samples of all runs count together.
	Repeat int
	// Options are for every cluster; each run's shape replaces theirs.
	Options sandbox.Options
	// Log prints a line of progress.
	Log func(format string, args ...any)
	// Partial is called after each run with the result so far; nil means never.
	Partial func(Result) error
}

// Validate reports the first value that can't work.
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

// Measure makes all runs in turn. A failed run is in the result, with its reason. An error is about
// the benchmark itself: an unusable configuration, a result that can't be written, or a context
// that ended. The result then has the measurements so far.
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

// plan lists the runs in their order: setups alternate within a case, and the first setup changes
// from case to case.
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
