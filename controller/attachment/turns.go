// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"github.com/moorage-dev/moorage/internal/fair"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// turns are the volumes that wait for a worker of one driver, with their namespaces in turn, and the
// volumes with their turn: one for each free worker. A worker is kept for a volume with its turn until
// that volume has been looked at.
//
//	Invariant: no volume waits in both rows, or waits and has its turn
type turns struct {
	// rows[true] waits to begin something at nodes that answer, rows[false] only at others.
	rows map[bool]*fair.Row[ledger.VolumeID]
	now  map[ledger.VolumeID]bool // turns: whether at a node that answers
	kept count                    // for those
	// passed counts the operations begun at nodes that answer while a volume waited only for others, since
	// such a volume's last turn.
	passed int
}

// maxPassed operations at nodes that answer may come before a volume that waits only for others: none waits
// without end.
const maxPassed = 3

func newTurns() *turns {
	return &turns{rows: map[bool]*fair.Row[ledger.VolumeID]{true: {}, false: {}}, now: map[ledger.VolumeID]bool{}}
}

// wait puts a volume at its tenant's end. A volume that loses its waiter keeps its place: else it might go
// from end to end.
func (t *turns) wait(id ledger.VolumeID, tenant string, live bool) {
	t.rows[!live].Remove(id)
	if was, waits := t.rows[live].Tenant(id); waits && was != tenant && was+unsought != tenant {
		t.rows[live].Remove(id)
	}
	t.rows[live].Push(tenant, id)
}

func (t *turns) leave(id ledger.VolumeID) {
	t.rows[true].Remove(id)
	t.rows[false].Remove(id)
}

func (t *turns) waits(id ledger.VolumeID) bool { return t.rows[true].Has(id) || t.rows[false].Has(id) }

func (t *turns) anybodyWaits() bool { return t.rows[true].Len()+t.rows[false].Len() > 0 }

// helps: the end of a volume's operation gives another a worker. The operation blocks volumes that wait for
// nodes of its kind; all operations, up to the driver's workers, block volumes that wait only for nodes
// that do not answer.
func (t *turns) helps(busy count, workers int, id ledger.VolumeID, live bool) bool {
	return t.othersWait(id, live) || live && t.othersWait(id, false) && busy.all+t.kept.all-1 < workers
}

// othersWait says whether other volumes wait for nodes that answer, or only for others.
func (t *turns) othersWait(id ledger.VolumeID, live bool) bool {
	others := t.rows[live].Len()
	if t.rows[live].Has(id) {
		others--
	}
	return others > 0
}

// end also says whether there was a turn, and whether at a node that answers.
func (t *turns) end(id ledger.VolumeID) (live, is bool) {
	if live, is = t.now[id]; is {
		t.kept.add(live, -1)
		delete(t.now, id)
	}
	return live, is
}

// room: a worker is free. Operations at nodes that answer block only each other. All operations block one
// at another node, or, with apart, only those at such nodes: as many again as the driver has workers.
func (t *turns) room(busy count, workers int, live, apart bool) bool {
	busy.all, busy.live = busy.all+t.kept.all, busy.live+t.kept.live
	if apart && !live {
		return workers <= 0 || busy.all-busy.live < workers
	}
	return workers <= 0 || busy.of(live) < workers
}

func (t *turns) pass() {
	if t.passed++; t.rows[false].Len() == 0 {
		t.passed = 0
	}
}

// next gives a turn for each worker that is neither busy nor kept.
func (t *turns) next(busy count, workers int) []ledger.VolumeID {
	var ids []ledger.VolumeID
	for id, is := t.first(busy, workers); is; id, is = t.first(busy, workers) {
		ids = append(ids, id)
	}
	return ids
}

// first gives a turn if there is a worker. Volumes at nodes that answer come first, up to maxPassed while
// others wait; then one of the others, however many are busy at nodes that answer.
func (t *turns) first(busy count, workers int) (id ledger.VolumeID, is bool) {
	apart := t.passed >= maxPassed
	for _, live := range []bool{!apart, apart} {
		if !t.room(busy, workers, live, apart) {
			continue
		}
		if id, is = t.rows[live].Pop(); !is {
			continue
		}
		if live {
			t.pass()
		} else {
			t.passed = 0
		}
		t.now[id] = live
		t.kept.add(live, 1)
		return id, true
	}
	return id, false
}
