// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"container/list"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// turns are the volumes that wait for a worker of one driver, in the order in which they
// began to, and those whose turn it is: one for each worker that is free. A worker is kept
// for who has its turn until that volume has been looked at.
//
//	Invariant: spots has an element for each volume of rows
//	Invariant: no volume both waits and has its turn
type turns struct {
	// rows[true] has who waits to begin something at a node that answers, and rows[false]
	// who waits only to begin something at others.
	rows  map[bool]*list.List
	spots map[ledger.VolumeID]spot
	now   map[ledger.VolumeID]bool // whose turn it is: whether at a node that answers
	kept  count                    // for those
}

// spot is a volume's place in one of the rows.
type spot struct {
	live bool
	at   *list.Element
}

func newTurns() *turns {
	rows := map[bool]*list.List{true: list.New(), false: list.New()}
	return &turns{rows: rows, spots: map[ledger.VolumeID]spot{}, now: map[ledger.VolumeID]bool{}}
}

// wait puts a volume at the end of a row, unless it is in it.
func (t *turns) wait(id ledger.VolumeID, live bool) {
	if was, is := t.spots[id]; is && was.live == live {
		return
	}
	t.leave(id)
	t.spots[id] = spot{live, t.rows[live].PushBack(id)}
}

// leave has a volume wait no more.
func (t *turns) leave(id ledger.VolumeID) {
	if was, is := t.spots[id]; is {
		t.rows[was.live].Remove(was.at)
		delete(t.spots, id)
	}
}

// end ends a volume's turn, if it has one.
func (t *turns) end(id ledger.VolumeID) {
	if live, is := t.now[id]; is {
		t.kept.add(live, -1)
		delete(t.now, id)
	}
}

// next gives a turn to those who wait longest, one for each worker that is neither busy
// nor kept, and returns them.
func (t *turns) next(busy count, workers int) []ledger.VolumeID {
	var ids []ledger.VolumeID
	for _, live := range []bool{true, false} {
		row := t.rows[live]
		for row.Len() > 0 && (workers <= 0 || busy.of(live)+t.kept.of(live) < workers) {
			id := row.Front().Value.(ledger.VolumeID)
			t.leave(id)
			t.now[id] = live
			t.kept.add(live, 1)
			ids = append(ids, id)
		}
	}
	return ids
}
