// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/arbiter"
)

// answer is the whole of a Pod in a sentence or two, to be read after its name.
func answer(p *Pod) string {
	if p.Cause != nil && p.Cause.Code == "Finalizer" {
		return strings.TrimPrefix(sentence(p.Cause.Message), "it ")
	}
	if p.Cause != nil && p.Terminating {
		return strings.TrimPrefix(sentence(p.Cause.Message), p.Name+" ")
	}
	if p.Cause != nil && p.Phase == "Running" && p.Cause.Of == OfContainer {
		return "is not ready: " + sentence(p.Cause.Message)
	}
	if p.Cause != nil && p.Phase != "Running" {
		return "does not run: " + sentence(p.Cause.Message)
	}
	switch {
	case p.State == PodFinished:
		return "has finished and needs no volume any more."
	case p.Terminating:
		return fmt.Sprintf("is being deleted at %s. Its volumes may go elsewhere once its kubelet no longer reports them as in use.", p.Node)
	case p.Node == "":
		return answerUnplaced(p)
	case p.Cause != nil && p.Cause.Code == string(arbiter.NodeMissing):
		return fmt.Sprintf("may run: there is no node %s, and nobody can say whether its machine still runs it%s.", p.Node, volumesCount(p))
	case !p.NodeReady:
		return fmt.Sprintf("may run: %s is not ready, and nobody can say whether it still runs there%s.", p.Node, volumesCount(p))
	case p.Phase == "Running" && p.Cause != nil && p.Cause.Code == string(arbiter.HeldElsewhere):
		return fmt.Sprintf("runs at %s, and %s", p.Node, sentence(p.Cause.Message))
	case p.Phase == "Running":
		return fmt.Sprintf("runs at %s%s.", p.Node, withVolumes(p))
	}
	return answerStarting(p)
}

// volumesCount says what follows for the volumes of a pod of which nobody can say whether it runs.
func volumesCount(p *Pod) string {
	if p.State == PodNoVolumes {
		return ""
	}
	return "; its volumes count as in use"
}

func withVolumes(p *Pod) string {
	if p.State == PodNoVolumes {
		return ""
	}
	return ", with " + Count(len(p.Volumes), "volume")
}

// answerStarting is for a bound pod that nothing is seen to keep.
func answerStarting(p *Pod) string {
	hears := "the kubelet has not complained"
	if slices.ContainsFunc(p.Unseen, func(u Unseen) bool { return u.Resource == "events" }) {
		hears = "what the kubelet reports is not known"
	}
	if p.State == PodNoVolumes {
		return fmt.Sprintf("starts at %s: it has no volume that needs an attachment, and %s.", p.Node, hears)
	}
	mounted := slices.DeleteFunc(slices.Clone(p.Volumes), func(v PodVolume) bool { return v.NotMounted })
	every := "every volume"
	if len(mounted) < len(p.Volumes) {
		every = "every volume that its containers mount"
	}
	switch {
	case len(mounted) == 0 && !p.mounted:
		return fmt.Sprintf("starts at %s: no container of it mounts a volume that needs an attachment, and %s.", p.Node, hears)
	case p.mounted:
		return fmt.Sprintf("starts at %s: its volumes are mounted, and the kubelet is starting its containers.", p.Node)
	case !slices.ContainsFunc(mounted, func(v PodVolume) bool { return !v.inUseAt(p.Node) }):
		return fmt.Sprintf("starts at %s: %s is attached there, and the kubelet reports them in use. It mounts them, and what else the pod names, "+
			"such as ConfigMaps; then it starts the containers.", p.Node, every)
	}
	return fmt.Sprintf("starts at %s: %s is attached there and may be mounted. The kubelet mounts after its next status report, "+
		"every 10 s by default (nodeStatusUpdateFrequency).", p.Node, every)
}

// answerUnplaced is for a pod without a node and without a cause.
func answerUnplaced(p *Pod) string {
	all, fit := 0, 0
	for _, n := range p.Nodes {
		all += len(n.Nodes)
		if n.Fits {
			fit += len(n.Nodes)
		}
	}
	switch {
	case all == 0:
		return "has no node, and no node could be read: nothing can be said about where it could go."
	case fit > 0 && p.State != PodNoVolumes:
		return fmt.Sprintf("has no node yet: its volumes could go to %d of %s, and its scheduler has not spoken.", fit, Count(all, "node"))
	case barredNodes(p) == all:
		return "has no node, and none is a choice for it: " + strings.Join(bars(p), "; ") + "."
	}
	return "has no node yet."
}

// bars are what keeps a pod from the nodes, each once.
func bars(p *Pod) []string {
	var list []string
	for _, group := range p.Nodes {
		if group.Barred != "" && !slices.Contains(list, group.Barred) {
			list = append(list, group.Barred)
		}
	}
	return list
}

// CountVerb is Count with its verb.
func CountVerb(n int, noun string) string {
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

// Count is a number of things in words.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
