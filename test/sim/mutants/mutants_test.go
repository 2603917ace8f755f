// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
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

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

var all = flag.Bool("all", false, "try every mutant, and not only those that are noted for CI")

var rewrite = flag.Bool("rewrite", false, "look for each mutant anew, and write what finds it into testdata/mutants.txt and docs/internals/simulation.md: takes minutes")

const (
	root = "../../.."
	list = "testdata/mutants.txt"
	page = root + "/docs/internals/simulation.md"
)

var seeds = flag.Int("seeds", 6000, "how many seeds are played at most to find a mutant")

type finding map[string]string

func TestBreaks(t *testing.T) {
	mutants, err := readMutants(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := breaks.Check(root, rulesOf(mutants)); err != nil {
		t.Error(err)
	}
}

// A mutant's notes say whether the simulator, the explorer, or a test of the core must find it.
func TestMutants(t *testing.T) {
	mutants, err := readMutants(list)
	if err != nil || len(mutants) < 10 {
		t.Fatalf("read only %d mutants: %v", len(mutants), err)
	}
	rules := rulesOf(mutants)
	if len(rules) < len(mutants) {
		t.Fatal("two mutants have one name")
	}
	overlay, err := breaks.Overlay(root, t.TempDir(), rules)
	if err != nil {
		t.Fatal(err)
	}
	binaries := map[string]string{}
	for _, m := range mutants {
		if !*all && !*rewrite && m.notes["ci"] == "" {
			continue
		}
		t.Run(strings.ReplaceAll(m.rule, " ", "-"), func(t *testing.T) {
			folder, pattern, _ := strings.Cut(m.notes["tests"], " ")
			if folder != "" {
				failTests(t, build(t, binaries, overlay, folder), folder, pattern, m.rule)
			}
			if !*rewrite && m.notes["simulator"] == "" && m.notes["explorer"] == "" {
				return
			}
			binary := build(t, binaries, overlay, "")
			if *rewrite {
				look(t, binary, m)
				writeList(t, mutants)
				return
			}
			found := run(t, binary, m.rule, "-seed", cmp.Or(m.notes["simulator"], "1"), "-worlds", m.notes["explorer"])
			if found["simulator"] == "" && m.notes["simulator"] != "" { // the same seed makes other runs when the simulator has changed
				found["simulator"] = run(t, binary, m.rule, "-count", strconv.Itoa(*seeds), "-needs", m.notes["needs"])["simulator"]
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

func build(t *testing.T, binaries map[string]string, overlay, folder string) string {
	t.Helper()
	if binaries[folder] != "" {
		return binaries[folder]
	}
	binary := filepath.Join(filepath.Dir(overlay), strings.ReplaceAll(folder, "/", "-")+".bin")
	args := []string{"build", "-ldflags", "-s -w", "-overlay", overlay, "-o", binary, "."}
	if folder != "" {
		args = []string{"test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, root + "/" + folder}
	}
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Fatalf("the changes do not compile: %v\n%s", err, out)
	}
	binaries[folder] = binary
	return binary
}

func failTests(t *testing.T, binary, folder, pattern, rule string) {
	t.Helper()
	cmd := exec.Command(binary, "-test.run", pattern)
	cmd.Dir, cmd.Env = filepath.Join(root, folder), append(os.Environ(), breaks.Env+"="+rule)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "--- FAIL: ") {
		t.Errorf("%s of %s do not find it: %v\n%s", pattern, folder, err, out)
	}
}

func run(t *testing.T, binary, rule string, args ...string) finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), breaks.Env+"="+rule)
	out, err := cmd.Output()
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

func look(t *testing.T, binary string, m mutant) {
	t.Helper()
	found := run(t, binary, m.rule, "-count", strconv.Itoa(*seeds), "-needs", m.notes["needs"], "-worlds", "all")
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

const (
	tableBegins = "<!-- mutants -->\n"
	tableEnds   = "<!-- end of mutants -->\n"
)

func table(mutants []mutant) string {
	var b strings.Builder
	b.WriteString(tableBegins + "| rule taken out | function | simulator, first seed | explorer, world | core's own tests |\n|---|---|---|---|---|\n")
	for _, m := range mutants {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", m.rule, m.breaks[0].Function(), cmp.Or(m.notes["simulator"], "–"), cmp.Or(m.notes["explorer"], "–"), m.notes["tests"])
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
