// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
	"github.com/moorage-dev/moorage/plugins/internal/waker"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

// filtered is extenderv1.ExtenderFilterResult with the nodes as the scheduler
// sent them.
type filtered struct {
	Nodes                      *nodeList   `json:",omitempty"`
	NodeNames                  *[]string   `json:",omitempty"`
	FailedNodes                failedNodes `json:",omitempty"`
	FailedAndUnresolvableNodes failedNodes `json:",omitempty"`
	Error                      string      `json:",omitempty"`
}

type failedNodes = extenderv1.FailedNodesMap

// nodeList is a corev1.NodeList of nodes as the scheduler sent them.
type nodeList struct {
	Items []json.RawMessage `json:"items"`
}

// errUnknownPod says that a scheduler asks for a pod that the API server does
// not have.
var errUnknownPod = errors.New("the pod does not exist any more")

// filter says which of the nodes a pod's volumes can follow it to. Whom it
// refuses every node is tried again when a change lifts a refusal.
func (x *extender) filter(ctx context.Context, c candidates) (filtered, error) {
	fact, err := translate.Pod(c.pod)
	if err != nil {
		return everyNode(c, err.Error()), nil
	}
	if len(fact.Volumes) == 0 {
		return passed(c), nil
	}
	attempt := x.waker.Enter(c.pod, fact)
	result, some := x.judge(attempt, &fact, c)
	if some {
		// What becomes of it now is the scheduler's to try again.
		x.waker.Reserved(c.pod.UID, true)
		return result, nil
	}
	if x.Facts.Snapshot().Pod(fact.UID) != nil {
		return result, nil
	}
	// A pod that the ledger doesn't have yet can't be followed.
	if err := x.confirm(ctx, c.pod); err != nil {
		x.waker.Leave(c.pod.UID)
		return filtered{}, err
	}
	result, some = x.judge(x.waker.Enter(c.pod, fact), &fact, c)
	x.waker.Reserved(c.pod.UID, some)
	return result, nil
}

// confirm has the ledger take in a pod that it may not have seen yet.
func (x *extender) confirm(ctx context.Context, pod *corev1.Pod) error {
	found, err := x.Facts.ConfirmPod(ctx, pod.Namespace, pod.Name, string(pod.UID))
	if err == nil && found == nil {
		err = errUnknownPod
	}
	return err
}

// judge judges every node by one snapshot, and says whether any will do.
func (x *extender) judge(attempt waker.Attempt, fact *ledger.Pod, c candidates) (filtered, bool) {
	s := attempt.Base
	request := arbiter.PodRequest(s, fact)
	if !request.Attachable(s) {
		x.waker.Leave(c.pod.UID)
		return passed(c), true
	}
	if v := x.arbiter.Admissible(s, request); !v.Allowed() {
		return everyNode(c, joined(words.Pod(v))), false
	}
	now := x.Now()
	var fit []candidate
	failed, unresolvable := failedNodes{}, failedNodes{}
	for _, node := range c.nodes {
		if message := refusedAt(attempt, node.name); message != "" {
			unresolvable[string(node.name)] = message
			continue
		}
		v := x.arbiter.Fit(s, request, node.name, now)
		messages, evictable := words.Node(v, node.name)
		switch {
		case v.Allowed():
			fit = append(fit, node)
		case evictable:
			failed[string(node.name)] = joined(messages)
		default:
			unresolvable[string(node.name)] = joined(messages)
		}
	}
	result := passed(candidates{nodes: fit, named: c.named})
	result.FailedNodes, result.FailedAndUnresolvableNodes = failed, unresolvable
	return result, len(fit) > 0
}

// refusedAt is what the controller has just said of a pod at a node.
func refusedAt(attempt waker.Attempt, n ledger.NodeName) string {
	for _, r := range attempt.Refused {
		if r.Node == n {
			return r.Message
		}
	}
	return ""
}

// joined makes one message of several: an extender has but one for a node.
func joined(messages []string) string { return strings.Join(messages, ", ") }

// passed lets every node pass, in the form in which they were sent.
func passed(c candidates) filtered {
	if c.named {
		names := make([]string, len(c.nodes))
		for i, node := range c.nodes {
			names[i] = string(node.name)
		}
		return filtered{NodeNames: &names}
	}
	list := &nodeList{Items: make([]json.RawMessage, len(c.nodes))}
	for i, node := range c.nodes {
		list.Items[i] = node.object
	}
	return filtered{Nodes: list}
}

// everyNode refuses every node for the same reason, which fewer pods on a node
// would not lift.
func everyNode(c candidates, message string) filtered {
	result := passed(candidates{named: c.named})
	result.FailedAndUnresolvableNodes = make(failedNodes, len(c.nodes))
	for _, node := range c.nodes {
		result.FailedAndUnresolvableNodes[string(node.name)] = message
	}
	return result
}

// prioritize scores nodes from 0 to 10: where the volumes are first, then the
// share of free slots.
func (x *extender) prioritize(c candidates) extenderv1.HostPriorityList {
	fact, _ := translate.Pod(c.pod) // what is broken in it scores nothing
	s := x.Facts.Snapshot()
	request := arbiter.PodRequest(s, &fact)
	scores := make(extenderv1.HostPriorityList, len(c.nodes))
	for i, node := range c.nodes {
		scores[i].Host = string(node.name)
		if len(fact.Volumes) > 0 {
			scores[i].Score = x.arbiter.Rank(s, request, node.name, arbiter.DefaultWeights) * extenderv1.MaxExtenderPriority / arbiter.MaxRank
		}
	}
	return scores
}
