// SPDX-License-Identifier: Apache-2.0

package ledger

// Changes gathers everything touched between two snapshots. A subscriber hears of a change a moment later,
// so that a snapshot may hold unannounced changes. Safe for parallel use.
type Changes struct {
	ledger  *Ledger
	volumes map[VolumeID]bool
	nodes   map[NodeName]bool
}

// Gather begins to gather touches. It continues for the ledger's life; the caller must call Take now and
// then.
func (l *Ledger) Gather() *Changes {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Changes{ledger: l}
	c.reset()
	l.gathering = append(l.gathering, c)
	return c
}

// Take returns the facts, and everything touched since the last Take or since Gather. The maps are the
// caller's.
func (c *Changes) Take() (s Snapshot, volumes map[VolumeID]bool, nodes map[NodeName]bool) {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	volumes, nodes = c.volumes, c.nodes
	c.reset()
	return c.ledger.snapshot(), volumes, nodes
}

func (c *Changes) reset() {
	c.volumes, c.nodes = map[VolumeID]bool{}, map[NodeName]bool{}
}

// gather adds to all Changes; mu is held.
func (l *Ledger) gather(t Touched) {
	for _, c := range l.gathering {
		for _, v := range t.Volumes {
			c.volumes[v] = true
		}
		for _, n := range t.Nodes {
			c.nodes[n] = true
		}
	}
}
