// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"
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
