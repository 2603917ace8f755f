// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// volumeSet is a set of volumes: a list if they are few, as nearly always, and a map if a pod or a node
// names thousands.
type volumeSet struct {
	few  []VolumeID
	many map[VolumeID]struct{}
}

// fewVolumes is the longest list that is searched.
const fewVolumes = 16

// setOf is the set of a list's volumes. The list is not copied.
func setOf(list []VolumeID) volumeSet {
	if len(list) <= fewVolumes {
		return volumeSet{few: slices.Clip(list)}
	}
	many := make(map[VolumeID]struct{}, len(list))
	for _, v := range list {
		many[v] = struct{}{}
	}
	return volumeSet{many: many}
}

func (s *volumeSet) has(v VolumeID) bool {
	if s.many == nil {
		return slices.Contains(s.few, v)
	}
	_, found := s.many[v]
	return found
}

func (s *volumeSet) add(v VolumeID) {
	if s.many != nil {
		s.many[v] = struct{}{}
		return
	}
	*s = setOf(append(s.few, v))
}
