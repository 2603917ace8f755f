// SPDX-License-Identifier: Apache-2.0

// Package docpage compares a page of docs with a test's tables, or writes it.
package docpage

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Compare fails unless the page is exactly the text; with rewrite it writes the page.
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

// Within looks for a regular expression in files of a filepath.Glob pattern.
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
