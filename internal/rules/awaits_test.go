// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// The volume is checked again at that time: no event may touch it.
func TestHoldAwaitsForceElsewhere(t *testing.T) {
	s := newScript()
	for _, line := range []string{
		"node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4", "pv pv-1 claim=data", "pod db claim=data", "bind pod=db node=worker-1", "run",
		"report worker-2 inUse=pv-1", "kubelet worker-2 down", "node worker-2 ready=unknown", "round", "round",
	} {
		s.command(line)
	}
	v := s.volumeNamed("pv-1")
	if h, _ := s.Hold(v); h.State != ledger.HoldUnknown || !strings.Contains(h.Message, "worker-2") {
		t.Fatalf("the hold is %s: %s", h.State, h.Message)
	}
	plans := 0
	for end := s.Now.Add(time.Hour); plans < 100; plans++ {
		plan := s.arb.Plan(s.snapshot(), v, s.Now)
		if len(plan.Steps) > 0 {
			s.command("round")
			continue
		}
		if plan.Recheck.IsZero() || plan.Recheck.After(end) {
			break
		}
		s.Now = plan.Recheck
	}
	if h, _ := s.Hold(v); h.State != ledger.HoldHeld || h.Reason != "" {
		t.Errorf("after %d plans the hold is %s: %s", plans, h.State, h.Message)
	}
	s.Now = s.Now.Add(time.Hour)
	if plan := s.arb.Plan(s.snapshot(), v, s.Now); len(plan.Steps) > 0 {
		t.Errorf("later is still to be done %v", plan.Steps)
	}
}
