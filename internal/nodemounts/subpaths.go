// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"cmp"
	"fmt"
	"path"
	"strings"
)

// subpathsFolder has parts of a pod's volumes: pods/<pod UID>/volume-subpaths/<name>/<container>/<number>
// (pkg/volume/util/subpath/subpath_linux.go:185). The name is that of the PersistentVolume, or of a volume
// without one.
const subpathsFolder = "volume-subpaths"

// readSubpaths: only the mount table shows subpaths. Kubelets unmount them before they unpublish, and a
// leftover keeps the volume in use after its pod's folder is gone.
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

// podVolumes are a pod's volumes from other plugins, read once.
type podVolumes struct {
	read   bool
	names  map[string]bool
	exists bool // the pod has a folder of volumes, or may have
}

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

// readOthers: host paths may have subpaths, but no folder there. A living pod has the parent folder.
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

// mayHaveSubpath is empty if no mounted subpath may be the volume's.
func (s *scan) mayHaveSubpath(v *Volume) string {
	if v.Handle == "" || len(s.subpaths) == 0 || v.PersistentVolume != "" && !s.subpaths[v.PersistentVolume] {
		return ""
	}
	return fmt.Sprintf("it may be the volume of %q, of which a subpath is mounted", cmp.Or(v.PersistentVolume, s.subpath))
}
