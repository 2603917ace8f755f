// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var all = flag.Bool("all", false, "try every mutant, and not only those that are noted for CI")

var rewrite = flag.Bool("rewrite", false, "look for each mutant anew, and write what finds it into testdata/mutants.txt and docs/internals/simulation.md: takes minutes")

const (
	root = "../../.."
	list = "testdata/mutants.txt"
	page = root + "/docs/internals/simulation.md"
)

var seeds = flag.Int("seeds", 6000, "how many seeds are played at most to find a mutant")

// finding is what a run says: for each way of looking, where a rule broke.
type finding map[string]string

// TestMutants takes rules out of the core, one at a time. The simulator must find
// those with a seed noted, there or elsewhere; the explorer those that it is noted
// for; the core's own tests those for which a package and a test are noted, because
// neither has found them. All find nothing where nothing is changed: that is what their
// own tests are for.
func TestMutants(t *testing.T) {
	mutants, err := readMutants(list)
	if err != nil || len(mutants) < 10 {
		t.Fatalf("read only %d mutants: %v", len(mutants), err)
	}
	for _, m := range mutants {
		if !*all && !*rewrite && m.notes["ci"] == "" {
			if _, err := m.apply(root); err != nil {
				t.Error(err)
			}
			continue
		}
		t.Run(strings.ReplaceAll(m.rule, " ", "-"), func(t *testing.T) {
			overlay := write(t, m)
			if tests := m.notes["tests"]; tests != "" {
				failTests(t, overlay, tests)
			}
			if !*rewrite && m.notes["simulator"] == "" && m.notes["explorer"] == "" {
				return
			}
			binary := build(t, overlay)
			if *rewrite {
				look(t, binary, m)
				writeList(t, mutants)
				return
			}
			found := run(t, binary, "-seed", cmp.Or(m.notes["simulator"], "1"), "-worlds", m.notes["explorer"])
			if found["simulator"] == "" && m.notes["simulator"] != "" { // the same seed makes other runs when the simulator has changed
				found["simulator"] = run(t, binary, "-count", strconv.Itoa(*seeds), "-needs", m.notes["needs"])["simulator"]
			}
			for _, who := range []string{"simulator", "explorer"} {
				if m.notes[who] != "" && found[who] == "" {
					t.Errorf("the %s does not find it", who)
				}
			}
			t.Log(found)
		})
	}
	if *rewrite {
		writeTable(t, mutants)
	}
	t.Run("table", func(t *testing.T) {
		text, err := os.ReadFile(page)
		if err != nil || !strings.Contains(string(text), table(mutants)) {
			t.Errorf("docs/internals/simulation.md says otherwise (%v): make mutants", err)
		}
	})
}

// write writes the files that a mutant changes, and returns the overlay by which they
// stand in for those of the core.
func write(t *testing.T, m mutant) string {
	t.Helper()
	texts, err := m.apply(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace, contents := map[string]string{}, map[string]string{}
	for name, text := range texts {
		file, err := filepath.Abs(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		replace[file] = filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		contents[replace[file]] = text
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	contents[filepath.Join(dir, "overlay.json")] = string(overlay)
	for name, content := range contents {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "overlay.json")
}

// failTests runs tests of the core, noted as a folder and a pattern, which must fail.
func failTests(t *testing.T, overlay, tests string) {
	t.Helper()
	folder, pattern, _ := strings.Cut(tests, " ")
	out, err := exec.Command("go", "test", "-count=1", "-overlay", overlay, "-run", pattern, root+"/"+folder).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: ") {
		t.Errorf("%s do not find it: %v\n%s", tests, err, out)
	}
}

// build builds this command with a mutant in it.
func build(t *testing.T, overlay string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "mutant")
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-overlay", overlay, "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("the change does not compile: %v\n%s", err, out)
	}
	return binary
}

// run runs a mutant. One that panics, or does not end, is found by that.
func run(t *testing.T, binary string, args ...string) finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, args...).Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	found := finding{}
	for line := range strings.Lines(string(out)) {
		if fields := strings.SplitN(strings.TrimSpace(line), "\t", 3); len(fields) == 3 {
			found[fields[0]] = fields[1]
		}
	}
	return found
}

// look looks for a mutant everywhere, and notes what finds it.
func look(t *testing.T, binary string, m mutant) {
	t.Helper()
	found := run(t, binary, "-count", strconv.Itoa(*seeds), "-needs", m.notes["needs"], "-worlds", "all")
	if found["simulator"] == "" && m.notes["tests"] == "" {
		t.Error("the simulator does not find it")
	}
	delete(m.notes, "simulator")
	delete(m.notes, "explorer")
	for who, where := range found {
		m.notes[who] = where
	}
	t.Log(found)
}

func writeList(t *testing.T, mutants []mutant) {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSpace(string(text)), "\n\n")
	for i, block := range blocks {
		m := slices.IndexFunc(mutants, func(m mutant) bool { return strings.HasPrefix(block, "# "+m.rule+"\n") })
		if m < 0 {
			continue
		}
		lines := slices.DeleteFunc(strings.Split(block, "\n"), func(l string) bool { return strings.HasPrefix(l, "@ ") })
		for _, who := range []string{"ci", "needs", "simulator", "explorer", "tests"} {
			if where := mutants[m].notes[who]; where != "" {
				lines = append(lines, "@ "+who+" "+where)
			}
		}
		blocks[i] = strings.Join(lines, "\n")
	}
	if err := os.WriteFile(list, []byte(strings.Join(blocks, "\n\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The table stands between these in docs/internals/simulation.md.
const (
	tableBegins = "<!-- mutants -->\n"
	tableEnds   = "<!-- end of mutants -->\n"
)

// table says which mutant is found by what.
func table(mutants []mutant) string {
	var b strings.Builder
	b.WriteString(tableBegins + "| rule taken out | file | simulator, first seed | explorer, world | core's own tests |\n|---|---|---|---|---|\n")
	for _, m := range mutants {
		file, _ := m.changes[0].file(root) // empty where the marker is gone, which building says
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", m.rule, file, cmp.Or(m.notes["simulator"], "–"), cmp.Or(m.notes["explorer"], "–"), m.notes["tests"])
	}
	return b.String() + tableEnds
}

func writeTable(t *testing.T, mutants []mutant) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	if err := os.WriteFile(page, []byte(before+table(mutants)+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
