// SPDX-License-Identifier: Apache-2.0

package attacher

import "github.com/moorage-dev/moorage/controller/attacher/decide"

// line is where volumes wait for the driver to have room for a call: first
// come, first served, each of them once.
type line struct {
	order []decide.VolumeID
	in    map[decide.VolumeID]struct{}
}

func (l *line) join(id decide.VolumeID) {
	if _, ok := l.in[id]; ok {
		return
	}
	if l.in == nil {
		l.in = map[decide.VolumeID]struct{}{}
	}
	l.in[id] = struct{}{}
	l.order = append(l.order, id)
}

func (l *line) next() (decide.VolumeID, bool) {
	if len(l.order) == 0 {
		return "", false
	}
	id := l.order[0]
	l.order = l.order[1:]
	delete(l.in, id)
	return id, true
}

func (l *line) len() int { return len(l.order) }
