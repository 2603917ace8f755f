// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/write"
)

func fails(w *writer, task protocol.Task, why string) error {
	w.Apply(ledger.GrantResolved{ID: task.Ticket.ID, UID: task.Ticket.UID, Version: task.Ticket.Version})
	return errors.New(why)
}

type slow struct {
	*writer
	first  ledger.TicketID
	failed atomic.Bool
}

func (s *slow) Carry(ctx context.Context, task protocol.Task, status write.Status) error {
	if task.Ticket.ID != s.first {
		time.Sleep(10 * time.Second)
	} else if !s.failed.Swap(true) {
		return fails(s.writer, task, "no answer")
	}
	return s.writer.Carry(ctx, task, status)
}

// The ticket is still retried.
func TestPauseEndsDuringAnotherWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two := ticket("one", "n1", ledger.TypeManual, "a"), ticket("two", "n1", ledger.TypeManual, "b")
		w := &slow{writer: &writer{Ledger: facts(pod("one", "", "a"), one, pod("two", "", "b"), two)}, first: one.ID}
		c, err := New(Config{Cache: w, Write: w, Now: time.Now, Order: &sync.Mutex{}, Waits: &Waits{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx, 1, 1)
		c.nodes.Add("n1")
		time.Sleep(time.Minute)
		for _, id := range []ledger.TicketID{one.ID, two.ID} {
			if is := w.Snapshot().Ticket(id); is.Phase != ledger.TicketGranted {
				t.Errorf("ticket %s is %s", id, is.Phase)
			}
		}
		stop()
		synctest.Wait()
	})
}

type overloaded struct {
	*writer
	is atomic.Bool
}

func (o *overloaded) Carry(ctx context.Context, task protocol.Task, status write.Status) error {
	if o.is.Load() {
		return fails(o.writer, task, "too many requests")
	}
	return o.writer.Carry(ctx, task, status)
}

// A late ticket that failed once does not wait as long as its node's earlier failures.
func TestTicketsOfANodePauseForThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tickets = 40
		w := &overloaded{writer: &writer{Ledger: facts(
			ledger.NodeDrivers{Node: "n1", Version: "2", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 2 * tickets}}})}}
		w.is.Store(true)
		c, err := New(Config{Cache: w, Write: w, Now: time.Now, Order: &sync.Mutex{}, Waits: &Waits{}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx, 1, 1)
		var last ledger.Ticket
		for i := range tickets {
			claim, name := fmt.Sprint("claim", i), fmt.Sprint("pod", i)
			last = ticket(name, "n1", ledger.TypeManual, claim)
			w.Put(claim)
			w.Apply(pod(name, "", claim))
			w.Apply(last)
			c.nodes.Add("n1")
			synctest.Wait() // it has failed
			if i < tickets-1 {
				time.Sleep(3 * time.Second)
			}
		}
		w.is.Store(false)
		time.Sleep(time.Second)
		if is := w.Snapshot().Ticket(last.ID); is.Phase != ledger.TicketGranted {
			t.Errorf("a second after writes succeed again the ticket that has failed once is still %s", is.Phase)
		}
		stop()
		synctest.Wait()
	})
}
