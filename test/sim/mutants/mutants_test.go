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

	"github.com/moorage-dev/moorage/internal/arch/mutation"
)

var all = flag.Bool("all", false, "try every mutant, and not only those that are noted for CI")

var rewrite = flag.Bool("rewrite", false, "look for each mutant anew, and write what finds it into testdata/mutants.txt and docs/simulation.md: takes minutes")

const (
	root = "../../.."
	list = "testdata/mutants.txt"
	page = root + "/docs/simulation.md"
)

var seeds = flag.Int("seeds", 6000, "how many seeds are played at most to find a mutant")

// finding is what a run says: for each way of looking, where a rule broke.
type finding map[string]string

// TestMutants takes rules out of the core, one at a time. The simulator must find
// those with a seed noted, there or elsewhere; the explorer those that it is noted
// for. Both find nothing where nothing is changed: that is what their own tests are
// for.
func TestMutants(t *testing.T) {
	mutants, err := mutation.Read(list)
	if err != nil || len(mutants) < 10 {
		t.Fatalf("read only %d mutants: %v", len(mutants), err)
	}
	for _, m := range mutants {
		if !*all && !*rewrite && m.Notes["ci"] == "" {
			continue
		}
		t.Run(strings.ReplaceAll(m.Rule, " ", "-"), func(t *testing.T) {
			binary := build(t, m)
			if *rewrite {
				look(t, binary, m)
				writeList(t, mutants)
				return
			}
			found := run(t, binary, "-seed", cmp.Or(m.Notes["simulator"], "1"), "-worlds", m.Notes["explorer"])
			if found["simulator"] == "" && m.Notes["simulator"] != "" { // the same seed makes other runs when the simulator has changed
				found["simulator"] = run(t, binary, "-count", strconv.Itoa(*seeds), "-needs", m.Notes["needs"])["simulator"]
			}
			for _, who := range []string{"simulator", "explorer"} {
				if m.Notes[who] != "" && found[who] == "" {
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
			t.Errorf("docs/simulation.md says otherwise (%v): make mutants", err)
		}
	})
}

// build builds this command with a mutant in it.
func build(t *testing.T, m mutation.Mutation) string {
	t.Helper()
	text, err := m.Apply(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, err := filepath.Abs(filepath.Join(root, m.File))
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(dir, "changed.go")
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{changed: text, filepath.Join(dir, "overlay.json"): string(overlay)} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "mutant")
	out, err := exec.Command("go", "build", "-ldflags", "-s -w", "-overlay", filepath.Join(dir, "overlay.json"), "-o", binary, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("the change does not compile: %v\n%s", err, out)
	}
	return binary
}

// run runs a mutant. One that panics, or does not end, is found by that.
func run(t *testing.T, binary string, args ...string) finding {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
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
func look(t *testing.T, binary string, m mutation.Mutation) {
	t.Helper()
	found := run(t, binary, "-count", strconv.Itoa(*seeds), "-needs", m.Notes["needs"], "-worlds", "all")
	if found["simulator"] == "" {
		t.Error("the simulator does not find it")
	}
	delete(m.Notes, "simulator")
	delete(m.Notes, "explorer")
	for who, where := range found {
		m.Notes[who] = where
	}
	t.Log(found)
}

func writeList(t *testing.T, mutants []mutation.Mutation) {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSpace(string(text)), "\n\n")
	for i, block := range blocks {
		m := slices.IndexFunc(mutants, func(m mutation.Mutation) bool { return strings.HasPrefix(block, "# "+m.Rule+"\n") })
		if m < 0 {
			continue
		}
		lines := slices.DeleteFunc(strings.Split(block, "\n"), func(l string) bool { return strings.HasPrefix(l, "@ ") })
		for _, who := range []string{"ci", "needs", "simulator", "explorer"} {
			if where := mutants[m].Notes[who]; where != "" {
				lines = append(lines, "@ "+who+" "+where)
			}
		}
		blocks[i] = strings.Join(lines, "\n")
	}
	if err := os.WriteFile(list, []byte(strings.Join(blocks, "\n\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The table stands between these in docs/simulation.md.
const (
	tableBegins = "<!-- mutants -->\n"
	tableEnds   = "<!-- end of mutants -->\n"
)

// table says which mutant is found by what.
func table(mutants []mutation.Mutation) string {
	var b strings.Builder
	b.WriteString(tableBegins + "| rule taken out | file | simulator, first seed | explorer, world |\n|---|---|---|---|\n")
	for _, m := range mutants {
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", m.Rule, m.File, cmp.Or(m.Notes["simulator"], "–"), cmp.Or(m.Notes["explorer"], "–"))
	}
	return b.String() + tableEnds
}

func writeTable(t *testing.T, mutants []mutation.Mutation) {
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
