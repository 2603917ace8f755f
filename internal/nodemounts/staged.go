// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"strings"
)

// beforeDrivers is the staging folder of Kubernetes before 1.24, by PersistentVolume name.
const beforeDrivers = "pv"

// StagingPath is a file-system volume's staging path below the kubelet's folder (csi_attacher.go:598).
func StagingPath(driver, handle string) string {
	sum := sha256.Sum256([]byte(handle))
	return path.Join(csiFolder, driver, hex.EncodeToString(sum[:]), globalMount)
}

// stagedAt is empty for a path of another form than StagingPath's.
func stagedAt(p string) (driver, digest string) {
	digest, mount := path.Split(strings.TrimPrefix(p, csiFolder+"/"))
	driver, digest = path.Split(path.Clean(digest))
	if raw, err := hex.DecodeString(digest); err != nil || len(raw) != sha256.Size || mount != globalMount || strings.Count(driver, "/") != 1 {
		return "", ""
	}
	return path.Clean(driver), digest
}

// briefly gives two names if the record is of another volume than its folder.
func briefly(p, driver, handle string) (list []Brief) {
	if handle != "" {
		list = append(list, Brief{driver, path.Base(path.Dir(StagingPath(driver, handle)))[:briefLetters]})
	}
	if driver, digest := stagedAt(p); digest != "" {
		list = append(list, Brief{driver, digest[:briefLetters]})
	}
	return list
}

func (s *scan) readStaged() {
	for _, driver := range s.stagedFolders(csiFolder) {
		folder := path.Join(csiFolder, driver)
		if folder == devicesFolder {
			continue
		}
		for _, volume := range s.stagedFolders(folder) {
			s.readStagedFolder(driver, path.Join(folder, volume))
		}
	}
}

func (s *scan) stagedFolders(folder string) []string {
	names, complete := s.folders(folder)
	s.stagedUnread = s.stagedUnread || !complete
	return names
}

// readStagedFolder: the kubelet writes its record before NodeStage (csi_attacher.go:371), and removes it
// once NodeUnstage has succeeded and nothing is mounted (csi_attacher.go:569, csi_mounter.go:584). Without
// record and mount, nothing is staged.
func (s *scan) readStagedFolder(driver, folder string) {
	p := path.Join(folder, globalMount)
	entries, complete := s.list(folder)
	s.stagedUnread = s.stagedUnread || !complete
	r, err := s.readRecord(folder, entries)
	none := errors.Is(err, fs.ErrNotExist)
	if none && complete && (s.mounts.At(p) == No || s.mounts.At(p) == Unknown && find(entries, globalMount) == nil) {
		return
	}
	v := s.volume(p, Filesystem, r)
	if v == nil {
		return
	}
	switch {
	case none && !complete:
		v.Staged = either(v.Staged, Unknown)
		v.explain("its folder could not be read")
	case none && v.Mounted != Yes:
		v.Staged = Unknown
		v.explain("there is no " + recordName + ", and the mount table can't be read")
	case none:
		v.explain("something is mounted, and there is no " + recordName)
	case err != nil:
		v.Staged = Yes
		v.explain(err.Error())
	default:
		v.Staged = Yes
		s.identify(v, p, r)
		if driver != beforeDrivers && p != StagingPath(r.Driver, r.Handle) {
			v.explain("the record is of another volume than the folder")
		}
	}
	switch {
	case driver == beforeDrivers:
		v.called(path.Base(folder))
	case v.Driver == "":
		v.Driver = printable(driver)
	}
}
