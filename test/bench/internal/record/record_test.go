// SPDX-License-Identifier: Apache-2.0

package record_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/bench/internal/record"
	"github.com/moorage-dev/moorage/test/bench/origin"
)

const schema = "moorage.dev/bench-test/v1"

type result struct {
	Schema string `json:"schema"`
	record.Head
	Runs []string `json:"runs"`
}

func TestFilesSurvive(t *testing.T) {
	want := result{Schema: schema, Head: record.Begin("bench", origin.Source{Commit: "0123", Go: "go1.26.0"}), Runs: []string{"a"}}
	name := filepath.Join(t.TempDir(), "result.json")
	if err := record.Save(name, want); err != nil {
		t.Fatal(err)
	}
	got, err := record.Read[result](name, schema)
	if err != nil || got.Head != want.Head || len(got.Runs) != 1 {
		t.Errorf("read again it is %+v (%v), want %+v", got, err, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a result file of schema \"another\"": `{"schema":"another"}`,
		"an unknown field":                    `{"schema":"` + schema + `","rnus":[]}`,
		"no JSON":                             `schema: ` + schema,
	} {
		if err := record.Decode([]byte(text), schema, new(result)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A caller can tell a missing file from a broken file.
func TestReadNamesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "result.json")
	if _, err := record.Read[result](name, schema); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(name, []byte("]"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Read[result](name, schema); err == nil || errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), name) {
		t.Errorf("a file that is no JSON: %v", err)
	}
}

func TestPage(t *testing.T) {
	page := record.Page{Command: "make bench"}
	begin := "<!-- results: begin; written by `make bench`, not by hand -->\n"
	name := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(name, []byte("before\n"+begin+"old\n<!-- results: end -->\nafter\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := page.Shows(name, "new\n"); err == nil || !strings.Contains(err.Error(), "make bench") {
		t.Errorf("before it is written: %v, want the command that writes it", err)
	}
	if err := page.Write(name, "new\n"); err != nil {
		t.Fatal(err)
	}
	if err := page.Shows(name, "new\n"); err != nil {
		t.Error(err)
	}
	got, err := os.ReadFile(name)
	if want := "before\n" + begin + "\nnew\n\n<!-- results: end -->\nafter\n"; err != nil || string(got) != want {
		t.Errorf("the page is %q (%v), want %q", got, err, want)
	}
	if _, err := page.With("no place", "new\n"); err == nil || !strings.Contains(err.Error(), "make bench") {
		t.Errorf("a page without a place for results: %v, want words with the line that is missing", err)
	}
}
