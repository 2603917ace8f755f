// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// maxFileSystems bounds a volume's file systems in the status. This process remembers the rest; a later one
// knows only that there were more.
const maxFileSystems = 8

// Kernel tells Read which file systems the kernel has. /sys/fs/TYPE/DEVICE (ext4 for ext2 and ext3 too) and
// /sys/fs/btrfs/UUID exist while the file system lives, in every mount namespace. ext4 removes its folder
// some hundredths of a second before its last write.
type Kernel struct {
	// Sys is the tree at /sys; nil: don't ask.
	Sys fs.FS
	// Before are the file systems that an earlier look of this boot found alive.
	Before []Alive
}

// FileSystem is one file system from its first mount to its end in the kernel.
type FileSystem struct {
	// Entry is its folder below /sys/fs.
	Entry string
	// Number is the folder's inode: unique in this boot, with Entry.
	Number int64
	// Unmounted: the mount table has no mount of it.
	Unmounted bool
}

// Alive is a file system of a volume, for the next look. It may live on without a mount in the table: open
// files, another mount namespace, frozen, or being written out.
//
// A zero FileSystem stands for those that an earlier process had no room to tell. They count as alive until
// the next boot.
type Alive struct {
	Driver, Handle, PersistentVolume, Path string
	FileSystem
}

func (a Alive) untold() bool { return a.FileSystem == (FileSystem{}) }

// readFileSystems finds the file systems of volumes, and former volumes' that live on.
func (s *scan) readFileSystems(k Kernel) {
	if k.Sys == nil {
		return
	}
	l := lookup{sys: k.Sys, devices: map[string]string{}}
	for p, v := range s.volumes {
		s.keep(v, l.all(s.mounts.allBelow(p)))
	}
	for folder, v := range s.inPods {
		if v != nil {
			s.keep(v, l.all(s.mounts.allBelow(path.Join(folder, "mount"))))
		}
	}
	for _, a := range k.Before {
		v := s.volumes[a.Path]
		if !a.untold() && (a.Number != l.number(a.Entry) || v != nil && v.has(a.FileSystem)) {
			continue
		}
		if v == nil {
			if v = s.volume(a.Path, Filesystem, record{Driver: a.Driver, Handle: a.Handle}); v == nil {
				s.alive = append(s.alive, a)
				continue
			}
			v.Driver, v.Handle = a.Driver, a.Handle
			v.called(a.PersistentVolume)
		}
		v.Mounted = Yes
		if a.untold() {
			v.untold = true
			v.explain("an earlier moorage-node found more file systems of it than it could tell, and nothing shows whether they live on: they count until the node boots again")
			continue
		}
		a.Unmounted = true
		v.explain(fmt.Sprintf("nothing of its file system is in the mount table, and the kernel has it (/sys/fs/%s): a process has a file of it open, another mount namespace has it mounted, it is frozen, or it is being written out", a.Entry))
		s.keep(v, []FileSystem{a.FileSystem})
	}
	for _, v := range s.volumes {
		for _, at := range v.FileSystems {
			at.Unmounted = false
			s.alive = append(s.alive, v.alive(at))
		}
		if v.untold {
			s.alive = append(s.alive, v.alive(FileSystem{}))
		}
	}
}

func (v *Volume) alive(f FileSystem) Alive {
	return Alive{Driver: v.Driver, Handle: v.Handle, PersistentVolume: v.PersistentVolume, Path: v.Path, FileSystem: f}
}

// tellFileSystems prefers those without a mount, since their end is watched.
func (v *Volume) tellFileSystems() {
	slices.SortFunc(v.FileSystems, func(a, b FileSystem) int {
		if a.Unmounted == b.Unmounted {
			return byEntry(a, b)
		}
		if a.Unmounted {
			return -1
		}
		return 1
	})
	v.MoreFileSystems = v.untold || len(v.FileSystems) > maxFileSystems
	v.FileSystems = v.FileSystems[:min(len(v.FileSystems), maxFileSystems)]
	slices.SortFunc(v.FileSystems, byEntry)
}

// keep skips a pod's folder that has only the volume's name.
func (s *scan) keep(v *Volume, list []FileSystem) {
	for _, f := range list {
		if below(v.Path, csiFolder) && !v.has(f) {
			v.FileSystems = append(v.FileSystems, f)
		}
	}
}

func (v *Volume) has(f FileSystem) bool {
	return slices.ContainsFunc(v.FileSystems, func(other FileSystem) bool { return other.Entry == f.Entry && other.Number == f.Number })
}

// Unmounted says whether a volume's file system lives on without a mount in the table.
func (f *Facts) Unmounted() bool {
	return slices.ContainsFunc(f.Volumes, func(v Volume) bool {
		return slices.ContainsFunc(v.FileSystems, func(at FileSystem) bool { return at.Unmounted })
	})
}

type lookup struct {
	sys     fs.FS
	devices map[string]string // entries by mount kind, device and source; empty: none
	btrfs   map[string]string // entries by device name
}

// all omits mounts of a folder of a file system: some drivers give folders of one disk to many volumes, and
// keep the disk mounted.
func (l *lookup) all(mounts []mount) (list []FileSystem) {
	for _, m := range mounts {
		if !m.whole {
			continue
		}
		key := strings.Join([]string{m.kind, m.device, m.source}, " ")
		entry, known := l.devices[key]
		if !known {
			entry = l.entry(m)
			l.devices[key] = entry
		}
		if entry == "" {
			continue
		}
		if number := l.number(entry); number != 0 {
			list = append(list, FileSystem{Entry: entry, Number: number})
		}
	}
	return list
}

func (l *lookup) entry(m mount) string {
	if m.kind == "btrfs" { // its number is of no device
		if l.btrfs == nil {
			l.btrfs = l.readBtrfs()
		}
		return l.btrfs[strings.TrimPrefix(m.source, "/dev/")]
	}
	to, err := fs.ReadLink(l.sys, path.Join("dev/block", m.device))
	if err != nil {
		return ""
	}
	kind := m.kind
	if kind == "ext2" || kind == "ext3" {
		kind = "ext4" // mounts these as well
	}
	return path.Join(kind, path.Base(to))
}

func (l *lookup) readBtrfs() map[string]string {
	list := map[string]string{}
	all, _ := fs.ReadDir(l.sys, "fs/btrfs")
	for _, one := range all {
		entry := path.Join("btrfs", one.Name())
		devices, _ := fs.ReadDir(l.sys, path.Join("fs", entry, "devices"))
		for _, d := range devices {
			list[d.Name()] = entry
			if mapped := line(l.sys, path.Join("block", d.Name(), "dm/name")); mapped != "" {
				list[path.Join("mapper", mapped)] = entry
			}
		}
	}
	return list
}

// number is the inode of an entry; 0: none.
func (l *lookup) number(entry string) int64 {
	info, err := fs.Lstat(l.sys, path.Join("fs", entry))
	if err != nil || !info.IsDir() {
		return 0
	}
	return inode(info)
}

func byEntry(a, b FileSystem) int {
	return cmp.Or(cmp.Compare(a.Entry, b.Entry), cmp.Compare(a.Number, b.Number))
}
