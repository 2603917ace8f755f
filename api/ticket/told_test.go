// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func TestWhatIsToldAfterTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		r, told := nightly(), []string{}
		r.OnWait = func(reason, _ string) { told = append(told, reason) }
		acquire := func(during func()) {
			t.Helper()
			told = []string{}
			done := make(chan *ticket.Handle)
			go func() {
				h, err := clientOf(t, c, integrator).Acquire(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				done <- h
			}()
			synctest.Wait()
			during()
			c.Satisfy("shop", "nightly")
			(<-done).Leave()
		}
		step := func(does func(string, string)) func() {
			return func() { does("shop", "nightly"); synctest.Wait() }
		}
		acquire(step(c.Grant))
		if want := []string{"Pending", "Granted"}; !slices.Equal(told, want) {
			t.Errorf("at first it is told %q, want %q", told, want)
		}
		c.Wait("shop", "nightly", "Outranked", "pod shop/db-0 has it")
		acquire(step(c.Grant))
		if want := []string{"Outranked", "Granted"}; !slices.Equal(told, want) {
			t.Errorf("when it is granted again it is told %q, want %q", told, want)
		}
	})
}

func TestWorkEndsWhenItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		h := acquired(t, c, nightly())
		synctest.Wait()
		if err := h.Work().Err(); err != nil {
			t.Fatal(err)
		}
		c.Yield("shop", "nightly", "let go by noon: pod shop/db-0", time.Now())
		synctest.Wait()
		if err := context.Cause(h.Work()); !errors.Is(err, ticket.ErrAsked) || !strings.Contains(err.Error(), "shop/db-0") || lost(h) != nil {
			t.Errorf("asked: work says %v, the handle %v", err, lost(h))
		}
		h.Leave()

		c.Yield("shop", "nightly", "", time.Now())
		h = acquired(t, c, nightly())
		c.Wait("shop", "nightly", "Outranked", "")
		synctest.Wait()
		var why *ticket.LostError
		if err := context.Cause(h.Work()); !errors.As(err, &why) {
			t.Errorf("lost: work says %v", err)
		}
	})
}

// A ticket's spec never changes: the person who ends it needs the cause.
func TestDifferentNamesTheField(t *testing.T) {
	for want, asks := range map[string]func(*ticket.Request){
		"spec.nodeName":   func(r *ticket.Request) { r.Node = "n2" },
		"spec.wherever":   func(r *ticket.Request) { r.Node = "" },
		"spec.volumes":    func(r *ticket.Request) { r.Claims = r.Claims[:1] },
		"spec.ttlSeconds": func(r *ticket.Request) { r.TTL = time.Minute },
		"spec.type":       func(r *ticket.Request) { r.Type = v1alpha1.TicketSnapshot },
		"spec.onDrain":    func(r *ticket.Request) { r.OnDrain = v1alpha1.OnDrainEnd },
		"spec.parameters": func(r *ticket.Request) { r.Parameters = map[string]string{"a": "b"} },
	} {
		synctest.Test(t, func(t *testing.T) {
			c := tickettest.New()
			h := acquired(t, c, nightly())
			defer h.Leave()
			r := nightly()
			asks(&r)
			if _, err := clientOf(t, c, integrator).Acquire(t.Context(), r); !errors.Is(err, ticket.ErrDifferent) || !strings.Contains(err.Error(), want) ||
				strings.Count(err.Error(), "spec.") != map[bool]int{false: 1, true: 2}[want == "spec.wherever"] {
				t.Errorf("error %v, want one that names %s", err, want)
			}
		})
	}
}
