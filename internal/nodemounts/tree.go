// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
)

// Tree is a kubelet's folder for Read: links can't lead out of it, and a pipe in place of a file or
// folder blocks no reader.
func Tree(root *os.Root) fs.FS { return tree{root} }

type tree struct{ root *os.Root }

// Open opens a file, or its replacement.
func (t tree) Open(name string) (fs.File, error) { return t.open(name, 0) }

// OpenFolder opens a folder, and nothing that is in its place.
func (t tree) OpenFolder(name string) (fs.File, error) { return t.open(name, onlyFolders) }

func (t tree) open(name string, flags int) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, err := t.root.OpenFile(name, os.O_RDONLY|atOnce|flags, 0)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// Stat implements fs.StatFS.
func (t tree) Stat(name string) (fs.FileInfo, error) { return t.root.Stat(name) }

// Lstat implements fs.ReadLinkFS for fs.Lstat.
func (t tree) Lstat(name string) (fs.FileInfo, error) { return t.root.Lstat(name) }

// ReadLink belongs to fs.ReadLinkFS: no link is read.
func (t tree) ReadLink(name string) (string, error) { return t.root.Readlink(name) }

// entry is one name in a folder, with the folder's own facts about it. The named file was not asked: it
// may be a mounted volume, which may not answer.
type entry struct {
	name string
	kind fs.FileMode // unsaid where the folder's file system does not say it
}

// unsaid is the kind of entries for which the folder names none.
const unsaid = fs.ModeIrregular

// readDir reads at most one entry more than are kept.
func readDir(kubelet fs.FS, folder string) ([]entry, error) {
	open := kubelet.Open
	if t, ok := kubelet.(interface {
		OpenFolder(name string) (fs.File, error)
	}); ok {
		open = t.OpenFolder
	}
	file, err := open(folder)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var entries []entry
	switch dir := file.(type) {
	case *os.File: // one of an os.Root asks what each name is, or by its path
		entries, err = entriesOf(dir, maxEntries+1)
	case fs.ReadDirFile:
		var found []fs.DirEntry
		found, err = dir.ReadDir(maxEntries + 1)
		for _, e := range found {
			entries = append(entries, entry{e.Name(), e.Type()})
		}
	default:
		return nil, errors.New("not a folder")
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return entries, err
}

// kindOf returns an entry's kind. If the folder does not name it, the file is asked, unless something
// is, or may be, mounted there.
func (s *scan) kindOf(folder string, e entry) (fs.FileMode, error) {
	if e.kind != unsaid {
		return e.kind, nil
	}
	name := path.Join(folder, e.name)
	if s.mounts.partial || s.mounts.names(name) {
		return unsaid, errors.New("its folder does not say what it is, and something may be mounted there")
	}
	info, err := fs.Lstat(s.kubelet, name)
	if err != nil {
		return unsaid, err
	}
	return info.Mode().Type(), nil
}
