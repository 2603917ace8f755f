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

// Placer reserves nodes for pods, and binds the pods. A process shares one Placer, so that all see
// reservations at once. Ledger and Now must be set. Safe for parallel use.
type Placer struct {
	Binder Binder
	Ledger *ledger.Ledger
	Now    func() time.Time

	// Order is held from a verdict, on a pod or a ticket, until the ledger counts its result.
	Order sync.Mutex
	// Waits are the refused pods.
	Waits tickets.Waits

	before  Before // guarded by Order
	touched []func(ledger.Touched)
}

// Before decides on the tickets that rank before a pod, shortly before its reservation. Order is held. kept
// says why the pod must wait although it fits. The caller calls write, if not nil, after it has released
// Order.
type Before func(pod *ledger.Pod, n ledger.NodeName) (kept []rules.Reason, write func())

// Before has f called before each reservation.
func (p *Placer) Before(f Before) {
	p.Order.Lock()
	defer p.Order.Unlock()
	p.before = f
}

// Subscribe has f called with all that reservations and their ends touch. Call it before the first.
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

// Unreserve ends a reservation, unless the pod was seen at a node.
func (p *Placer) Unreserve(uid string) { p.touch(p.Ledger.Unreserve(p.Now(), uid)) }

// Bind binds a pod and writes its reservation with the same request; see Binder.Bind.
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
