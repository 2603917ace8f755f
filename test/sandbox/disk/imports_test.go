// SPDX-License-Identifier: Apache-2.0

package disk_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const (
	moorage = "github.com/moorage-dev/moorage/"
	here    = moorage + "test/sandbox/disk"
)

// Nothing here imports Moorage outside of this folder, or Kubernetes' implementation. The judge sees only
// the vocabulary of calls.
func TestJudgeSharesNoCode(t *testing.T) {
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		files++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if strings.HasPrefix(imported, moorage) && imported != here && !strings.HasPrefix(imported, here+"/") ||
				strings.HasPrefix(imported, "k8s.io/kubernetes/") {
				t.Errorf("%s imports %s", path, imported)
			}
			if filepath.Dir(path) == "judge" && strings.Contains(imported, ".") && imported != here+"/diskapi" && imported != "pgregory.net/rapid" {
				t.Errorf("%s imports %s: a judge is to know the calls and nothing else", path, imported)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("looked at %d files only", files)
	}
}
