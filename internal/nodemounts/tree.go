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

// OpenFolder opens folders only.
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

// Lstat is for fs.ReadLinkFS.
func (t tree) Lstat(name string) (fs.FileInfo, error) { return t.root.Lstat(name) }

// ReadLink completes fs.ReadLinkFS; it is unused.
func (t tree) ReadLink(name string) (string, error) { return t.root.Readlink(name) }

// entry has the folder's own facts on a name. The file was not asked: it may be a mounted volume that does
// not answer.
type entry struct {
	name string
	kind fs.FileMode // unsaid if the folder's file system omits it
}

const unsaid = fs.ModeIrregular

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
	case *os.File: // a file of an os.Root asks each name
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

// kindOf asks the file only if the folder does not say its kind, and nothing is, or may be, mounted there.
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
