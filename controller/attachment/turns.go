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
	// rows[true] has who waits to begin something at a node that answers, and rows[false]
	// who waits only to begin something at others.
	rows map[bool]*fair.Row[ledger.VolumeID]
	now  map[ledger.VolumeID]bool // volumes with their turn: whether at a node that answers
	kept count                    // for those
	// passed is how many have begun an operation at nodes that answer while a volume waited only for
	// others, since the last turn of such a volume.
	passed int
}

// maxPassed is how many begin an operation at nodes that answer before a volume that waits only for
// others has a turn: an endless row of them, waiting or not, keeps none waiting without end.
const maxPassed = 3

func newTurns() *turns {
	return &turns{rows: map[bool]*fair.Row[ledger.VolumeID]{true: {}, false: {}}, now: map[ledger.VolumeID]bool{}}
}

// wait puts a volume at the end of its tenant's row, unless it is there. A volume that had a waiter
// keeps that place when the waiter goes: else it might go from end to end again and again.
func (t *turns) wait(id ledger.VolumeID, tenant string, live bool) {
	t.rows[!live].Remove(id)
	if was, waits := t.rows[live].Tenant(id); waits && was != tenant && was+unsought != tenant {
		t.rows[live].Remove(id)
	}
	t.rows[live].Push(tenant, id)
}

// leave has a volume wait no more.
func (t *turns) leave(id ledger.VolumeID) {
	t.rows[true].Remove(id)
	t.rows[false].Remove(id)
}

func (t *turns) waits(id ledger.VolumeID) bool { return t.rows[true].Has(id) || t.rows[false].Has(id) }

// anybodyWaits says whether any volume waits.
func (t *turns) anybodyWaits() bool { return t.rows[true].Len()+t.rows[false].Len() > 0 }

// helps says whether another volume has a worker after a volume's operation, at a node that answers or
// at another, has ended. The operation is in the way of volumes that wait for nodes of its kind;
// volumes that wait only for nodes that do not answer have all operations in their way, up to the
// driver's workers.
func (t *turns) helps(busy count, workers int, id ledger.VolumeID, live bool) bool {
	return t.othersWait(id, live) || live && t.othersWait(id, false) && busy.all+t.kept.all-1 < workers
}

// othersWait says whether volumes other than one wait for nodes that answer, or only for others.
func (t *turns) othersWait(id ledger.VolumeID, live bool) bool {
	others := t.rows[live].Len()
	if t.rows[live].Has(id) {
		others--
	}
	return others > 0
}

// end ends a volume's turn, if it has one, and says whether that was at a node that answers.
func (t *turns) end(id ledger.VolumeID) (live, is bool) {
	if live, is = t.now[id]; is {
		t.kept.add(live, -1)
		delete(t.now, id)
	}
	return live, is
}

// room says whether there is a worker for one more. Operations at nodes that answer block only each other.
// All operations block one at another node, or, apart, only operations at such nodes: as many again as the
// driver has workers.
func (t *turns) room(busy count, workers int, live, apart bool) bool {
	busy.all, busy.live = busy.all+t.kept.all, busy.live+t.kept.live
	if apart && !live {
		return workers <= 0 || busy.all-busy.live < workers
	}
	return workers <= 0 || busy.of(live) < workers
}

// pass notes that something begins at a node that answers.
func (t *turns) pass() {
	if t.passed++; t.rows[false].Len() == 0 {
		t.passed = 0
	}
}

// next gives turns to the next volumes, one for each worker that is neither busy nor kept, and returns
// them.
func (t *turns) next(busy count, workers int) []ledger.VolumeID {
	var ids []ledger.VolumeID
	for id, is := t.first(busy, workers); is; id, is = t.first(busy, workers) {
		ids = append(ids, id)
	}
	return ids
}

// first gives a turn to the next volume if there is a worker. Volumes at nodes that answer come first,
// up to maxPassed of them while others wait; then one of these has a turn, however many are busy at
// nodes that answer.
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
