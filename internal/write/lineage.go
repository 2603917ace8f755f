// SPDX-License-Identifier: Apache-2.0

package write

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

const maxLineage = 64

// lineages remembers, for each Node, versions that differ only by this process's own patches of
// volumesAttached. A rule of force that held at one of them holds at the newest: no rule depends on other
// volumes there. Safe for parallel use.
type lineages struct {
	mu  sync.Mutex
	all map[ledger.NodeName][]string // the newest last
}

// patched counts a patch only if it tested the Node's version, so that no other write came between, and
// changed nothing else.
func (l *lineages) patched(was, is ledger.NodeState, p protocol.NodePatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.Version != was.Version || was.Version == "" || !sameButReported(was, is) {
		delete(l.all, was.Name)
		return
	}
	if was.Version == is.Version {
		return // it only tested
	}
	if l.all == nil {
		l.all = map[ledger.NodeName][]string{}
	}
	line := l.all[was.Name]
	if len(line) == 0 || line[len(line)-1] != was.Version {
		line = []string{was.Version}
	}
	line = append(line, is.Version)
	l.all[was.Name] = slices.Clone(line[max(0, len(line)-maxLineage):])
}

// atNewest moves a rule's change to the newest version, if only own patches lie between.
func (l *lineages) atNewest(node ledger.NodeState, c protocol.Change) protocol.Change {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.all[node.Name]
	if c.Rule != "" && len(line) > 0 && line[len(line)-1] == node.Version && slices.Contains(line, c.Version) {
		c.Version = node.Version
	}
	return c
}

func (l *lineages) prune(s ledger.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.all, func(name ledger.NodeName, _ []string) bool {
		n := s.Node(name)
		return n == nil || !n.Exists
	})
}

func sameButReported(a, b ledger.NodeState) bool {
	same := maps.Equal(a.Labels, b.Labels)
	a.Version, a.Reported, a.Labels = b.Version, b.Reported, b.Labels
	return same && reflect.DeepEqual(a, b)
}
