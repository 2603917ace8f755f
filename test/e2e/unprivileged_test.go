// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox"
)

func TestLendTakesBinariesOfOtherReleasesAlong(t *testing.T) {
	theirs, home := t.TempDir(), t.TempDir()
	file := func(name string) string {
		path := filepath.Join(theirs, name)
		if err := os.WriteFile(path, []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	e := &sandbox.Env{Options: sandbox.Options{Executable: file("sandbox"), Attacher: file("attacher")}}
	if _, flags, err := lend(e, home); err != nil || len(flags) > 0 {
		t.Errorf("this tree's release: flags %v, %v", flags, err)
	}
	e.Options.Kubelets = file("kubernetes-1.34")
	binary, flags, err := lend(e, home)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"--kubelets", filepath.Join(home, "kubelets")}; !slices.Equal(flags, want) {
		t.Errorf("flags %v, want %v", flags, want)
	}
	for path, want := range map[string]string{binary: "sandbox", flags[1]: "kubernetes-1.34"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v: want %q", path, got, err, want)
		}
	}
	e.Options.ControlPlane = filepath.Join(theirs, "missing")
	if _, _, err := lend(e, home); err == nil {
		t.Error("a binary that is missing was lent")
	}
}
