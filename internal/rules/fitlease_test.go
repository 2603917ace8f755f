// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

type scheduler struct {
	*ledger.Ledger
	reads bool
}

func (s *script) scheduler(reads bool) *scheduler {
	l := &scheduler{ledger.New(), reads}
	s.present(l)
	l.Apply(s.Now, ledger.Complete{})
	s.present(l)
	return l
}

func (s *script) present(l *scheduler) {
	for _, k := range world.AllKinds() {
		for _, e := range s.List(k) {
			l.Apply(s.Now, e)
		}
	}
	for _, n := range list[ledger.NodeState](s.cluster, world.Nodes) {
		if l.reads && n.Ready != ledger.ReadyTrue {
			for _, e := range s.Serve(world.Request{Do: world.GetObject, Kind: world.Leases, Key: string(n.Name)}).Facts {
				l.Apply(s.Now, e)
			}
		}
	}
}

// Disagreement would refuse a pod at every node, or reserve it where the controller refuses.
func TestFitGoesByTheSameLeasesAsGrant(t *testing.T) {
	begin := []string{
		"policy fast driver=disk afterUnreachable=2m",
		"node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4", "pv pv-1 claim=data",
		"ticket keep node=worker-1 claims=data", "run",
	}
	tests := map[string]struct {
		lines []string // "look" has the schedulers look
		fits  bool     // at worker-2
		blind bool     // the answer of a scheduler that reads no Lease
	}{
		"out of service, by its last word": {lines: []string{"node worker-1 ready=false oos=true", "kubelet worker-1 down", "look", "advance 50s", "look"}, fits: true},
		"silent, by its last word":         {lines: []string{"node worker-1 ready=false", "kubelet worker-1 down", "look", "advance 2m", "look"}, fits: true},
		"it goes on writing":               {lines: []string{"node worker-1 ready=false", "look", "advance 2m", "look"}},
		"heard, and called Unknown": {
			lines: []string{"node worker-1 ready=unknown", "kubelet worker-1 down", "look", "advance 1m", "look", "kubelet worker-1 renews", "advance 1m", "look"},
			blind: true,
		},
		"Unknown, and silent": {lines: []string{"node worker-1 ready=unknown", "kubelet worker-1 down", "look", "advance 2m", "look"}, fits: true, blind: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			for _, line := range begin {
				s.command(line)
			}
			reads, blind := s.scheduler(true), s.scheduler(false)
			for _, line := range test.lines {
				if line != "look" {
					s.command(line)
					continue
				}
				s.command("run")
				s.present(reads)
				s.present(blind)
			}
			s.command("pod db claim=data")
			s.present(reads)
			s.present(blind)
			pod, _ := s.podNamed("db")
			says := func(snap ledger.Snapshot) bool {
				return s.arb.Fit(snap, rules.PodRequest(snap, &pod), "worker-2", s.Now).Allowed()
			}
			controller := says(s.snapshot())
			if controller != test.fits || says(reads.Snapshot()) != controller {
				t.Errorf("the controller says %t, a scheduler %t, want %t", controller, says(reads.Snapshot()), test.fits)
			}
			if got := says(blind.Snapshot()); got != test.blind {
				t.Errorf("without Leases it says %t, want %t: the test shows no difference any more", got, test.blind)
			}
		})
	}
}

func TestFitAfterTheTimeIsOver(t *testing.T) {
	s := newScript()
	for _, line := range []string{
		"policy fast driver=disk afterUnreachable=2m",
		"node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4", "pv pv-1 claim=data",
		"pod db claim=data", "bind pod=db node=worker-1", "run", "kubelet worker-1 down", "node worker-1 ready=unknown", "run", "advance 2m", "run",
		"pod db2 claim=data",
	} {
		s.command(line)
	}
	snap := s.scheduler(true).Snapshot()
	pod, _ := s.podNamed("db2")
	if v := s.arb.Fit(snap, rules.PodRequest(snap, &pod), "worker-2", s.Now); !v.Allowed() {
		t.Errorf("a scheduler that begins says %v", v)
	}
}

// Otherwise a pod that tolerates every taint would be reserved there again and again.
func TestFitRefusesAFencedNode(t *testing.T) {
	s := newScript()
	for _, line := range []string{
		"node worker-1 driver=disk limit=4", "pv pv-1 claim=data", "pv pv-2 claim=many access=RWX", "pod db claim=data", "pod many claim=many",
		"node worker-1 ready=unknown oos=true",
	} {
		s.command(line)
	}
	if got := s.command("fit pod=db node=worker-1"); !strings.HasPrefix(got, "worker-1: deny\n  NodeFenced: ") {
		t.Errorf("fit: %s", got)
	}
	if got := s.command("fit pod=many node=worker-1"); got != "worker-1: allow\n" {
		t.Errorf("a volume that many share: %s", got)
	}
}
