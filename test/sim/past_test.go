// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/sim"
)

// Actions that begin with "?" may be impossible by now.
type past struct {
	config   sim.Config
	actions  []sim.Action
	required []sim.Action
}

func readPast(t *testing.T, path string) past {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var p past
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "{"):
			if err := json.Unmarshal([]byte(line), &p.config); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			continue
		}
		text, optional := strings.CutPrefix(line, "? ")
		a, err := sim.ParseAction(text)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		p.actions = append(p.actions, a)
		if !optional {
			p.required = append(p.required, a)
		}
	}
	return p
}

func TestPast(t *testing.T) {
	files, err := filepath.Glob("testdata/past/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no past runs: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			p := readPast(t, file)
			r := sim.Replay(p.config, p.actions, nil)
			if len(r.Broken) > 0 {
				t.Error(r)
			}
			missing := p.required
			for _, a := range r.All {
				if len(missing) > 0 && missing[0] == a {
					missing = missing[1:]
				}
			}
			if len(missing) > 0 {
				t.Errorf("%q can't be taken any more: the run does not show what it did", missing[0])
			}
		})
	}
}
