// SPDX-License-Identifier: Apache-2.0

package block

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Devices need root.
func unattached(t *testing.T) *Disks {
	t.Helper()
	d := &Disks{folder: t.TempDir()}
	for _, dir := range []string{"files", "snapshots"} {
		if err := os.Mkdir(filepath.Join(d.folder, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func carry(t *testing.T, d *Disks, e diskapi.Entry) {
	t.Helper()
	if err := d.Carry(e); err != nil {
		t.Fatal(err)
	}
}

func blocks(t *testing.T, path string) (blocks, size int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Blocks, info.Size()
}

// An empty disk takes no space. A snapshot, and a disk from it, have the disk's data and its holes.
func TestCopies(t *testing.T) {
	const size = 64 << 20
	d := unattached(t)
	carry(t, d, diskapi.Entry{Call: diskapi.CreateVolume, Volume: "a", Args: diskapi.Args{SizeBytes: size}})
	path := File(d.folder, "a")
	if took, long := blocks(t, path); took != 0 || long != size {
		t.Fatalf("a new disk is %d bytes long and takes %d blocks", long, took)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	written := bytes.Repeat([]byte("x"), 5000)
	for _, at := range []int64{0, 20 << 20, size - 5000} {
		if _, err := f.WriteAt(written, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	carry(t, d, diskapi.Entry{Call: diskapi.CreateSnapshot, Volume: "a", Args: diskapi.Args{Operated: diskapi.Operated{Snapshot: "s"}}})
	carry(t, d, diskapi.Entry{Call: diskapi.CreateVolume, Volume: "b", Args: diskapi.Args{SizeBytes: 2 * size, Operated: diskapi.Operated{Snapshot: "s"}}})
	carry(t, d, diskapi.Entry{Call: diskapi.DeleteSnapshot, Args: diskapi.Args{Operated: diskapi.Operated{Snapshot: "s"}}})
	carry(t, d, diskapi.Entry{Call: diskapi.DeleteSnapshot, Args: diskapi.Args{Operated: diskapi.Operated{Snapshot: "s"}}})
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := os.ReadFile(File(d.folder, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(original, restored[:size]) || len(restored) != 2*size {
		t.Errorf("the restored disk has %d bytes, or others than the original", len(restored))
	}
	if took, _ := blocks(t, File(d.folder, "b")); took > 200 {
		t.Errorf("the restored disk takes %d blocks: the holes were copied", took)
	}
	carry(t, d, diskapi.Entry{Call: diskapi.ControllerExpand, Volume: "a", Args: diskapi.Args{SizeBytes: 3 * size}})
	carry(t, d, diskapi.Entry{Call: diskapi.ControllerExpand, Volume: "a", Args: diskapi.Args{SizeBytes: size}})
	if _, long := blocks(t, path); long != 3*size {
		t.Errorf("the disk is %d bytes long", long)
	}
	carry(t, d, diskapi.Entry{Call: diskapi.DeleteVolume, Volume: "a"})
	if _, err := os.Stat(path); err == nil {
		t.Error("a deleted disk is there")
	}
}

func TestCut(t *testing.T) {
	d := unattached(t)
	carry(t, d, diskapi.Entry{Call: diskapi.CreateVolume, Volume: "a", Args: diskapi.Args{SizeBytes: 4096}})
	file, link := File(d.folder, "a"), d.link(place{"n", "a"})
	if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.Link(file, link)); err != nil {
		t.Fatal(err)
	}
	device, err := os.OpenFile(link, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	if _, err := device.WriteAt([]byte("before"), 0); err != nil {
		t.Fatal(err)
	}
	if err := Cut(d.folder, "n"); err != nil {
		t.Fatal(err)
	}
	if _, err := device.WriteAt([]byte("after!"), 0); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || len(got) != 4096 || string(got[:6]) != "before" {
		t.Errorf("the disk has %q of %d bytes: %v", got[:6], len(got), err)
	}
}
