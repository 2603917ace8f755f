// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func TestProgramFindsItsCluster(t *testing.T) {
	for want, s := range map[string]*Session{
		"": {}, " --name a": {name: "a"}, " --dir /tmp/x": {dir: "/tmp/x"}, " --dir /tmp/x --name a": {dir: "/tmp/x", name: "a"},
	} {
		if got := s.program(); got != os.Args[0]+want {
			t.Errorf("%q, want %q at its end", got, want)
		}
	}
}

func TestStatusOfAClusterThatDoesNotRun(t *testing.T) {
	cmd := newStatusCommand(&Session{dir: t.TempDir(), name: "nope"})
	cmd.SetArgs(nil)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); !errors.Is(err, sandbox.ErrNotRunning) {
		t.Errorf("it says %v", err)
	}
}
