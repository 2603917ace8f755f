// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"github.com/moorage-dev/moorage/controller/attachment"
	"github.com/moorage-dev/moorage/controller/policy"
	"github.com/moorage-dev/moorage/controller/ticket"
	"github.com/moorage-dev/moorage/controller/truth"
	"github.com/moorage-dev/moorage/controller/volumestatus"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/internal/work"
)

type wake struct {
	observer     *watch.Observer
	attachments  *attachment.Controller
	tickets      *ticket.Controller
	volumeStatus *volumestatus.Controller
	policies     *policy.Controller
	truth        *truth.Checker // may be nil
	volumes      *work.Queue[ledger.VolumeID]
	nodes        *work.Queue[ledger.NodeName]
}

func newWake(o *watch.Observer, a *attachment.Controller, t *ticket.Controller, g *volumestatus.Controller, p *policy.Controller, c *truth.Checker) *wake {
	w := &wake{observer: o, attachments: a, tickets: t, volumeStatus: g, policies: p, truth: c}
	w.volumes = work.New("touched volumes", w.volume)
	w.nodes = work.New("touched nodes", w.node)
	return w
}

// touched comes from informers' goroutines.
func (w *wake) touched(t ledger.Touched) {
	for _, v := range t.Volumes {
		w.volumeStatus.AddEnded(v) // first: its pods are told before the detach
		if t.Own {
			w.attachments.GoOn(v)
		} else {
			w.attachments.Add(v)
		}
		w.volumes.Add(v)
		if w.truth != nil {
			w.truth.Add(v)
		}
	}
	for _, n := range t.Nodes {
		w.nodes.Add(n)
	}
	for _, id := range t.Tickets {
		w.tickets.Add(id)
	}
	for _, pod := range t.Pods {
		w.volumeStatus.Add(pod)
	}
	if len(t.Policies) > 0 {
		w.policies.All() // a policy's change may bring another into effect
	}
	for _, name := range t.Policies {
		w.policies.Add(name)
	}
}

func (w *wake) volume(_ context.Context, id ledger.VolumeID) (time.Duration, error) {
	tickets, pods, _ := protocol.Users(w.observer.Snapshot(), id)
	for _, ticket := range tickets {
		w.tickets.Add(ticket)
	}
	for _, pod := range pods {
		w.volumeStatus.Add(pod)
	}
	return 0, nil
}

// node also clears an out-of-service node.
func (w *wake) node(_ context.Context, n ledger.NodeName) (time.Duration, error) {
	s := w.observer.Snapshot()
	for _, id := range protocol.EmptiedWith(s, n) {
		w.tickets.Add(id)
	}
	for _, v := range rules.Spare(s, n) {
		w.attachments.Add(v)
	}
	for _, v := range rules.AwaitSlots(s, n) {
		w.attachments.GoOn(v)
	}
	w.attachments.Clear(n)
	return 0, nil
}

// all wakes everything. Objects touched meanwhile do not wait for the rest.
func (w *wake) all() {
	s := w.observer.Snapshot()
	w.policies.All()
	for v := range s.Volumes() {
		w.attachments.Later(v.ID)
	}
	for t := range s.Tickets() {
		w.tickets.Add(t.ID)
	}
	for n := range s.Nodes() {
		if n.OutOfService {
			w.nodes.Add(n.Name)
		}
	}
	for p := range s.Pods() {
		if len(p.Volumes) > 0 {
			w.volumeStatus.Later(p.UID)
		}
	}
}
