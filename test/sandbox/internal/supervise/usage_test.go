// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestProcessorTimeOfAProcess(t *testing.T) {
	for name, c := range map[string]struct {
		stat string
		want time.Duration
	}{
		"a process":   {"42 (kubelet) S 1 42 42 0 -1 4194560 9 0 0 0 250 50 7 7 20 0 9 0 100 0", 3 * time.Second},
		"an odd name": {"42 (a) b) (c) R 1 42 42 0 -1 4194560 9 0 0 0 1 2 7 7 20 0 9 0 100 0", 30 * time.Millisecond},
		"cut off":     {"42 (kubelet) S 1 42", 0},
		"no number":   {"42 (kubelet) S 1 42 42 0 -1 4194560 9 0 0 0 x 50 7", 0},
		"empty":       {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "stat")
			if err := os.WriteFile(path, []byte(c.stat), 0o644); err != nil {
				t.Fatal(err)
			}
			if got := taken(path); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if got := taken(filepath.Join(t.TempDir(), "gone")); got != 0 {
		t.Errorf("a process that is gone has taken %s", got)
	}
}

func TestProcessorTimeOfChildrenThatAreGoneCounts(t *testing.T) {
	g := newTestGroup(t)
	busy := Spec{
		Name: "busy", Path: "/bin/sh", Args: []string{"-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"},
		LogPath: filepath.Join(t.TempDir(), "busy.log"),
	}
	if err := g.Launch(busy); err != nil {
		t.Fatal(err)
	}
	<-g.Failed() // it ended by itself
	first := g.CPU()
	if first == 0 {
		t.Fatal("it has taken no time")
	}
	if err := g.Start("busy"); err != nil {
		t.Fatal(err)
	}
	await(t, "it takes as much again", func() bool { return g.CPU() > first })
}
