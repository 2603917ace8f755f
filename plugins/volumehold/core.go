// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/observe"
	"github.com/moorage-dev/moorage/plugins/internal/reservation"
	"github.com/moorage-dev/moorage/plugins/internal/waker"
)

// facts is what the plugin needs of observe.Observer.
type facts interface {
	reservation.Facts
	waker.Facts
	Subscribe(func(ledger.Touched))
}

var _ facts = &observe.Observer{}

// config is what a core works with.
type config struct {
	Facts   facts
	Tickets client.Interface
	// Handle of any profile: waiting pods, queue and informers are the same for
	// all of them.
	Handle fwk.Handle
	Now    func() time.Time // time.Now when nil
}

// core is what all profiles of a process share.
type core struct {
	facts   facts
	arbiter arbiter.Arbiter
	handle  fwk.Handle
	now     func() time.Time
	process context.Context // ends with the process; Permit's own ends with the cycle

	book  *reservation.Book
	waker *waker.Waker
}

// newCore wires a core, which does nothing before start. ctx ends with the
// process.
func newCore(ctx context.Context, cfg config) *core {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &core{facts: cfg.Facts, handle: cfg.Handle, now: cfg.Now, process: ctx}
	c.waker = waker.New(waker.Config{Facts: cfg.Facts, Arbiter: c.arbiter, Now: cfg.Now, Wake: c.wake, Gone: gone(cfg.Handle)})
	c.book = reservation.NewBook(reservation.Config{Facts: cfg.Facts, Tickets: cfg.Tickets, Now: cfg.Now, Touched: c.waker.Touch})
	cfg.Facts.Subscribe(func(t ledger.Touched) {
		c.book.Heed(t)
		c.waker.Touch(t)
	})
	return c
}

// start runs what goes on beside scheduling, until ctx is done.
func (c *core) start(ctx context.Context) {
	go c.waker.Run(ctx)
	go c.book.Run(ctx)
}

// lead notes that pods of a profile are being scheduled here, which they are
// only while the process leads.
func (c *core) lead(profile string) { c.book.Lead(profile) }

// wake has a pod tried again at once. One that is just being tried is not lost:
// the queue remembers it.
func (c *core) wake(ctx context.Context, pod *corev1.Pod) {
	c.handle.Activate(klog.FromContext(ctx), map[string]*corev1.Pod{string(pod.UID): pod})
}

// gone says whether a pod is no more, or bound. The lister has every pod that
// the scheduling queue has.
func gone(h fwk.Handle) func(*corev1.Pod) bool {
	pods := h.SharedInformerFactory().Core().V1().Pods().Lister()
	return func(pod *corev1.Pod) bool {
		known, err := pods.Pods(pod.Namespace).Get(pod.Name)
		return err != nil || known.UID != pod.UID || known.Spec.NodeName != ""
	}
}
