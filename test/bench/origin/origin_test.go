// SPDX-License-Identifier: Apache-2.0

package origin

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestOfTree(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GIT_CEILING_DIRECTORIES", filepath.Dir(dir))
	if _, err := OfTree(t.Context(), dir); err == nil {
		t.Error("a folder without git has a commit")
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "Begin"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	clean, err := OfTree(t.Context(), dir)
	if err != nil || len(clean.Commit) != 40 || clean.Modified {
		t.Errorf("a clean tree is %+v, %v", clean, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if dirty, err := OfTree(t.Context(), dir); err != nil || dirty.Commit != clean.Commit || !dirty.Modified {
		t.Errorf("a tree with a new file is %+v, %v", dirty, err)
	}
}

func TestField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "info")
	if err := os.WriteFile(file, []byte("no colon\nMemTotal:  24684092 kB\nMemTotal: 1 kB\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := field(file, "MemTotal"); got != "24684092 kB" {
		t.Errorf("got %q", got)
	}
	if field(file, "SwapTotal") != "" || field(file+"x", "MemTotal") != "" {
		t.Error("a field that isn't there has a value")
	}
}

func TestThisMachine(t *testing.T) {
	m := ThisMachine()
	if m.Cores < 1 || m.MemoryBytes < 1<<20 {
		t.Errorf("got %+v", m)
	}
	if text := m.String(); !strings.Contains(text, " cores, ") {
		t.Errorf("written as %q", text)
	}
}
