// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"os"
	"strings"
)

const pageEnd = "<!-- results: end -->\n"

// Page is a document with results between two lines; the first names the writing command.
type Page struct {
	Command string
}

func (p Page) begin() string {
	return fmt.Sprintf("<!-- results: begin; written by `%s`, not by hand -->\n", p.Command)
}

func (p Page) With(text, results string) (string, error) {
	before, rest, okBegin := strings.Cut(text, p.begin())
	_, after, okEnd := strings.Cut(rest, pageEnd)
	if !okBegin || !okEnd {
		return "", fmt.Errorf("the results belong between the lines %q and %q, which are missing", p.begin(), pageEnd)
	}
	return before + p.begin() + "\n" + results + "\n" + pageEnd + after, nil
}

func (p Page) Write(name, results string) error {
	_, written, err := p.replaced(name, results)
	if err != nil {
		return err
	}
	return Replace(name, []byte(written))
}

// Shows returns nil if a document has exactly these results.
func (p Page) Shows(name, results string) error {
	text, written, err := p.replaced(name, results)
	if err == nil && text != written {
		err = fmt.Errorf("%s has other results than it should: write them with `%s`", name, p.Command)
	}
	return err
}

func (p Page) replaced(name, results string) (text, written string, err error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", "", fmt.Errorf("document: %w", err)
	}
	text = string(data)
	if written, err = p.With(text, results); err != nil {
		return "", "", fmt.Errorf("%s: %w", name, err)
	}
	return text, written, nil
}
