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

// What is piped is whole: only a screen has it cut.
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
