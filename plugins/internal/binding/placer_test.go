// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/sample"
)

func fits(p *ledger.Pod, n ledger.NodeName) func(ledger.Snapshot) rules.Verdict {
	return func(s ledger.Snapshot) rules.Verdict {
		return rules.Arbiter{}.Fit(s, rules.PodRequest(s, p), n, sample.Now)
	}
}

// Earlier tickets are decided before the pod counts, unless the pod does not fit.
func TestReserveServesThoseBeforeThePod(t *testing.T) {
	p := &Placer{Ledger: sample.Ledger(sample.Pod("holds", "n2", "b")), Now: func() time.Time { return sample.Now }}
	served := 0
	p.Before(func(pod *ledger.Pod, _ ledger.NodeName) ([]rules.Reason, func()) {
		if pod.Name == "pod" {
			return nil, nil
		}
		served++
		k := sample.Ticket("first", "n2", ledger.TypeRestore, "a")
		k.Phase = ledger.TicketGranted
		p.Ledger.Apply(sample.Now, k)
		return nil, func() {}
	})
	barred, pod, alone := sample.Pod("barred", "", "b"), sample.Pod("waits", "", "a"), sample.Pod("pod", "", "c")
	if v := p.Reserve(barred, "n1", fits(&barred, "n1")); v.Allowed() || served != 0 {
		t.Fatalf("a pod that does not fit is reserved: %t; served: %d", v.Allowed(), served)
	}
	if v := p.Reserve(pod, "n1", fits(&pod, "n1")); v.Allowed() || served != 1 || p.Ledger.Snapshot().Pod(pod.UID) != nil {
		t.Errorf("the pod is reserved before the ticket that ranks before it: %t; served: %d", v.Allowed(), served)
	}
	asked := 0
	verdict := p.Reserve(alone, "n1", func(s ledger.Snapshot) rules.Verdict {
		asked++
		return fits(&alone, "n1")(s)
	})
	if !verdict.Allowed() || asked != 1 {
		t.Errorf("a pod without rivals is reserved: %t; the rules are asked %d times", verdict.Allowed(), asked)
	}
}

// Decisions on tickets are written after Order is released.
func TestReserveKeepsAndWritesAfterwards(t *testing.T) {
	for _, kept := range [][]rules.Reason{nil, {{Code: rules.Outranked, Volume: ledger.VolumeID{Driver: sample.Driver, Handle: "a"}}}} {
		p := &Placer{Ledger: sample.Ledger(), Now: func() time.Time { return sample.Now }}
		wrote := false
		p.Before(func(*ledger.Pod, ledger.NodeName) ([]rules.Reason, func()) {
			return kept, func() {
				if wrote = p.Order.TryLock(); wrote {
					p.Order.Unlock()
				}
			}
		})
		pod := sample.Pod("pod", "", "a")
		if v := p.Reserve(pod, "n1", fits(&pod, "n1")); v.Allowed() != (kept == nil) || (p.Ledger.Snapshot().Pod(pod.UID) != nil) != v.Allowed() {
			t.Errorf("kept: %v; the pod is reserved: %t", kept, v.Allowed())
		}
		if !wrote {
			t.Errorf("kept: %v; the decisions are written while Order is held, or not at all", kept)
		}
	}
}

func TestRefusedPodWaits(t *testing.T) {
	backup := sample.Ticket("backup", "n2", ledger.TypeBackup, "a")
	backup.Phase = ledger.TicketGranted
	p := &Placer{Ledger: sample.Ledger(backup), Now: func() time.Time { return sample.Now }}
	pod, s := sample.Pod("pod", "", "a"), p.Ledger.Snapshot()
	for _, verdict := range []rules.Verdict{fits(&pod, "n2")(s), fits(&pod, "n1")(s)} {
		refused := &Refusals{}
		refused.Add(rules.Arbiter{}, s, rules.PodRequest(s, &pod), "n1", verdict, sample.Now)
		p.Refused(pod, refused, false)
		if waits, is := p.Waits.Len() == 1, !verdict.Allowed(); waits != is || (len(refused.asks) == 1) != is {
			t.Errorf("refused: %t; it waits: %t, and asks %v", is, waits, refused.asks)
		}
	}
	p = &Placer{Ledger: p.Ledger, Now: p.Now}
	if p.Refused(pod, nil, true); p.Waits.Len() != 1 {
		t.Error("a pod that is not tried does not wait")
	}
}
