// SPDX-License-Identifier: Apache-2.0

package tickettest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func request() ticket.Request {
	return ticket.Request{
		Namespace: "shop", Name: "b", Type: v1alpha1.TicketBackup, Claims: []string{"data"}, TTL: time.Hour, OnDrain: v1alpha1.OnDrainMove,
	}
}

func acquires(t *testing.T, c *tickettest.Cluster, r ticket.Request) *ticket.Handle {
	t.Helper()
	tickets, err := ticket.New(c, "backup.example.com")
	if err != nil {
		t.Fatal(err)
	}
	h, err := tickets.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestWhoHasLetGoIsAskedNoLonger(t *testing.T) {
	for name, then := range map[string]func(*tickettest.Cluster){
		"lost, and had again": func(c *tickettest.Cluster) {
			c.Wait("shop", "b", "Outranked", "pod shop/db has it")
			c.Satisfy("shop", "b")
		},
		"moved":              func(c *tickettest.Cluster) { c.Moved("shop", "b", "worker-2") },
		"had again":          func(c *tickettest.Cluster) { c.Satisfy("shop", "b") },
		"granted in between": func(c *tickettest.Cluster) { c.Grant("shop", "b"); c.Satisfy("shop", "b") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tickettest.New()
				c.SatisfyAll()
				h := acquires(t, c, request())
				c.Drain(h.Node(), "let go: drained", time.Now())
				if err := h.LetGo(t.Context()); err != nil || !c.Ticket("shop", "b").LetsGo() {
					t.Fatalf("it does not let go: %v", err)
				}
				then(c)
				if now := c.Ticket("shop", "b"); now.Yielding() != nil || now.LetsGo() {
					t.Fatalf("it is asked still: %+v", now.Status.Conditions)
				}
				acquires(t, c, request()).Leave()
			})
		})
	}
}

func TestGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		done := make(chan *ticket.Handle, 1)
		go func() { done <- acquires(t, c, request()) }()
		synctest.Wait()
		c.Grant("shop", "b")
		synctest.Wait()
		if len(done) > 0 || c.Ticket("shop", "b").Node() != tickettest.ChosenNode {
			t.Fatalf("acquired, or without a node: %+v", c.Ticket("shop", "b").Status)
		}
		c.Satisfy("shop", "b")
		(<-done).Leave()
	})
}
