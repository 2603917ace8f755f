// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// The handle of an unread ticket ends before others have the volumes: 20 s after the last answer for types
// that yield.
func TestUnheardEndsTheHandle(t *testing.T) {
	for name, test := range map[string]struct {
		asks func(*ticket.Request)
		ends time.Duration
	}{
		"a type that yields": {func(*ticket.Request) {}, 20 * time.Second},
		"one that does not":  {func(r *ticket.Request) { r.Type = v1alpha1.TicketRebuild }, 30 * time.Second},
		"one that moves":     {func(r *ticket.Request) { r.Type, r.Node, r.OnDrain = v1alpha1.TicketRebuild, "", v1alpha1.OnDrainMove }, 20 * time.Second},
		"as it is asked":     {func(r *ticket.Request) { r.Unheard = 5 * time.Minute }, 5 * time.Minute},
		"a short time":       {func(r *ticket.Request) { r.TTL = 12 * time.Second }, 6 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tickettest.New()
				r := nightly()
				test.asks(&r)
				h := acquired(t, c, r)
				time.Sleep(time.Hour)
				if err := lost(h); err != nil {
					t.Fatalf("the API server answers, and the handle says %v", err)
				}
				c.Fail(errors.New("away"))
				time.Sleep(test.ends/2 - time.Second)
				if err := lost(h); err != nil {
					t.Errorf("before its time is over: %v", err)
				}
				time.Sleep(test.ends/2 + time.Second)
				if !isUnheard(lost(h)) {
					t.Errorf("after its time is over: %v", lost(h))
				}
				c.Fail(nil)
				before := c.Ticket("shop", "nightly").UID
				if h = acquired(t, c, r); h.Ticket().UID != before || lost(h) != nil {
					t.Errorf("the ticket is not acquired again: %v", lost(h))
				}
				h.Leave()
			})
		})
	}
}

func TestShortOutageIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		h := acquired(t, c, nightly())
		for range 10 {
			c.Fail(errors.New("away"))
			time.Sleep(9 * time.Second)
			c.Fail(nil)
			time.Sleep(10 * time.Second)
		}
		if err := lost(h); err != nil {
			t.Error(err)
		}
		h.Leave()
	})
}

// silent stops answering without an error, as behind a cut link: requests hang.
type silent struct {
	*tickettest.Cluster
	cut atomic.Bool
}

func (s *silent) VolumeTickets(namespace string) client.VolumeTicketInterface {
	return &silentTickets{s.Cluster.VolumeTickets(namespace), s}
}

type silentTickets struct {
	client.VolumeTicketInterface
	cluster *silent
}

func (s *silentTickets) Get(ctx context.Context, name string, o metav1.GetOptions) (*v1alpha1.VolumeTicket, error) {
	if s.cluster.cut.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.VolumeTicketInterface.Get(ctx, name, o)
}

func TestSilentLinkIsUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &silent{Cluster: tickettest.New()}
		c.SatisfyAll()
		tickets, err := ticket.New(c, integrator)
		if err != nil {
			t.Fatal(err)
		}
		h, err := tickets.Acquire(t.Context(), nightly())
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.cut.Store(true)
		time.Sleep(20 * time.Second)
		if !isUnheard(lost(h)) {
			t.Errorf("it says %v", lost(h))
		}
	})
}

func isUnheard(err error) bool {
	var why *ticket.LostError
	return errors.As(err, &why) && why.Reason == ticket.ReasonUnheard
}
