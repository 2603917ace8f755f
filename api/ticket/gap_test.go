// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
)

// A loss between two looks counts, even if the ticket has its volumes again: another claimant had them.
func TestLossBetweenTwoLooks(t *testing.T) {
	for name, again := range map[string]func(*tickettest.Cluster){
		"at another node":   func(c *tickettest.Cluster) { c.Moved("shop", "nightly", "worker-2") },
		"at the same again": func(c *tickettest.Cluster) { c.Satisfy("shop", "nightly") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tickettest.New()
				r := nightly()
				r.Node = ""
				h := acquired(t, c, r)
				synctest.Wait()
				c.Fail(errors.New("away"))
				time.Sleep(time.Second)
				c.Wait("shop", "nightly", "Outranked", "pod shop/db-0 has the volume")
				time.Sleep(2 * time.Second)
				again(c)
				c.Fail(nil)
				time.Sleep(10 * time.Second)
				var why *ticket.LostError
				if err := lost(h); !errors.As(err, &why) || why.Reason != "Interrupted" {
					t.Errorf("the handle says %v, and its volumes are at %s", err, h.Node())
				}
				h.Leave()
				next, err := clientOf(t, c, integrator).Acquire(t.Context(), r)
				if err != nil || lost(next) != nil {
					t.Fatalf("it is not acquired again: %v", err)
				}
				next.Leave()
			})
		})
	}
}

func TestSameGrantIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		h := acquired(t, c, nightly())
		time.Sleep(time.Minute)
		c.Fail(errors.New("away"))
		c.Yield("shop", "nightly", "let go by noon", time.Now())
		c.Fail(nil)
		time.Sleep(time.Second)
		if err := h.Renew(t.Context()); err != nil || lost(h) != nil {
			t.Errorf("renewed: %v, lost: %v", err, lost(h))
		}
		h.Leave()
	})
}
