// SPDX-License-Identifier: Apache-2.0

package nodemounts_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moorage-dev/moorage/internal/nodemounts"
)

func TestListsWithoutAsking(t *testing.T) {
	dir, n := t.TempDir(), newNode()
	for _, folder := range []string{stagingFolder("v"), podFolder("uid-a", "pv"), devices + "publish/pv-b"} {
		folder = filepath.Join(dir, folder)
		if err := os.MkdirAll(filepath.Join(folder, "entry"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(folder, 0o444); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(folder, 0o755) })
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := make(chan string)
	go asNobody(func() {
		defer close(got)
		if _, err := root.Lstat(stagingFolder("v") + "/entry"); err == nil {
			got <- "what is in the folder can be looked up, and this test shows nothing"
			return
		}
		got <- words(nodemounts.Read(nodemounts.Tree(root), nodemounts.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet"), nodemounts.Kernel{}))
	})
	if got, want := <-got, "  pv=pv-b Block staged=No mounted=No pod=entry/false/No forgotten unknown: there is no vol_data.json\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// A pipe may replace a file after its folder's listing.
func TestPipes(t *testing.T) {
	for _, at := range []string{
		"pods", "pods/uid-a/volumes/kubernetes.io~csi", "pods/uid-a/volumeDevices/kubernetes.io~csi", "plugins/kubernetes.io", "plugins/kubernetes.io/csi",
		devices + "staging", devices + "publish", devices + "pv-1/data", devices + "pv-1/dev", stagingFolder("v") + "/vol_data.json", podFolder("uid-a", "pv") + "/vol_data.json",
	} {
		t.Run(at, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(at)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(filepath.Join(dir, at), 0o600); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			tree := nodemounts.Tree(root)
			facts := nodemounts.Read(tree, nodemounts.ReadMounts(strings.NewReader(newNode().table()), "/var/lib/kubelet"), nodemounts.Kernel{})
			if got := words(facts); !strings.Contains(got, at) {
				t.Errorf("it does not tell of the pipe:\n%s", got)
			}
			file, err := tree.Open(at)
			if err != nil {
				t.Fatal(err)
			}
			if err := file.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Root may look up everything: the thread of another user ends with the goroutine.
func asNobody(do func()) {
	runtime.LockOSThread()
	if unix.Getuid() == 0 {
		_ = unix.Setfsuid(65534)
	}
	do()
}
