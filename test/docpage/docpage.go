// SPDX-License-Identifier: Apache-2.0

// Package docpage is what the tests share that write a page of docs from
// tables, and hold it to them. It reads source files, and reads or writes the
// page; what is in the tables is each test's own.
package docpage

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Compare fails the test when a page is not exactly what the tables say; with
// rewrite it writes the page instead.
func Compare(t *testing.T, page, text string, rewrite bool) {
	t.Helper()
	if rewrite {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(page); err != nil || string(got) != text {
		t.Errorf("%s is not what the tables say (%v): write it with -rewrite, and read the difference", page, err)
	}
}

// Within returns nil when one of the files, named as filepath.Glob takes them,
// has text of a form, which is a regular expression.
func Within(files, form string) error {
	names, err := filepath.Glob(files)
	if err != nil {
		return err
	}
	pattern := regexp.MustCompile(form)
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && pattern.Match(text) {
			return nil
		}
	}
	return fmt.Errorf("nothing in %s is of the form %s", files, form)
}
