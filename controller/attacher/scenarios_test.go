// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rewrite makes the attacher's present behaviour the expectation:
//
//	go test ./controller/attacher -run Scenarios -rewrite
//
// Then read the difference.
var rewrite = flag.Bool("rewrite", false, "write the transcripts in testdata, and the table in docs, anew")

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		all := readScenarios(t, file)
		for i := range all {
			s := &all[i]
			t.Run(s.file+"/"+s.name, func(t *testing.T) {
				got := newStage(t).play(s.commands)
				if *rewrite {
					s.ours = got
					return
				}
				if !slices.Equal(got, s.ours) {
					t.Errorf("the transcript is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(s.ours, "\n  "))
				}
			})
		}
		if *rewrite {
			write(t, file, format(head(t, file), all))
		}
	}
}

func head(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := strings.Cut(string(data), "\n## ")
	return text
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
