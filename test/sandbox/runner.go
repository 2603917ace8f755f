// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type Result struct {
	Scenario  string  `json:"scenario"`
	Mode      Mode    `json:"mode"`
	Passed    bool    `json:"passed"`
	Error     string  `json:"error,omitempty"`
	Diagnosis string  `json:"diagnosis,omitempty"`
	Logs      string  `json:"logs,omitempty"`
	Seed      uint64  `json:"seed"`
	Seconds   float64 `json:"seconds"`
	// CPUSeconds is the cluster's processor time; 0 where the scenario starts its clusters itself.
	CPUSeconds float64 `json:"cpuSeconds,omitempty"`
	// StartSeconds and StartCPUSeconds are 0 for a reused cluster.
	StartSeconds    float64             `json:"startSeconds,omitempty"`
	StartCPUSeconds float64             `json:"startCPUSeconds,omitempty"`
	Calls           int                 `json:"calls"`
	Excused         []diskapi.Violation `json:"excused,omitempty"`
	Violations      []diskapi.Violation `json:"violations,omitempty"`
	Counts          map[string]int      `json:"counts,omitempty"`
	Steps           []Step              `json:"steps,omitempty"`
	// Broken also counts excused violations.
	Broken map[diskapi.Rule]int `json:"broken,omitempty"`
	// Happened counts the violating calls that succeeded.
	Happened map[diskapi.Rule]int `json:"happened,omitempty"`
	// Hanging are the pods that never ran in a comparing scenario.
	Hanging []string   `json:"hanging,omitempty"`
	Left    []string   `json:"left,omitempty"`
	Denied  []string   `json:"denied,omitempty"`
	Pods    []PodTimes `json:"pods,omitempty"`
}

func (r *Result) broke(v diskapi.Violation) {
	if r.Broken == nil {
		r.Broken, r.Happened = map[diskapi.Rule]int{}, map[diskapi.Rule]int{}
	}
	r.Broken[v.Rule]++
	if v.Attempt == diskapi.Happened {
		r.Happened[v.Rule]++
	}
}

// Runner is not safe for parallel use.
type Runner struct {
	Options Options
	Seed    uint64
	Log     func(format string, args ...any)
	Show    func(ctx context.Context, e *Env, resources []string)
	Output  io.Writer

	cluster *Cluster
}

// The runner owns an adopted cluster.
func (r *Runner) Adopt(c *Cluster) { r.cluster = c }

func (r *Runner) Close() error {
	if r.cluster == nil {
		return nil
	}
	err := r.cluster.Stop()
	r.cluster = nil
	return err
}

func (r *Runner) Run(ctx context.Context, s Scenario, mode Mode) Result {
	result := Result{Scenario: s.Name, Mode: mode, Seed: r.Seed}
	if err := r.prepare(ctx, s, mode, &result); err != nil {
		result.Error = err.Error()
		return result
	}
	play := r.play
	if s.Bare {
		play = r.playBare
	}
	began, before := time.Now(), r.cpu()
	err := play(ctx, s, &result)
	result.Seconds, result.CPUSeconds = time.Since(began).Seconds(), (r.cpu() - before).Seconds()
	result.Passed = err == nil
	if err != nil {
		result.Error = err.Error()
		var expectation *ExpectationError
		if errors.As(err, &expectation) && ctx.Err() == nil {
			result.Diagnosis = expectation.Diagnosis
		}
	}
	if r.cluster != nil && !result.Passed && ctx.Err() == nil {
		result.Logs = filepath.Join(r.cluster.Dir(), "logs")
		r.cluster.KeepLogs()
	}
	if r.cluster != nil && (!result.Passed || s.Exclusive || r.cluster.Touched()) {
		if err := r.Close(); err != nil && result.Passed {
			result.Passed, result.Error = false, err.Error()
		}
	}
	return result
}

func (r *Runner) prepare(ctx context.Context, s Scenario, mode Mode, result *Result) error {
	before, began := r.cluster, time.Now()
	if err := r.Prepare(ctx, s, mode); err != nil {
		return err
	}
	if r.cluster != nil && r.cluster != before {
		result.StartSeconds, result.StartCPUSeconds = time.Since(began).Seconds(), r.cpu().Seconds()
	}
	return nil
}

// cpu is 0 without a cluster.
func (r *Runner) cpu() time.Duration {
	if r.cluster == nil {
		return 0
	}
	return r.cluster.CPU()
}

// Run prepares as well; Prepare lets people see the scenario begin at once.
func (r *Runner) Prepare(ctx context.Context, s Scenario, mode Mode) error {
	shape := s.In(mode)
	if r.cluster != nil && (r.cluster.Shape() != shape || s.Exclusive || s.Bare) {
		if err := r.Close(); err != nil {
			return err
		}
	}
	if r.cluster != nil || s.Bare {
		return nil
	}
	options := r.Options
	options.Shape = shape
	cluster, err := Start(ctx, options)
	if err != nil {
		return err
	}
	r.cluster = cluster
	return nil
}

func (r *Runner) play(ctx context.Context, s Scenario, result *Result) error {
	env, err := r.env(ctx)
	if err != nil {
		return err
	}
	story, cancel := context.WithTimeoutCause(ctx, s.timeout(), fmt.Errorf("the scenario is not over after %s", s.timeout()))
	defer cancel()
	if err := env.createNamespace(story, s.Name); err != nil {
		return err
	}
	err = tell(story, s, env)
	result.Counts, result.Steps, result.Hanging = env.counts, env.steps, env.hanging
	if err != nil {
		result.Pods = env.Timeline.Pods()
		return err
	}
	if err := env.cleanUp(ctx); err != nil {
		if !env.compares {
			return err
		}
		result.Left = lines(env.Leftovers())
	}
	result.Pods = env.Timeline.Pods()
	return env.judge(ctx, result)
}

func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}

func (r *Runner) playBare(ctx context.Context, s Scenario, result *Result) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout(), fmt.Errorf("the scenario is not over after %s", s.timeout()))
	defer cancel()
	env := &Env{Mode: result.Mode, Options: r.Options, Rand: r.rand(), Seed: r.Seed, Log: r.Log, Output: r.output()}
	env.Options.Shape = s.In(result.Mode)
	return tell(ctx, s, env)
}

func (r *Runner) output() io.Writer {
	if r.Output == nil {
		return os.Stderr
	}
	return r.Output
}

func (r *Runner) rand() *rand.Rand { return rand.New(rand.NewPCG(r.Seed, r.Seed)) }

// A panic fails the scenario, not the runner, which still has processes to stop.
func tell(ctx context.Context, s Scenario, env *Env) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("scenario %s panicked: %v\n%s", s.Name, p, debug.Stack())
		}
	}()
	return s.Run(ctx, env)
}

func (r *Runner) env(ctx context.Context) (*Env, error) {
	c := r.cluster
	mark, err := c.Disk().Mark(ctx)
	if err != nil {
		return nil, err
	}
	reader, err := audit.From(c.AuditLog())
	if err != nil {
		return nil, err
	}
	env := &Env{
		Cluster: c, Mode: c.Shape().Mode, Client: c.Client(), Dynamic: c.Dynamic(), View: c.View(), Disk: c.Disk(),
		Rand: r.rand(), Seed: r.Seed, Audit: reader, Options: c.options, Log: r.Log, Output: r.output(), mark: mark,
	}
	env.Show = func(ctx context.Context, resources ...string) {
		if r.Show != nil {
			r.Show(ctx, env, resources)
		}
	}
	env.Timeline = &Timeline{view: c.View(), namespace: func() string { return env.Namespace }}
	return env, nil
}

func (e *Env) judge(ctx context.Context, result *Result) error {
	calls, err := e.Disk.Log(ctx, e.mark, diskapi.Filter{Phase: diskapi.Arrived})
	if err != nil {
		return fmt.Errorf("read the disk service's log: %w", err)
	}
	result.Calls = len(calls)
	violations, err := e.Disk.Finish(ctx)
	if err != nil {
		return fmt.Errorf("ask the judge: %w", err)
	}
	for _, v := range violations {
		if v.Seq <= e.mark {
			continue
		}
		result.broke(v)
		switch {
		case e.compares && result.Broken[v.Rule] > 1:
		case e.compares, e.excused[v.Rule], e.migrations[v.Seq]:
			result.Excused = append(result.Excused, v)
		default:
			result.Violations = append(result.Violations, v)
		}
	}
	if len(result.Violations) > 0 {
		v := result.Violations[0]
		return e.Expect(false, "the judge sees no violation", "%d violations, the first: %s: %s", len(result.Violations), v.Rule, v.Message)
	}
	events, err := e.Audit.Read()
	if err != nil {
		return err
	}
	for _, event := range audit.Denied(events, IsMoorage) {
		result.Denied = append(result.Denied, event.String())
	}
	if len(result.Denied) > 0 && !e.denials {
		return e.Expect(false, "no call of Moorage's is denied", "%d calls, the first: %s", len(result.Denied), result.Denied[0])
	}
	return nil
}
