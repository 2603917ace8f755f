// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, at := tickettest.New(), time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
		request := func(name string, node string, then v1alpha1.OnDrain) ticket.Request {
			r := nightly()
			r.Name, r.Node, r.OnDrain = name, node, then
			return r
		}
		stays := acquired(t, c, request("stays", tickettest.ChosenNode, ""))
		ends := acquired(t, c, request("ends", tickettest.ChosenNode, v1alpha1.OnDrainEnd))
		elsewhere := acquired(t, c, request("elsewhere", "another", v1alpha1.OnDrainEnd))
		moving, told := request("moves", "", v1alpha1.OnDrainMove), []string{}
		moving.OnYield = func(message string) { told = append(told, message) }
		moves := acquired(t, c, moving)

		c.Drain(tickettest.ChosenNode, "let go by noon", at)
		synctest.Wait()
		if err := lost(ends); !isEnded(err) {
			t.Errorf("the one that ends: %v", err)
		}
		for name, h := range map[string]*ticket.Handle{"stays": stays, "is elsewhere": elsewhere, "moves": moves} {
			if err := lost(h); err != nil {
				t.Errorf("the one that %s: %v", name, err)
			}
		}
		if !slices.Equal(told, []string{"let go by noon"}) {
			t.Errorf("the one that moves is told %q", told)
		}
		if err := moves.LetGo(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Wait("shop", "moves", "LeavesNode", "its node is cordoned")
		c.Yield("shop", "moves", "", at)
		c.Moved("shop", "moves", "another")
		again, err := clientOf(t, c, integrator).Acquire(t.Context(), moving)
		if err != nil {
			t.Fatal(err)
		}
		if again.Node() != "another" {
			t.Errorf("it has its volumes at %s", again.Node())
		}
		for _, h := range []*ticket.Handle{stays, elsewhere, again} {
			h.Leave()
		}
	})
}

// A new leader goes on with the existing ticket; an ended ticket is made again.
func TestRestartAfterADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		r := nightly()
		r.Node, r.OnDrain = "", v1alpha1.OnDrainMove
		before := acquired(t, c, r)
		before.Leave() // leads no longer
		c.Moved("shop", "nightly", "another")
		after := acquired(t, c, r)
		if after.Ticket().UID != before.Ticket().UID || after.Node() != "another" {
			t.Errorf("it goes on with %s at %s, not with %s", after.Ticket().UID, after.Node(), before.Ticket().UID)
		}
		after.Leave()
		c.End("shop", "nightly")
		anew := acquired(t, c, r)
		if anew.Ticket().UID == before.Ticket().UID {
			t.Error("it has a ticket that has ended")
		}
		anew.Leave()
	})
}
