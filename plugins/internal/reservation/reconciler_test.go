// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// readPods has no pods, and tells of which namespace one was asked for.
type readPods struct {
	known
	read func(namespace string)
}

func (r *readPods) ConfirmPod(_ context.Context, namespace, _, _ string) (*corev1.Pod, error) {
	r.read(namespace)
	return nil, nil
}

// A leftover ticket waits for one of each other namespace at most, however many an earlier leader has left
// there: a read may be a list of all pods of one.
func TestLeftoversOfNamespacesTakeTurns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const others = 20
	var read []string
	facts := &readPods{known: known{ledger: ledger.New()}, read: func(namespace string) {
		if read = append(read, namespace); len(read) > others {
			cancel()
		}
	}}
	b := NewBook(Config{Facts: facts})
	b.Lead("moorage")
	leave := func(namespace, uid string) {
		id := ledger.TicketID{Namespace: namespace, Name: uid}
		facts.ledger.Apply(time.Now(), ledger.Ticket{ID: id, UID: "ticket-" + uid, Version: "7", Type: ledger.TypePod, Node: "n1", Pod: uid, Phase: ledger.TicketPending, Scheduler: "moorage"})
		b.Enqueue(id)
	}
	for i := range others {
		leave("shop", fmt.Sprint("u", i))
	}
	leave("bank", "db")
	b.reconciler.queue.Run(ctx, 1)
	if at := slices.Index(read, "bank"); at != 1 {
		t.Errorf("%d of another namespace come before it", at)
	}
}
