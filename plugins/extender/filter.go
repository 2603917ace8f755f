// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/plugins/internal/requeuer"
	"github.com/moorage-dev/moorage/plugins/internal/words"
)

var errUnknownPod = errors.New("the pod does not exist any more")

// filter judges whether a pod's volumes can follow it to each node. A pod refused everywhere is retried
// when a change lifts a refusal.
func (x *Extender) filter(ctx context.Context, args wire.Args) (wire.Filtered, error) {
	fact, err := convert.Pod(args.Pod)
	if err != nil {
		return everyNode(args, err.Error()), nil
	}
	if len(fact.Volumes) == 0 {
		return wire.Passed(args.Nodes, args.Named), nil
	}
	attempt := x.requeuer.Enter(args.Pod, fact)
	refused := &binding.Refusals{}
	result, some := x.judge(attempt, &fact, args, refused)
	if !some && x.Facts.Snapshot().Pod(fact.UID) == nil {
		// The requeuer can't follow a pod that the ledger lacks.
		if err := x.confirm(ctx, args.Pod); err != nil {
			x.requeuer.Leave(args.Pod.UID)
			return wire.Filtered{}, err
		}
		attempt = x.requeuer.Enter(args.Pod, fact)
		refused = &binding.Refusals{}
		result, some = x.judge(attempt, &fact, args, refused)
	}
	// A pod with a node is left to the scheduler's own retries.
	x.requeuer.Reserved(args.Pod.UID, some)
	if !some {
		x.Placer.Refused(fact, refused, false)
		x.sampled(attempt, &fact, args)
	}
	return result, nil
}

// sampleLeast is the least number of nodes that kube-scheduler seeks before it asks an extender; if its own
// plugins pass fewer, it asks about all (schedule_one.go, minFeasibleNodesToFind).
const sampleLeast = 100

// sampled retries a pod that was refused all nodes of the request, if another node would do: kube-scheduler
// begins its next search where this search ended.
func (x *Extender) sampled(attempt requeuer.Attempt, fact *ledger.Pod, args wire.Args) {
	if len(args.Nodes) < sampleLeast {
		return
	}
	s, now := attempt.Base, x.Now()
	request := rules.PodRequest(s, fact)
	if !x.arbiter.Admissible(s, request).Allowed() {
		return
	}
	asked := make(map[ledger.NodeName]bool, len(args.Nodes))
	for _, node := range args.Nodes {
		asked[ledger.NodeName(node.Name)] = true
	}
	all, elsewhere := 0, false
	for node := range s.Nodes() {
		all++
		elsewhere = elsewhere || !asked[node.Name] && rules.There(s, node.Name) && x.arbiter.Fit(s, request, node.Name, now).Allowed()
	}
	if elsewhere {
		x.requeuer.RetryElsewhere(args.Pod.UID, 1+all/len(args.Nodes))
	}
}

func (x *Extender) confirm(ctx context.Context, pod *corev1.Pod) error {
	found, err := x.Facts.ConfirmPod(ctx, pod.Namespace, pod.Name, string(pod.UID))
	if err == nil && found == nil {
		err = errUnknownPod
	}
	return err
}

// judge judges by one snapshot, notes the refused nodes, and says whether any node will do.
func (x *Extender) judge(attempt requeuer.Attempt, fact *ledger.Pod, args wire.Args, refused *binding.Refusals) (wire.Filtered, bool) {
	s := attempt.Base
	request := rules.PodRequest(s, fact)
	if len(request.Needs) == 0 {
		x.requeuer.Leave(args.Pod.UID)
		return wire.Passed(args.Nodes, args.Named), true
	}
	if v := x.arbiter.Admissible(s, request); !v.Allowed() {
		return everyNode(args, joined(words.Pod(v))), false
	}
	now := x.Now()
	var fit []wire.Node
	failed, unresolvable := extenderv1.FailedNodesMap{}, extenderv1.FailedNodesMap{}
	for _, node := range args.Nodes {
		name := ledger.NodeName(node.Name)
		v := x.arbiter.Fit(s, request, name, now)
		if delta := x.nominees.at(node.Name, args.Pod, s); v.Allowed() && delta != nil {
			with := s.With(delta)
			if v = x.arbiter.Fit(with, rules.PodRequest(with, fact), name, now); !v.Allowed() {
				x.nominees.keepsAway(args.Pod.UID, node.Name)
			}
		}
		refused.Add(x.arbiter, s, request, name, v, now)
		messages, evictable := words.Node(v, name)
		switch {
		case v.Allowed():
			fit = append(fit, node)
		case evictable:
			failed[node.Name] = joined(messages)
		default:
			unresolvable[node.Name] = joined(messages)
		}
	}
	result := wire.Passed(fit, args.Named)
	result.FailedNodes, result.FailedAndUnresolvableNodes = failed, unresolvable
	return result, len(fit) > 0
}

// An extender has a single message for a node.
func joined(messages []string) string { return strings.Join(messages, ", ") }

// everyNode refuses every node for a reason that fewer pods would not lift.
func everyNode(args wire.Args, message string) wire.Filtered {
	result := wire.Passed(nil, args.Named)
	result.FailedAndUnresolvableNodes = make(extenderv1.FailedNodesMap, len(args.Nodes))
	for _, node := range args.Nodes {
		result.FailedAndUnresolvableNodes[node.Name] = message
	}
	return result
}

// prioritize scores nodes from 0 to 10: by the volumes' place, then by free slots.
func (x *Extender) prioritize(args wire.Args) extenderv1.HostPriorityList {
	fact, _ := convert.Pod(args.Pod) // a broken part scores nothing
	scores := make(extenderv1.HostPriorityList, len(args.Nodes))
	for i, node := range args.Nodes {
		scores[i].Host = node.Name
	}
	if len(fact.Volumes) == 0 {
		return scores
	}
	s := x.Facts.Snapshot()
	request := rules.PodRequest(s, &fact)
	for i, node := range args.Nodes {
		scores[i].Score = x.arbiter.Rank(s, request, ledger.NodeName(node.Name), rules.DefaultWeights()) * extenderv1.MaxExtenderPriority / rules.MaxRank
	}
	return scores
}
