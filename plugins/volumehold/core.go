// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/observe"
)

// facts is what the plugin needs of observe.Observer.
type facts interface {
	Ledger() *ledger.Ledger
	Snapshot() ledger.Snapshot
	Subscribe(func(ledger.Touched))
	Saw(runtime.Object)
	Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool)
	ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
	HasSynced() bool
	WaitForSync(context.Context) error
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

	book   *book
	writer *writer
	keeper *keeper
	waker  *waker
}

// newCore wires a core, which does nothing before start. ctx ends with the
// process.
func newCore(ctx context.Context, cfg config) *core {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	c := &core{facts: cfg.Facts, handle: cfg.Handle, now: cfg.Now, process: ctx}
	c.book = newBook(cfg.Facts.Ledger(), cfg.Now)
	c.writer = newWriter(cfg.Tickets)
	c.waker = newWaker(c)
	c.keeper = newKeeper(c)
	cfg.Facts.Subscribe(func(t ledger.Touched) {
		c.book.poke(t)
		c.keeper.look(t.Tickets...)
		c.waker.touch(t)
	})
	return c
}

// start runs what goes on beside scheduling, until ctx is done.
func (c *core) start(ctx context.Context) {
	go c.waker.run(ctx)
	go c.keeper.run(ctx)
}

// lead notes that pods of a profile are being scheduled here, which they are
// only while the process leads.
func (c *core) lead(profile string) { c.keeper.lead(profile) }

// touch passes on what a change of the ledger by the plugin itself touched.
// The observer publishes only its own.
func (c *core) touch(t ledger.Touched) {
	c.keeper.look(t.Tickets...)
	c.waker.touch(t)
}
