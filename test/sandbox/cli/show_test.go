// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// The demo's page is served while it runs, and has in one file what both sides told.
func TestDemoOnAPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.html")
	out, err := execute(t, "demo", "--web", "--out", file)
	if err != nil || !strings.Contains(out, "http://127.0.0.1:") || !strings.Contains(out, file+" shows the demo again") {
		t.Fatalf("%v: %s", err, out)
	}
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"1  All is well"`, "✓ the judge saw 0 calls", "Upstream has no part in this scene"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

// What can't be written as it is named is said before the demo begins.
func TestDemoRefusesOtherEndings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.pdf")
	out, err := execute(t, "demo", "--out", file)
	if err == nil || !strings.Contains(err.Error(), ".html or .htm") || strings.Contains(out, "All is well") {
		t.Errorf("%v: %s", err, out)
	}
}

// Where both sides are looked at, a scene begins at both together; where not, upstream's goes
// ahead.
func TestSidesOfAPageBeginTogether(t *testing.T) {
	for _, shown := range []bool{true, false} {
		opened := make(chan struct{})
		scene := sandbox.Scene{Upstream: true, Scenario: sandbox.Scenario{Name: "meets", Bare: true, Modes: []sandbox.Mode{sandbox.Upstream},
			Run: func(context.Context, *sandbox.Env) error {
				select {
				case <-opened:
				default:
					if shown {
						t.Error("upstream's part began before the scene")
					}
				}
				return errors.New("the bridge is down")
			}}}
		var s *show
		if shown {
			var err error
			if s, err = newShow(t.Context(), &demoOptions{out: "none"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		done, begin := playBeside(t.Context(), []sandbox.Scene{scene}, sandbox.Options{}, 1, s)
		if shown {
			close(opened)
			close(begin[0])
		}
		if part := <-done[0]; part.result.Passed {
			t.Errorf("%+v", part.result)
		}
	}
}
