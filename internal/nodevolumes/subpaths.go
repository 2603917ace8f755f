// SPDX-License-Identifier: Apache-2.0

package nodevolumes

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// subpathsFolder is where kubelets mount parts of a pod's volumes for its containers: pods/<pod
// UID>/volume-subpaths/<name>/<container>/<number> (pkg/volume/util/subpath/subpath_linux.go:185).
// The name is that of the PersistentVolume, or of a volume that has none.
const subpathsFolder = "volume-subpaths"

// readSubpaths takes in the mounts of subpaths. The mount table alone tells of them: kubelets
// unmount them before they unpublish the volume, and one that is left keeps the volume in use
// when its pod's folder names it no more.
func (s *scan) readSubpaths() {
	last := ""
	for _, point := range s.mounts.points {
		parts := strings.SplitN(point, "/", 5)
		if len(parts) < 5 || parts[0] != podsFolder || parts[2] != subpathsFolder {
			continue
		}
		if folder := path.Join(parts[:4]...); folder != last {
			last = folder
			s.readSubpath(folder, parts[1], parts[3])
		}
	}
}

// readSubpath takes a folder of a pod below which subpaths of a volume are mounted.
func (s *scan) readSubpath(folder, pod, name string) {
	if v, named := s.inPods[path.Join(podsFolder, pod, "volumes", inPods, name)]; named {
		if v != nil {
			s.publish(v, Publication{PodUID: pod, PodFolder: true, Mounted: Yes})
		}
		return
	}
	if s.isOdd(folder, pod) || s.isOdd(folder, name) || s.isOfAnotherPlugin(pod, name) {
		return
	}
	published := Publication{PodUID: pod, Mounted: Yes}
	found := s.publishNamed(folder, name, "", published)
	// Host paths have no folder among the pod's volumes, and subpaths. But each pod that lives
	// has the folder of those.
	entries, complete := s.list(path.Join(podsFolder, pod))
	if found || !complete || find(entries, "volumes") != nil {
		return
	}
	if v := s.namedOnly(folder, name, "a subpath of it is mounted, and the pod has no folder of volumes any more", published); v != nil {
		v.Staged = No
		s.subpaths = append(s.subpaths, name)
	}
}

// isOfAnotherPlugin says whether a pod has a volume of that name that is not CSI's.
func (s *scan) isOfAnotherPlugin(pod, name string) bool {
	volumes := path.Join(podsFolder, pod, "volumes")
	plugins, _ := s.folders(volumes)
	return slices.ContainsFunc(plugins, func(plugin string) bool {
		if plugin == inPods {
			return false
		}
		entries, _ := s.list(path.Join(volumes, plugin))
		return find(entries, name) != nil
	})
}

// mayHaveSubpath says why a volume may be one of which a subpath is mounted that no pod's
// folder names; empty: it is not.
func (s *scan) mayHaveSubpath(v *Volume) string {
	for _, name := range s.subpaths {
		if v.Handle != "" && (v.PersistentVolume == "" || v.PersistentVolume == name) {
			return fmt.Sprintf("it may be the volume of %q, of which a subpath is mounted", name)
		}
	}
	return ""
}
