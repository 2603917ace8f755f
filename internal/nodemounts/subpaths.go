// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// subpathsFolder is where kubelets mount parts of a pod's volumes for its containers: pods/<pod
// UID>/volume-subpaths/<name>/<container>/<number> (pkg/volume/util/subpath/subpath_linux.go:185).
// The name is that of the PersistentVolume, or of a volume that has none.
const subpathsFolder = "volume-subpaths"

// readSubpaths takes in the mounts of subpaths. Only the mount table shows them: kubelets unmount them
// before they unpublish the volume, and a leftover keeps the volume in use after its pod's folder is
// gone.
func (s *scan) readSubpaths() {
	last, of := "", podVolumes{}
	for _, point := range s.mounts.points {
		parts := strings.SplitN(point, "/", 5)
		if len(parts) < 5 || parts[0] != podsFolder || parts[2] != subpathsFolder {
			continue
		}
		if folder := path.Join(parts[:4]...); folder != last {
			if path.Dir(folder) != path.Dir(last) {
				of = podVolumes{}
			}
			last = folder
			s.readSubpath(folder, parts[1], parts[3], &of)
		}
	}
}

// podVolumes are the volumes of one pod from other plugins. One reading serves all subpaths of the pod.
type podVolumes struct {
	read   bool
	names  map[string]bool
	exists bool // the pod has a folder of volumes, or it is not known
}

// readSubpath takes a folder of a pod below which subpaths of a volume are mounted.
func (s *scan) readSubpath(folder, pod, name string, of *podVolumes) {
	if v, named := s.inPods[path.Join(podsFolder, pod, "volumes", inPods, name)]; named {
		if v != nil {
			s.publish(v, Publication{PodUID: pod, PodFolder: true, Mounted: Yes})
		}
		return
	}
	if s.isOdd(folder, pod) || s.isOdd(folder, name) {
		return
	}
	if s.readOthers(pod, of); of.names[name] {
		return
	}
	published := Publication{PodUID: pod, Mounted: Yes}
	if s.publishNamed(folder, name, "", published) || of.exists {
		return
	}
	if v := s.namedOnly(folder, name, "a subpath of it is mounted, and the pod has no folder of volumes any more", published); v != nil {
		v.Staged = No
		s.subpath, s.subpaths[name] = cmp.Or(s.subpath, name), true
	}
}

// readOthers reads the names of a pod's volumes of other plugins. Host paths may have subpaths, and have
// no folder among those volumes. But a pod that lives has their parent folder.
func (s *scan) readOthers(pod string, of *podVolumes) {
	if of.read {
		return
	}
	of.read, of.names = true, map[string]bool{}
	entries, complete := s.list(path.Join(podsFolder, pod))
	of.exists = !complete || find(entries, "volumes") != nil
	volumes := path.Join(podsFolder, pod, "volumes")
	plugins, _ := s.folders(volumes)
	for _, plugin := range plugins {
		if plugin == inPods {
			continue
		}
		entries, _ := s.list(path.Join(volumes, plugin))
		for _, e := range entries {
			of.names[e.name] = true
		}
	}
}

// mayHaveSubpath says why a volume may have a mounted subpath that no pod's folder names; empty: it has
// none.
func (s *scan) mayHaveSubpath(v *Volume) string {
	if v.Handle == "" || len(s.subpaths) == 0 || v.PersistentVolume != "" && !s.subpaths[v.PersistentVolume] {
		return ""
	}
	return fmt.Sprintf("it may be the volume of %q, of which a subpath is mounted", cmp.Or(v.PersistentVolume, s.subpath))
}
