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
	// NodeUID is the intended Node's.
	NodeUID string
	// Rule is the removal's rule of force, held at Version of the Node; empty: the kubelet does not report
	// the volume in use.
	Rule, Version string
	// WhileReady: the node must be Ready at the version of the removal.
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

// NodePatch is a patch against the Node as read. Nothing happens unless all tests hold: UID and
// volumesAttached, and the others if asked for. A patch that changes nothing is a consistent read.
type NodePatch struct {
	Node    ledger.NodeName
	UID     string
	InUse   bool   // test volumesInUse, as read
	Version string // if set: test it
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

// Compose makes one patch of the changes that fit the known Node, and returns their indexes; if none, send
// nothing. Answer the stale changes, decided on other facts, with Unfit. If the API server refuses the
// patch, answer all its changes with Conflict: it names no culprit.
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

// absent: neither volumesAttached nor volumesInUse names the step's volume, unless a rule of force holds
// for this version of the Node.
func absent(node ledger.NodeState, step rules.Step) bool {
	return change(step).fits(node) && !slices.Contains(node.Reported, step.Volume)
}

func without(list []ledger.VolumeID, v ledger.VolumeID) []ledger.VolumeID {
	return slices.DeleteFunc(slices.Clone(list), func(w ledger.VolumeID) bool { return v == w })
}
