// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// tools are where things are.
type tools struct {
	root     string // of the module
	temp     string
	attacher string
}

// moduleRoot finds the module that the working directory belongs to.
func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

// try builds the sandbox without the guard's rule and runs the scenario. It
// returns how the scenario failed, and an error if it didn't, or not as
// expected.
func (g guard) try(ctx context.Context, t tools) (string, error) {
	overlay, err := g.overlay(t.root, t.temp)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(t.temp, "moorage-sandbox")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-ldflags", "-s -w", "-o", binary, "./cmd/moorage-sandbox")
	build.Dir = t.root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build without the rule: %w\n%s", err, out)
	}
	result, err := runScenario(ctx, binary, t.attacher, g.Scenario, g.mode())
	if err != nil {
		return "", err
	}
	return g.judge(result)
}

// overlay writes changed copies of the guard's files and the file that
// `go build -overlay` reads, and returns the latter's path.
func (g guard) overlay(root, temp string) (string, error) {
	texts := map[string]string{}
	for _, e := range g.Edits {
		path := filepath.Join(root, filepath.FromSlash(e.File))
		if _, ok := texts[path]; !ok {
			raw, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("read what to change: %w", err)
			}
			texts[path] = string(raw)
		}
		changed, err := e.apply(texts[path])
		if err != nil {
			return "", err
		}
		texts[path] = changed
	}
	replace := map[string]string{}
	for path, text := range texts {
		replace[path] = filepath.Join(temp, strings.ReplaceAll(strings.TrimPrefix(path, root), string(filepath.Separator), "_"))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write a changed file: %w", err)
		}
	}
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	overlay := filepath.Join(temp, "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return overlay, nil
}

func runScenario(ctx context.Context, binary, attacher, scenario string, mode sandbox.Mode) (sandbox.Result, error) {
	cmd := exec.CommandContext(ctx, binary, "run", scenario, "--json",
		"--mode", string(mode), "--attacher", attacher)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) } // it stops its cluster first
	var out bytes.Buffer
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return sandbox.Result{}, fmt.Errorf("run the scenario: %w", err)
	}
	var summary struct{ Results []sandbox.Result }
	if jsonErr := json.Unmarshal(out.Bytes(), &summary); jsonErr != nil || len(summary.Results) != 1 {
		return sandbox.Result{}, fmt.Errorf("the scenario gave no result: %w", errors.Join(err, jsonErr))
	}
	return summary.Results[0], nil
}

// judge says how a scenario failed, or that it did not fail as it should.
func (g guard) judge(r sandbox.Result) (string, error) {
	if r.Passed {
		return "", errors.New("the scenario passes without the rule")
	}
	how := r.Error
	for _, v := range r.Violations {
		how += "; " + string(v.Rule)
	}
	for _, want := range g.Expect {
		if strings.Contains(how, want) {
			return how, nil
		}
	}
	return "", fmt.Errorf("the scenario fails otherwise than expected: %s", how)
}
