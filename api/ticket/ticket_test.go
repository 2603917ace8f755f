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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

const integrator = "backup.example.com"

func nightly() ticket.Request {
	return ticket.Request{Namespace: "shop", Name: "nightly", Type: v1alpha1.TicketBackup, Node: "n1", Claims: []string{"data", "log"}, TTL: time.Hour}
}

func clientOf(t *testing.T, c *tickettest.Cluster, name string) *ticket.Client {
	t.Helper()
	client, err := ticket.New(c, name)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func acquired(t *testing.T, c *tickettest.Cluster, r ticket.Request) *ticket.Handle {
	t.Helper()
	c.SatisfyAll()
	h, err := clientOf(t, c, integrator).Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func lost(h *ticket.Handle) error {
	synctest.Wait()
	return context.Cause(h.Context())
}

func TestAcquireWaitsUntilItsVolumesAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		r, told := nightly(), []string{}
		r.OnWait = func(reason, message string) { told = append(told, reason+" "+message) }
		var h *ticket.Handle
		go func() {
			var err error
			if h, err = clientOf(t, c, integrator).Acquire(t.Context(), r); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		made := c.Ticket("shop", "nightly")
		if made == nil || made.Labels[v1alpha1.LabelManagedBy] != integrator || made.Annotations[v1alpha1.AnnotationRenewed] == "" ||
			made.Spec.NodeName != "n1" || *made.Spec.TTLSeconds != 3600 || len(made.Spec.Volumes) != 2 || made.Spec.Volumes[1].Claim.Name != "log" {
			t.Fatalf("the ticket is %+v", made)
		}
		c.Wait("shop", "nightly", "NoFreeSlot", "full")
		synctest.Wait()
		c.Wait("shop", "nightly", "NoFreeSlot", "full")
		synctest.Wait()
		if h != nil {
			t.Fatal("it did not wait")
		}
		c.Satisfy("shop", "nightly")
		synctest.Wait()
		if h == nil || lost(h) != nil || h.Ticket().UID != made.UID {
			t.Fatal("its volumes are there, and it goes on waiting")
		}
		if len(told) != 2 || told[1] != "NoFreeSlot full" {
			t.Errorf("told %q", told)
		}
		if err := h.Release(t.Context()); err != nil || c.Ticket("shop", "nightly") != nil || !errors.Is(lost(h), ticket.ErrReleased) {
			t.Errorf("released: %v, %v", err, lost(h))
		}
		if err := h.Release(t.Context()); err != nil {
			t.Errorf("released again: %v", err)
		}
	})
}

// The ticket asks on after its caller has stopped waiting.
func TestAcquireSaysWhyNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			synctest.Wait()
			c.Wait("shop", "nightly", "HeldElsewhere", "pod shop/db-0 has data at n2")
		}()
		_, err := clientOf(t, c, integrator).Acquire(ctx, nightly())
		var why *ticket.NotSatisfiedError
		if !errors.As(err, &why) || why.Reason != "HeldElsewhere" || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "shop/db-0") {
			t.Errorf("error %v", err)
		}
		if c.Ticket("shop", "nightly") == nil {
			t.Error("the ticket is gone")
		}
	})
}

func TestRestartAdoptsTheTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		r := nightly()
		r.Owner = &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "nightly", UID: "job-1"}
		first := acquired(t, c, r)
		before := c.Ticket("shop", "nightly")
		time.Sleep(time.Minute)
		first.Leave()
		second := acquired(t, c, r)
		now := c.Ticket("shop", "nightly")
		if now.UID != before.UID || !errors.Is(lost(first), ticket.ErrLeft) || lost(second) != nil {
			t.Errorf("UID %s, before %s; the first %v, the second %v", now.UID, before.UID, lost(first), lost(second))
		}
		if now.Annotations[v1alpha1.AnnotationRenewed] == before.Annotations[v1alpha1.AnnotationRenewed] {
			t.Error("its time was not renewed")
		}
		if len(now.OwnerReferences) != 1 || now.OwnerReferences[0].UID != "job-1" {
			t.Errorf("its owners are %+v", now.OwnerReferences)
		}
		second.Leave()
	})
}

func TestNothingOfOthersIsAdopted(t *testing.T) {
	owner := func(uid string) *metav1.OwnerReference {
		return &metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "nightly", UID: types.UID("job-" + uid)}
	}
	for name, test := range map[string]struct {
		who   string
		asks  func(*ticket.Request)
		wants error
	}{
		"the same":               {integrator, func(*ticket.Request) {}, nil},
		"another integrator":     {"restore.example.com", func(*ticket.Request) {}, ticket.ErrTaken},
		"of another owner":       {integrator, func(r *ticket.Request) { r.Owner = owner("2") }, ticket.ErrTaken},
		"without the owner":      {integrator, func(r *ticket.Request) { r.Owner = nil }, ticket.ErrTaken},
		"at another node":        {integrator, func(r *ticket.Request) { r.Node = "n2" }, ticket.ErrDifferent},
		"for other volumes":      {integrator, func(r *ticket.Request) { r.Claims = r.Claims[:1] }, ticket.ErrDifferent},
		"of another TTL":         {integrator, func(r *ticket.Request) { r.TTL = time.Minute }, ticket.ErrDifferent},
		"others told of waiting": {integrator, func(r *ticket.Request) { r.OnWait = func(string, string) {} }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := tickettest.New()
				r := nightly()
				r.Owner = owner("1")
				h := acquired(t, c, r)
				defer h.Leave()
				test.asks(&r)
				before := c.Ticket("shop", "nightly")
				again, err := clientOf(t, c, test.who).Acquire(t.Context(), r)
				if !errors.Is(err, test.wants) || test.wants == nil && err != nil {
					t.Fatalf("error %v, want %v", err, test.wants)
				}
				if err == nil {
					again.Leave()
				} else if after := c.Ticket("shop", "nightly"); after.ResourceVersion != before.ResourceVersion {
					t.Errorf("the ticket was changed: %+v", after)
				}
				if !errors.Is(test.wants, ticket.ErrDifferent) {
					return
				}
				if err := clientOf(t, c, integrator).Release(t.Context(), "shop", "nightly"); err != nil {
					t.Fatal(err)
				}
				if !isEnded(lost(h)) {
					t.Errorf("the handle on the ticket before says %v", lost(h))
				}
				acquired(t, c, r).Leave()
			})
		})
	}
}

func TestNobodyReleasesAnothersTicket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		h := acquired(t, c, nightly())
		defer h.Leave()
		if err := clientOf(t, c, "another").Release(t.Context(), "shop", "nightly"); !errors.Is(err, ticket.ErrTaken) || c.Ticket("shop", "nightly") == nil {
			t.Errorf("error %v", err)
		}
		if err := clientOf(t, c, "another").Release(t.Context(), "shop", "none"); err != nil {
			t.Errorf("one that is not there: %v", err)
		}
	})
}

func TestWhoIsFasterHasTheName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		c.SatisfyAll()
		errs := make(chan error, 2)
		for _, who := range []string{"a", "b"} {
			go func() {
				h, err := clientOf(t, c, who).Acquire(t.Context(), nightly())
				if err == nil {
					h.Leave()
				}
				errs <- err
			}()
		}
		first, second := <-errs, <-errs
		if errors.Is(first, ticket.ErrTaken) == errors.Is(second, ticket.ErrTaken) || first != nil && second != nil {
			t.Errorf("one says %v, the other %v", first, second)
		}
	})
}

func TestLossEndsTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		h := acquired(t, c, nightly())
		if lost(h) != nil {
			t.Fatal(lost(h))
		}
		c.Wait("shop", "nightly", "Outranked", "pod shop/db-0 ranks before")
		var why *ticket.LostError
		if err := lost(h); !errors.As(err, &why) || why.Reason != "Outranked" || !strings.Contains(why.Message, "db-0") {
			t.Fatalf("it ended by %v", err)
		}
		back := make(chan *ticket.Handle)
		go func() {
			again, err := clientOf(t, c, integrator).Acquire(t.Context(), nightly())
			if err != nil {
				t.Error(err)
			}
			back <- again
		}()
		synctest.Wait()
		select {
		case <-back:
			t.Fatal("it has them back though they are another's")
		default:
		}
		c.Satisfy("shop", "nightly")
		again := <-back
		if lost(again) != nil || lost(h) == nil {
			t.Errorf("the second %v, the first %v", lost(again), lost(h))
		}
		again.Leave()
	})
}

// A renewal neither makes an ended ticket again nor adopts another's new ticket.
func TestEndedIsEnded(t *testing.T) {
	for _, madeAgain := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := tickettest.New()
			h := acquired(t, c, nightly())
			c.End("shop", "nightly")
			if !isEnded(lost(h)) {
				t.Errorf("it ended by %v", lost(h))
			}
			if madeAgain {
				acquired(t, c, nightly()).Leave()
			}
			before := c.Ticket("shop", "nightly")
			if err := h.Renew(t.Context()); err == nil {
				t.Error("it is renewed")
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
			if after := c.Ticket("shop", "nightly"); (after == nil) != (before == nil) || after != nil && after.ResourceVersion != before.ResourceVersion {
				t.Errorf("of the next one was made %+v", after)
			}
		})
	}
}

// A ticket made in its place unseen is another ticket; a ticket under deletion is over.
func TestAnotherTicketIsNotTheOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		h := acquired(t, c, nightly())
		c.Fail(errors.New("away"))
		synctest.Wait()
		c.End("shop", "nightly")
		c.Fail(nil)
		acquired(t, c, nightly()).Leave()
		time.Sleep(time.Minute)
		if !isEnded(lost(h)) {
			t.Errorf("it goes on with another ticket: %v", lost(h))
		}

		h = acquired(t, c, nightly())
		leaving, now := c.Ticket("shop", "nightly"), metav1.Now()
		leaving.DeletionTimestamp = &now
		if _, err := c.VolumeTickets("shop").Update(t.Context(), leaving, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if !isEnded(lost(h)) {
			t.Errorf("it goes on with one that is being deleted: %v", lost(h))
		}
	})
}

func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		h := acquired(t, c, nightly())
		before := c.Ticket("shop", "nightly")
		time.Sleep(time.Minute)
		if err := h.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := c.Ticket("shop", "nightly")
		if after.Annotations[v1alpha1.AnnotationRenewed] == before.Annotations[v1alpha1.AnnotationRenewed] || after.UID != before.UID || lost(h) != nil {
			t.Errorf("before %v, after %v: %v", before.Annotations, after.Annotations, lost(h))
		}
		h.Leave()
	})
}

func TestOutageIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		r := nightly()
		r.TTL, r.Unheard = 24*time.Hour, 2*time.Hour
		h := acquired(t, c, r)
		c.Fail(errors.New("away"))
		time.Sleep(time.Hour)
		if lost(h) != nil {
			t.Fatalf("it ended by %v", lost(h))
		}
		got := make(chan *ticket.Handle)
		other := nightly()
		other.Name = "other"
		go func() { // asks until an answer comes
			again, err := clientOf(t, c, integrator).Acquire(t.Context(), other)
			if err != nil {
				t.Error(err)
			}
			got <- again
		}()
		time.Sleep(time.Minute)
		c.Wait("shop", "nightly", "Outranked", "")
		c.Fail(nil)
		time.Sleep(time.Minute)
		var why *ticket.LostError
		if !errors.As(lost(h), &why) || why.Reason != "Outranked" {
			t.Errorf("it ended by %v", lost(h))
		}
		(<-got).Leave()
	})
}

func TestDeletedOneIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		now := metav1.Now()
		old, err := c.VolumeTickets("shop").Create(t.Context(), &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Name: "nightly", DeletionTimestamp: &now}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Minute)
			c.End("shop", "nightly")
		}()
		h := acquired(t, c, nightly())
		if h.Ticket().UID == old.UID {
			t.Error("it has the one that is being deleted")
		}
		h.Leave()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.VolumeTickets("shop").Create(t.Context(), &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Name: "stuck", DeletionTimestamp: &now}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r := nightly()
		r.Name = "stuck"
		var why *ticket.NotSatisfiedError
		if _, err := clientOf(t, c, integrator).Acquire(ctx, r); !errors.As(err, &why) || !strings.Contains(why.Message, "deleted") {
			t.Errorf("error %v", err)
		}
	})
}

func TestWhatCannotBeAskedFor(t *testing.T) {
	for name, change := range map[string]func(*ticket.Request){
		"no name":               func(r *ticket.Request) { r.Name = "" },
		"no namespace":          func(r *ticket.Request) { r.Namespace = "" },
		"no type":               func(r *ticket.Request) { r.Type = "" },
		"to no node":            func(r *ticket.Request) { r.Node, r.Type = "", v1alpha1.TicketLiveMigration },
		"to a node and to none": func(r *ticket.Request) { r.Node, r.Detached = "worker-1", true },
		"a migration to none":   func(r *ticket.Request) { r.Detached, r.Type = true, v1alpha1.TicketLiveMigration },
		"a share at no node":    func(r *ticket.Request) { r.Detached, r.Type = true, v1alpha1.TicketShareManager },
		"parameters of no node": func(r *ticket.Request) { r.Detached, r.Parameters = true, map[string]string{"a": "b"} },
		"a move from a node":    func(r *ticket.Request) { r.Node, r.OnDrain = "worker-1", v1alpha1.OnDrainMove },
		"no volume":             func(r *ticket.Request) { r.Claims = nil },
		"no end":                func(r *ticket.Request) { r.TTL = 0 },
		"a short time":          func(r *ticket.Request) { r.TTL = time.Millisecond },
		"unheard for no time":   func(r *ticket.Request) { r.Unheard = -time.Second },
		"unheard for too short": func(r *ticket.Request) { r.Unheard = 30 * time.Nanosecond }, // somebody means seconds
	} {
		c, r := tickettest.New(), nightly()
		change(&r)
		if _, err := clientOf(t, c, integrator).Acquire(t.Context(), r); err == nil || c.Ticket("shop", "nightly") != nil {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, name := range []string{"", "moorage", "not a label", strings.Repeat("x", 64)} {
		if _, err := ticket.New(tickettest.New(), name); err == nil {
			t.Errorf("%q is an integrator's name", name)
		}
	}
}

func isEnded(err error) bool {
	var why *ticket.LostError
	return errors.As(err, &why) && why.Reason == ticket.ReasonEnded
}

// The holder works on until it has let go; the ticket is acquired again only with its volumes.
func TestLettingGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		r, told := nightly(), []string{}
		r.OnYield = func(message string) { told = append(told, message) }
		h := acquired(t, c, r)
		if err := h.LetGo(t.Context()); err != nil || !errors.Is(lost(h), ticket.ErrLetGo) || c.Ticket("shop", "nightly").Annotations[v1alpha1.AnnotationLetsGo] != "" {
			t.Fatalf("nobody has asked it to: %v, %v", err, lost(h))
		}

		h = acquired(t, c, r)
		at := time.Date(2026, 1, 1, 0, 0, 1, 0, time.UTC)
		c.Yield("shop", "nightly", "let go by tomorrow", at)
		c.Yield("shop", "nightly", "", at)
		c.Yield("shop", "nightly", "let go by noon", at)
		if err := lost(h); err != nil {
			t.Fatalf("who is asked has its volumes: %v", err)
		}
		if want := []string{"let go by tomorrow", "", "let go by noon"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
		if err := h.LetGo(t.Context()); err != nil || !errors.Is(lost(h), ticket.ErrLetGo) {
			t.Fatalf("%v, %v", err, lost(h))
		}
		if got := c.Ticket("shop", "nightly").Annotations[v1alpha1.AnnotationLetsGo]; got != "2026-01-01T00:00:01Z" {
			t.Errorf("it says that it lets go by %q", got)
		}

		c.Yield("shop", "nightly", "", at)
		c.Yield("shop", "nightly", "let go by midnight", at.Add(time.Minute)) // the handle is over, and sees it no more
		if err := h.LetGo(t.Context()); err != nil || c.Ticket("shop", "nightly").Annotations[v1alpha1.AnnotationLetsGo] != "2026-01-01T00:01:01Z" {
			t.Errorf("asked anew, it answers the first question: %v", err)
		}

		again := make(chan *ticket.Handle)
		go func() {
			h, err := clientOf(t, c, integrator).Acquire(t.Context(), r)
			if err != nil {
				t.Error(err)
			}
			again <- h
		}()
		synctest.Wait()
		select {
		case <-again:
			t.Error("it has what it has let go of")
		default:
		}
		c.Wait("shop", "nightly", "Outranked", "a pod has it")
		c.Yield("shop", "nightly", "", at)
		c.Satisfy("shop", "nightly")
		h = <-again
		if err := lost(h); err != nil {
			t.Error(err)
		}
		h.Leave()
	})
}

func TestDetachedAndParameters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := tickettest.New()
		c.SatisfyAll()
		r := nightly()
		r.Node, r.Detached = "", true
		h, err := clientOf(t, c, integrator).Acquire(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if spec := h.Ticket().Spec; !spec.Detached || spec.Wherever || spec.NodeName != "" || h.Node() != "" {
			t.Errorf("the ticket asks for %+v, the handle is at %q", spec, h.Node())
		}
		h.Leave()
		r.Name, r.Node, r.Detached, r.Parameters = "copy", "worker-1", false, map[string]string{"frontend": "off"}
		for range 2 {
			if h, err = clientOf(t, c, integrator).Acquire(t.Context(), r); err != nil || h.Ticket().Spec.Parameters["frontend"] != "off" {
				t.Fatalf("%+v: %v", h, err)
			}
			h.Leave()
		}
		r.Parameters = map[string]string{"frontend": "on"}
		if _, err := clientOf(t, c, integrator).Acquire(t.Context(), r); !errors.Is(err, ticket.ErrDifferent) {
			t.Errorf("other parameters: %v", err)
		}
	})
}
