// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Change is one change of a node's volumesAttached.
type Change struct {
	Volume ledger.VolumeID
	// Add puts the volume in; otherwise it is taken out.
	Add bool
	// NodeUID is the UID of the intended Node.
	NodeUID string
	// Rule is the rule of force for the removal; empty: the kubelet does not report the volume in use.
	// Version is the version of the Node at which the rule held.
	Rule, Version string
	// WhileReady says that the node must be Ready at the version of the removal.
	WhileReady bool
}

// change is the Change of a plan's step.
func change(step rules.Step) Change {
	c := Change{Volume: step.Volume, Add: step.Kind == rules.Report, NodeUID: step.NodeUID, Rule: step.Rule, WhileReady: step.WhileReady}
	if c.Rule != "" {
		c.Version = step.NodeVersion
	}
	return c
}

// NodePatch is one patch of a node's status. The driver writes it against the Node as it was read for the
// patch. It always tests UID and volumesAttached, both as read, and the others if asked for. All tests
// hold, or nothing happens. A patch that changes nothing is a consistent read.
type NodePatch struct {
	Node    ledger.NodeName
	UID     string
	InUse   bool   // test volumesInUse, as read
	Version string // if set: test this version of the Node
	// Out are taken out of volumesAttached, then In are appended, in this order. Other entries stay.
	Out, In []ledger.VolumeID
	// Changes are the patch's parts.
	Changes []Change
}

// Adds says whether the patch may put a volume into volumesAttached. Such a patch has no precondition that
// makes a late one fail.
func (p NodePatch) Adds() bool {
	return slices.ContainsFunc(p.Changes, func(c Change) bool { return c.Add })
}

// Compose makes one patch of the changes of one Node that fit the known Node, and returns their indexes.
// The stale changes were decided on other facts: answer them with Unfit, and send nothing for them. If the
// API server refuses the patch, it names no culprit: all its changes are answered with Conflict, decided
// anew, and composed anew. If none fits, there is nothing to send.
func Compose(node ledger.NodeState, changes []Change) (patch NodePatch, fits, stale []int) {
	patch = NodePatch{Node: node.Name, UID: node.UID}
	for i, c := range changes {
		if !c.fits(node) {
			stale = append(stale, i)
			continue
		}
		fits = append(fits, i)
		patch.Changes = append(patch.Changes, c)
		switch {
		case c.Add:
			patch.Out = without(patch.Out, c.Volume)
			if !slices.Contains(node.Reported, c.Volume) && !slices.Contains(patch.In, c.Volume) {
				patch.In = append(patch.In, c.Volume)
			}
			continue
		case c.Rule == "":
			patch.InUse = true
		}
		if c.Rule != "" || c.WhileReady {
			patch.Version = node.Version
		}
		patch.In = without(patch.In, c.Volume)
		if slices.Contains(node.Reported, c.Volume) && !slices.Contains(patch.Out, c.Volume) {
			patch.Out = append(patch.Out, c.Volume)
		}
	}
	return patch, fits, stale
}

func (c Change) fits(node ledger.NodeState) bool {
	switch {
	case node.UID != c.NodeUID:
		return false
	case c.Add:
		return true
	case c.Rule != "":
		return node.Version == c.Version
	}
	return !slices.Contains(node.InUse, c.Volume) && (!c.WhileReady || node.Ready == ledger.ReadyTrue)
}

// absent says whether a Node proves a step's volume absent: neither volumesAttached nor volumesInUse
// names it, unless a rule of force holds for this version of the Node.
func absent(node ledger.NodeState, step rules.Step) bool {
	return change(step).fits(node) && !slices.Contains(node.Reported, step.Volume)
}

func without(list []ledger.VolumeID, v ledger.VolumeID) []ledger.VolumeID {
	return slices.DeleteFunc(slices.Clone(list), func(w ledger.VolumeID) bool { return v == w })
}
