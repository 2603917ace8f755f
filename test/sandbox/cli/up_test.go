// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"testing"
)

// The commands that up prints find the cluster that it has started.
func TestProgramFindsItsCluster(t *testing.T) {
	for want, s := range map[string]*Session{
		"": {}, " --name a": {name: "a"}, " --dir /tmp/x": {dir: "/tmp/x"}, " --dir /tmp/x --name a": {dir: "/tmp/x", name: "a"},
	} {
		if got := s.program(); got != os.Args[0]+want {
			t.Errorf("%q, want %q at its end", got, want)
		}
	}
}
