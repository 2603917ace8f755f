// SPDX-License-Identifier: Apache-2.0

package words

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Node says why a node is refused, one message for each reason. kube-scheduler
// counts equal messages over the nodes and writes "3 <message>", so they name
// what is wrong, and the node only where it is another one. evictable says
// whether fewer pods on the node could lift every reason: only then is
// preemption worth a try. Nothing for a verdict that allows.
func Node(v arbiter.Verdict, n ledger.NodeName) (messages []string, evictable bool) {
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

// Pod says why no node will do for a pod, one message for each reason. Nothing
// for a verdict that allows.
func Pod(v arbiter.Verdict) []string {
	if v.Allowed() {
		return nil
	}
	messages := make([]string, 0, len(v.Reasons))
	for _, r := range v.Reasons {
		// Of several volumes a policy's words are the same.
		if m := r.OfPod(); !slices.Contains(messages, m) {
			messages = append(messages, m)
		}
	}
	return messages
}

// Grouped counts equal messages over nodes as kube-scheduler does:
// "3 node(s) …, 1 node(s) …".
func Grouped(counts map[string]int) string {
	grouped := make([]string, 0, len(counts))
	for message, n := range counts {
		grouped = append(grouped, fmt.Sprintf("%d %s", n, message))
	}
	slices.Sort(grouped)
	return strings.Join(grouped, ", ")
}

// Elsewhere says why nodes are refused that were not looked at, since a volume
// is held at the holder: what v, the verdict on any of them, says of the holder.
func Elsewhere(v arbiter.Verdict, holder ledger.NodeName) []string {
	var messages []string
	for _, r := range v.Reasons {
		if r.Node == holder {
			messages = append(messages, r.OfNodes())
		}
	}
	return messages
}

// Waiting says of a pod that is not tried why not, in the form of
// kube-scheduler's own message: for each node, or for the pod when it is not a
// matter of nodes.
func Waiting(a arbiter.Arbiter, s ledger.Snapshot, r arbiter.Request, now time.Time) string {
	nodes, counts := 0, map[string]int{}
	admissible := a.Admissible(s, r)
	for n := range s.Nodes() {
		if !arbiter.There(s, n.Name) {
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
