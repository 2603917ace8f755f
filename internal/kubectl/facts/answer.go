// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
)

// answer is the whole of a Pod in a sentence or two.
func answer(p *Pod) string {
	switch p.State {
	case PodFinished:
		return "It has finished and wants no volume any more."
	case PodNoVolumes:
		return "It has no volume that needs an attachment: Moorage does not keep it from anything."
	case PodWaitsForGrant:
		return fmt.Sprintf("%s was chosen for it, and moorage-controller has not decided on its ticket yet.", p.Reserved)
	case PodWaitsForNode:
		return answerUnplaced(p)
	case PodWaitsForVolumes:
		return answerWaiting(p)
	}
	switch {
	case p.Node != "" && !p.NodeReady:
		return fmt.Sprintf("%s is not ready: nobody can say whether it still runs there, and its volumes count as in use.", p.Node)
	case p.Terminating:
		return fmt.Sprintf("It is being deleted at %s. Its volumes may go elsewhere once its kubelet no longer reports them as in use.", p.Node)
	case p.Phase == "Running":
		return fmt.Sprintf("It runs at %s, with %s.", p.Node, count(len(p.Volumes), "volume"))
	}
	where := p.Node
	if where == "" {
		where = p.Reserved
	}
	return fmt.Sprintf("Every volume is attached at %s and may be mounted. The kubelet mounts after its next status report: "+
		"every 10 s by default (nodeStatusUpdateFrequency).", where)
}

func answerWaiting(p *Pod) string {
	where := "bound to " + p.Node
	if p.Node == "" {
		where = "about to be bound to " + p.Reserved
	}
	waiting := 0
	first := ""
	for _, v := range p.Volumes {
		if v.SafeToMount {
			continue
		}
		waiting++
		if first == "" && len(v.Reasons) > 0 {
			first = v.Reasons[0].Message
		}
	}
	return fmt.Sprintf("It is %s and waits for %d of %s: %s.", where, waiting, count(len(p.Volumes), "volume"), strings.TrimSuffix(first, "."))
}

// answerUnplaced says what keeps every node from a pod, or that it is not its
// volumes.
func answerUnplaced(p *Pod) string {
	for _, v := range p.Volumes {
		if len(v.Reasons) > 0 {
			return fmt.Sprintf("No node can take it: %s.", v.Reasons[0].Message)
		}
	}
	var all, barred, fit int
	var parts []string
	for _, n := range p.Nodes {
		all += len(n.Nodes)
		switch {
		case n.Barred != "":
			barred += len(n.Nodes)
		case n.Fits:
			fit += len(n.Nodes)
		default:
			parts = append(parts, fmt.Sprintf("%s: %s", count(len(n.Nodes), "node"), messages(n.Reasons)))
		}
	}
	others := ""
	if barred > 0 {
		others = fmt.Sprintf(" %s no choice for other reasons.", countVerb(barred, "node"))
	}
	switch {
	case all == 0:
		return "It has no node, and no node could be read: nothing can be said about where its volumes could go."
	case fit > 0:
		return fmt.Sprintf("Its volumes could go to %d of %s: what keeps it is something else, see what the scheduler says.%s", fit, count(all, "node"), others)
	case barred == all:
		return "No node is a choice for it, whatever its volumes: see what the scheduler says."
	}
	return fmt.Sprintf("No node that is a choice for it can take its volumes. %s.%s", strings.Join(parts, "; "), others)
}

func countVerb(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return fmt.Sprintf("%d %ss are", n, noun)
}

func messages(reasons []Reason) string {
	var list []string
	for _, r := range reasons {
		list = append(list, r.Message)
	}
	return strings.Join(list, ", and ")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
