// SPDX-License-Identifier: Apache-2.0

package ledger

// Changes gathers touches between snapshots. A snapshot may hold unannounced changes. Safe for parallel
// use.
type Changes struct {
	ledger  *Ledger
	volumes map[VolumeID]bool
	nodes   map[NodeName]bool
}

// Gather gathers touches for the ledger's life; the caller must call Take now and then.
func (l *Ledger) Gather() *Changes {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Changes{ledger: l}
	c.reset()
	l.gathering = append(l.gathering, c)
	return c
}

// Take returns the facts and the touches since the last Take or Gather. The maps are the caller's.
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

// gather needs mu held.
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
