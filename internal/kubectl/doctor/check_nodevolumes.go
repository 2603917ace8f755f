// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// What a person does about what a node has and should not have.
const (
	forgottenFix  = "Unless a pod there uses it, unmount it at the node (umount, with the path below the kubelet's folder), or drain the node and reboot it: docs/operate/runbook.md#moorageforgottenstagingpath."
	podlessFix    = "Look at the kubelet's log there, which says what it could not unmount, and unmount it at the node: docs/operate/runbook.md#mooragemountwithoutpod."
	unattachedFix = "Unmount it at the node before anything else: docs/operate/runbook.md#mooragemountedwithoutattachment."
	wordFix       = "See that moorage-node runs there, and what its log says: kubectl get pods -A -o wide -l app.kubernetes.io/component=node. docs/operate/node.md has what depends on it."
)

// checkNodeVolumes looks for what a node has itself and should not have, where a moorage-node
// runs: volumes that its kubelet has forgotten, mounts for pods that are gone, volumes that
// no VolumeAttachment attaches there; and for nodes whose word is not of today. What the
// kubelet lists it is about to stage, or to take down.
func checkNodeVolumes(e *Evidence) []Finding {
	if unseen := e.World.WordsUnseen; unseen != nil {
		if unseen.Missing {
			return nil // the definition is older than this, which another check says
		}
		return unchecked(unseen.Resource, errors.New(unseen.Message))
	}
	if len(e.World.NodeVolumes) == 0 {
		return nil
	}
	var list []Finding
	var absent []string
	for _, n := range e.World.Nodes {
		word := e.World.NodeWordOf(ledger.NodeName(n.Name))
		if word.State == facts.WordAbsent {
			absent = append(absent, n.Name)
			continue
		}
		list = append(list, ofWord(n.Name, &word)...)
	}
	if len(list) == 0 {
		list = append(list, ok("nodes that say what they have staged, of which their kubelets know: %d", len(e.World.Nodes)-len(absent)))
	}
	if len(absent) > 0 {
		list = append(list, found(Info, strings.Join(absent, ", "), wordFix, "moorage-node says nothing at %s, and elsewhere it does", facts.Count(len(absent), "node")))
	}
	return list
}

// ofWord is what the word of one node leads to.
func ofWord(node string, word *facts.NodeWord) []Finding {
	var list []Finding
	for i := range word.Has {
		if word.State == facts.WordSilent {
			break // it may be old
		}
		has := &word.Has[i]
		at := node + ": " + has.Path
		if has.Leaked {
			list = append(list, found(Warning, at, forgottenFix,
				"node %s has volume %s of driver %s staged or mounted, and its kubelet does not know of it", node, has.Volume, has.Driver))
		}
		if len(has.PodsGone) > 0 && !has.KubeletKnows {
			list = append(list, found(Warning, at+", pod "+strings.Join(has.PodsGone, ", "), podlessFix,
				"node %s has volume %s of driver %s mounted for a pod that is not there, and its kubelet does not list it in volumesInUse", node, has.Volume, has.Driver))
		}
		if has.NoAttachment {
			list = append(list, found(Warning, at, unattachedFix,
				"node %s has volume %s of driver %s staged or mounted, and no VolumeAttachment attaches it there: another node may be given it", node, has.Volume, has.Driver))
		}
	}
	switch word.State {
	case facts.WordPartial:
		evidence := "a volume whose driver or handle could not be read, or more volumes than are listed"
		if len(word.Unread) > 0 {
			evidence = word.Unread[0]
		}
		list = append(list, found(Unknown, evidence, "docs/operate/node.md says what moorage-node has to be able to read.",
			"moorage-node at %s can't read all of what the node has", node))
	case facts.WordSilent, facts.WordOfBoot, facts.WordOfNode:
		list = append(list, found(Warning, "nodevolumes "+node, wordFix, "the word of moorage-node at %s is not of today: %s", node, word.Note))
	}
	return list
}
