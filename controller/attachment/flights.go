// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"maps"
	"sync"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// maxAbreast limits a plan's parallel steps and a volume's nodes in flight: shared volumes leave room to
// others.
const maxAbreast = 16

// flights are the nodes with steps of a shared volume under way, for which its next plan does not wait.
// All methods are safe for parallel use.
//
//	Invariant: free = those there are for all volumes − Σ |nodes[v]| − those reserved,
//	but for the steps that began without a reservation
type flights struct {
	mu    sync.Mutex
	nodes map[ledger.VolumeID]map[ledger.NodeName]bool
	free  int
}

func newFlights() *flights { return &flights{nodes: map[ledger.VolumeID]map[ledger.NodeName]bool{}} }

func (f *flights) at(id ledger.VolumeID) map[ledger.NodeName]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.nodes[id])
}

func (f *flights) add(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free += n
}

// reserve returns at how many more nodes steps may begin. Each must begin, or be returned with add.
func (f *flights) reserve(id ledger.VolumeID) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := max(0, min(f.free, maxAbreast-len(f.nodes[id])))
	f.free -= n
	return n
}

// begin needs a reservation.
func (f *flights) begin(id ledger.VolumeID, n ledger.NodeName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[id] == nil {
		f.nodes[id] = map[ledger.NodeName]bool{}
	}
	f.nodes[id][n] = true
}

func (f *flights) end(id ledger.VolumeID, n ledger.NodeName) {
	f.endUnreserved(id, n)
	f.add(1)
}

// endUnreserved is end for steps without a reservation.
func (f *flights) endUnreserved(id ledger.VolumeID, n ledger.NodeName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if delete(f.nodes[id], n); len(f.nodes[id]) == 0 {
		delete(f.nodes, id)
	}
}

// except returns the steps at other nodes. A step on a shared volume's hold is at no node; it may take back
// a forced step's fence, and the forced step waits for it.
func except(steps []rules.Step, busy map[ledger.NodeName]bool) []rules.Step {
	if len(busy) == 0 {
		return steps
	}
	var others []rules.Step
	for _, step := range steps {
		if !busy[step.Node] && (step.Rule == "" || !busy[""]) {
			others = append(others, step)
		}
	}
	return others
}

func byNode(steps []rules.Step) [][]rules.Step {
	var groups [][]rules.Step
	index := map[ledger.NodeName]int{}
	for _, step := range steps {
		i, seen := index[step.Node]
		if !seen {
			i = len(groups)
			index[step.Node] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], step)
	}
	return groups
}
