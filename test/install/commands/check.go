// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"regexp"
	"strings"
)

func Unexplained(list []Command) []Command {
	marked := map[string]bool{}
	for _, c := range list {
		marked[c.Text] = marked[c.Text] || c.Fate != Unmarked
	}
	var out []Command
	for _, c := range list {
		if !marked[c.Text] {
			out = append(out, c)
		}
	}
	return out
}

func InStep(list []Command, step string) []Command {
	seen := map[string]bool{}
	var out []Command
	for _, c := range list {
		if c.Fate == Run && c.Step == step && !seen[c.Text] {
			seen[c.Text] = true
			out = append(out, c)
		}
	}
	return out
}

var placeholder = regexp.MustCompile(`\b[A-Z]{2,}\b`)

// With puts names for the placeholders. A placeholder without a name is an error.
func (c Command) With(names map[string]string) (string, error) {
	var missing []string
	text := placeholder.ReplaceAllStringFunc(c.Text, func(word string) string {
		name, ok := names[word]
		if !ok {
			missing = append(missing, word)
		}
		return name
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("%s: nothing is known to stand for %s", c, strings.Join(missing, ", "))
	}
	return text, nil
}

// Printed compares the output with the page. Spaces at the ends of lines don't count; … stands for any text
// on its line.
func (c Command) Printed(out string) error {
	if c.Prints == "" {
		return nil
	}
	var pattern strings.Builder
	for i, part := range strings.Split(trim(c.Prints), "…") {
		if i > 0 {
			pattern.WriteString(".*")
		}
		pattern.WriteString(regexp.QuoteMeta(part))
	}
	if !regexp.MustCompile(`^` + pattern.String() + `$`).MatchString(trim(out)) {
		return fmt.Errorf("%s\nprints:\n%s\nand the page says:\n%s", c, out, c.Prints)
	}
	return nil
}

func trim(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
