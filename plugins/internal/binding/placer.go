// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/tickets"
)

// Placer reserves nodes for pods, and binds the pods. All that place pods in a process share one
// Placer, so that each sees at once what another has reserved. Ledger and Now must be set. Safe for
// parallel use.
type Placer struct {
	Binder Binder
	Ledger *ledger.Ledger
	Now    func() time.Time

	// Order is held from a verdict until the ledger counts what it allows, be it for a pod or a ticket.
	Order sync.Mutex
	// Waits are the pods that were refused.
	Waits tickets.Waits

	before  Before // guarded by Order
	touched []func(ledger.Touched)
}

// Before decides on the tickets that rank before a pod, shortly before the pod is reserved at a node.
// Order is held. kept says why the pod must wait although it fits. The caller calls write after it has
// released Order; write is nil if there were no such tickets.
type Before func(pod *ledger.Pod, n ledger.NodeName) (kept []rules.Reason, write func())

// Before has f called with each pod that is about to be reserved at a node.
func (p *Placer) Before(f Before) {
	p.Order.Lock()
	defer p.Order.Unlock()
	p.before = f
}

// Subscribe has f called with all that a reservation touches, and its end. It must be called before
// the first reservation.
func (p *Placer) Subscribe(f func(ledger.Touched)) { p.touched = append(p.touched, f) }

// Reserve has the ledger count a pod at a node, if fit allows it by the newest snapshot. It returns
// fit's verdict.
func (p *Placer) Reserve(pod ledger.Pod, n ledger.NodeName, fit func(ledger.Snapshot) rules.Verdict) rules.Verdict {
	verdict, write := p.reserve(pod, n, fit)
	if write != nil {
		write()
	}
	return verdict
}

func (p *Placer) reserve(pod ledger.Pod, n ledger.NodeName, fit func(ledger.Snapshot) rules.Verdict) (verdict rules.Verdict, write func()) {
	p.Order.Lock()
	defer p.Order.Unlock()
	verdict = fit(p.Ledger.Snapshot())
	if verdict.Allowed() && p.before != nil {
		var kept []rules.Reason
		if kept, write = p.before(&pod, n); write != nil {
			verdict = fit(p.Ledger.Snapshot()).And(kept, pod.Namespace)
		}
	}
	if verdict.Allowed() {
		p.touch(p.Ledger.Reserve(p.Now(), pod, n))
	}
	return verdict, write
}

// Unreserve has the ledger count a pod no longer, unless the pod was seen at a node.
func (p *Placer) Unreserve(uid string) { p.touch(p.Ledger.Unreserve(p.Now(), uid)) }

// Bind binds a pod to a node, and writes its reservation with the same request; see Binder.Bind.
func (p *Placer) Bind(ctx context.Context, pod *corev1.Pod, fact *ledger.Pod, node string) error {
	annotations, err := Annotations(p.Ledger.Snapshot(), pod, fact, node)
	if err != nil {
		return err
	}
	return p.Binder.Bind(ctx, pod, node, annotations)
}

func (p *Placer) touch(t ledger.Touched) {
	for _, f := range p.touched {
		f(t)
	}
}
