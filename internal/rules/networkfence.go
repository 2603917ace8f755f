// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// FenceDue is a driver whose storage is to cut off a node that can't be reached.
type FenceDue struct {
	Driver string
	Class  string        // the NetworkFenceClass that the policy names
	Left   time.Duration // until the fence is to be made; 0: now
	Brake  Brake         // holds that time; zero: nothing does
}

// NetworkFencesDue lists, by driver, which storages are to cut a node off, and when: the
// driver's policy says after which time, and a volume of the driver is at the node, or may
// be. A fence stops pods that may run, so that the time is held as that of AfterUnreachable
// is while too many nodes are unreachable at once. None is due where the out-of-service taint
// frees the volumes anyway.
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
		if due.Brake = t.braked(s, n, policy); due.Brake.IsZero() {
			due.Left = t.run(nil, n, now).Left
		}
		list = append(list, due)
	}
	return list
}

// driversAt lists the drivers of which volumes are at a node, or may be, sorted.
func driversAt(n *ledger.Node) []string {
	var list []string
	for _, v := range n.At() {
		if len(list) == 0 || list[len(list)-1] != v.Driver {
			list = append(list, v.Driver)
		}
	}
	return list
}

// CutMachine is a machine that the storage of a driver has cut off, as it was then.
type CutMachine struct {
	Driver             string
	Node               ledger.NodeName
	NodeUID            string
	SystemUUID, BootID string // empty where its kubelet had not said
	// Look is the number by which its moorage-node was asked to look what is there, after
	// the node was Ready again; 0: it was not asked. LookSince is the node's ReadySince and
	// LookWord the UID of the NodeVolumes then: after another outage, and of a NodeVolumes that
	// was made again, the answer says nothing.
	Look, LookSince int64
	LookWord        string
}

// IsAnother says whether a node names another machine than the one that was cut off, where its
// kubelet had said which one that was.
func (m CutMachine) IsAnother(n *ledger.Node) bool {
	return m.SystemUUID != "" && n.SystemUUID != m.SystemUUID
}

// Unfencing is what may be done about a machine that a storage has cut off.
type Unfencing uint8

const (
	// StaysFenced: what was mounted there before may be there still.
	StaysFenced Unfencing = iota
	// AskBeforeUnfencing: its moorage-node is to be asked to look, by the next number.
	AskBeforeUnfencing
	// MayUnfence: nothing of what was mounted there is left.
	MayUnfence
)

// MayUnfenceMachine says whether a machine that was cut off may reach the storage again. The
// volumes that it had may be at other nodes by now, and a mount of before would write to them
// once the storage lets it. So either the machine has booted since, as the same Node of the
// same machine says that is Ready (see ledger.Snapshot.BootOver); or its moorage-node has looked since it was Ready again,
// and has found nothing of the driver. What the kubelet has in use says nothing of that: it
// names what pods there want, too. A Node that is gone or was made again says nothing: that is
// for people.
func MayUnfenceMachine(s ledger.Snapshot, m CutMachine, now time.Time) Unfencing {
	n := s.Node(m.Node)
	of := func(v ledger.VolumeID) bool { return v.Driver == m.Driver }
	switch {
	case !ready(n) || n.UID != m.NodeUID || m.SystemUUID == "" || m.IsAnother(n) || m.BootID == "":
		return StaysFenced
	case s.BootOver(n, m.SystemUUID, m.BootID): // which ends mounts, and leaves folders and records
		if n.Answers() && (slices.ContainsFunc(n.Word.Mounted, of) || n.Word.UnlistsOf(m.Driver)) {
			return StaysFenced
		}
		return MayUnfence
	case n.Answers() && (slices.ContainsFunc(n.Word.Has, of) || n.Word.UnlistsOf(m.Driver)):
		return StaysFenced
	case n.BootID != m.BootID: // it is not said, or another node has that systemUUID, too
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

// cutOff says which volumes can't be mounted at a node that is Ready again, since the storage
// of their driver has cut its machine off, and has not let it in yet.
func (w view) cutOff() []Reason {
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
