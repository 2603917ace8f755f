// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"context"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/work"
)

type removal struct {
	node ledger.NodeName
	uid  string
}

func (r removal) String() string { return "pod " + r.uid + " at node " + string(r.node) }

// maxRemovals limits parallel removals: pod garbage collection removes pods too, and volumes with waiters
// come first.
const maxRemovals = 32

// removals removes pods beside the volumes' steps: a removal may take seconds, and no detach depends on it.
// Repeated requests, and requests during a pause, change nothing. Safe for parallel use.
type removals struct {
	snapshot func() ledger.Snapshot
	do       func(context.Context, rules.Step) error
	queue    *work.Queue[removal]

	mu    sync.Mutex
	known map[removal]bool // in the queue now or soon
}

func newRemovals(snapshot func() ledger.Snapshot, do func(context.Context, rules.Step) error) *removals {
	r := &removals{snapshot: snapshot, do: do, known: map[removal]bool{}}
	r.queue = work.NewInTurns("pods of nodes out of service", r.namespace, r.process)
	return r
}

// namespace is the pod's; "": the pod is gone.
func (r *removals) namespace(pod removal) string {
	if p := r.snapshot().Pod(pod.uid); p != nil {
		return p.Namespace
	}
	return ""
}

// apart removes the pods of removal steps, and returns the other steps.
func (r *removals) apart(steps []rules.Step) []rules.Step {
	var rest []rules.Step
	for _, step := range steps {
		if step.Kind == rules.RemovePod {
			r.add(removal{step.Node, step.UID})
		} else {
			rest = append(rest, step)
		}
	}
	return rest
}

func (r *removals) add(pod removal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known[pod] {
		r.known[pod] = true
		r.queue.Add(pod)
	}
}

// removedAgain is when a removed pod is looked at again: finalizers may keep it, or a watch lags.
const removedAgain = 30 * time.Second

func (r *removals) process(ctx context.Context, pod removal) (again time.Duration, err error) {
	for {
		if r.due(pod) {
			return removedAgain, r.do(ctx, rules.Step{Kind: rules.RemovePod, Node: pod.node, UID: pod.uid})
		}
		if r.forget(pod) {
			return 0, nil
		}
	}
}

func (r *removals) due(pod removal) bool {
	s := r.snapshot()
	node := s.Node(pod.node)
	return s.Pod(pod.uid) != nil && node != nil && node.Exists && node.OutOfService && node.Ready != ledger.ReadyTrue
}

// forget forgets a pod that must not be removed. False: it must be by now, and requests meanwhile were
// answered as known.
func (r *removals) forget(pod removal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due(pod) {
		return false
	}
	delete(r.known, pod)
	return true
}
