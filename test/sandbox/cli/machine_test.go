// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRoom(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		processors int
		memory     uint64
		want       int
	}{
		{1, 64 * gib, 1}, {2, 64 * gib, 3}, {3, 24 * gib, 4}, {4, 5 * gib, 2}, {64, 640 * gib, mostBeside}, {64, gib, 1}, {2, 0, 1},
	} {
		if got := room(c.processors, c.memory); got != c.want {
			t.Errorf("%d processors and %d GiB: %d side by side, want %d", c.processors, c.memory/gib, got, c.want)
		}
	}
}

func TestMemory(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	missing := filepath.Join(dir, "missing")
	machine := file("machine", "MemTotal:       24000000 kB\nMemAvailable:   16000000 kB\n")
	for name, c := range map[string]struct {
		meminfo, limit string
		want           uint64
	}{
		"a machine":         {machine, missing, 16000000 << 10},
		"a free container":  {machine, file("max", "max\n"), 16000000 << 10},
		"a container":       {machine, file("small", "4294967296\n"), 4 << 30},
		"a large container": {machine, file("large", "429496729600\n"), 16000000 << 10},
		"nothing is known":  {missing, missing, 0},
		"no such line":      {file("other", "MemTotal: 24000000 kB\n"), missing, 0},
		"no number":         {file("odd", "MemAvailable: much kB\n"), missing, 0},
	} {
		if got := memory(c.meminfo, c.limit); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
