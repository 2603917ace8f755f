// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A detach that was seen, and is over, is told with its end: no later than the volume was
// attached here. One that is not over, or of another volume, is not.
func TestADetachThatIsOverHasAnEnd(t *testing.T) {
	at := func(seconds int) time.Time { return time.Date(2026, 3, 1, 12, 0, seconds, 0, time.UTC) }
	attaching := Step{Stage: StageAttaching, Volume: "a", At: at(9)}
	leaving := Step{Stage: StageDetaching, Volume: "a", At: at(5)}
	for what, c := range map[string]struct {
		steps, seen []Step
		want        string
	}{
		"over":                       {[]Step{attaching}, []Step{leaving}, "Detaching a 5, Detached a ≤9, Attaching a 9"},
		"seen twice":                 {[]Step{attaching}, []Step{{Stage: StageDetaching, Volume: "a", At: at(7), NotAfter: true}, leaving}, "Detaching a 5, Detached a ≤9, Attaching a 9"},
		"not seen":                   {[]Step{attaching}, nil, "Attaching a 9"},
		"another volume":             {[]Step{attaching}, []Step{{Stage: StageDetaching, Volume: "b", At: at(5)}}, "Attaching a 9"},
		"another step":               {[]Step{attaching}, []Step{{Stage: StageBound, At: at(1)}}, "Attaching a 9"},
		"under way":                  {[]Step{leaving}, []Step{leaving}, "Detaching a 5"},
		"attached before":            {[]Step{attaching}, []Step{{Stage: StageDetaching, Volume: "a", At: at(11)}}, "Attaching a 9"},
		"only that it was elsewhere": {[]Step{attaching}, []Step{{Volume: "a", At: at(2)}}, "Detached a ≤9, Attaching a 9"},
	} {
		line := Timeline{Steps: c.steps}
		line.leave("a", c.seen)
		line.finish(true, true, true)
		var got []string
		for _, s := range line.Steps {
			before := ""
			if s.NotAfter {
				before = "≤"
			}
			got = append(got, fmt.Sprintf("%s %s %s%d", s.Stage, s.Volume, before, s.At.Second()))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", what, text, c.want)
		}
	}
}
