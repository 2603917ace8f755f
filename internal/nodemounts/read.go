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

const (
	podsFolder    = "pods"
	csiFolder     = "plugins/kubernetes.io/csi"
	devicesFolder = csiFolder + "/volumeDevices"
	stagingFolder = devicesFolder + "/staging"
	publishFolder = devicesFolder + "/publish"
	globalMount   = "globalmount"       // csi_attacher.go:46
	inPods        = "kubernetes.io~csi" // the plugin's name there
)

type scan struct {
	kubelet fs.FS
	mounts  Mounts
	volumes map[string]*Volume  // by Path
	handles map[identity]string // their paths
	paths   map[string]bool     // with explained mounts
	inPods  map[string]*Volume  // by the pod's folder; nil: the pod's own
	listed  map[string]bool     // the folders of pods' volumes that were found and read
	// subpaths are names of volumes with mounted subpaths in no pod's folder; subpath is the first.
	subpaths map[string]bool
	subpath  string
	// See index.
	named, onDevice map[string][]*Volume
	ephemeral       []string
	unknown         []string
	more            int // unknown reasons, not kept
	// A pod's folder was unreadable: it may name any volume.
	podsUnread bool
	// A folder of staged volumes was unreadable: any volume may be staged.
	stagedUnread bool
	unlisted     map[Brief]bool
	alive        []Alive
}

type identity struct {
	driver, handle string
	mode           Mode
}

func (v *Volume) identity() identity { return identity{v.Driver, v.Handle, v.Mode} }

// Read returns the facts in the kubelet's folder (the Tree of an os.Root) and the mount table. It is for
// serial use, with a few system calls for each folder.
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

// readLinks notes links on the way: the mount table knows only their targets.
func (s *scan) readLinks() {
	for _, p := range onTheWay {
		if info, err := fs.Lstat(s.kubelet, p); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			s.podsUnread, s.stagedUnread = true, true
			s.note(fmt.Sprintf("%q is a link", p))
		}
	}
}

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

// list returns the entries of a folder; none if it is missing. Errors are noted, and make the entries
// incomplete.
//
// A mount that is not on the way is not entered: it may not answer.
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
	// An impossible name is not listed: the API would refuse the whole report.
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

func (s *scan) isOdd(p, name string) bool {
	if len(name) <= maxName && utf8.ValidString(name) {
		return false
	}
	s.note(fmt.Sprintf("a name that is not UTF-8, or longer than Kubernetes has them: %q", p))
	return true
}

// folders skips links, which make the result incomplete.
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

// volume returns or makes an entry. nil: there are too many; then the volume's name is kept.
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

func (s *scan) identify(v *Volume, p string, r record) {
	v.Driver, v.Handle = r.Driver, r.Handle
	s.handles[v.identity()] = p
}

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

// either is Yes if a or b is, and No if both are.
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

func printable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strings.ToValidUTF8(name, "�")
}

func short(reason string) string {
	letters := []rune(printable(reason))
	if len(letters) <= maxReason {
		return string(letters)
	}
	return string(letters[:maxReason-1]) + "…"
}
