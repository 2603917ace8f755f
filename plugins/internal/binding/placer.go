// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Placer reserves nodes for pods, and binds the pods. All that place pods in a process share one
// Placer, so that each sees at once what another has reserved. Ledger and Now must be set. Safe for
// parallel use.
type Placer struct {
	Binder Binder
	Ledger *ledger.Ledger
	Now    func() time.Time

	reserving sync.Mutex // held from a verdict until the ledger counts it
	touched   []func(ledger.Touched)
}

// Subscribe has f called with all that a reservation touches, and its end. It must be called before
// the first reservation.
func (p *Placer) Subscribe(f func(ledger.Touched)) { p.touched = append(p.touched, f) }

// Reserve has the ledger count a pod at a node, if fit allows it by the newest snapshot. It returns
// fit's verdict.
func (p *Placer) Reserve(pod ledger.Pod, n ledger.NodeName, fit func(ledger.Snapshot) arbiter.Verdict) arbiter.Verdict {
	p.reserving.Lock()
	defer p.reserving.Unlock()
	verdict := fit(p.Ledger.Snapshot())
	if verdict.Allowed() {
		p.touch(p.Ledger.Reserve(p.Now(), pod, n))
	}
	return verdict
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
