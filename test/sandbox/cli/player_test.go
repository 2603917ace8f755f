// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func TestTablesOfTheDemoKeepTheirLines(t *testing.T) {
	var out strings.Builder
	p := &player{out: &out}
	table := tabwriter.NewWriter(p.indented(), 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "POD\tNODE\nweb-1\tworker-1\n")
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	want := showMargin + "POD    NODE\n" + showMargin + "web-1  worker-1\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestTextsOfTheDemoAreWrapped(t *testing.T) {
	for line := range strings.Lines(wrapped(strings.Repeat("word ", 60), showMargin)) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > lineWidth || !strings.HasPrefix(line, showMargin+"word") {
			t.Errorf("line of %d characters: %q", len(line), line)
		}
	}
}

func TestUpstreamsFailureLooksLikeOne(t *testing.T) {
	scene := sandbox.Scene{Title: "A rollout", Short: "A rollout", Fails: "hangs", Does: "is done"}
	passed := &sandbox.Result{Passed: true}
	var out strings.Builder
	p := &player{out: &out}
	p.failure(scene, *passed)
	if got := out.String(); !strings.Contains(got, "✗ hangs") || strings.Contains(got, "✓") {
		t.Errorf("the scene ends with %q", got)
	}
	out.Reset()
	if failed := p.closing([]row{{scene: scene, upstream: passed, moorage: passed}}, 0); failed != 0 {
		t.Errorf("%d failed", failed)
	}
	if got := out.String(); !strings.Contains(got, "A rollout  ✗ hangs   ✓ is done\n") {
		t.Errorf("the table is %s", got)
	}
	out.Reset()
	if failed := p.closing([]row{{scene: scene, upstream: &sandbox.Result{}, moorage: passed}}, 0); failed != 1 || !strings.Contains(out.String(), unexpected) {
		t.Errorf("%d failed: %s", failed, out.String())
	}
}

// Only a screen has the list cut.
func TestPipedListIsWhole(t *testing.T) {
	var out strings.Builder
	doc := strings.Repeat("a long story ", 20)
	if err := printScenarios(&out, []sandbox.Scenario{{Name: "long", Doc: doc}}); err != nil || !strings.Contains(out.String(), doc) {
		t.Errorf("%v: %s", err, out.String())
	}
}

func TestFaultOfANodeThatThereIsNone(t *testing.T) {
	if err := knownNode("worker-3", 3); err != nil {
		t.Error(err)
	}
	if err := knownNode("nosuch", 3); err == nil || !strings.Contains(err.Error(), "choose worker-1 to worker-3") {
		t.Errorf("the error is %v", err)
	}
}
