// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

type summary struct {
	Passed  int              `json:"passed"`
	Failed  int              `json:"failed"`
	Results []sandbox.Result `json:"results"`
}

func summarize(results []*sandbox.Result) summary {
	var s summary
	for _, r := range results {
		switch {
		case r == nil:
			continue
		case r.Passed:
			s.Passed++
		default:
			s.Failed++
		}
		s.Results = append(s.Results, *r)
	}
	return s
}

type performance struct {
	flags   runOptions
	options sandbox.Options
	json    bool
	out     io.Writer // of results
	aside   io.Writer // of how it goes

	mu      sync.Mutex        // held to print, and for the fields below
	results []*sandbox.Result // in the order of the jobs
}

func (s *Session) run(ctx context.Context, jobs []job, o runOptions, out io.Writer) error {
	options, err := s.options(&o.cluster)
	if err != nil {
		return err
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1<<32) + 1
	}
	if o.parallel == 0 {
		o.parallel = 1
		if o.all {
			o.parallel = roomHere()
		}
	}
	p := &performance{flags: o, options: options, json: s.json, out: out, aside: os.Stderr, results: make([]*sandbox.Result, len(jobs))}
	began := time.Now()
	if err := p.perform(ctx, jobs); err != nil {
		return err
	}
	sum := summarize(p.results)
	if err := p.conclude(sum, time.Since(began)); err != nil {
		return err
	}
	if sum.Passed < len(jobs) {
		return ErrReported
	}
	return nil
}

// No cluster is left when perform returns; its error is about a removal that failed.
func (p *performance) perform(ctx context.Context, jobs []job) error {
	if workers := min(p.flags.parallel, len(jobs)); workers > 1 {
		return p.beside(ctx, batches(jobs), workers)
	}
	queue := make(chan batch, 1)
	queue <- jobs
	close(queue)
	return p.work(ctx, p.options.Name, queue, true)
}

func (p *performance) beside(ctx context.Context, batches []batch, workers int) error {
	fmt.Fprintf(p.aside, "Up to %d scenarios run side by side; what one prints follows when it is over.\n", workers)
	queue := make(chan batch, len(batches))
	for _, b := range batches {
		queue <- b
	}
	close(queue)
	errs := make([]error, workers)
	var all sync.WaitGroup
	for i := range workers {
		name := p.options.Name
		if name != "" && i > 0 {
			name = fmt.Sprintf("%s-%d", name, i+1)
		}
		all.Go(func() { errs[i] = p.work(ctx, name, queue, false) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (p *performance) work(ctx context.Context, name string, queue <-chan batch, live bool) error {
	show := &page{}
	if live {
		show.live = p.aside
	}
	options := p.options
	options.Name = name
	options.Progress = func(line string) { show.line("%s", line) }
	runner := &sandbox.Runner{Options: options, Seed: p.flags.seed, Output: show, Log: func(format string, args ...any) {
		show.line("        "+format, args...)
	}}
	for b := range queue {
		for _, j := range b {
			if ctx.Err() != nil {
				break
			}
			p.play(ctx, runner, j, show)
		}
	}
	return runner.Close()
}

func (p *performance) play(ctx context.Context, runner *sandbox.Runner, j job, show *page) {
	if show.live == nil {
		p.print(func() { fmt.Fprintf(p.aside, "... %s (%s) begins\n", j.scenario.Name, j.mode) })
	}
	show.line("=== %s (%s, seed %d)", j.scenario.Name, j.mode, p.flags.seed)
	result := runner.Run(ctx, j.scenario, j.mode)
	p.print(func() {
		show.turn(p.aside)
		p.results[j.place] = &result
		if !p.json {
			report(p.out, result, p.flags.timeline)
		}
	})
}

func (p *performance) print(do func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	do()
}

func (p *performance) conclude(sum summary, took time.Duration) error {
	if p.json {
		return printJSON(p.out, sum)
	}
	var failed []string
	for _, r := range sum.Results {
		if !r.Passed {
			failed = append(failed, fmt.Sprintf("%s (%s)", r.Scenario, r.Mode))
		}
	}
	if len(failed) > 0 {
		fmt.Fprintf(p.out, "failed: %s\n", strings.Join(failed, ", "))
	}
	fmt.Fprintf(p.out, "%d passed, %d failed in %.0f s\n", sum.Passed, sum.Failed, took.Seconds())
	return nil
}
