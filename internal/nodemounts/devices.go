// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"errors"
	"io/fs"
	"path"
)

func (s *scan) readDevices() {
	for _, name := range s.stagedFolders(devicesFolder) {
		if folder := path.Join(devicesFolder, name); folder != stagingFolder && folder != publishFolder {
			s.readDevice(name)
		}
	}
	for _, name := range s.names(stagingFolder) {
		if v := s.device(name, record{}); v != nil {
			v.Staged = Yes
		}
	}
	for _, name := range s.stagedFolders(publishFolder) {
		folder := path.Join(publishFolder, name)
		for _, pod := range s.names(folder) {
			s.publishDevice(name, pod, path.Join(folder, pod))
		}
	}
}

// readDevice: the kubelet writes its record before it calls the driver (csi_plugin.go:785), and removes it
// after the driver's answer that nothing is left (csi_block.go:480, cleanupOrphanDeviceFiles). Without
// staging, only the record shows a possible NodePublishVolume.
func (s *scan) readDevice(name string) {
	folder := path.Join(devicesFolder, name)
	data := path.Join(folder, "data")
	entries, complete := s.list(data)
	r, err := s.readRecord(data, entries)
	pods := s.names(path.Join(folder, "dev"))
	if errors.Is(err, fs.ErrNotExist) && complete && len(pods) == 0 && s.mounts.At(folder) != Yes {
		return
	}
	s.paths[folder] = true
	v := s.device(name, r)
	if v == nil {
		return
	}
	if err != nil {
		v.explain(err.Error())
	} else {
		v.Unknown, v.recorded = "", true
		s.identify(v, path.Join(stagingFolder, name), r)
	}
	for _, pod := range pods {
		s.publishDevice(name, pod, path.Join(folder, "dev", pod))
	}
}

func (s *scan) device(name string, r record) *Volume {
	p := path.Join(stagingFolder, name)
	fresh := s.volumes[p] == nil
	v := s.volume(p, Block, r)
	if v != nil && fresh {
		v.called(name)
		v.explain("there is no " + recordName)
	}
	return v
}

func (s *scan) publishDevice(name, pod, p string) {
	if v := s.device(name, record{}); v != nil {
		s.paths[p] = true
		s.publish(v, Publication{PodUID: pod, Mounted: s.mounts.At(p)})
	}
}

// names are the entries of a folder of staged volumes.
func (s *scan) names(folder string) []string {
	entries, complete := s.list(folder)
	s.stagedUnread = s.stagedUnread || !complete
	var names []string
	for _, entry := range entries {
		names = append(names, entry.name)
	}
	return names
}
