// SPDX-License-Identifier: Apache-2.0

package nodemounts_test

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/moorage-dev/moorage/internal/nodemounts"
)

// unsaid: folders do not name their entries' kinds
type touched struct {
	fstest.MapFS
	unsaid bool
	gone   string // is listed, and not there
	names  []string
}

func (f *touched) Open(name string) (fs.File, error) {
	f.names = append(f.names, name)
	file, err := f.MapFS.Open(name)
	if dir, ok := file.(fs.ReadDirFile); ok && f.unsaid {
		return unsaidFolder{dir}, err
	}
	return file, err
}

func (f *touched) Stat(name string) (fs.FileInfo, error) {
	f.names = append(f.names, name)
	return f.MapFS.Stat(name)
}

func (f *touched) Lstat(name string) (fs.FileInfo, error) {
	f.names = append(f.names, name)
	if name == f.gone {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: fs.ErrNotExist}
	}
	return f.MapFS.Lstat(name)
}

type unsaidFolder struct{ fs.ReadDirFile }

func (f unsaidFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := f.ReadDirFile.ReadDir(n)
	for i := range entries {
		entries[i] = unsaidEntry(entries[i].Name())
	}
	return entries, err
}

type unsaidEntry string

func (e unsaidEntry) Name() string               { return string(e) }
func (e unsaidEntry) IsDir() bool                { return false }
func (e unsaidEntry) Type() fs.FileMode          { return fs.ModeIrregular }
func (e unsaidEntry) Info() (fs.FileInfo, error) { panic("an entry is asked what it is") }

// A mount may not answer: nothing at or below it is touched.
func TestTouchesNoMount(t *testing.T) {
	full := func() *node {
		n := newNode()
		n.stage("v")
		n.publish("uid-a", "pv", "v")
		n.mount(csi + driver + "/abc/globalmount")
		n.mount(podFolder("uid-a", "pv-2") + "/mount")
		n.record(devices+"pv-b/data", map[string]string{"driverName": driver, "volumeHandle": "b", "specVolID": "pv-b"})
		n.mount(devices + "pv-b/dev/uid-a")
		n.dir(devices + "staging/pv-b")
		n.mount(devices + "publish/pv-b/uid-a")
		return n
	}
	for _, unsaid := range []bool{false, true} {
		for _, own := range []string{
			"", stagingFolder("v"), stagingFolder("v") + "/vol_data.json", csi + driver, devices + "staging", devices + "staging/pv-b", devices + "publish/pv-b", devices + "pv-b",
			devices + "pv-b/data", podFolder("uid-a", "pv"), "pods/uid-a/volumes/kubernetes.io~csi", "pods/uid-a",
		} {
			t.Run(fmt.Sprintf("%q unsaid=%t", own, unsaid), func(t *testing.T) {
				n := full()
				if own != "" {
					n.mounts = append(n.mounts, own)
				}
				f := &touched{MapFS: n.files, unsaid: unsaid}
				facts := nodemounts.Read(f, nodemounts.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet"), nodemounts.Kernel{})
				for _, name := range f.names {
					for p := name; p != "."; p = path.Dir(p) {
						if slices.Contains(n.mounts, p) {
							t.Errorf("%q is touched, and %q is mounted", name, p)
						}
					}
				}
				if own == "" && len(facts.Volumes) != 3 || own != "" && len(facts.Unknown) == 0 && !strings.Contains(words(facts), "not a file") {
					t.Errorf("it says\n%s", words(facts))
				}
			})
		}
	}
}

func TestMountsOnTheWay(t *testing.T) {
	for _, own := range []string{"plugins", "plugins/kubernetes.io", strings.TrimSuffix(csi, "/"), "pods"} {
		n := newNode()
		n.stage("v")
		n.publish("uid-a", "pv", "v")
		want := words(n.read())
		n.mounts = append(n.mounts, own)
		if got := words(n.read()); got != want {
			t.Errorf("with %s mounted it says\n%swant\n%s", own, got, want)
		}
	}
}

// It hides others' mounts: unlisted volumes may be mounted.
func TestPrivateMountOnTheWay(t *testing.T) {
	const line = "9 2 8:9 / /var/lib/kubelet/%s rw %s- ext4 /dev/sdc rw\n"
	const over = "10 9 8:10 / /var/lib/kubelet/%s rw %s- ext4 /dev/sdd rw\n"
	for _, own := range []string{"plugins", "plugins/kubernetes.io", strings.TrimSuffix(csi, "/"), "pods"} {
		for more, want := range map[string]nodemounts.Answer{
			fmt.Sprintf(line, own, ""):                                       nodemounts.Unknown,
			fmt.Sprintf(line, own, "unbindable "):                            nodemounts.Unknown,
			fmt.Sprintf(line, own, "master:3 "):                              nodemounts.No,
			fmt.Sprintf(line, own, "shared:3 "):                              nodemounts.No,
			fmt.Sprintf(line, own, "") + fmt.Sprintf(over, own, "master:3 "): nodemounts.No,
			fmt.Sprintf(line, own, "master:3 ") + fmt.Sprintf(over, own, ""): nodemounts.Unknown,
			fmt.Sprintf(line, own+"-2", ""):                                  nodemounts.No,
			fmt.Sprintf(line, "other", ""):                                   nodemounts.No,
		} {
			n := newNode()
			n.stage("v")
			m := nodemounts.ReadMounts(strings.NewReader(n.table()+more), "/var/lib/kubelet")
			if got := m.At(podFolder("uid-a", "pv") + "/mount"); got != want {
				t.Errorf("%s: %s, want %s", more, got, want)
			}
			said := words(nodemounts.Read(n.files, m, nodemounts.Kernel{}))
			if tells := strings.Contains(said, "/var/lib/kubelet/"+own+" is private") && strings.Contains(said, "make-rshared"); tells != (want == nodemounts.Unknown) {
				t.Errorf("%s: it says\n%s", more, said)
			}
		}
	}
}

func TestUnsaidAndGone(t *testing.T) {
	n := newNode()
	n.stage("v")
	n.dir("pods/uid-a/volumes")
	f := &touched{MapFS: n.files, unsaid: true, gone: "pods/uid-a"}
	facts := nodemounts.Read(f, nodemounts.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet"), nodemounts.Kernel{})
	if len(facts.Unknown) > 0 || len(facts.Volumes) != 1 || !facts.Volumes[0].Forgotten {
		t.Errorf("it says\n%s", words(facts))
	}
}

// If the mount table has unreadable lines, no entry is asked: it is unknown.
func TestUnsaidWithoutMounts(t *testing.T) {
	n := newNode()
	n.stage("v")
	f := &touched{MapFS: n.files, unsaid: true}
	facts := nodemounts.Read(f, nodemounts.ReadMounts(strings.NewReader(n.table()+"hello\n"), "/var/lib/kubelet"), nodemounts.Kernel{})
	if slices.Contains(f.names, csi+driver) || !strings.Contains(words(facts), "may be mounted there") {
		t.Errorf("asked for %q, it says\n%s", f.names, words(facts))
	}
}

func TestLists(t *testing.T) {
	dir := t.TempDir()
	for i := range 2000 {
		if err := os.MkdirAll(filepath.Join(dir, "pods", fmt.Sprintf("uid-%04d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "pods/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("uid-0001", filepath.Join(dir, "pods/link")); err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(dir, podFolder("uid-1999", "pv"))
	if err := os.MkdirAll(last, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(last, "vol_data.json"), []byte(`{"driverName":"d","volumeHandle":"h","specVolID":"pv"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	got := words(nodemounts.Read(nodemounts.Tree(root), nodemounts.ReadMounts(strings.NewReader(newNode().table()), "/var/lib/kubelet"), nodemounts.Kernel{}))
	if want := "d h pv=pv Filesystem staged=No mounted=No pod=uid-1999/true/No\nunknown: \"pods/link\" is a link\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
