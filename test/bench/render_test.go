// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what is rendered to the golden files and to docs/internals/benchmarks.md")

const document = "../../docs/internals/benchmarks.md"

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -rewrite renews it):\n%s", file, got)
	}
}

func TestRender(t *testing.T) {
	golden(t, "testdata/render.golden", Render(sampleResult()))
}

func TestDocumentShowsTheCommittedResults(t *testing.T) {
	if *rewrite {
		if err := RenderDocument(document, "results"); err != nil {
			t.Fatal(err)
		}
	}
	results, err := renderFolder("results")
	if err != nil {
		t.Fatal(err)
	}
	if err := page().Shows(document, results); err != nil {
		t.Error(err)
	}
}

func TestRenderFolder(t *testing.T) {
	dir := t.TempDir()
	if got, err := renderFolder(dir); err != nil || got != "No result is committed yet.\n" {
		t.Errorf("an empty folder gives %q, %v", got, err)
	}
	if err := sampleResult().Save(filepath.Join(dir, "a.json")); err != nil {
		t.Fatal(err)
	}
	if got, err := renderFolder(dir); err != nil || !strings.Contains(got, renderFolded(sampleResult())) {
		t.Errorf("the result is not in %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := renderFolder(dir); err == nil {
		t.Error("a file that is no result is accepted")
	}
}
