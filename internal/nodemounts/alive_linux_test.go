// SPDX-License-Identifier: Apache-2.0

package nodemounts_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/moorage-dev/moorage/internal/nodemounts"
)

type sysfs fstest.MapFS

func (s sysfs) device(number, name string) {
	s["dev/block/"+number] = &fstest.MapFile{Data: []byte("../../devices/virtual/block/" + name), Mode: fs.ModeSymlink}
}

func (s sysfs) entry(name string, inode uint64) {
	s["fs/"+name] = &fstest.MapFile{Mode: fs.ModeDir | 0o555, Sys: &syscall.Stat_t{Ino: inode}}
}

func alive(n *node, s sysfs, before []nodemounts.Alive, lines ...string) nodemounts.Facts {
	mounts := nodemounts.ReadMounts(strings.NewReader(n.table()+strings.Join(lines, "")), "/var/lib/kubelet")
	return nodemounts.Read(n.files, mounts, nodemounts.Kernel{Sys: fstest.MapFS(s), Before: before})
}

// The kernel ends the file system, not the mount table.
func TestFileSystemLivesOn(t *testing.T) {
	const at = "20 2 %s %s /var/lib/kubelet/" + csi + driver + "/%s rw master:9 - %s rw\n"
	staged := strings.TrimPrefix(stagingFolder("v"), csi+driver+"/") + "/globalmount"
	extended := func(kind string) func(sysfs) {
		return func(s sysfs) { s.device("8:17", "sdb1"); s.entry(kind+"/sdb1", 7) }
	}
	btrfs := func(device string) func(sysfs) {
		return func(s sysfs) {
			s.entry("btrfs/features", 3)
			s.entry("btrfs/4c1e", 7)
			s["fs/btrfs/4c1e/devices/"+device] = &fstest.MapFile{Mode: fs.ModeSymlink}
			s["block/dm-4/dm/name"] = &fstest.MapFile{Data: []byte("vg-data\n")}
		}
	}
	for name, test := range map[string]struct {
		device, root, source string
		sys                  func(sysfs)
		want                 string // the entry
	}{
		"ext4":                     {"8:17", "/", "ext4 /dev/sdb1", extended("ext4"), "ext4/sdb1"},
		"ext3":                     {"8:17", "/", "ext3 /dev/sdb1", extended("ext4"), "ext4/sdb1"},
		"XFS":                      {"8:17", "/", "xfs /dev/disk/by-id/one", extended("xfs"), "xfs/sdb1"},
		"btrfs":                    {"0:41", "/", "btrfs /dev/sdb1", btrfs("sdb1"), "btrfs/4c1e"},
		"btrfs on a mapped device": {"0:41", "/", "btrfs /dev/mapper/vg-data", btrfs("dm-4"), "btrfs/4c1e"},
		// Its disk stays mounted when the volume goes.
		"a folder of a file system":    {"8:17", "/volumes/v", "ext4 /dev/sdb1", extended("ext4"), ""},
		"NFS":                          {"0:55", "/", "nfs4 server:/v", extended("nfs4"), ""},
		"one of which sysfs has none":  {"8:17", "/", "iso9660 /dev/sdb1", func(s sysfs) { s.device("8:17", "sdb1") }, ""},
		"a device that is not a block": {"8:17", "/", "ext4 /dev/sdb1", func(s sysfs) { s.entry("ext4/sdb1", 7) }, ""},
		"not a number of a device":     {"../..", "/", "ext4 /dev/sdb1", extended("ext4"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, s := newNode(), sysfs{}
			test.sys(s)
			n.record(stagingFolder("v"), map[string]string{"driverName": driver, "volumeHandle": "v"})
			mounted := alive(n, s, nil, fmt.Sprintf(at, test.device, test.root, staged, test.source))
			if got := mounted.Volumes[0]; mounted.Unmounted() || got.Unknown != "" || len(got.FileSystems) > 0 != (test.want != "") {
				t.Fatalf("mounted it says\n%s%+v", words(mounted), got.FileSystems)
			}
			delete(n.files, stagingFolder("v")+"/vol_data.json")
			f := alive(n, s, mounted.Alive)
			if test.want == "" {
				if len(f.Volumes)+len(f.Unknown)+len(f.Alive) > 0 {
					t.Errorf("not mounted it says\n%s", words(f))
				}
				return
			}
			if len(f.Volumes) != 1 || !f.Unmounted() || !slices.Equal(f.Alive, mounted.Alive) {
				t.Fatalf("not mounted it says\n%s", words(f))
			}
			v := f.Volumes[0]
			want := nodemounts.FileSystem{Entry: test.want, Number: 7, Unmounted: true}
			if v.Driver != driver || v.Handle != "v" || v.Mounted != nodemounts.Yes || !v.Forgotten || !strings.Contains(v.Unknown, "/sys/fs/"+test.want) || !slices.Equal(v.FileSystems, []nodemounts.FileSystem{want}) {
				t.Errorf("not mounted it says\n%s%+v", words(f), v.FileSystems)
			}
			// Another one on that device is not the volume's.
			again := sysfs{}
			test.sys(again)
			again.entry(test.want, 8)
			for what, s := range map[string]sysfs{"gone": {}, "another file system there": again} {
				if f := alive(n, s, f.Alive); len(f.Volumes)+len(f.Unknown)+len(f.Alive) > 0 {
					t.Errorf("%s: it says\n%s", what, words(f))
				}
			}
		})
	}
}

// The status has room for few: another process takes the volume for mounted.
func TestManyFileSystemsLiveOn(t *testing.T) {
	n, s := newNode(), sysfs{}
	n.record(stagingFolder("v"), map[string]string{"driverName": driver, "volumeHandle": "v"})
	var lines []string
	for i := range 9 {
		s.device(fmt.Sprintf("8:%d", i), fmt.Sprintf("sd%d", i))
		s.entry(fmt.Sprintf("ext4/sd%d", i), uint64(7+i))
		lines = append(lines, fmt.Sprintf("%d 2 8:%d / /var/lib/kubelet/%s/globalmount/%d rw - ext4 /dev/sd%d rw\n", 20+i, i, stagingFolder("v"), i, i))
	}
	tells := func(f nodemounts.Facts, when string, listed int, more bool) {
		t.Helper()
		if len(f.Volumes) != 1 || f.Volumes[0].Mounted != nodemounts.Yes || len(f.Volumes[0].FileSystems) != listed || f.Volumes[0].MoreFileSystems != more {
			t.Fatalf("%s it says\n%s%+v", when, words(f), f.Volumes)
		}
	}
	mounted := alive(n, s, nil, lines...)
	tells(mounted, "mounted", 8, true)
	delete(n.files, stagingFolder("v")+"/vol_data.json")
	last := alive(n, s, mounted.Alive, lines[:8]...)
	tells(last, "with the last of them unmounted", 8, true)
	if !last.Unmounted() {
		t.Errorf("it does not tell which has no mount: %+v", last.Volumes[0].FileSystems)
	}
	for i := range 8 {
		delete(s, fmt.Sprintf("fs/ext4/sd%d", i))
	}
	ninth := alive(n, s, mounted.Alive)
	tells(ninth, "with the ninth alone", 1, false)
	delete(s, "fs/ext4/sd8")
	if f := alive(n, s, ninth.Alive); len(f.Volumes)+len(f.Alive) > 0 {
		t.Errorf("with none it says\n%s", words(f))
	}

	untold := []nodemounts.Alive{{Driver: driver, Handle: "v", Path: nodemounts.StagingPath(driver, "v")}}
	for range 2 {
		f := alive(n, s, untold)
		tells(f, "another process", 0, true)
		if v := f.Volumes[0]; v.Handle != "v" || !strings.Contains(v.Unknown, "boots again") || !slices.Equal(f.Alive, untold) {
			t.Errorf("another process says\n%s%v", words(f), f.Alive)
		}
		untold = f.Alive
	}
}

func TestFileSystemOfAPodLivesOn(t *testing.T) {
	n, s := newNode(), sysfs{}
	s.device("8:17", "sdb1")
	s.entry("ext4/sdb1", 7)
	n.publish("uid-a", "pv-1", "v")
	n.devices = map[string]string{podFolder("uid-a", "pv-1") + "/mount": "8:17"}
	before := alive(n, s, nil).Alive
	n.mounts = nil
	f := alive(n, s, before)
	if len(f.Volumes) != 1 || f.Volumes[0].Mounted != nodemounts.Yes || f.Volumes[0].Forgotten || !f.Unmounted() {
		t.Errorf("it says\n%s", words(f))
	}
	n.files = newNode().files
	f = alive(n, s, f.Alive)
	if len(f.Volumes) != 1 || f.Volumes[0].PersistentVolume != "pv-1" || !f.Volumes[0].Forgotten || len(f.Volumes[0].Published) > 0 {
		t.Errorf("without the pod's folder it says\n%s", words(f))
	}
}

// Without room for the volume, its file system stays known.
func TestFileSystemLivesOnAmongMany(t *testing.T) {
	n, s := newNode(), sysfs{}
	s.entry("ext4/sdb1", 7)
	for i := range 4096 {
		n.record(stagingFolder(fmt.Sprint(i)), map[string]string{"driverName": driver, "volumeHandle": fmt.Sprint(i)})
	}
	before := []nodemounts.Alive{{Driver: driver, Handle: "v", Path: nodemounts.StagingPath(driver, "v"), FileSystem: nodemounts.FileSystem{Entry: "ext4/sdb1", Number: 7}}}
	f := nodemounts.Read(quick(n.files), nodemounts.ReadMounts(strings.NewReader(n.table()), "/var/lib/kubelet"), nodemounts.Kernel{Sys: fstest.MapFS(s), Before: before})
	v := nodemounts.Volume{Driver: driver, Handle: "v"}
	if !slices.Equal(f.Alive, before) || !slices.Equal(f.Unlisted, v.Brief()) || len(f.Unknown) > 0 {
		t.Errorf("it remembers %v, and says beside %d volumes %v", f.Alive, len(f.Volumes), f.Unlisted)
	}
}

type disk struct {
	t          *testing.T
	root, loop string
	kind       string
	known      []nodemounts.Alive
}

func (d *disk) at() string { return filepath.Join(d.root, nodemounts.StagingPath(driver, "v")) }

func (d *disk) mount() {
	d.t.Helper()
	if err := os.MkdirAll(d.at(), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.root, "pods"), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := unix.Mount(d.loop, d.at(), d.kind, 0, ""); err != nil {
		d.t.Fatalf("mount %s: %v", d.kind, err)
	}
}

func (d *disk) unmount(flags int) {
	d.t.Helper()
	if err := unix.Unmount(d.at(), flags); err != nil {
		d.t.Fatal(err)
	}
}

func (d *disk) look() nodemounts.Facts {
	d.t.Helper()
	table, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		d.t.Fatal(err)
	}
	defer table.Close()
	root, err := os.OpenRoot(d.root)
	if err != nil {
		d.t.Fatal(err)
	}
	defer root.Close()
	f := nodemounts.Read(nodemounts.Tree(root), nodemounts.ReadMounts(table, d.root), nodemounts.Kernel{Sys: os.DirFS("/sys"), Before: d.known})
	d.known = f.Alive
	return f
}

func (d *disk) has(when, want string) {
	d.t.Helper()
	f := d.look()
	got := ""
	if len(f.Volumes) > 0 {
		if got = "mounted"; f.Unmounted() {
			got = "lives on"
		}
		if f.Volumes[0].Mounted != nodemounts.Yes {
			got = "not mounted"
		}
	}
	if got != want || len(f.Unknown) > 0 {
		d.t.Errorf("%s, %s: %q, want %q:\n%s", d.kind, when, got, want, words(f))
	}
	fd, err := unix.Open(d.loop, unix.O_RDONLY|unix.O_EXCL, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	if free := err == nil; free != (want == "") {
		d.t.Errorf("%s, %s: the disk is free: %t", d.kind, when, free)
	}
}

func (d *disk) gone(when string) {
	d.t.Helper()
	for d.look(); len(d.known) > 0; d.look() {
		if d.t.Context().Err() != nil {
			d.t.Fatalf("%s, %s: it lives on", d.kind, when)
		}
		time.Sleep(time.Millisecond)
	}
	for { // ext4 writes its last block after its entry has gone
		fd, err := unix.Open(d.loop, unix.O_RDONLY|unix.O_EXCL, 0)
		if err == nil {
			_ = unix.Close(fd)
			break
		}
		time.Sleep(time.Millisecond)
	}
	d.has(when, "")
}

// Needs root and loop devices: lazy umount, other mount namespaces, frozen. Elsewhere only the sysfs tests
// run.
func TestFileSystemOfARealDiskLivesOn(t *testing.T) {
	for _, kind := range []string{"ext4", "xfs", "btrfs"} {
		t.Run(kind, func(t *testing.T) {
			d := disk{t: t, root: t.TempDir(), kind: kind}
			if why := d.make(); why != "" {
				t.Logf("not tried on a real disk: %s", why)
				return
			}
			runtime.LockOSThread() // never unlocked: the thread ends with the test, and its mounts with it
			if err := privately(d.root); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unix.Unmount(d.root, unix.MNT_DETACH) })
			d.play()
		})
	}
}

func privately(folder string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	for _, m := range []struct {
		source, at string
		flags      uintptr
	}{{"", "/", unix.MS_REC | unix.MS_PRIVATE}, {folder, folder, unix.MS_BIND}, {"", folder, unix.MS_SHARED}} {
		if err := unix.Mount(m.source, m.at, "", m.flags, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	return nil
}

func (d *disk) make() string {
	if os.Geteuid() != 0 {
		return "not root"
	}
	if kinds, _ := os.ReadFile("/proc/filesystems"); !strings.Contains(string(kinds), "\t"+d.kind+"\n") {
		return "the kernel has no " + d.kind
	}
	image := filepath.Join(d.t.TempDir(), "image")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Truncate(image, 400<<20); err != nil {
		d.t.Fatal(err)
	}
	if out, err := exec.Command("mkfs."+d.kind, "-q", image).CombinedOutput(); err != nil {
		return fmt.Sprintf("mkfs.%s: %v %s", d.kind, err, out)
	}
	out, err := exec.Command("losetup", "--find", "--show", image).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("losetup: %v %s", err, out)
	}
	d.loop = strings.TrimSpace(string(out))
	d.t.Cleanup(func() {
		if out, err := exec.Command("losetup", "--detach", d.loop).CombinedOutput(); err != nil {
			d.t.Errorf("losetup: %v %s", err, out)
		}
	})
	return ""
}

func (d *disk) play() {
	d.mount()
	d.has("mounted", "mounted")
	d.unmount(0)
	d.gone("unmounted")

	d.mount()
	file, err := os.Create(filepath.Join(d.at(), "file"))
	if err != nil {
		d.t.Error(err)
		return
	}
	d.has("mounted once more", "mounted")
	d.unmount(unix.MNT_DETACH)
	d.has("lazily unmounted, with an open file", "lives on")
	_ = file.Close()
	d.gone("the file closed")

	d.mount()
	d.has("mounted before it is copied", "mounted")
	end, ended := d.copyMounts()
	d.unmount(0)
	d.has("unmounted, with a private copy elsewhere", "lives on")
	close(end)
	<-ended
	d.gone("the copy gone")

	if d.kind == "btrfs" {
		return // it is not unmounted while it is frozen
	}
	d.mount()
	d.has("mounted before it is frozen", "mounted")
	d.freeze(fiFreeze)
	d.unmount(0)
	d.has("frozen, and unmounted", "lives on")
	d.mount()
	d.freeze(fiThaw)
	d.unmount(0)
	d.gone("thawed")
}

func (d *disk) copyMounts() (end, ended chan struct{}) {
	d.t.Helper()
	own, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	defer unix.Close(own)
	copied := make(chan error)
	end, ended = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread()
		copied <- func() error {
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return err
			}
			if err := unix.Setns(own, unix.CLONE_NEWNS); err != nil {
				return err
			}
			if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
				return err
			}
			return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		}()
		<-end
		if err := unix.Unmount(d.at(), 0); err != nil { // the process' first thread would not end
			d.t.Error(err)
		}
	}()
	if err := <-copied; err != nil {
		d.t.Fatal(err)
	}
	return end, ended
}

const (
	fiFreeze = 0xC0045877
	fiThaw   = 0xC0045878
)

func (d *disk) freeze(how uint) {
	d.t.Helper()
	folder, err := os.Open(d.at())
	if err != nil {
		d.t.Fatal(err)
	}
	defer folder.Close()
	if err := unix.IoctlSetInt(int(folder.Fd()), how, 0); err != nil {
		d.t.Fatal(err)
	}
}
