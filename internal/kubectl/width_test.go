// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/moorage-dev/moorage/internal/kubectl"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/test/words"
)

const widest = 80

// Error lines stay whole for grep.
func TestSessionsFitATerminal(t *testing.T) {
	sessions, err := filepath.Glob("testdata/*/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, path := range sessions {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, riddle := range words.Riddles(ownWords(string(raw))) {
			t.Errorf("%s says %s", path, riddle)
		}
		asked := ""
		for line := range strings.Lines(string(raw)) {
			switch {
			case strings.HasPrefix(line, "$ "):
				asked = line
			case strings.HasPrefix(line, "#"), strings.Contains(asked, " -o "), strings.HasPrefix(line, "error: "),
				strings.HasPrefix(strings.TrimSpace(line), "https://"),                   // an address is not broken
				strings.HasPrefix(strings.TrimSpace(line), "plugins/kubernetes.io/csi/"), // a path neither
				strings.HasPrefix(strings.TrimSpace(line), "csi-"),                       // the name of a VolumeAttachment neither
				printedCommand.MatchString(strings.TrimSuffix(line, "\n")):               // a command neither
			default:
				lines++
				if n := columns(line); n > widest {
					t.Errorf("%s: %d columns after %s%s", path, n, asked, line)
				}
			}
		}
	}
	if lines < 500 {
		t.Errorf("only %d lines of sessions are looked at", lines)
	}
}

var printedCommand = regexp.MustCompile(`^ *([a-z]+ +)?kubectl .*[^.,;:\s]$`)

func TestCommandsCanBeCopied(t *testing.T) {
	sessions, err := filepath.Glob("testdata/*/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for _, path := range sessions {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		asked := ""
		for line := range strings.Lines(string(raw)) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case strings.HasPrefix(line, "$ "):
				asked = line
			case strings.HasPrefix(line, "#"), strings.HasPrefix(line, "error: "), strings.Contains(asked, " -o ") && !strings.Contains(asked, " -o wide"):
			case strings.Contains(line, "kubectl "):
				commands++
				if !printedCommand.MatchString(line) {
					t.Errorf("%s: after %s a command can't be copied: %s", path, asked, line)
				}
			}
		}
	}
	if commands < 50 {
		t.Errorf("only %d commands are looked at", commands)
	}
}

// ownWords omits comments and the field "told".
func ownWords(session string) string {
	var out strings.Builder
	for line := range strings.Lines(session) {
		field := strings.Trim(strings.TrimSpace(line), `"`)
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "$") && !strings.HasPrefix(field, "told") {
			out.WriteString(line)
		}
	}
	return out.String()
}

func columns(line string) int { return utf8.RuneCountInString(strings.TrimRight(line, "\n")) }

func TestHelpFitsATerminal(t *testing.T) {
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	root := kubectl.NewCommand(&command.Base{Flags: command.NewFlags(nil), Streams: streams})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		out.Reset()
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); c == root && n > 24 {
			t.Errorf("%s --help has %d lines, more than a screen:\n%s", c.CommandPath(), n, out)
		}
		for line := range strings.Lines(out.String()) {
			if n := columns(line); n > widest {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, riddle := range words.Riddles(out.String()) {
			t.Errorf("%s --help says %s", c.CommandPath(), riddle)
		}
		for line := range strings.Lines(c.Example) {
			if !strings.Contains(out.String(), strings.TrimSpace(line)) {
				t.Errorf("%s --help does not show %s", c.CommandPath(), line)
			}
		}
		for _, child := range c.Commands() {
			visit(child)
		}
	}
	visit(root)
}
