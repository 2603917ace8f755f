// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// What a person does about what a node has and should not have.
const (
	forgottenFix  = "Unless a pod there uses it, take it down as docs/operate/runbook.md#moorageforgottenstagingpath says, which has block volumes and subpaths, too."
	podlessFix    = "Look at the kubelet's log there, which says what it could not unmount, and unmount it at the node: docs/operate/runbook.md#mooragemountwithoutpod."
	unattachedFix = "Unmount it at the node before anything else: docs/operate/runbook.md#mooragemountedwithoutattachment."
	unansweredFix = "See in the log of the driver's node plugin there why it does not answer. If it never will, drain the node and reboot its machine: docs/operate/node.md has why nothing else ends the call."
	bootFix       = "Without it no word of moorage-node counts there: volumes leave by the kubelet's report, and none where an AttachPolicy has requireNodeWord. A kubelet reads /proc/sys/kernel/random/boot_id when it starts: see that it can, and restart it; kubectl get node NODE -o jsonpath='{.status.nodeInfo.bootID}' then has it. A kubelet that runs no machine has none: keep moorage-node off such nodes (node.nodeSelector or node.affinity)."
	ownBootFix    = "Without it no word of moorage-node counts there: volumes leave by the kubelet's report, and none where an AttachPolicy has requireNodeWord. See that nothing masks /proc/sys/kernel/random/boot_id in its container."
	wordFix       = "See that moorage-node runs there, and what its log says: kubectl get pods -A -o wide -l app.kubernetes.io/component=node. docs/operate/node.md has what depends on it."
)

// failedCreate is the reason of a controller's events on pods that it can't make.
const failedCreate = "FailedCreate"

// checkNodeVolumes looks for what a node has itself and should not have, where a moorage-node
// runs: volumes that its kubelet has forgotten, mounts for pods that are gone, volumes that
// no VolumeAttachment attaches there; for nodes whose word is not of today; and for nodes at
// which it is to run and does not. What the kubelet lists it is about to stage, or to take
// down.
func checkNodeVolumes(e *Evidence) []Finding {
	lacking := agentsLacking(e)
	said := ofWords(e)
	if len(lacking) > 0 {
		// What the others say makes it no better.
		said = slices.DeleteFunc(said, func(f Finding) bool { return f.Severity == OK })
	}
	return slices.Concat(lacking, requiredWords(e), said)
}

// requiredWords finds AttachPolicies that let no volume leave a node at which moorage-node says
// nothing, where there are such nodes.
func requiredWords(e *Evidence) []Finding {
	if e.World.WordsUnseen != nil && !e.World.WordsUnseen.Missing {
		return nil
	}
	var list []Finding
	for _, p := range e.World.Policies {
		if p.Spec.RequireNodeWord == nil || !*p.Spec.RequireNodeWord {
			continue
		}
		var silent []string
		for _, n := range e.World.NodeDrivers {
			registered := slices.ContainsFunc(n.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == p.Spec.Driver })
			switch word := e.World.NodeWordOf(ledger.NodeName(n.Name)); word.State {
			case facts.WordAbsent, facts.WordSilent, facts.WordOfBoot, facts.WordOfNode, facts.WordNoKubeletBoot, facts.WordNoBoot:
				if registered {
					silent = append(silent, n.Name)
				}
			}
		}
		if len(silent) > 0 {
			slices.Sort(silent)
			list = append(list, found(Error, some(silent), "Have moorage-node run at these nodes (node.enabled=true), or take requireNodeWord out of the policy: docs/operate/node.md.",
				"AttachPolicy %s has requireNodeWord, and moorage-node says nothing of today at %s with driver %s: no volume of the driver leaves them, but by force", p.Name, facts.Count(len(silent), "node"), p.Spec.Driver))
		}
	}
	return list
}

// agentsLacking says at how many nodes moorage-node is to run and does not, and why.
func agentsLacking(e *Evidence) []Finding {
	if e.Agents.Err != nil {
		return unchecked("daemonsets.apps", e.Agents.Err)
	}
	var list []Finding
	for i := range e.Agents.Items {
		d := &e.Agents.Items[i]
		if d.Status.NumberReady >= d.Status.DesiredNumberScheduled {
			continue
		}
		name := d.Namespace + "/" + d.Name
		evidence, fix := "DaemonSet "+name, "Look at its pods: kubectl -n "+d.Namespace+" get pods -o wide -l app.kubernetes.io/component=node. Where it does not run all is as without it, unless an AttachPolicy has requireNodeWord."
		if refused := refusal(e.AgentEvents, d.UID); refused != "" && d.Status.CurrentNumberScheduled < d.Status.DesiredNumberScheduled {
			evidence = "DaemonSet " + name + ": " + refused
			if strings.Contains(refused, "violates PodSecurity") {
				fix = "Let the namespace admit privileged pods: kubectl label --overwrite namespace " + d.Namespace +
					" pod-security.kubernetes.io/enforce=privileged; or go without it, as before: node.enabled=false (docs/operate/node.md#install)."
			}
		}
		list = append(list, found(Warning, evidence, fix, "moorage-node is ready at %d of %s", d.Status.NumberReady, facts.Count(int(d.Status.DesiredNumberScheduled), "node")))
	}
	return list
}

// refusal is the last that was said against making pods of an owner; empty: nothing.
func refusal(events []corev1.Event, owner types.UID) string {
	var last corev1.Event
	for i := range events {
		e := &events[i]
		if e.InvolvedObject.UID == owner && e.Reason == failedCreate && !e.LastTimestamp.Before(&last.LastTimestamp) {
			last = *e
		}
	}
	return last.Message
}

// ofWords is what nodes say.
func ofWords(e *Evidence) []Finding {
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
	var absent, noKubeletBoot, noBoot []string
	for _, n := range e.World.Nodes {
		word := e.World.NodeWordOf(ledger.NodeName(n.Name))
		switch word.State {
		case facts.WordAbsent:
			absent = append(absent, n.Name)
			continue
		case facts.WordNoKubeletBoot:
			noKubeletBoot = append(noKubeletBoot, n.Name)
		case facts.WordNoBoot:
			noBoot = append(noBoot, n.Name)
		}
		list = append(list, ofWord(n.Name, &word)...)
	}
	if len(noKubeletBoot) > 0 {
		list = append(list, found(Warning, some(noKubeletBoot), bootFix, "the kubelets of %s report no bootID, so that nobody can tell of which boot the word of moorage-node is", facts.Count(len(noKubeletBoot), "node")))
	}
	if len(noBoot) > 0 {
		list = append(list, found(Warning, some(noBoot), ownBootFix, "moorage-node can't read which boot it is of at %s", facts.Count(len(noBoot), "node")))
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
	for _, call := range word.Unanswered {
		list = append(list, found(Warning, cmp.Or(call.Message, node+": no message"), unansweredFix,
			"driver %s has not answered the call to unstage volume %s at node %s: the volume neither leaves that node nor goes back to it", call.Driver, call.Volume, node))
	}
	switch word.State {
	case facts.WordPartial:
		evidence := "a volume whose driver or handle could not be read, or more volumes than are listed"
		if len(word.Unread) > 0 {
			evidence = word.Unread[0]
		}
		list = append(list, found(Unknown, evidence, "docs/operate/node.md says what moorage-node has to be able to read, and docs/operate/runbook.md#moorageforgottenstagingpath what to do about a record that is empty or cut off, and about a subpath that is left.",
			"moorage-node at %s can't read all of what the node has", node))
	case facts.WordSilent, facts.WordOfBoot, facts.WordOfNode:
		list = append(list, found(Warning, "nodevolumes "+node, wordFix, "the word of moorage-node at %s is not of today: %s", node, word.Note))
	}
	return list
}
