// SPDX-License-Identifier: Apache-2.0

package write_test

import (
	"context"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

// All is known after TakeOver though watches are behind. The former leader's possible grant and report are
// in doubt.
func TestTakeOver(t *testing.T) {
	shared := persistentVolume("data")
	shared.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	w := start(t, all(withNode(nil, nil), func(s *apitest.Server) { s.Put("persistentvolumes", shared) }), nil)
	var mu sync.Mutex
	listed := map[string]int{}
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		mu.Lock()
		defer mu.Unlock()
		if r.Verb == "watch" {
			return apierrors.NewServiceUnavailable("not now")
		}
		if listed[r.Resource]++; r.Verb == "list" && listed[r.Resource] == 1 {
			return apierrors.NewServiceUnavailable("not yet")
		}
		serve()
		return nil
	})
	w.server.Outage(func() {
		withAttachment(nil)(w.server)
		again := persistentVolume("data") // the same disk
		again.Name = "pv-again"
		w.server.Put("persistentvolumes", again)
		w.server.Put("volumetickets", ticketObject())
		w.server.Put("volumeholds", convert.HoldObject(convert.HoldContext{Volume: data}, ledger.Hold{
			Transitions: 1, Node: "n1", State: ledger.HoldHeld, PVs: []string{"pv-data"},
			Fences: []ledger.Fence{{Node: "n1", NodeUID: "node-uid", Attachment: "va-uid", Rule: "OutOfService", InUse: true}},
		}))
	})
	ticket := func() *ledger.Ticket {
		return w.observer.Snapshot().Ticket(ledger.TicketID{Namespace: "shop", Name: "p1"})
	}
	access := func() ledger.Access { return w.observer.Snapshot().Volume(data).Access }
	if w.place().HasOwn() || ticket() != nil || access() != ledger.AccessMany {
		t.Fatal("the watches are not behind")
	}
	must(t, w.TakeOver(t.Context()))
	if !w.place().HasOwn() {
		t.Error("the attachment is not known")
	}
	if access() != ledger.AccessNode {
		t.Errorf("the access to the disk is %d", access())
	}
	if ticket() == nil {
		t.Error("the ticket is not known")
	}
	if !w.observer.Snapshot().IsUnknown(w.observer.Snapshot().Volume(data), w.observer.Snapshot().Volume(data).OnNode("n1")) {
		t.Error("the node is believed")
	}
}

func TestTakeOverEndsWithTheTerm(t *testing.T) {
	w := start(t, nil, nil)
	ctx, cancel := context.WithCancel(t.Context())
	w.server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && r.Resource == "volumetickets" {
			cancel()
			return apierrors.NewServiceUnavailable("not now")
		}
		serve()
		return nil
	})
	if err := w.TakeOver(ctx); err == nil {
		t.Error("it begins without a list of the tickets")
	}
}
