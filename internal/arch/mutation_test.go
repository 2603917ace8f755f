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
)

var mutate = flag.Bool("mutate", false, "make each change of testdata/mutations.txt in a copy and see the tests fail: takes minutes")

// mutation takes one rule out.
type mutation struct{ rule, file, old, changed string }

// TestMutations checks that every change of testdata/mutations.txt still fits
// the code, so that the list does not go stale. With -mutate it makes them,
// one at a time, and each must be noticed.
func TestMutations(t *testing.T) {
	root := moduleRoot(t)
	list := mutations(t)
	copied := ""
	if *mutate {
		copied = copyCore(t, root)
	}
	for _, m := range list {
		t.Run(strings.ReplaceAll(m.rule, " ", "-"), func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(root, m.file))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), m.old) == 0 {
				t.Fatalf("%s no longer has\n%sadapt testdata/mutations.txt", m.file, m.old)
			}
			if *mutate {
				m.try(t, copied, string(text))
			}
		})
	}
}

// try makes the change in the copy and runs the core's tests there.
func (m mutation) try(t *testing.T, dir, text string) {
	path := filepath.Join(dir, m.file)
	write(t, path, strings.Replace(text, m.old, m.changed, 1))
	defer write(t, path, text)
	cmd := exec.Command("go", "test", "./internal/ledger", "./internal/arbiter", "-rapid.nofailfile", "-rapid.shrinktime=1s", "-rapid.checks=400")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	failed := failures(string(out))
	switch {
	case err == nil:
		t.Errorf("nobody noticed:\n-%s+%s", m.old, m.changed)
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

// mutations reads the list: blocks of a comment, a file, lines with "-" that
// are replaced by those with "+".
func mutations(t *testing.T) []mutation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "mutations.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var list []mutation
	for _, block := range strings.Split(string(text), "\n\n") {
		var m mutation
		for _, line := range strings.Split(strings.TrimSuffix(block, "\n"), "\n") {
			switch {
			case strings.HasPrefix(line, "# "):
				m.rule = line[2:]
			case strings.HasPrefix(line, "-"):
				m.old += line[1:] + "\n"
			case strings.HasPrefix(line, "+"):
				m.changed += line[1:] + "\n"
			default:
				m.file = line
			}
		}
		if m.file != "" {
			list = append(list, m)
		}
	}
	if len(list) < 40 {
		t.Fatalf("read only %d mutations", len(list))
	}
	return list
}

// copyCore copies the core, and what its tests read, to a folder of its own.
func copyCore(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"internal/ledger", "internal/arbiter"} {
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
