// SPDX-License-Identifier: Apache-2.0

package web

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/view"
)

// A page replaces a file that others could read by a private file.
func TestOutIsForItsOwner(t *testing.T) {
	name := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(name, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	now := view.Of(world("n1"))
	broken := errors.New("broken")
	if err := command.WriteWhole(name, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a page that could not be written: %v", err)
	}
	if raw, err := os.ReadFile(name); err != nil || string(raw) != "old" {
		t.Errorf("a page that could not be written left %q, %v", raw, err)
	}
	if err := (&options{out: name}).store(Static{View: now, Taken: noon()}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*")); err != nil || len(files) != 1 {
		t.Errorf("there are %v, %v", files, err)
	}
}
