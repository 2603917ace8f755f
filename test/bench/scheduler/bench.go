// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

type bench struct {
	dir      string
	profiles string
	timeout  time.Duration
}

// The benchmark looks for etcd in PATH.
func build(ctx context.Context, o options) (*bench, error) {
	dir, err := os.MkdirTemp("", "bench-scheduler-")
	if err != nil {
		return nil, fmt.Errorf("folder for the benchmark: %w", err)
	}
	b := &bench{dir: dir, profiles: o.profiles, timeout: o.timeout}
	if b.profiles != "" {
		if b.profiles, err = filepath.Abs(b.profiles); err == nil {
			err = os.MkdirAll(b.profiles, 0o755)
		}
	}
	for _, name := range []string{"etcd", "perf"} {
		if err == nil {
			command := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, "bin", name), "./test/bench/scheduler/"+name)
			command.Stderr = os.Stderr
			err = command.Run()
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("build the benchmark: %w", err), os.RemoveAll(dir))
	}
	return b, nil
}

func (b *bench) run(ctx context.Context, wanted result.Run) result.Run {
	measured, err := b.measure(ctx, wanted)
	if err != nil {
		wanted.Failure = err.Error()
		fmt.Fprintln(os.Stderr, "  failed:", wanted.Failure)
		return wanted
	}
	fmt.Fprintf(os.Stderr, "  %.1f pods/s, %.1f writes per pod\n", measured.PodsPerSecond, measured.WritesPerPod())
	return measured
}

func (b *bench) measure(ctx context.Context, wanted result.Run) (result.Run, error) {
	dir, err := os.MkdirTemp(b.dir, "run-")
	if err != nil {
		return result.Run{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return result.Run{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, b.timeout, fmt.Errorf("not over after %s", b.timeout))
	defer cancel()
	args := []string{"--dir", work, "--workload", wanted.Workload, "--size", wanted.Size, "--profile", wanted.Profile}
	if b.profiles != "" {
		args = append(args, "--perf-cpuprofile")
	}
	command := exec.CommandContext(ctx, filepath.Join(b.dir, "bin", "perf"), args...)
	// ARTIFACTS is the folder for scheduler_perf's log.
	command.Env = append(os.Environ(), "PATH="+filepath.Join(b.dir, "bin")+":"+os.Getenv("PATH"), "TMPDIR="+dir, "ARTIFACTS="+dir)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 30 * time.Second
	output, err := command.CombinedOutput()
	if err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return result.Run{}, fmt.Errorf("%w: %s", err, reason(string(output)))
	}
	data, err := os.ReadFile(filepath.Join(work, "run.json"))
	if err != nil {
		return result.Run{}, fmt.Errorf("what was measured: %w", err)
	}
	var measured result.Run
	if err := json.Unmarshal(data, &measured); err != nil {
		return result.Run{}, fmt.Errorf("what was measured: %w", err)
	}
	return measured, b.keepProfile(work, wanted)
}

func (b *bench) keepProfile(work string, of result.Run) error {
	found, err := filepath.Glob(filepath.Join(work, "*-cpu.prof"))
	if err != nil || b.profiles == "" || len(found) == 0 {
		return err
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.profiles, of.Workload+"-"+of.Size+"-"+of.Profile+".prof"), data, 0o644)
}

func reason(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "--- FAIL") && i+1 < len(lines) {
			return strings.TrimSpace(lines[i+1])
		}
	}
	return strings.TrimSpace(lines[len(lines)-1])
}
