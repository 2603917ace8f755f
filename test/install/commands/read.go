// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

type Fate string

// A command without a mark has the zero value.
const (
	Unmarked Fate = ""
	Run      Fate = "run"     // the story runs it
	ByHand   Fate = "by-hand" // no test runs it
	Session  Fate = "session" // a capture that a unit test plays
)

type Command struct {
	Page   string // path of the page
	Line   int    // counted from 1
	Text   string // as a shell takes it, on one line
	Fate   Fate
	Step   string // for Run
	Prints string
}

func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Text) }

func shells() []string { return []string{"sh", "console"} }

var (
	mark    = regexp.MustCompile(`<!-- (run=[a-z0-9.-]+|by-hand) -->`)
	span    = regexp.MustCompile("`([^`]+)`")
	command = regexp.MustCompile(`^(kubectl|helm) [a-z-]+`)
)

// Read lists the commands of a page, in their order. A fence without a language, or with commands
// in a language other than sh and console, is an error: its commands would pass for text.
func Read(page, text string) ([]Command, error) {
	var list []Command
	var fence *fence
	for i, line := range strings.Split(text, "\n") {
		info, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && fence == nil:
			var err error
			if fence, err = open(info, len(line)-len(strings.TrimLeft(line, " "))); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
			}
		case isFence:
			list, fence = append(list, fence.commands(page)...), nil
		case fence != nil:
			if err := fence.add(i+1, line); err != nil {
				return nil, fmt.Errorf("%s:%d: %w", page, i+1, err)
			}
		default:
			list = append(list, inline(page, i+1, line)...)
		}
	}
	if fence != nil {
		return nil, fmt.Errorf("%s: a fence does not end", page)
	}
	return list, nil
}

func inline(page string, number int, line string) []Command {
	fate, step := Unmarked, ""
	if m := mark.FindStringSubmatch(line); m != nil {
		fate, step = fateOf(m[1])
	}
	var list []Command
	for _, m := range span.FindAllStringSubmatch(line, -1) {
		text := strings.ReplaceAll(m[1], `\|`, "|") // as cells of tables have it
		if command.MatchString(text) && text != plugin {
			list = append(list, Command{Page: page, Line: number, Text: text, Fate: fate, Step: step})
		}
	}
	return list
}

const plugin = "kubectl moorage"

func fateOf(word string) (Fate, string) {
	if step, ok := strings.CutPrefix(word, "run="); ok {
		return Run, step
	}
	return Fate(word), ""
}

type fence struct {
	language string
	fate     Fate
	step     string
	indent   int
	lines    []Command // a line each
}

func open(info string, indent int) (*fence, error) {
	words := strings.Fields(info)
	if len(words) == 0 {
		return nil, fmt.Errorf("the fence does not say its language: sh, console, yaml, text …")
	}
	f := &fence{language: words[0], indent: indent}
	for _, word := range words[1:] {
		f.fate, f.step = fateOf(word)
		if !slices.Contains([]Fate{Run, ByHand, Session}, f.fate) {
			return nil, fmt.Errorf("the fence has the mark %q, which is none of run=STEP, by-hand and session", word)
		}
	}
	return f, nil
}

func (f *fence) add(number int, line string) error {
	line = line[min(f.indent, len(line)-len(strings.TrimLeft(line, " "))):]
	if !slices.Contains(shells(), f.language) {
		if text := strings.TrimPrefix(line, "$ "); command.MatchString(text) {
			return fmt.Errorf("the fence is %s, and has the command %q: call it sh or console", f.language, text)
		}
		return nil
	}
	f.lines = append(f.lines, Command{Line: number, Text: line, Fate: f.fate, Step: f.step})
	return nil
}

func (f *fence) commands(page string) []Command {
	var list []Command
	continued := false
	for _, c := range f.lines {
		c.Page = page
		text, isCommand := c.Text, strings.TrimSpace(c.Text) != "" && !strings.HasPrefix(c.Text, "#")
		if f.language == "console" {
			text, isCommand = strings.CutPrefix(c.Text, "$ ")
		}
		text, comment := withoutComment(text)
		body, more := strings.CutSuffix(text, "\\")
		switch last := len(list) - 1; {
		case continued:
			list[last].Text += " " + strings.TrimSpace(body)
		case isCommand:
			c.Text = strings.TrimSpace(body)
			list = append(list, c)
		case f.language == "console" && last >= 0:
			list[last].Prints += c.Text + "\n"
		}
		continued = more && !comment && (continued || isCommand)
	}
	return list
}

func withoutComment(text string) (string, bool) {
	before, _, ok := strings.Cut(text, "  #")
	if ok {
		return strings.TrimSpace(before), true
	}
	return text, false
}
