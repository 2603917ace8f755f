// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/moorage-dev/moorage/internal/execute/apitest"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// What was attached and asked for last is known after CatchUp, though the watches
// are behind.
func TestCatchUp(t *testing.T) {
	server := apitest.Start(t)
	v := disk(server, "data")
	o := start(t, server, true)
	var answers atomic.Bool
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "watch" || r.Verb == "list" && !answers.Load() {
			return apierrors.NewServiceUnavailable("not now")
		}
		serve()
		return nil
	})
	server.Outage(func() {
		server.Put("volumeattachments", attachment(ledger.AttachmentName(v, "n1"), "n1", "data"))
		server.Put("volumetickets", ticket("u1", "db", "n2", "data"))
	})
	known := func() (attached, asked bool) {
		s := o.Snapshot()
		return s.Volume(v).NodeVolume("n1").HasOwn(), s.Ticket(ledger.TicketID{Namespace: "shop", Name: "u1"}) != nil
	}
	if attached, asked := known(); attached || asked {
		t.Fatal("the watches are not behind")
	}
	answers.Store(true)
	if err := o.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if attached, asked := known(); !attached || !asked {
		t.Errorf("the attachment is known: %t, the ticket: %t", attached, asked)
	}
}
