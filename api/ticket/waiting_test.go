// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func TestWaitingRenews(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := tickettest.New()
			r := nightly()
			r.TTL = time.Minute
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() {
				_, err := clientOf(t, c, integrator).Acquire(ctx, r)
				ended <- err
			}()
			synctest.Wait()
			c.Wait("shop", "nightly", "HeldElsewhere", "pod shop/db-0 has data at n2")
			first := c.Ticket("shop", "nightly").UID
			for range 10 {
				before := c.Ticket("shop", "nightly").Annotations[v1alpha1.AnnotationRenewed]
				if away {
					c.Fail(errors.New("away"))
					time.Sleep(2 * time.Second)
					c.Fail(nil)
				}
				time.Sleep(r.TTL * 2 / 3)
				if now := c.Ticket("shop", "nightly"); now.UID != first || now.Annotations[v1alpha1.AnnotationRenewed] == before {
					t.Fatalf("it was not renewed while two thirds of its time went by: %v", now.ObjectMeta)
				}
			}
			cancel()
			<-ended
			last := c.Ticket("shop", "nightly").Annotations[v1alpha1.AnnotationRenewed]
			time.Sleep(time.Hour)
			if c.Ticket("shop", "nightly").Annotations[v1alpha1.AnnotationRenewed] != last {
				t.Error("it is renewed though nobody waits any more")
			}
		})
	}
}

func TestEndedWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		go func() {
			synctest.Wait()
			c.Wait("shop", "nightly", "HeldElsewhere", "pod shop/db-0 has data at n2")
			synctest.Wait()
			c.End("shop", "nightly")
		}()
		_, err := clientOf(t, c, integrator).Acquire(t.Context(), nightly())
		var not *ticket.NotSatisfiedError
		if !errors.As(err, &not) || not.Reason != ticket.ReasonEnded || !errors.Is(err, ticket.ErrEnded) {
			t.Errorf("error %v (%T)", err, err)
		}
		if lost := (*ticket.LostError)(nil); errors.As(err, &lost) {
			t.Errorf("it has lost what it never had: %v", lost)
		}
	})
}
