// SPDX-License-Identifier: Apache-2.0

package attacher

import "github.com/moorage-dev/moorage/controller/attacher/decide"

// line is where volumes wait for the driver to have room for a call, each of them
// once. Namespaces take turns, and so do the volumes of each, in the order in which
// they began to wait: neither a volume for very many nodes nor a namespace with very
// many volumes has others wait for more than one call at a time.
//
//	Invariant: namespaces has those of rows, each once, and no row is empty
//	Invariant: in has the volumes of all rows, each of which is in one row
type line struct {
	namespaces []string // whose turn it is first
	rows       map[string][]decide.VolumeID
	in         map[decide.VolumeID]struct{}
}

// join puts a volume at the end of its namespace's row, unless it waits already.
func (l *line) join(id decide.VolumeID, namespace string) {
	if _, ok := l.in[id]; ok {
		return
	}
	if l.in == nil {
		l.in, l.rows = map[decide.VolumeID]struct{}{}, map[string][]decide.VolumeID{}
	}
	l.in[id] = struct{}{}
	if len(l.rows[namespace]) == 0 {
		l.namespaces = append(l.namespaces, namespace)
	}
	l.rows[namespace] = append(l.rows[namespace], id)
}

// next takes the volume whose turn it is. Its namespace goes behind all others.
func (l *line) next() (decide.VolumeID, bool) {
	if len(l.namespaces) == 0 {
		return "", false
	}
	namespace := l.namespaces[0]
	l.namespaces = l.namespaces[1:]
	id, rest := l.rows[namespace][0], l.rows[namespace][1:]
	delete(l.in, id)
	if len(rest) == 0 {
		delete(l.rows, namespace)
		return id, true
	}
	l.rows[namespace] = rest
	l.namespaces = append(l.namespaces, namespace)
	return id, true
}

func (l *line) len() int { return len(l.in) }
