// SPDX-License-Identifier: Apache-2.0

package flow

import (
	"fmt"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// putHold creates a hold, or replaces it at exactly the version that was decided
// on.
func putHold(step arbiter.Step) Request {
	return Request{
		Do: PutHold, Volume: step.Volume, Key: step.Volume.String(), Node: step.Node, Version: step.Expect,
		Fact: ledger.HoldSeen{Volume: step.Volume, Hold: step.Hold},
	}
}

func readHold(v ledger.VolumeID) Request {
	return Request{Do: GetObject, Kind: Holds, Key: v.String(), Volume: v}
}

// beginDeleteHold deletes a hold after consistent reads of the PersistentVolumes
// that it names: a cache that has not heard of one yet proves nothing, and a hold
// that is made anew counts its transitions from the beginning. One that names
// none was written for an inline volume, or by somebody who had not heard of any;
// there are few, and all PersistentVolumes are read. One without transitions has
// nothing to lose.
func beginDeleteHold(t Task) (Task, Move) {
	hold := t.Step.Hold
	switch {
	case hold.Transitions == 0:
	case len(hold.PVs) == 0:
		t.Proofs = []Request{{Do: ListObjects, Kind: PersistentVolumes, Volume: t.Step.Volume}}
	default:
		for _, pv := range hold.PVs {
			t.Proofs = append(t.Proofs, read(PersistentVolumes, pv))
		}
	}
	return t.dropHold()
}

func (t Task) dropHold() (Task, Move) {
	if len(t.Proofs) > 0 {
		return t.send(t.Proofs[0])
	}
	return t.send(Request{Do: DropHold, Volume: t.Step.Volume, Key: t.Step.Volume.String(), Version: t.Step.Expect})
}

// holdAnswered follows the write and the deletion of a hold.
func holdAnswered(t Task, a Answer) (Task, Move) {
	switch {
	case t.Sent.Do == GetObject && t.Sent.Kind == Holds:
		return t.reread(a)
	case t.Sent.Do == GetObject || t.Sent.Do == ListObjects:
		return forgottenAnswered(t, a)
	case a.Result == Done, a.Result == NotFound && t.Sent.Do == DropHold:
		return t.end(Finished, "")
	case a.Result == Exists, a.Result == Conflict, a.Result == NotFound:
		return t.send(readHold(t.Step.Volume))
	}
	return t.fail(a)
}

// forgottenAnswered follows a read that must find no PersistentVolume that a
// hold counts transitions for.
func forgottenAnswered(t Task, a Answer) (Task, Move) {
	switch {
	case a.Result != Done && a.Result != NotFound:
		return t.fail(a)
	case a.Result == Done && t.Sent.Do == GetObject:
		return t.end(Stale, fmt.Sprintf("PersistentVolume %s exists", t.Sent.Key))
	}
	for _, e := range a.Facts {
		if pv, ok := e.(ledger.PersistentVolume); ok && pv.Volume == t.Step.Volume {
			return t.end(Stale, fmt.Sprintf("PersistentVolume %s exists", pv.Name))
		}
	}
	t.Proofs = t.Proofs[1:]
	return t.dropHold()
}
