// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// putHold creates a hold, or replaces it at exactly the version that was decided
// on.
func putHold(step rules.Step) Request {
	return Request{
		Kind: rules.WriteHold, Volume: step.Volume, Key: step.Volume.String(), Node: step.Node, Version: step.Expect,
		Fact: ledger.HoldSeen{Volume: step.Volume, Hold: step.Hold},
	}
}

// beginWriteHold writes a hold, or after unanswered writes have been outlasted, reads it.
func beginWriteHold(t Task) (Task, Move) {
	if t.Sent.Kind == rules.WriteHold {
		return t.readOutlasted()
	}
	return t.sendHold(t.Step)
}

// sendHold reads the Node first if it must be Ready.
func (t Task) sendHold(step rules.Step) (Task, Move) {
	if step.WhileReady {
		return t.send(read(Nodes, string(step.Node)))
	}
	return t.send(putHold(step))
}

// holderRead follows the read of the Node that must be Ready for a hold to be written.
func (t Task) holderRead(step rules.Step, a Answer) (Task, Move) {
	if node, found := first[ledger.NodeState](a); found && node.UID == step.NodeUID && node.Ready == ledger.ReadyTrue {
		t, move := t.send(putHold(step))
		move.Tell = append(move.Tell, ledger.ReadyShown{Volume: step.Volume, Node: step.Node})
		return t, move
	}
	return t.reread(a)
}

// readOutlasted reads a hold after all unanswered writes have been outlasted.
func (t Task) readOutlasted() (Task, Move) {
	t.Outlasted = true
	return t.send(readHold(t.Step.Volume))
}

// holdUnanswered tells the ledger of an unanswered write or deletion of a hold.
func holdUnanswered(sent Request) ledger.Event {
	return ledger.HoldUnanswered{Volume: sent.Volume, Version: sent.Version, Deletes: sent.Kind == rules.DeleteHold}
}

func readHold(v ledger.VolumeID) Request {
	return Request{Kind: rules.GetObject, Object: Holds, Key: v.String(), Volume: v}
}

// beginDeleteHold deletes a hold at exactly the version that was decided on.
func beginDeleteHold(t Task) (Task, Move) {
	switch {
	case t.Sent.Kind == rules.DeleteHold:
		return t.readOutlasted()
	case t.Step.Expect == "": // only the ledger has it
		return t.end(Finished, "", ledger.HoldDropped{Volume: t.Step.Volume})
	}
	return t.send(Request{Kind: rules.DeleteHold, Volume: t.Step.Volume, Key: t.Step.Volume.String(), Version: t.Step.Expect})
}

// holdBoots tells whether the API server has dropped a written hold's boot, if that is not known yet.
func holdBoots(t Task, a Answer, s ledger.Snapshot) []ledger.Event {
	sent, _ := t.Sent.Fact.(ledger.HoldSeen)
	written, ok := first[ledger.HoldSeen](a)
	if dropped := written.Hold.BootID == ""; ok && sent.Hold.BootID != "" && dropped != s.DropsHoldBoots() {
		return []ledger.Event{ledger.HoldBoots{Dropped: dropped}}
	}
	return nil
}

// holdAnswered follows the write and the deletion of a hold.
func (m *Memory) holdAnswered(t Task, a Answer, s ledger.Snapshot, now time.Time) (Task, Move) {
	switch {
	case t.Sent.Object == Nodes:
		return t.holderRead(t.Step, a)
	case t.Sent.Kind == rules.GetObject:
		return t.holdRead(a, s)
	case t.Sent.Kind == rules.DeleteHold && (a.Result == Done || a.Result == NotFound):
		return t.end(Finished, "", ledger.HoldDropped{Volume: t.Step.Volume, Version: t.Step.Expect})
	case a.Result == Done && unanswered(s, t.Step.Volume) == 0:
		return t.end(Finished, "", holdBoots(t, a, s)...)
	case a.Result == Exists, a.Result == Conflict, a.Result == NotFound:
		return t.send(readHold(t.Step.Volume))
	case a.Result == Unknown && unanswered(s, t.Step.Volume) == 0:
		return t.fail(a, holdUnanswered(t.Sent))
	case a.Result == Unknown:
		// Writes may stay unanswered for long, for example with a failing webhook. Reads meet none.
		t.Unanswered = unanswered(s, t.Step.Volume) + 1
		t, move := m.outlast(t, now)
		move.Tell = append(move.Tell, holdUnanswered(t.Sent))
		return t, move
	case (a.Result == Done || a.Result == Refused) && unanswered(s, t.Step.Volume) > 0:
		// Without a new version, as with an older definition that keeps no number of writes, the former
		// write may still be carried out. Only time helps.
		t.Unanswered = unanswered(s, t.Step.Volume)
		return m.outlast(t, now)
	}
	return t.fail(a)
}

// holdRead: the watch tells of the hold's deletion.
func (t Task) holdRead(a Answer, s ledger.Snapshot) (Task, Move) {
	if a.Result == NotFound && unanswered(s, t.Step.Volume) > 0 && t.Step.Expect != "" {
		return t.fail(a)
	}
	t, move := t.reread(a)
	if t.Outlasted && move.End == Stale {
		move.Tell = append(move.Tell, ledger.HoldAnswered{Volume: t.Step.Volume, Writes: t.Unanswered})
	}
	return t, move
}

// unanswered counts a hold's unanswered writes since it was seen.
func unanswered(s ledger.Snapshot, v ledger.VolumeID) uint16 {
	volume := s.Volume(v)
	if volume == nil {
		return 0
	}
	return volume.HoldUnanswered
}
