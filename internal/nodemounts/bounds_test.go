// SPDX-License-Identifier: Apache-2.0

package nodemounts_test

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/moorage-dev/moorage/internal/nodemounts"
)

const aPod = "b0000000-0000-0000-0000-000000000000"

func TestManyOfOneKind(t *testing.T) {
	for name, fill := range map[string]func(*node){
		"pods of one volume": func(n *node) {
			for i := range 300 {
				n.publish(fmt.Sprintf("uid-%03d", i), "pv-1", "shared")
			}
		},
		"folders of pods that have ended": func(n *node) {
			for i := range 5000 {
				n.dir(fmt.Sprintf("pods/uid-%04d/volumes/kubernetes.io~projected", i))
			}
		},
		"empty folders of one pod, and a subpath of one": func(n *node) {
			for i := range 5000 {
				n.dir(fmt.Sprintf("pods/%s/volumes/kubernetes.io~empty-dir/v%d", aPod, i))
			}
			n.mount("pods/" + aPod + "/volume-subpaths/v1/c/0")
		},
		"a pod's own volumes": func(n *node) {
			for i := range 5000 {
				n.ephemeral(aPod, fmt.Sprintf("own-%d", i))
			}
		},
		"volumes": func(n *node) {
			for i := range 5000 {
				n.record(stagingFolder(fmt.Sprint(i)), map[string]string{"driverName": driver, "volumeHandle": fmt.Sprint(i)})
			}
		},
		"volumes, without a record": func(n *node) {
			for i := range 5000 {
				n.mount(stagingFolder(fmt.Sprint(i)) + "/globalmount")
			}
		},
		"volumes of a driver that does not stage": func(n *node) {
			for i := range 5000 {
				n.publish(aPod, fmt.Sprintf("pv-%04d", i), fmt.Sprint(i))
			}
		},
		"block volumes": func(n *node) {
			for i := range 5000 {
				n.record(fmt.Sprintf("%spv-%04d/data", devices, i), map[string]string{"driverName": driver, "volumeHandle": fmt.Sprint(i), "specVolID": fmt.Sprintf("pv-%04d", i)})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.stage("forgotten")
			fill(n)
			f := nodemounts.Read(quick(n.files), nodemounts.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet"), nodemounts.Kernel{})
			if len(f.Unknown) > 0 {
				t.Fatalf("it does not know %q", f.Unknown)
			}
			told := map[nodemounts.Brief]bool{}
			for _, v := range f.Volumes {
				for _, b := range v.Brief() {
					told[b] = true
				}
				if v.MorePods != (v.Handle == "shared") {
					t.Errorf("%q: more pods: %t of %d", v.Handle, v.MorePods, len(v.Published))
				}
			}
			for _, b := range f.Unlisted {
				told[b] = true
			}
			if strings.Contains(name, "volumes") && !strings.Contains(name, "own") {
				for i := range 5000 {
					if b := (&nodemounts.Volume{Driver: driver, Handle: fmt.Sprint(i)}).Brief()[0]; !told[b] {
						t.Fatalf("nothing tells of volume %d", i)
					}
				}
			}
			if b := (&nodemounts.Volume{Driver: driver, Handle: "absent"}).Brief()[0]; told[b] || len(told) > 5001 {
				t.Errorf("it tells of %d volumes", len(told))
			}
		})
	}
}

func quick(files fstest.MapFS) fs.FS {
	q := quickTree{files: fstest.MapFS{}, folders: map[string]map[string]fs.FileMode{".": {}}}
	for name, file := range files {
		if !file.Mode.IsDir() {
			q.files[name] = file
		}
		mode := file.Mode
		for ; name != "."; name, mode = path.Dir(name), fs.ModeDir {
			if mode.IsDir() && q.folders[name] == nil {
				q.folders[name] = map[string]fs.FileMode{}
			}
			if q.folders[path.Dir(name)] == nil {
				q.folders[path.Dir(name)] = map[string]fs.FileMode{}
			}
			q.folders[path.Dir(name)][path.Base(name)] = mode.Type()
		}
	}
	return q
}

type quickTree struct {
	files   fstest.MapFS
	folders map[string]map[string]fs.FileMode
}

func (q quickTree) Open(name string) (fs.File, error) {
	entries, folder := q.folders[name]
	if file := q.files[name]; file != nil {
		return fstest.MapFS{name: file}.Open(name)
	} else if !folder {
		return nil, fs.ErrNotExist
	}
	one := fstest.MapFS{name: {Mode: fs.ModeDir}}
	for base, mode := range entries {
		one[path.Join(name, base)] = &fstest.MapFile{Mode: mode}
	}
	return one.Open(name)
}

type counted struct {
	fstest.MapFS
	read int
}

func (c *counted) Open(name string) (fs.File, error) {
	c.read++
	file, err := c.MapFS.Open(name)
	if dir, ok := file.(fs.ReadDirFile); ok {
		return &countedFolder{dir, c}, err
	}
	return file, err
}

type countedFolder struct {
	fs.ReadDirFile
	of *counted
}

func (f *countedFolder) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := f.ReadDirFile.ReadDir(n)
	f.of.read += len(entries)
	return entries, err
}

func TestSubpathsAreReadOnce(t *testing.T) {
	reads := func(volumes int) int {
		n := newNode()
		for i := range volumes {
			n.dir(fmt.Sprintf("pods/%s/volumes/kubernetes.io~empty-dir/v%d", aPod, i))
			n.mount(fmt.Sprintf("pods/%s/volume-subpaths/v%d/c/%d", aPod, i, i))
		}
		c := &counted{MapFS: n.files}
		f := nodemounts.Read(c, nodemounts.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet"), nodemounts.Kernel{})
		if len(f.Unknown)+len(f.Volumes) > 0 {
			t.Fatalf("it says\n%s", words(f))
		}
		return c.read
	}
	if once, twice := reads(200), reads(400); twice > 2*once {
		t.Errorf("%d reads for 200 volumes with subpaths, and %d for 400", once, twice)
	}
}

func TestTopmostMount(t *testing.T) {
	const line = "%d %d 8:%d / /var/lib/kubelet%s rw %s- ext4 /dev/sdc rw\n"
	shared := func(id int) string { return fmt.Sprintf("shared:%d ", id) }
	for _, own := range []string{"", "/plugins", "/" + path.Clean(csi), "/pods"} {
		for name, test := range map[string]struct {
			mounts [][2]int // number and parent, in the order of the table
			shared int      // the shared one
			want   nodemounts.Answer
		}{
			"the one on top is listed last, and private":  {[][2]int{{41, 2}, {47, 41}}, 41, nodemounts.Unknown},
			"the one on top is listed last, and shared":   {[][2]int{{41, 2}, {47, 41}}, 47, nodemounts.No},
			"the one on top is listed first, and private": {[][2]int{{41, 47}, {47, 2}}, 47, nodemounts.Unknown},
			"the one on top is listed first, and shared":  {[][2]int{{41, 47}, {47, 2}}, 41, nodemounts.No},
			"three of them":         {[][2]int{{41, 47}, {47, 52}, {52, 2}}, 41, nodemounts.No},
			"neither is the parent": {[][2]int{{41, 2}, {47, 3}}, 47, nodemounts.Unknown},
			"each is the parent":    {[][2]int{{41, 47}, {47, 41}}, 47, nodemounts.Unknown},
		} {
			table := newNode().table()
			for i, m := range test.mounts {
				optional := ""
				if m[0] == test.shared {
					optional = shared(m[0])
				}
				table += fmt.Sprintf(line, m[0], m[1], 40+i, own, optional)
			}
			if own == "" && test.mounts[0][1] == 47 && test.mounts[1][1] == 41 {
				continue // the mount that they are on is no other's parent
			}
			if got := nodemounts.ReadMounts(strings.NewReader(table), "/var/lib/kubelet").At("pods/uid-a/x"); got != test.want {
				t.Errorf("%q, %s: %s, want %s", own, name, got, test.want)
			}
		}
	}
}
