// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestReplaceIsStartedNext(t *testing.T) {
	g, dir := newTestGroup(t), t.TempDir()
	if err := g.Launch(sleeper(t, "a")); err != nil {
		t.Fatal(err)
	}
	if err := g.Kill(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(dir, "mark")
	next := Spec{Name: "a", Path: "/bin/sh", Args: []string{"-c", "echo > " + mark + "; exec sleep 600"}, LogPath: filepath.Join(dir, "log")}
	if err := g.Replace(next); err != nil {
		t.Fatal(err)
	}
	if err := g.Start("a"); err != nil {
		t.Fatal(err)
	}
	await(t, "the other program runs", func() bool {
		_, err := os.Stat(mark)
		return err == nil
	})
	next.Name = "b"
	if err := g.Replace(next); !errors.Is(err, ErrUnknown) {
		t.Errorf("replace of a child that is not there: %v", err)
	}
}
