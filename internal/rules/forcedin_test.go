// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"
)

func TestForcedIn(t *testing.T) {
	for seconds, want := range map[int64]time.Duration{240: 4 * time.Minute, 3690: time.Hour + 90*time.Second, 1: time.Second} {
		message := Reason{Code: NodeUnreachable, Node: "n1", Claim: "data", Seconds: seconds}.Message()
		if got, ok := ForcedIn(message); !ok || got != want {
			t.Errorf("%s: %s, %t; want %s", message, got, ok, want)
		}
	}
	for _, seconds := range []int64{0, noTimeForces} {
		message := Reason{Code: NodeUnreachable, Node: "n1", Claim: "data", Seconds: seconds}.Message()
		if got, ok := ForcedIn(message); ok {
			t.Errorf("%s: %s", message, got)
		}
	}
	for _, message := range []string{"", forcedIn, forcedIn + "a while; or not", forcedIn + "4m0s"} {
		if got, ok := ForcedIn(message); ok {
			t.Errorf("%q: %s", message, got)
		}
	}
}
