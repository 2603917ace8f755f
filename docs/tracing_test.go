// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// recordedSpan is a span of the trace that operate/tracing.md shows.
type recordedSpan struct {
	Name              string
	StartTimeUnixNano string
	EndTimeUnixNano   string
}

// seconds are those from the beginning of the trace.
func seconds(t *testing.T, begin int64, nano string) float64 {
	t.Helper()
	at, err := strconv.ParseInt(nano, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return float64(at-begin) / 1e9
}

// What operate/tracing.md shows is the trace that lies beside it, and its table has every
// span of that.
func TestTheTraceIsTheRecordedOne(t *testing.T) {
	var file struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []recordedSpan }
		}
	}
	if err := json.Unmarshal([]byte(text(t, "operate/trace.json")), &file); err != nil {
		t.Fatal(err)
	}
	spans := file.ResourceSpans[0].ScopeSpans[0].Spans
	slices.SortStableFunc(spans, func(a, b recordedSpan) int {
		return cmp.Or(cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), -cmp.Compare(a.EndTimeUnixNano, b.EndTimeUnixNano))
	})
	page := text(t, "operate/tracing.md")
	if want := drawn(t, spans); !strings.Contains(page, "\n"+want+"```") {
		t.Errorf("operate/tracing.md does not show the recorded trace, which is\n%s", want)
	}
	for _, s := range spans {
		if name, _, _ := strings.Cut(s.Name, " "); !strings.Contains(page, "\n| `"+name+"` |") {
			t.Errorf("the table of operate/tracing.md has no %s", name)
		}
	}
}

// drawn is a trace with a bar for each span.
func drawn(t *testing.T, spans []recordedSpan) string {
	t.Helper()
	const width = 40
	begin, err := strconv.ParseInt(spans[0].StartTimeUnixNano, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	whole := seconds(t, begin, spans[0].EndTimeUnixNano)
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s%7s%9s\n", "span", "start", "took")
	for _, s := range spans {
		name, _, _ := strings.Cut(s.Name, " ")
		from, to := seconds(t, begin, s.StartTimeUnixNano), seconds(t, begin, s.EndTimeUnixNano)
		bar := strings.Repeat("█", int((to-from)/whole*width+0.5))
		if bar == "" {
			bar = "▏"
		}
		fmt.Fprintf(&b, "%-8s%6.2fs%8.2fs  %s%s\n", name, from, to-from, strings.Repeat(" ", int(from/whole*width+0.5)), bar)
	}
	return b.String()
}
