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

	"github.com/moorage-dev/moorage/test/internal/breaks"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func moduleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}

func build(ctx context.Context, root, temp string) (string, error) {
	overlay, err := breaks.Overlay(root, temp, rulesOf(guards()))
	if err != nil {
		return "", err
	}
	binary := filepath.Join(temp, "moorage-sandbox")
	cmd := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-ldflags", "-s -w", "-o", binary, "./cmd/moorage-sandbox")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the sandbox with breaks: %w\n%s", err, out)
	}
	return binary, nil
}

func (g guard) run(ctx context.Context, binary, attacher string) (sandbox.Result, error) {
	cmd := exec.CommandContext(ctx, binary, "run", g.Scenario, "--json",
		"--mode", string(g.mode()), "--attacher", attacher)
	cmd.Env = append(os.Environ(), breaks.Env+"="+g.name())
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
