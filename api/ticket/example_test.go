// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// backUp backs a claim up wherever its volume is, and begins anew as often as a pod takes the volume. It is
// the whole of what a backup tool has to do: call it again with the same name after a restart
// or an election, and it goes on with the ticket that it has.
func backUp(ctx context.Context, tickets *ticket.Client, namespace, claim string, copyFrom func(ctx context.Context, node string) error) error {
	request := ticket.Request{
		Namespace: namespace, Name: "backup-" + claim, Type: v1alpha1.TicketBackup,
		Claims: []string{claim}, TTL: 30 * time.Minute,
		OnWait: func(reason, message string) { fmt.Println("waits:", reason, message) },
	}
	for {
		h, err := tickets.Acquire(ctx, request)
		if err != nil {
			return err // the ticket stays: the next process goes on with it
		}
		go renew(h, request.TTL/3)
		err = copyFrom(h.Context(), h.Node())
		var lost *ticket.LostError
		if errors.As(context.Cause(h.Context()), &lost) {
			fmt.Println("begins anew:", lost.Reason)
			continue
		}
		return errors.Join(err, h.Release(ctx))
	}
}

// renew keeps the ticket for as long as the handle lives.
func renew(h *ticket.Handle, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-h.Context().Done():
			return
		case <-tick.C:
			if err := h.Renew(h.Context()); err != nil {
				fmt.Println("the ticket is not renewed:", err)
			}
		}
	}
}

// A backup tool, and a test of it: a pod takes the volume while it is copied.
func Example() {
	cluster := tickettest.New()
	cluster.SatisfyAll()
	tickets, err := ticket.New(cluster, "backup.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	tries := 0
	err = backUp(context.Background(), tickets, "shop", "data", func(ctx context.Context, node string) error {
		if tries++; tries > 1 {
			fmt.Println("copied at", node)
			return nil
		}
		cluster.Wait("shop", "backup-data", "Outranked", "pod shop/db-0 needs the volume at worker-2")
		<-ctx.Done()
		cluster.Satisfy("shop", "backup-data")
		return ctx.Err()
	})
	fmt.Println("done after", tries, "tries:", err, cluster.Ticket("shop", "backup-data") == nil)
	// Output:
	// begins anew: Outranked
	// copied at worker-1
	// done after 2 tries: <nil> true
}
