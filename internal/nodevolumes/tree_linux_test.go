// SPDX-License-Identifier: Apache-2.0

package nodevolumes_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

// Listing a folder asks nothing of what it names. Here that fails: the folders' names can be
// listed, and nothing in them can be looked up.
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
		got <- words(nodevolumes.Read(nodevolumes.Tree(root), nodevolumes.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet")))
	})
	if got, want := <-got, "  pv=pv-b Block staged=No mounted=No pod=entry/false/No forgotten unknown: there is no vol_data.json\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// asNobody does something as a user whom permissions bind, on a thread of its own that ends
// with the goroutine: root may look up everything.
func asNobody(do func()) {
	runtime.LockOSThread()
	if unix.Getuid() == 0 {
		_ = unix.Setfsuid(65534)
	}
	do()
}
