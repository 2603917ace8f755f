// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// readPods: a kubelet always has the parent of the pods' folders.
func (s *scan) readPods() {
	if _, err := fs.Stat(s.kubelet, podsFolder); err != nil {
		s.podsUnread = true
		s.note(fmt.Sprintf("the kubelet's folder has no %q: %v", podsFolder, err))
		return
	}
	for _, pod := range s.podFolders(podsFolder) {
		folder := path.Join(podsFolder, pod)
		volumes := path.Join(folder, "volumes", inPods)
		for _, volume := range s.podFolders(volumes) {
			s.readPodVolume(pod, path.Join(volumes, volume))
		}
		// Only the names of these links to devices count.
		devices, complete := s.list(path.Join(folder, "volumeDevices", inPods))
		s.podsUnread = s.podsUnread || !complete
		for _, device := range devices {
			if v := s.device(device.name, record{}); v != nil {
				s.publish(v, Publication{PodUID: pod, PodFolder: true, Mounted: No})
			}
		}
	}
}

func (s *scan) podFolders(folder string) []string {
	names, complete := s.folders(folder)
	s.podsUnread = s.podsUnread || !complete
	return names
}

// readPodVolume: the kubelet writes its record before NodePublish (csi_mounter.go:291), and removes it when
// nothing is mounted any more (csi_mounter.go:584).
func (s *scan) readPodVolume(pod, folder string) {
	s.listed[folder] = true
	p := path.Join(folder, "mount")
	mounted := s.mounts.At(p)
	entries, complete := s.list(folder)
	s.podsUnread = s.podsUnread || !complete
	r, err := s.readRecord(folder, entries)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if !complete {
			return // already noted
		}
		if mounted == Yes || mounted == Unknown && find(entries, "mount") != nil {
			s.podsUnread = true
			s.note(fmt.Sprintf("%q may have a volume mounted, and there is no %s", folder, recordName))
		}
		return
	case errors.As(err, new(malformedError)) && mounted == No && complete:
		s.malformed(pod, folder, err)
		return
	case err != nil:
		s.podsUnread = true
		s.note(err.Error())
		return
	case r.Lifecycle == ephemeral:
		s.inPods[folder] = nil
		if mounted == Yes {
			s.ephemeral = append(s.ephemeral, folder)
		}
		return
	}
	// An older kubelet may have staged it elsewhere.
	staged := StagingPath(r.Driver, r.Handle)
	if other, known := s.handles[identity{r.Driver, r.Handle, Filesystem}]; known && s.volumes[staged] == nil {
		staged = other
	}
	v := s.volume(staged, Filesystem, r)
	if v == nil {
		return
	}
	if v.Handle == "" {
		s.identify(v, staged, r)
	}
	v.called(r.PersistentVolume)
	s.inPods[folder] = v
	s.publish(v, Publication{PodUID: pod, PodFolder: true, Mounted: mounted})
}

// malformed notes a pod's unreadable record, with nothing mounted beside it. The kubelet writes the record
// before any mount there: nothing is published by it. Only the volume of the folder's name, the
// PersistentVolume's (csi_mounter.go:92), is unknown.
func (s *scan) malformed(pod, folder string, err error) {
	s.namedOnly(folder, path.Base(folder), err.Error(), Publication{PodUID: pod, PodFolder: true, Mounted: No})
}

// namedOnly makes an entry by a PersistentVolume's name only. nil: there are too many.
func (s *scan) namedOnly(folder, name, why string, p Publication) *Volume {
	v := s.volume(folder, Filesystem, record{})
	if v == nil {
		return nil
	}
	v.called(name)
	v.explain(why)
	s.publish(v, p)
	return v
}

// readPodMounts takes in pods' mounts in folders that were not found: another mount may hide them.
func (s *scan) readPodMounts() {
	for _, point := range s.mounts.points {
		parts := strings.SplitN(point, "/", 6)
		if len(parts) < 6 || parts[0] != podsFolder || parts[2] != "volumes" || parts[3] != inPods {
			continue
		}
		folder, pod, name := path.Join(parts[:5]...), parts[1], parts[4]
		if s.listed[folder] || s.isOdd(folder, pod) || s.isOdd(folder, name) {
			continue
		}
		s.listed[folder] = true
		const why = "it is mounted in the folder of a pod that can't be found: something may be mounted over it"
		published := Publication{PodUID: pod, Mounted: Yes}
		if s.publishNamed(folder, name, why, published) {
			continue
		}
		if v := s.namedOnly(folder, name, why, published); v != nil {
			v.Staged = No
		}
	}
}

// publishNamed adds a pod to the volumes with a name, and to volumes without a pod's folder whose file
// system is mounted in this folder. False: none.
func (s *scan) publishNamed(folder, name, why string, p Publication) (found bool) {
	list := slices.Clone(s.named[name])
	for _, v := range s.sharing(folder) {
		if !v.named {
			list = append(list, v)
		}
	}
	for _, v := range list {
		s.publish(v, p)
		if why != "" {
			v.explain(why)
		}
	}
	return len(list) > 0
}

// publishHidden adds a pod to the volumes whose file system is mounted at its own volume. False: none.
func (s *scan) publishHidden(folder string) (found bool) {
	list := s.sharing(folder)
	for _, v := range list {
		s.publish(v, Publication{PodUID: strings.Split(folder, "/")[1], PodFolder: true, Mounted: Yes})
	}
	return len(list) > 0
}

// index runs after the last volume with a handle is added.
func (s *scan) index() {
	s.named, s.onDevice = map[string][]*Volume{}, map[string][]*Volume{}
	for p, v := range s.volumes {
		if v.Handle == "" {
			continue
		}
		s.named[v.PersistentVolume] = append(s.named[v.PersistentVolume], v)
		for _, m := range s.mounts.allBelow(p) {
			if list := s.onDevice[m.device]; !slices.Contains(list[max(0, len(list)-1):], v) {
				s.onDevice[m.device] = append(list, v)
			}
		}
	}
}

// sharing returns the volumes with a file system mounted at or below a folder.
func (s *scan) sharing(folder string) (list []*Volume) {
	met := map[string]bool{}
	for _, m := range s.mounts.allBelow(folder) {
		if !met[m.device] {
			met[m.device] = true
			list = append(list, s.onDevice[m.device]...)
		}
	}
	return list
}

// readEphemeral takes the pods' own volumes that may hide others: kubelets use one folder for a pod's own
// volume and a PersistentVolume of the same name (csi_mounter.go:92), and the later record replaces the
// other. If something else is mounted there, or a PersistentVolume has that name, it is not known to be
// absent.
func (s *scan) readEphemeral() {
	known := map[string]bool{}
	for _, v := range s.volumes {
		if v.Handle != "" || v.Mode == Block { // else possibly another pod's own
			known[v.PersistentVolume] = true
		}
	}
	for _, folder := range s.ephemeral {
		name := path.Base(folder)
		if s.publishHidden(folder) {
			continue
		}
		if !known[name] && !s.mounts.stacked(path.Join(folder, "mount")) {
			continue
		}
		v := s.namedOnly(folder, name, "the record is of a volume of the pod's own, and the PersistentVolume of its name may be mounted with it",
			Publication{PodUID: strings.Split(folder, "/")[1], PodFolder: true, Mounted: Yes})
		if v == nil {
			return
		}
		v.Staged = No
	}
}
