// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The results stand between these two lines of the document.
const (
	resultsBegin = "<!-- results: begin; written by `moorage-sandbox bench --render`, not by hand -->\n"
	resultsEnd   = "<!-- results: end -->\n"
)

// RenderDocument replaces the results in a document by those in a folder.
func RenderDocument(file, resultDir string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("document: %w", err)
	}
	rendered, err := withResults(string(text), resultDir)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return writeFile(file, []byte(rendered))
}

// withResults returns a document with its results replaced.
func withResults(text, resultDir string) (string, error) {
	before, rest, okBegin := strings.Cut(text, resultsBegin)
	_, after, okEnd := strings.Cut(rest, resultsEnd)
	if !okBegin || !okEnd {
		return "", fmt.Errorf("the results belong between the lines %q and %q, which are missing", resultsBegin, resultsEnd)
	}
	results, err := renderFolder(resultDir)
	if err != nil {
		return "", err
	}
	return before + resultsBegin + "\n" + results + "\n" + resultsEnd + after, nil
}

// renderFolder renders the result files of a folder.
func renderFolder(dir string) (string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", fmt.Errorf("results: %w", err)
	}
	if len(files) == 0 {
		return "No result is committed yet.\n", nil
	}
	var out strings.Builder
	for _, file := range files {
		r, err := Load(file)
		if err != nil {
			return "", err
		}
		out.WriteString(renderFolded(r))
	}
	return out.String(), nil
}
