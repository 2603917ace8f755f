// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Node says why a node is refused, one message per reason. kube-scheduler counts equal messages ("3
// <message>"): a message names the fault, and only another node. evictable says whether fewer pods on the
// node could lift every reason: only then is preemption worth a try. Allow has no messages.
func Node(v rules.Verdict, n ledger.NodeName) (messages []string, evictable bool) {
	if v.Allowed() {
		return nil, false
	}
	evictable = true
	for _, r := range v.Reasons {
		evictable = evictable && r.LiftedByEviction(n)
		messages = append(messages, r.OfNodes())
	}
	return messages, evictable
}

// Pod says why no node will do, one message per reason. Allow has none.
func Pod(v rules.Verdict) []string {
	if v.Allowed() {
		return nil
	}
	messages := make([]string, 0, len(v.Reasons))
	for _, r := range v.Reasons {
		if m := r.OfPod(); !slices.Contains(messages, m) {
			messages = append(messages, m)
		}
	}
	return messages
}

// Grouped counts equal messages as kube-scheduler does: "3 node(s) …, 1 node(s) …".
func Grouped(counts map[string]int) string {
	grouped := make([]string, 0, len(counts))
	for message, n := range counts {
		grouped = append(grouped, fmt.Sprintf("%d %s", n, message))
	}
	slices.Sort(grouped)
	return strings.Join(grouped, ", ")
}

// Elsewhere says why nodes are refused unseen: the part of v, the verdict on any of them, that concerns the
// holder.
func Elsewhere(v rules.Verdict, holder ledger.NodeName) []string {
	var messages []string
	for _, r := range v.Reasons {
		if r.Node == holder {
			messages = append(messages, r.OfNodes())
		}
	}
	return messages
}

// Waiting says why a pod is not tried, in kube-scheduler's form: for each node, or for the pod if the nodes
// do not matter.
func Waiting(a rules.Arbiter, s ledger.Snapshot, r rules.Request, now time.Time) string {
	nodes, counts := 0, map[string]int{}
	admissible := a.Admissible(s, r)
	for n := range s.Nodes() {
		if !rules.There(s, n.Name) {
			continue
		}
		nodes++
		if admissible.Allowed() {
			messages, _ := Node(a.Fit(s, r, n.Name, now), n.Name)
			for _, m := range messages {
				counts[m]++
			}
		}
	}
	why := Grouped(counts)
	if !admissible.Allowed() {
		why = strings.Join(Pod(admissible), ", ")
	}
	return fmt.Sprintf("0/%d nodes are available: %s. No new node would help.", nodes, why)
}
