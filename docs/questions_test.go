// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// question is one of testdata/questions.yaml: what somebody asks, and either the page's
// section or the command of a session that says so.
type question struct {
	Question         string
	Page             string
	Session, Command string
	Says             string
}

// aMinute is how many words are read in that time, by who looks for one thing in them.
const aMinute = 250

// Each question of somebody new is answered by what the command prints, or by a section of
// a page, in words that are found within a minute.
func TestQuestionsAreAnswered(t *testing.T) {
	var questions []question
	if err := yaml.UnmarshalStrict([]byte(text(t, "testdata/questions.yaml")), &questions); err != nil {
		t.Fatal(err)
	}
	if len(questions) < 40 {
		t.Errorf("there are only %d questions", len(questions))
	}
	asked := map[string]bool{}
	for _, q := range questions {
		if asked[q.Question] || q.Says == "" || (q.Page == "") == (q.Command == "") {
			t.Errorf("%q is asked twice, or has not one answer", q.Question)
		}
		asked[q.Question] = true
		var blocks []string
		if q.Page != "" {
			blocks = blocksOf(t, q)
		} else {
			blocks = printed(t, q)
		}
		i := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, q.Says) })
		if i < 0 {
			t.Errorf("%q: %s%s does not say %q", q.Question, q.Page, q.Command, q.Says)
		} else if words := len(strings.Fields(blocks[i])); words > aMinute {
			t.Errorf("%q: the answer stands in %d words", q.Question, words)
		}
	}
}

// blocksOf are the paragraphs, list items, rows and code of a section, each on one line.
func blocksOf(t *testing.T, q question) []string {
	t.Helper()
	path, anchor, _ := strings.Cut(q.Page, "#")
	page := text(t, filepath.Join(root, path))
	at := slices.Index(anchors(page), anchor)
	if at < 0 {
		t.Errorf("%q: %s has no heading for #%s", q.Question, path, anchor)
		return nil
	}
	section := strings.Join(sectionsOf(page)[at], "\n")
	var blocks []string
	for paragraph := range strings.SplitSeq(section, "\n\n") {
		for _, block := range strings.Split(strings.ReplaceAll(strings.ReplaceAll(paragraph, "\n- ", "\x00"), "\n|", "\x00"), "\x00") {
			blocks = append(blocks, strings.Join(strings.Fields(block), " "))
		}
	}
	return blocks
}

// sectionsOf are the lines below each heading, in the order of anchors.
func sectionsOf(page string) [][]string {
	var sections [][]string
	code := false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if !code && strings.HasPrefix(line, "#") {
			sections = append(sections, nil)
		} else if n := len(sections); n > 0 {
			sections[n-1] = append(sections[n-1], line)
		}
	}
	return sections
}

// printed is what a session's command prints, on one line. A command that docs/kubectl.md
// does not list answers nothing.
func printed(t *testing.T, q question) []string {
	t.Helper()
	verb, _, _ := strings.Cut(q.Command, " ")
	if !strings.Contains(text(t, "kubectl.md"), "| `"+verb) {
		t.Errorf("%q: kubectl.md does not list %s", q.Question, verb)
	}
	session := text(t, filepath.Join(root, "internal/kubectl/testdata", q.Session, "session.txt"))
	_, rest, ok := strings.Cut(session, "\n$ kubectl moorage "+q.Command+"\n")
	if !ok {
		t.Errorf("%q: the session %s does not run %s", q.Question, q.Session, q.Command)
		return nil
	}
	output, _, _ := strings.Cut(rest, "\n$ ")
	return []string{strings.Join(strings.Fields(output), " ")}
}
