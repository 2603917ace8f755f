// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Folders below the kubelet's own.
const (
	podsFolder    = "pods"
	csiFolder     = "plugins/kubernetes.io/csi"
	devicesFolder = csiFolder + "/volumeDevices"
	stagingFolder = devicesFolder + "/staging"
	publishFolder = devicesFolder + "/publish"
	globalMount   = "globalmount"       // csi_attacher.go:46
	inPods        = "kubernetes.io~csi" // the plugin's name in pods' folders
)

// scan is one reading.
type scan struct {
	kubelet fs.FS
	mounts  Mounts
	volumes map[string]*Volume  // by Path
	handles map[identity]string // their paths
	paths   map[string]bool     // paths with explained mounts
	inPods  map[string]*Volume  // by the folder of a pod that names it; nil: it is the pod's own
	listed  map[string]bool     // the folders of pods' volumes that were found and read
	// subpaths are the volumes' names with mounted subpaths that no pod's folder names, and subpath is
	// the first of them.
	subpaths map[string]bool
	subpath  string
	// The volumes with a handle: see index.
	named, onDevice map[string][]*Volume
	// ephemeral are the folders of pods' own volumes with a mount.
	ephemeral []string
	unknown   []string
	more      int // of unknown, not kept
	// A pod's folder could not be read: it may name any volume.
	podsUnread bool
	// A folder of staged volumes could not be read: any volume may be staged.
	stagedUnread bool
	// unlisted are the volumes beyond maxVolumes.
	unlisted map[Brief]bool
	alive    []Alive
}

type identity struct {
	driver, handle string
	mode           Mode
}

func (v *Volume) identity() identity { return identity{v.Driver, v.Handle, v.Mode} }

// Read returns the facts in the kubelet's folder and the mount table. Links can't lead out of the
// folder: it is the Tree of an os.Root. It is for serial use, and takes one system call or a few for
// each folder.
func Read(kubelet fs.FS, mounts Mounts, kernel Kernel) Facts {
	s := &scan{
		kubelet: kubelet, mounts: mounts, volumes: map[string]*Volume{}, handles: map[identity]string{}, paths: map[string]bool{},
		inPods: map[string]*Volume{}, listed: map[string]bool{}, subpaths: map[string]bool{}, unlisted: map[Brief]bool{},
	}
	if mounts.unknown != "" {
		s.note(mounts.unknown)
	}
	s.readLinks()
	s.readStaged()
	s.readDevices()
	s.readPods()
	s.index()
	s.readEphemeral()
	s.readPodMounts()
	s.readSubpaths()
	s.readFileSystems(kernel)
	s.readMounts()
	return s.facts()
}

// readLinks notes links among the folders on the way: the mount table has mounts below a link by the
// path that it leads to, and not by the path that is looked for.
func (s *scan) readLinks() {
	for _, p := range onTheWay {
		if info, err := fs.Lstat(s.kubelet, p); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			s.podsUnread, s.stagedUnread = true, true
			s.note(fmt.Sprintf("%q is a link", p))
		}
	}
}

// facts sums up the read facts.
func (s *scan) facts() Facts {
	f := Facts{Unknown: s.unknown, Unlisted: slices.SortedFunc(maps.Keys(s.unlisted), Brief.Compare), Alive: s.alive}
	if s.more > 0 {
		f.Unknown = append(f.Unknown, fmt.Sprintf("and %d more", s.more))
	}
	named := map[identity]bool{}
	for _, v := range s.volumes {
		if v.named {
			named[v.identity()] = true
		}
	}
	for _, p := range slices.Sorted(maps.Keys(s.volumes)) {
		v := *s.volumes[p]
		slices.SortFunc(v.Published, func(a, b Publication) int { return cmp.Compare(a.PodUID, b.PodUID) })
		v.tellFileSystems()
		if v.recorded && v.Staged == No && len(v.Published) == 0 {
			v.Staged = Unknown
			v.explain("there is a record of it, and nothing else shows whether the driver has it")
		}
		if s.stagedUnread && v.Staged == No {
			v.Staged = Unknown
		}
		there := v.Staged == Yes || v.Mounted == Yes || len(v.Published) > 0
		switch {
		case !there || v.named || v.Handle != "" && named[v.identity()]:
		case s.podsUnread:
			v.explain("a pod's folder could not be read, and may name it")
		default:
			v.Forgotten = true
			if why := s.mayHaveSubpath(&v); why != "" {
				v.explain(why)
			}
		}
		f.Volumes = append(f.Volumes, v)
	}
	return f
}

// list returns the entries of a folder. A missing folder has none. Errors are noted, and the entries
// are then incomplete.
//
// A mount that is not on the way is not entered, nor anything below it: it may not answer.
func (s *scan) list(folder string) (entries []entry, complete bool) {
	if over := s.mounts.over(folder); over != "" {
		s.paths[over] = true
		s.note(fmt.Sprintf("%q is a mount of its own, and is not looked into", over))
		return nil, false
	}
	entries, err := readDir(s.kubelet, folder)
	complete = true
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true
	case err != nil:
		complete = false
		s.note(fmt.Sprintf("%q: %v", folder, err))
	case len(entries) > maxEntries:
		complete = false
		s.note(fmt.Sprintf("%q has more than %d entries", folder, maxEntries))
		entries = entries[:maxEntries]
	}
	// Nothing by such a name is listed: the API would refuse all that is said beside it.
	kept := entries[:0]
	for _, e := range entries {
		if s.isOdd(path.Join(folder, e.name), e.name) {
			complete = false
		} else {
			kept = append(kept, e)
		}
	}
	return kept, complete
}

// isOdd says whether a name in a path is impossible for Kubernetes' objects, and notes it.
func (s *scan) isOdd(p, name string) bool {
	if len(name) <= maxName && utf8.ValidString(name) {
		return false
	}
	s.note(fmt.Sprintf("a name that is not UTF-8, or longer than Kubernetes has them: %q", p))
	return true
}

// folders are the folders among a folder's entries. A link is none, and where it leads
// is not looked at: then not all is read.
func (s *scan) folders(folder string) (names []string, complete bool) {
	entries, complete := s.list(folder)
	for _, entry := range entries {
		kind, err := s.kindOf(folder, entry)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it has gone meanwhile
		case err != nil:
			complete = false
			s.note(fmt.Sprintf("%q: %v", path.Join(folder, entry.name), err))
		case kind.IsDir():
			names = append(names, entry.name)
		case kind&fs.ModeSymlink != 0:
			complete = false
			s.note(fmt.Sprintf("%q is a link", path.Join(folder, entry.name)))
		}
	}
	return names, complete
}

// note keeps why something could not be read.
func (s *scan) note(reason string) {
	if slices.Contains(s.unknown, short(reason)) {
		return
	}
	if len(s.unknown) == maxUnknown {
		s.more++
		return
	}
	s.unknown = append(s.unknown, short(reason))
}

// volume returns the entry of a staging path, and makes it. It is nil when there are too
// many; then the volume's name is kept, from its record or its path.
func (s *scan) volume(p string, mode Mode, r record) *Volume {
	if v := s.volumes[p]; v != nil {
		return v
	}
	if len(s.volumes) == maxVolumes {
		s.passOver(p, r)
		return nil
	}
	s.paths[p] = true
	v := &Volume{Mode: mode, Path: printable(p), Staged: No, Mounted: s.mounts.At(p)}
	if v.Mounted == Yes {
		v.Staged = Yes
	}
	s.volumes[p] = v
	return v
}

// passOver keeps the name of a volume beyond maxVolumes.
func (s *scan) passOver(p string, r record) {
	s.paths[p] = true
	brief := briefly(p, r.Driver, r.Handle)
	for _, b := range brief {
		s.unlisted[b] = true
	}
	if len(brief) == 0 {
		s.note(fmt.Sprintf("there are more than %d volumes, and it is not known which %q is", maxVolumes, p))
	}
}

// identify says which volume an entry is of.
func (s *scan) identify(v *Volume, p string, r record) {
	v.Driver, v.Handle = r.Driver, r.Handle
	s.handles[v.identity()] = p
}

// called takes the name of a PersistentVolume for a volume.
func (v *Volume) called(name string) {
	if v.PersistentVolume == "" || name != "" && name < v.PersistentVolume {
		v.PersistentVolume = printable(name)
	}
}

// explain keeps the first reason for not knowing something of a volume.
func (v *Volume) explain(reason string) {
	if v.Unknown == "" {
		v.Unknown = short(reason)
	}
}

// publish adds a pod that has the volume.
func (s *scan) publish(v *Volume, p Publication) {
	v.named = v.named || p.PodFolder
	p.PodUID = printable(p.PodUID)
	i := slices.IndexFunc(v.Published, func(other Publication) bool { return other.PodUID == p.PodUID })
	switch {
	case i >= 0:
		other := &v.Published[i]
		other.PodFolder = other.PodFolder || p.PodFolder
		other.Mounted = either(other.Mounted, p.Mounted)
	case len(v.Published) == maxPublished:
		v.MorePods = true
	default:
		v.Published = append(v.Published, p)
	}
}

// readMounts notes mounts among the CSI plugin's folders that no record there explains.
func (s *scan) readMounts() {
	for _, point := range s.mounts.points {
		if !below(point, csiFolder) || slices.Contains(onTheWay, point) || s.accounted(point) {
			continue
		}
		s.note(fmt.Sprintf("%q is mounted, and there is no record of it", point))
	}
}

func (s *scan) accounted(point string) bool {
	for p := point; p != "." && p != "/"; p = path.Dir(p) {
		if s.paths[p] {
			return true
		}
	}
	return false
}

// either is Yes where one of two is, and No where both are.
func either(a, b Answer) Answer {
	switch {
	case a == Yes || b == Yes:
		return Yes
	case a == No && b == No:
		return No
	default:
		return Unknown
	}
}

// printable is a name as JSON can have it.
func printable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strings.ToValidUTF8(name, "�")
}

// short cuts a reason off where it is too long to be kept.
func short(reason string) string {
	letters := []rune(printable(reason))
	if len(letters) <= maxReason {
		return string(letters)
	}
	return string(letters[:maxReason-1]) + "…"
}
