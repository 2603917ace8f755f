// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"testing"
)

// Nothing that goes wrong in Standalone mode is only counted.
func TestStandaloneIsJudged(t *testing.T) {
	for _, mode := range Modes() {
		e := Env{Mode: mode}
		judged, err := mode == Standalone, e.Compare()
		if (err == nil) == judged || e.compares == judged {
			t.Errorf("mode %s: compared %v, error %v", mode, e.compares, err)
		}
	}
}

func TestComparisonCounts(t *testing.T) {
	var e Env
	e.Count("kills")
	e.Count("kills")
	e.Hangs(errors.New("pod p is Pending"))
	if e.Counts()["kills"] != 2 || len(e.Hanging()) != 1 || e.Hanging()[0] != "pod p is Pending" {
		t.Errorf("counted %v, hanging %v", e.Counts(), e.Hanging())
	}
}
