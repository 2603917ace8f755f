// SPDX-License-Identifier: Apache-2.0

// Package origin has a measurement's sources and machine, from build information, git and /proc.
package origin

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

type Source struct {
	// Commit is "unknown" if it can't be found.
	Commit string `json:"commit"`
	// Modified says that the work tree differed from the commit.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

const unknown = "unknown"

type Machine struct {
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memoryBytes"`
	CPU         string `json:"cpu,omitempty"`
	Platform    string `json:"platform"`
}

func OfBinary() Source {
	s := Source{Commit: unknown, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return s
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			s.Commit = setting.Value
		case "vcs.modified":
			s.Modified = setting.Value == "true"
		}
	}
	return s
}

// OfBinaryOrTree falls back to the current folder if no commit was recorded (-buildvcs=false).
func OfBinaryOrTree(ctx context.Context) Source {
	s := OfBinary()
	if s.Commit != unknown {
		return s
	}
	if tree, err := OfTree(ctx, "."); err == nil {
		return tree
	}
	return s
}

func OfTree(ctx context.Context, dir string) (Source, error) {
	s := Source{Go: runtime.Version()}
	head, err := git(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return s, err
	}
	status, err := git(ctx, dir, "status", "--porcelain")
	if err != nil {
		return s, err
	}
	s.Commit, s.Modified = strings.TrimSpace(head), status != ""
	return s, nil
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}

// ThisMachine leaves fields zero that /proc lacks.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		m.MemoryBytes = kib << 10
	}
	m.CPU = field("/proc/cpuinfo", "model name")
	return m
}

// It is empty without such a line.
func field(file, key string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(name) == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (s Source) String() string {
	commit := s.Commit
	if len(commit) > 12 {
		commit = commit[:12]
	}
	if s.Modified {
		commit += " (modified)"
	}
	return "commit " + commit + ", " + s.Go
}

func (m Machine) String() string {
	out := fmt.Sprintf("%d cores, %.0f GiB, %s", m.Cores, float64(m.MemoryBytes)/(1<<30), m.Platform)
	if m.CPU != "" {
		out += ", " + m.CPU
	}
	return out
}
