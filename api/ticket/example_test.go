// SPDX-License-Identifier: Apache-2.0

package ticket_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/moorage-dev/moorage/api/ticket"
	"github.com/moorage-dev/moorage/api/ticket/tickettest"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// backUp backs a claim up at its volume's node, and begins again when a pod takes the volume. After a
// restart, call it again with the same name.
func backUp(ctx context.Context, tickets *ticket.Client, namespace, claim string, copyFrom func(ctx context.Context, node string) error) error {
	request := ticket.Request{
		Namespace: namespace, Name: "backup-" + claim, Type: v1alpha1.TicketBackup,
		Claims: []string{claim}, TTL: 30 * time.Minute,
		OnWait: func(reason, message string) { log.Println("waits:", reason, message) },
	}
	for {
		h, err := tickets.Acquire(ctx, request)
		if err != nil {
			return err // the ticket stays: the next process goes on with it
		}
		go renew(h, request.TTL/3)
		err = copyFrom(h.Work(), h.Node())
		var lost *ticket.LostError
		switch {
		case errors.As(context.Cause(h.Context()), &lost) && lost.Reason == ticket.ReasonEnded:
			return lost // the ticket was ended: the work is not wanted
		case errors.As(context.Cause(h.Context()), &lost):
			fmt.Println("begins anew:", lost.Reason)
			continue
		case err != nil && errors.Is(context.Cause(h.Work()), ticket.ErrAsked):
			fmt.Println("lets go")
			if err := h.LetGo(ctx); err != nil {
				return err
			}
			continue
		}
		return errors.Join(err, release(ctx, h))
	}
}

// release ends the ticket even if the process must stop: otherwise its volumes wait for its TTL.
func release(ctx context.Context, h *ticket.Handle) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return h.Release(ctx)
}

func renew(h *ticket.Handle, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-h.Context().Done():
			return
		case <-tick.C:
			if err := h.Renew(h.Context()); err != nil && h.Context().Err() == nil {
				log.Println("the ticket is not renewed:", err)
			}
		}
	}
}

// A backup tool and its test: pods take the volume during the copy.
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
		switch tries++; tries {
		case 1: // a pod wants the volume, and the tool is asked to let go of it
			cluster.Yield("shop", "backup-data", "let go by noon: pod shop/db-0 needs the volume at worker-2", time.Now())
			<-ctx.Done()
			go func() {
				cluster.Await(context.Background(), "shop", "backup-data", (*v1alpha1.VolumeTicket).LetsGo)
				cluster.Satisfy("shop", "backup-data")
			}()
			return ctx.Err()
		case 2: // it is lost without a question
			cluster.Wait("shop", "backup-data", "NodeFenced", "worker-1 is out of service")
			<-ctx.Done()
			cluster.Satisfy("shop", "backup-data")
			return ctx.Err()
		}
		fmt.Println("copied at", node)
		return nil
	})
	fmt.Println("done after", tries, "tries:", err, cluster.Ticket("shop", "backup-data") == nil)
	// Output:
	// lets go
	// begins anew: NodeFenced
	// copied at worker-1
	// done after 3 tries: <nil> true
}

// An administrator ends the ticket (kubectl moorage ticket end): the tool makes no other ticket.
func Example_ended() {
	cluster := tickettest.New()
	cluster.SatisfyAll()
	tickets, err := ticket.New(cluster, "backup.example.com")
	if err != nil {
		fmt.Println(err)
		return
	}
	err = backUp(context.Background(), tickets, "shop", "data", func(ctx context.Context, _ string) error {
		cluster.End("shop", "backup-data")
		<-ctx.Done()
		return ctx.Err()
	})
	fmt.Println(err)
	// Output: ticket shop/backup-data has lost its volumes: Ended: the ticket was deleted, or its time or its owner is over
}
