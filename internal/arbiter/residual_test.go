// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestResidualRisks plays the scenarios of testdata/residual: what no fact in the API
// shows (docs/internals/invariants.md). In each of them the judge must find a rule
// broken after the last command, and not before, or the risk is none any more. Each begins
// with a comment that names it.
func TestResidualRisks(t *testing.T) {
	files, err := filepath.Glob("testdata/residual/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata/residual: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# Risk: ") {
				t.Error("it does not say which risk it is")
			}
			commands := strings.Split(strings.TrimSpace(string(text)), "\n")
			s, printed := newScript(), ""
			for i, line := range commands {
				if line != "" && !strings.HasPrefix(line, "#") {
					printed += "> " + line + "\n" + s.command(line)
				}
				if broken := len(s.Judge.Faults) > 0; broken != (i == len(commands)-1) {
					t.Fatalf("after %q the judge finds %q:\n%s", line, s.Judge.Faults, printed)
				}
			}
			t.Log(s.Judge.Faults[0])
		})
	}
}
