// SPDX-License-Identifier: Apache-2.0

package binding

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/sample"
)

// fits returns what Reserve asks for a pod and a node.
func fits(p *ledger.Pod, n ledger.NodeName) func(ledger.Snapshot) rules.Verdict {
	return func(s ledger.Snapshot) rules.Verdict {
		return rules.Arbiter{}.Fit(s, rules.PodRequest(s, p), n, sample.Now)
	}
}

// Whoever comes before a pod is served before the pod is counted. Nobody is served for a pod that does not fit.
func TestReserveServesThoseBeforeThePod(t *testing.T) {
	p := &Placer{Ledger: sample.Ledger(sample.Pod("holds", "n2", "b")), Now: func() time.Time { return sample.Now }}
	served := 0
	p.Before(func(*ledger.Pod, ledger.NodeName) {
		served++
		k := sample.Ticket("first", "n2", ledger.TypeRestore, "a")
		k.Phase = ledger.TicketGranted
		p.Ledger.Apply(sample.Now, k)
	})
	barred, pod := sample.Pod("barred", "", "b"), sample.Pod("pod", "", "a")
	if v := p.Reserve(barred, "n1", fits(&barred, "n1")); v.Allowed() || served != 0 {
		t.Fatalf("a pod that does not fit is reserved: %t; served: %d", v.Allowed(), served)
	}
	if v := p.Reserve(pod, "n1", fits(&pod, "n1")); v.Allowed() || served != 1 || p.Ledger.Snapshot().Pod(pod.UID) != nil {
		t.Errorf("the pod is reserved before the ticket that ranks before it: %t; served: %d", v.Allowed(), served)
	}
}

// A pod that was refused for its volumes waits, and the ticket that alone was in its way is asked for it.
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
