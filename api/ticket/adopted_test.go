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
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// An ended handle writes nothing after another process has acquired the ticket.
func TestOldHandleDoesNotLetGo(t *testing.T) {
	for name, over := range map[string]func(*tickettest.Cluster, *ticket.Handle){
		"left": func(_ *tickettest.Cluster, h *ticket.Handle) { h.Leave() },
		"lost": func(c *tickettest.Cluster, _ *ticket.Handle) {
			c.Wait("shop", "nightly", "Outranked", "pod shop/db")
			synctest.Wait()
		},
		"unheard": func(c *tickettest.Cluster, _ *ticket.Handle) { away(c) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tickettest.New()
				first := acquired(t, c, nightly())
				c.Yield("shop", "nightly", "let go by 1", time.Now())
				synctest.Wait()
				over(c, first)
				time.Sleep(time.Minute)
				c.Satisfy("shop", "nightly")
				second := acquired(t, c, nightly())
				time.Sleep(time.Minute)
				c.Yield("shop", "nightly", "let go by 2", time.Now())
				synctest.Wait()
				if err := first.LetGo(t.Context()); !errors.Is(err, ticket.ErrAdopted) {
					t.Error(err)
				}
				if c.Ticket("shop", "nightly").LetsGo() || lost(second) != nil {
					t.Errorf("the old handle has let go of what the next one uses: %v", lost(second))
				}
				if err := second.LetGo(t.Context()); err != nil || !c.Ticket("shop", "nightly").LetsGo() {
					t.Errorf("and the next one does not: %v", err)
				}
			})
		})
	}
}

func TestOldHandleDoesNotRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		first := acquired(t, c, nightly())
		away(c)
		if !isUnheard(lost(first)) {
			t.Fatal(lost(first))
		}
		second := acquired(t, c, nightly())
		time.Sleep(time.Minute)
		if err := first.Release(t.Context()); !errors.Is(err, ticket.ErrAdopted) {
			t.Error(err)
		}
		if lost(second) != nil {
			t.Errorf("released by a handle that was over for long: %v", lost(second))
		}
		if err := second.Release(t.Context()); err != nil || c.Ticket("shop", "nightly") != nil {
			t.Errorf("and the next one does not: %v", err)
		}
	})
}

func away(c *tickettest.Cluster) {
	c.Fail(errors.New("away"))
	time.Sleep(time.Minute)
	c.Fail(nil)
}

type between struct {
	*tickettest.Cluster
	once atomic.Bool
	do   func()
}

func (b *between) VolumeTickets(namespace string) client.VolumeTicketInterface {
	return &betweenTickets{b.Cluster.VolumeTickets(namespace), b}
}

type betweenTickets struct {
	client.VolumeTicketInterface
	b *between
}

func (t *betweenTickets) act() {
	if t.b.do != nil && t.b.once.CompareAndSwap(false, true) {
		t.b.do()
	}
}

func (t *betweenTickets) Create(ctx context.Context, ticket *v1alpha1.VolumeTicket, o metav1.CreateOptions) (*v1alpha1.VolumeTicket, error) {
	t.act()
	return t.VolumeTicketInterface.Create(ctx, ticket, o)
}

func (t *betweenTickets) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	t.act()
	return t.VolumeTicketInterface.Delete(ctx, name, o)
}

func (t *betweenTickets) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*v1alpha1.VolumeTicket, error) {
	if kind == types.MergePatchType {
		t.act()
	}
	return t.VolumeTicketInterface.Patch(ctx, name, kind, data, o, sub...)
}

func TestAdoptedBetweenReadAndWrite(t *testing.T) {
	for name, do := range map[string]func(context.Context, *ticket.Handle) error{
		"release": func(ctx context.Context, h *ticket.Handle) error { return h.Release(ctx) },
		"let go":  func(ctx context.Context, h *ticket.Handle) error { return h.LetGo(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			c := &between{Cluster: tickettest.New()}
			tickets, err := ticket.New(c, integrator)
			if err != nil {
				t.Fatal(err)
			}
			c.SatisfyAll()
			first, err := tickets.Acquire(t.Context(), nightly())
			if err != nil {
				t.Fatal(err)
			}
			c.Yield("shop", "nightly", "let go", time.Now())
			var second *ticket.Handle
			c.do = func() { second = acquired(t, c.Cluster, nightly()) }
			if err := do(t.Context(), first); !errors.Is(err, ticket.ErrAdopted) {
				t.Error(err)
			}
			if is := c.Ticket("shop", "nightly"); is == nil || is.LetsGo() {
				t.Errorf("it was done for the next one: %+v", is)
			}
			second.Leave()
		})
	}
}

// Another integrator's ticket stays theirs, even with an equal request.
func TestMadeBetweenReadAndWrite(t *testing.T) {
	c := &between{Cluster: tickettest.New()}
	c.SatisfyAll()
	c.do = func() {
		theirs := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}, Spec: v1alpha1.VolumeTicketSpec{
			Type: v1alpha1.TicketBackup, NodeName: "n1", TTLSeconds: new(int64(3600)),
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}, {Claim: &v1alpha1.ClaimReference{Name: "log"}}},
		}}
		if _, err := c.Cluster.VolumeTickets("shop").Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
			t.Error(err)
		}
	}
	tickets, err := ticket.New(c, integrator)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tickets.Acquire(t.Context(), nightly()); !errors.Is(err, ticket.ErrTaken) {
		t.Errorf("somebody else has made the ticket: %v", err)
	}
	if is := c.Ticket("shop", "nightly"); is == nil || len(is.Labels) > 0 {
		t.Errorf("it is touched: %+v", is)
	}
}

// Later changes of the caller's slices and maps, and another order of claims, make no other ticket.
func TestRequestIsOneOfItsOwn(t *testing.T) {
	c := tickettest.New()
	r := nightly()
	r.Parameters = map[string]string{"a": "b"}
	h := acquired(t, c, r)
	r.Claims[0], r.Parameters["a"] = "other", "c"
	if err := h.Renew(t.Context()); err != nil {
		t.Errorf("it can't be renewed any more: %v", err)
	}
	h.Leave()
	r = nightly()
	r.Parameters = map[string]string{"a": "b"}
	r.Claims[0], r.Claims[1] = r.Claims[1], r.Claims[0]
	acquired(t, c, r).Leave()
}

func TestEndedContextsSendNothing(t *testing.T) {
	c := tickettest.New()
	h := acquired(t, c, nightly())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Renew(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := h.Release(ctx); !errors.Is(err, context.Canceled) || c.Ticket("shop", "nightly") == nil {
		t.Errorf("it is released: %v", err)
	}
}
