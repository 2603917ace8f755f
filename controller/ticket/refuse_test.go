// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/record"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
)

// unlucky is a writer whose first writes fail.
type unlucky struct {
	*writer
	failures int
}

func (u *unlucky) WriteTicketStatus(ctx context.Context, t *v1alpha1.VolumeTicket) error {
	if u.failures > 0 {
		u.failures--
		return flow.ErrStale
	}
	return u.writer.WriteTicketStatus(ctx, t)
}

func (u *unlucky) Carry(ctx context.Context, task flow.Task, status execute.Status) error {
	return carry(ctx, u, task, status)
}

// A pod is told of a refusal once, when it is written, however often that takes.
func TestRefusalIsToldOnce(t *testing.T) {
	asks := ticket("p", "n1", ledger.TypePod, "a", "b", "c") // of two slots
	w := &unlucky{&writer{ledger: facts(pod("p", "", "a", "b", "c"), asks)}, 2}
	recorder := record.NewFakeRecorder(10)
	c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }, Events: report.NewEventsWith(recorder)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.grantAt(t.Context(), "n1"); !errors.Is(err, flow.ErrStale) {
			t.Fatalf("error %v", err)
		}
		if len(recorder.Events) > 0 {
			t.Errorf("told before it is so: %s", <-recorder.Events)
		}
	}
	for range 2 {
		if _, err := c.grantAt(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("told %d times", len(recorder.Events))
	}
	if event := <-recorder.Events; !strings.Contains(event, "TicketRefused") || !strings.Contains(event, "node n1: ") {
		t.Errorf("event %s", event)
	}
}

// A pod is told, as of any other refusal, that its ticket is refused since the API server refuses a VolumeHold.
func TestRefusedHoldIsTold(t *testing.T) {
	w := &writer{ledger: facts(pod("p", "", "a"), ticket("p", "n1", ledger.TypePod, "a")), refuses: true}
	recorder := record.NewFakeRecorder(10)
	c, err := New(Config{Cache: w, Write: w, Now: func() time.Time { return now }, Events: report.NewEventsWith(recorder)})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.grantAt(t.Context(), "n1"); err != nil {
			t.Fatal(err)
		}
	}
	if k := w.Snapshot().Ticket(ticket("p", "n1", ledger.TypePod).ID); k.Phase != ledger.TicketRefused || k.Reason != string(arbiter.HoldRefused) {
		t.Fatalf("the ticket is %s (%s)", k.Phase, k.Reason)
	}
	if len(recorder.Events) != 1 {
		t.Fatalf("the pod is told %d times", len(recorder.Events))
	}
	if event := <-recorder.Events; !strings.Contains(event, "TicketRefused") || !strings.Contains(event, "refuses to have its VolumeHold written") {
		t.Errorf("event %s", event)
	}
}
