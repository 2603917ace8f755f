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

// removal is a terminating pod of a node that is out of service.
type removal struct {
	node ledger.NodeName
	uid  string
}

func (r removal) String() string { return "pod " + r.uid + " at node " + string(r.node) }

// maxRemovals is how many pods are removed at once. Where there are more, pod garbage collection
// removes pods as well, and volumes with waiters come first.
const maxRemovals = 32

// removals removes pods beside the steps for volumes: an API server may take seconds for each, and no
// detach depends on it. A request for a removal that is under way, pauses, or was done lately changes
// nothing. Safe for parallel use.
type removals struct {
	snapshot func() ledger.Snapshot
	do       func(context.Context, rules.Step) error
	queue    *work.Queue[removal]

	mu    sync.Mutex
	known map[removal]bool // removals that are, or will be, in the queue
}

func newRemovals(snapshot func() ledger.Snapshot, do func(context.Context, rules.Step) error) *removals {
	r := &removals{snapshot: snapshot, do: do, known: map[removal]bool{}}
	r.queue = work.NewInTurns("pods of nodes out of service", r.namespace, r.process)
	return r
}

// namespace is that of a pod; "": it is gone.
func (r *removals) namespace(pod removal) string {
	if p := r.snapshot().Pod(pod.uid); p != nil {
		return p.Namespace
	}
	return ""
}

// apart has the pods of removal steps removed, and returns the other steps.
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

// removedAgain is when a pod is looked at again that was removed: finalizers may keep it, and a
// watch may be behind.
const removedAgain = 30 * time.Second

// process removes one pod, unless it is gone, or its node is in service again.
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

// due says whether a pod must be removed now.
func (r *removals) due(pod removal) bool {
	s := r.snapshot()
	node := s.Node(pod.node)
	return s.Pod(pod.uid) != nil && node != nil && node.Exists && node.OutOfService && node.Ready != ledger.ReadyTrue
}

// forget forgets a pod that must not be removed. False: it must be by now, and requests made meanwhile
// were answered as known.
func (r *removals) forget(pod removal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.due(pod) {
		return false
	}
	delete(r.known, pod)
	return true
}
