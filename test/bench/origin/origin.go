// SPDX-License-Identifier: Apache-2.0

// Package origin has the origin of a measurement: sources and machine. It reads the running
// binary's build information, git and /proc, and writes nothing.
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

// Source is the measured sources.
type Source struct {
	// Commit of the sources; "unknown" if it can't be found.
	Commit string `json:"commit"`
	// Modified says that the work tree differed from the commit.
	Modified bool `json:"modified,omitempty"`
	// Go is the compiler's version.
	Go string `json:"go"`
}

const unknown = "unknown"

// Machine is the measuring machine.
type Machine struct {
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memoryBytes"`
	CPU         string `json:"cpu,omitempty"`
	Platform    string `json:"platform"`
}

// OfBinary reads the commit that the Go toolchain wrote into this binary.
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

// OfBinaryOrTree is OfBinary, or, where the toolchain did not record a commit (-buildvcs=false),
// OfTree of the current folder.
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

// OfTree asks git for the commit of a work tree.
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

// ThisMachine describes the machine; fields that /proc lacks stay zero.
func ThisMachine() Machine {
	m := Machine{Cores: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if kib, err := strconv.ParseInt(strings.TrimSuffix(field("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		m.MemoryBytes = kib << 10
	}
	m.CPU = field("/proc/cpuinfo", "model name")
	return m
}

// field reads the first "key: value" line of a file; empty if there is none.
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

// String names commit and compiler.
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

// String names cores, memory and processor.
func (m Machine) String() string {
	out := fmt.Sprintf("%d cores, %.0f GiB, %s", m.Cores, float64(m.MemoryBytes)/(1<<30), m.Platform)
	if m.CPU != "" {
		out += ", " + m.CPU
	}
	return out
}
