// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

func write(t *testing.T, dir string, from, to uint64) {
	t.Helper()
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for seq := from; seq <= to; seq++ {
		if err := j.Append(diskapi.Entry{Seq: seq, ID: seq, Call: diskapi.ListVolumes}); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, dir string) []diskapi.Entry {
	t.Helper()
	j, entries, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestEntriesComeBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	write(t, dir, 1, 3)
	write(t, dir, 4, 5)
	entries := read(t, dir)
	if len(entries) != 5 || entries[4].Seq != 5 || entries[0].Call != diskapi.ListVolumes {
		t.Errorf("entries %+v", entries)
	}
}

// The rest of a cut-off line is dropped, and the next entry takes its place.
func TestCutOffLine(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, 1, 2)
	path := filepath.Join(dir, "journal.jsonl")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(data, `{"seq":3,"ti`...), 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, dir, 3, 3)
	if entries := read(t, dir); len(entries) != 3 {
		t.Errorf("entries %+v", entries)
	}
}

func TestDamageIsAnError(t *testing.T) {
	for name, content := range map[string]string{
		"no JSON":  "{\"seq\":1}\nrubbish\n",
		"a gap":    "{\"seq\":1}\n{\"seq\":3}\n",
		"no start": "{\"seq\":2}\n",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "journal.jsonl"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(dir); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	j, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, _, err := Open(dir); err == nil {
		t.Error("two processes have the journal open")
	}
}
