// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	attached "github.com/moorage-dev/moorage/test/bench/attach/result"
	chaos "github.com/moorage-dev/moorage/test/bench/chaos/result"
	"github.com/moorage-dev/moorage/test/bench/core/report"
	"github.com/moorage-dev/moorage/test/bench/internal/record"
	atNode "github.com/moorage-dev/moorage/test/bench/node/result"
	scaled "github.com/moorage-dev/moorage/test/bench/scale/result"
	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

func page() record.Page { return record.Page{Command: "moorage-sandbox bench --render"} }

func RenderDocument(name, resultDir string) error {
	results, err := renderFolder(resultDir)
	if err != nil {
		return err
	}
	return page().Write(name, results)
}

func renderFolder(dir string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return "", fmt.Errorf("results: %w", err)
	}
	if len(names) == 0 {
		return "No result is committed yet.\n", nil
	}
	var parts []string
	for _, name := range names {
		part, err := renderResult(name)
		if err != nil {
			return "", err
		}
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "\n"), nil
}

// It is empty for a file that is rendered elsewhere.
func renderResult(name string) (string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("result file: %w", err)
	}
	schema, err := record.Schema(data)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	switch schema {
	case report.Schema:
		r, err := report.Read(name)
		return "## The core\n" + report.Render(r), err
	case result.Schema, attached.Schema, chaos.Schema, atNode.Schema, scaled.Schema:
		return "", nil
	}
	r, err := Load(name)
	return "## Attach and detach\n" + renderFolded(r), err
}
