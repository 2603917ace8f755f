// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/install/commands"
)

const repository = "../.."

func TestEveryCommandIsAccountedFor(t *testing.T) {
	list, err := readPages(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range commands.Unexplained(list) {
		t.Errorf("%s\nhas no mark: run it in the story of the chart, or list it in byHand (package commands has the marks)", c)
	}
	used := map[string]bool{}
	for _, c := range list {
		used[c.Step] = true
		switch {
		case c.Fate == commands.Run && !slices.Contains(steps(), c.Step):
			t.Errorf("%s\nis marked for step %s, which the story does not have", c, c.Step)
		case c.Fate == commands.Run:
			names := map[string]string{}
			if c.Step == stepLook {
				names = lookNames("pv", "worker-1", "bundle.tar.gz")
			}
			if _, err := c.With(names); err != nil {
				t.Error(err)
			}
		case c.Fate == commands.Session && (c.Prints == "" || c.Page != "README.md" && c.Page != "docs/kubectl.md"):
			t.Errorf("%s\nis no capture that internal/kubectl compares with its sessions", c)
		}
	}
	for _, step := range steps() {
		if !used[step] {
			t.Errorf("no page has a command for step %s", step)
		}
	}
	if len(list) < 40 {
		t.Errorf("only %d commands are found in the pages", len(list))
	}
}

func TestCommandsByHandAreListed(t *testing.T) {
	list, err := readPages(repository)
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(repository + "/docs/internals/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(byHand()) > mostByHand {
		t.Errorf("%d commands are not run, at most %d may be", len(byHand()), mostByHand)
	}
	marked := map[string]bool{}
	for _, c := range list {
		if c.Fate == commands.ByHand {
			marked[c.Text] = true
			if byHand()[c.Text] == "" {
				t.Errorf("%s\nis run by hand, and byHand does not say what it needs", c)
			}
		}
	}
	for text, needs := range byHand() {
		row := "| `" + strings.ReplaceAll(text, "|", `\|`) + "` | " + needs + " |"
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/internals/scenarios.md lacks the row\n%s", row)
		}
		if !marked[text] {
			t.Errorf("no page has the command that is to be run by hand: %s", text)
		}
	}
}
