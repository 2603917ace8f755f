// SPDX-License-Identifier: Apache-2.0

package ledger

import "slices"

// volumeSet is a list of few volumes, as nearly always, else a map.
type volumeSet struct {
	few  []VolumeID
	many map[VolumeID]struct{}
}

// fewVolumes is the longest list that is searched.
const fewVolumes = 16

// setOf does not copy the list.
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
