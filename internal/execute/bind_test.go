// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"errors"
	"testing"

	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

// The API server says of failures of its storage that the pod has changed, too: the lease is not handed over
// before such a bind can have no effect any more. That the pod has another version than the bind asks for ends
// the reservation at once.
func TestConflictOfABindIsOutlasted(t *testing.T) {
	w := start(t, all(func(s *apitest.Server) {
		p := usingPod("late", "p9", "data")
		p.Spec.NodeName = ""
		s.Put("pods", p)
	}, withNode(nil, nil)), nil)
	r := ledger.Ticket{ID: ledger.BindID("shop", "p9"), Type: ledger.TypePod, Pod: "p9", PodName: "late", Node: "n1", Phase: ledger.TicketGranted, Bind: ledger.BindSent}
	w.observer.Apply(r)
	if err := w.Carry(t.Context(), flow.Bind(&r, "1000000"), nil); !errors.Is(err, flow.ErrStale) {
		t.Fatal(err)
	}
	if s := w.observer.Snapshot().Ticket(r.ID); s != nil {
		t.Errorf("the reservation stands: %+v", s)
	}
	if left := w.OutlastUnanswered(); left <= 0 {
		t.Errorf("the lease is handed over at once (%s)", left)
	}
}
