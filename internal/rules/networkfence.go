// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// FenceDue is a driver whose storage must cut off an unreachable node.
type FenceDue struct {
	Driver string
	Class  string        // the NetworkFenceClass in the policy
	Left   time.Duration // until due; 0: now
	Brake  Brake         // stops that time
}

// NetworkFencesDue lists a node's fences by driver, with their times. A fence stops pods that may run: too
// many unreachable nodes stop its time. No fence is due if the out-of-service taint frees the volumes.
func NetworkFencesDue(s ledger.Snapshot, n *ledger.Node, now time.Time) []FenceDue {
	if n == nil || !n.Exists || ready(n) || outOfService(n, now).over() {
		return nil
	}
	var list []FenceDue
	for _, driver := range driversAt(n) {
		policy := PolicyFor(s, driver, "")
		after := policy.NetworkFence.After
		if policy.NetworkFence.Class == "" || after == nil || *after < 0 || n.IsCutOff(driver) {
			continue
		}
		due := FenceDue{Driver: driver, Class: policy.NetworkFence.Class}
		t := timing{rule: NetworkFence, limit: *after, silence: silenceOf(n, now)}
		if due.Brake = t.braked(s, n); !due.Brake.On {
			due.Left = t.run(nil, n, now).Left
		}
		list = append(list, due)
	}
	return list
}

// driversAt lists the drivers with volumes that are or may be at a node, sorted.
func driversAt(n *ledger.Node) []string {
	var list []string
	for _, v := range n.At() {
		if len(list) == 0 || list[len(list)-1] != v.Driver {
			list = append(list, v.Driver)
		}
	}
	return list
}

// CutMachine is a machine when a driver's storage cut it off.
type CutMachine struct {
	Driver             string
	Node               ledger.NodeName
	NodeUID            string
	SystemUUID, BootID string // empty: not reported by its kubelet
	// Look is the number of the question to its moorage-node, after the node was Ready again; 0: not asked.
	// LookSince is the node's ReadySince then, and LookWord the NodeMountReport's UID: if either changes,
	// the answer does not count.
	Look, LookSince int64
	LookWord        string
}

// IsAnother says whether a node names another machine than the cut-off one, if known.
func (m CutMachine) IsAnother(n *ledger.Node) bool {
	return m.SystemUUID != "" && n.SystemUUID != m.SystemUUID
}

// Unfencing is the permitted action for a cut-off machine.
type Unfencing uint8

const (
	// StaysFenced: an older mount may be there.
	StaysFenced Unfencing = iota
	// AskBeforeUnfencing: ask its moorage-node to look, with the next number.
	AskBeforeUnfencing
	// MayUnfence: no older mount is left.
	MayUnfence
)

// MayUnfenceMachine says whether a cut-off machine may reach the storage again. Its volumes may be
// elsewhere by now, and an older mount would write to them: the same machine must have booted since
// (ledger.Snapshot.BootOver), or its moorage-node has looked since Ready and found nothing of the driver.
// volumesInUse does not tell: it also names wanted volumes. For a Node that is deleted or made again a
// person decides.
func MayUnfenceMachine(s ledger.Snapshot, m CutMachine, now time.Time) Unfencing {
	n := s.Node(m.Node)
	of := func(v ledger.VolumeID) bool { return v.Driver == m.Driver }
	switch {
	case !ready(n) || n.UID != m.NodeUID || m.SystemUUID == "" || m.IsAnother(n) || m.BootID == "":
		return StaysFenced
	case s.BootOver(n, ledger.Boot{SystemUUID: m.SystemUUID, BootID: m.BootID}): // a boot ends mounts, and leaves folders and records
		if n.Answers() && (slices.ContainsFunc(n.Word.Mounted, of) || n.Word.UnlistsOf(m.Driver)) {
			return StaysFenced
		}
		return MayUnfence
	case n.Answers() && (slices.ContainsFunc(n.Word.Has, of) || n.Word.UnlistsOf(m.Driver)):
		return StaysFenced
	case n.BootID != m.BootID: // unknown boot, or a second node with that systemUUID
		return StaysFenced
	case unresponsive(n, now):
		return StaysFenced
	case m.Look == 0, m.LookSince != n.ReadySince, m.LookWord != n.Word.UID:
		return AskBeforeUnfencing
	case n.Word.Looked < m.Look || !n.Word.Whole || len(n.Word.Unread) > 0:
		return StaysFenced
	}
	return MayUnfence
}

// cutOff lists the volumes whose storage still cuts off the machine of a node that is Ready again.
func (w evaluation) cutOff() []Reason {
	n := w.snapshot.Node(w.node)
	if !ready(n) || len(n.CutOff) == 0 {
		return nil
	}
	var reasons []Reason
	for _, need := range w.request.Needs {
		driver := need.Volume.Driver
		if n.IsCutOff(driver) && PolicyFor(w.snapshot, driver, "").NetworkFence.Class != "" {
			reasons = append(reasons, Reason{Code: NodeFenced, Volume: need.Volume, Claim: need.Name, Node: w.node, Driver: driver})
		}
	}
	return reasons
}
