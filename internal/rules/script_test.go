// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/moorage-dev/moorage/test/askept"
)

var rewrite = flag.Bool("rewrite", false, "write what the scripts in testdata print into them")

// Scripts of testdata: commands, dashes, output. Audit runs after each command. -rewrite writes the present
// output; read the difference.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in testdata: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { playFile(t, file) })
	}
}

func playFile(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(text, []byte("# Guards: ")) {
		t.Errorf("%s does not begin with \"# Guards: \" and what it guards", file)
	}
	got := play(t, string(text))
	if got == string(text) {
		return
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s prints otherwise (go test ./internal/rules -rewrite puts it down):\n%s", file, difference(string(text), got))
}

// A script has comments, command lines, "----", and output up to an empty line.
func play(t *testing.T, text string) string {
	var out strings.Builder
	s := newScript()
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			if i < len(lines)-1 || line != "" {
				out.WriteString(line + "\n")
			}
			continue
		}
		var printed strings.Builder
		for ; i < len(lines) && lines[i] != "" && lines[i] != "----"; i++ {
			out.WriteString(lines[i] + "\n")
			if strings.HasPrefix(lines[i], "#") {
				continue
			}
			printed.WriteString(s.command(lines[i]))
			for _, v := range s.broken() {
				fmt.Fprintf(&printed, "VIOLATION %s\n", v)
				t.Errorf("after %q: %s", lines[i], v)
			}
		}
		out.WriteString("----\n")
		out.WriteString(printed.String())
		for i < len(lines) && lines[i] != "" { // the old output
			i++
		}
		i--
	}
	return out.String()
}

func (s *script) broken() []string {
	var list []string
	for _, v := range s.arb.Audit(s.snapshot(), s.Now) {
		list = append(list, v.String())
	}
	list = append(list, s.Judge.Faults...)
	s.Judge.Faults = nil
	if s.allow {
		return nil
	}
	return list
}

func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range g {
		if i >= len(w) || w[i] != g[i] {
			from, to := max(0, i-4), min(len(g), i+8)
			return fmt.Sprintf("line %d, want:\n%s\ngot:\n%s", i+1,
				strings.Join(w[min(from, len(w)):min(to, len(w))], "\n"), strings.Join(g[from:to], "\n"))
		}
	}
	return fmt.Sprintf("%d lines too many from line %d on", len(w)-len(g), len(g)+1)
}
