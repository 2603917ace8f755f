// SPDX-License-Identifier: Apache-2.0

package arch_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/arch/mutation"
)

var mutate = flag.Bool("mutate", false, "make each change of testdata/mutations.txt in a copy and see the tests fail: takes minutes")

// TestMutations checks that every change of testdata/mutations.txt still fits
// the code, so that the list does not go stale. With -mutate it makes them,
// one at a time, and each must be noticed.
func TestMutations(t *testing.T) {
	root := moduleRoot(t)
	list, err := mutation.Read(filepath.Join("testdata", "mutations.txt"))
	if err != nil || len(list) < 40 {
		t.Fatalf("read only %d mutations: %v", len(list), err)
	}
	copied := ""
	if *mutate {
		copied = copyCore(t, root)
		if out, err := runCore(copied); err != nil {
			t.Fatalf("the tests fail with nothing changed, so that they would notice anything: %v\n%s", err, out)
		}
	}
	for _, m := range list {
		t.Run(strings.ReplaceAll(m.Rule, " ", "-"), func(t *testing.T) {
			changed, err := m.Apply(root)
			if err != nil {
				t.Fatal(err)
			}
			if *mutate {
				try(t, m, copied, changed)
			}
		})
	}
}

// runCore runs the core's tests in a copy, but for the one that looks at tests
// and pages outside of it.
func runCore(dir string) (string, error) {
	cmd := exec.Command("go", "test", "./internal/ledger", "./internal/arbiter", "-skip", "^TestConformance",
		"-rapid.nofailfile", "-rapid.shrinktime=1s", "-rapid.checks=400")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// try writes the changed file into the copy and runs the core's tests there.
func try(t *testing.T, m mutation.Mutation, dir, changed string) {
	path := filepath.Join(dir, m.File)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, changed)
	defer write(t, path, string(text))
	out, err := runCore(dir)
	failed := failures(out)
	switch {
	case err == nil:
		t.Errorf("nobody noticed:\n-%s+%s", m.Old, m.Changed)
	case len(failed) == 0:
		t.Errorf("the change does not compile:\n%s", out)
	default:
		t.Logf("noticed by %s", strings.Join(failed, ", "))
	}
}

var failLine = regexp.MustCompile(`--- FAIL: (\S+)`)

// failures lists the tests that failed, without those that only contain them.
func failures(out string) []string {
	var names []string
	for _, match := range failLine.FindAllStringSubmatch(out, -1) {
		names = append(names, match[1])
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return slices.ContainsFunc(names, func(o string) bool { return strings.HasPrefix(o, n+"/") })
	})
}

// copyCore copies the core, and what its tests read, to a folder of its own.
func copyCore(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"internal/ledger", "internal/arbiter", "internal/docpage", "internal/proptest"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(root, name))); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum", "docs/reasons.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(text))
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
