// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

func failed(t *testing.T, counted string) *script {
	t.Helper()
	s := newScript()
	for _, line := range []string{
		"node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4", "pv pv-1 claim=data", "pod db claim=data", "bind pod=db node=worker-1", "run",
		"kubelet worker-1 down", "node worker-1 ready=unknown", "delete pod=db force", "run", "advance " + counted, "run",
	} {
		s.command(line)
	}
	return s
}

func (s *script) unread() {
	s.begin()
	for _, k := range world.AllKinds() {
		s.saw(s.List(k))
	}
	s.ledger.Apply(s.Now, ledger.Complete{})
	for tasks := s.memory.TakeOver(s.snapshot()); len(tasks) > 0; tasks = s.memory.TakeOver(s.snapshot()) {
		for _, task := range tasks {
			s.carry(task)
		}
	}
}

// A new leader without the Lease leaves the time in the hold, and continues it after the read.
func TestClockOutlivesALeaderWithoutALease(t *testing.T) {
	s := failed(t, "5m30s")
	s.unread()
	for _, step := range s.arb.Plan(s.snapshot(), s.volumeNamed("pv-1"), s.Now).Steps {
		if step.Kind == rules.WriteHold && (step.Hold.Force == nil || step.Hold.Force.Elapsed != 5*time.Minute+30*time.Second) {
			t.Errorf("it writes of the time: %+v", step.Hold.Force)
		}
	}
	s.command("run")
	s.unread() // and again
	s.readLeases()
	if got := s.command("plan volume=pv-1"); got != "look again in 30s\n" && !strings.HasSuffix(got, "\nlook again in 30s\n") {
		t.Errorf("after it has read the Lease:\n%s", got)
	}
	s.command("advance 50s") // it has to see for itself that the node is silent
	if got := s.command("run"); !strings.Contains(got, "attacher: detached pv-1 from worker-1") {
		t.Errorf("50 s later:\n%s", got)
	}
}

func taken(t *testing.T) *script {
	t.Helper()
	s := newScript()
	for _, line := range []string{
		"node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4", "pv pv-1 claim=data", "pod db claim=data", "bind pod=db node=worker-1", "run",
		"kubelet worker-1 down", "advance 20s", "node worker-1 ready=unknown oos=true", "delete pod=db force", "run",
	} {
		s.command(line)
	}
	hold := s.snapshot().Volume(s.volumeNamed("pv-1")).Hold
	if f, found := hold.Fence("worker-1"); !found || f.Rule != rules.OutOfService || f.Renewed != 0 {
		t.Fatalf("the hold says of worker-1: %+v", f)
	}
	return s
}

// The hold gets the Lease once it is read: the next leader counts the volume as taken.
func TestFenceLearnsOfTheLease(t *testing.T) {
	s := taken(t)
	s.command("advance 1s")
	s.command("run")
	s.command("node worker-1 oos=false")
	s.restart()
	s.command("pod db2 claim=data")
	s.command("bind pod=db2 node=worker-2")
	if got := s.command("run"); !strings.Contains(got, "kubelet worker-2: db2 runs") {
		t.Errorf("nobody has heard of worker-1 since, and its volume is waited for again:\n%s", got)
	}
}

// Without the Lease the kubelet may have come back: the volume does not count as taken.
func TestFenceWithoutALease(t *testing.T) {
	s := taken(t)
	s.command("node worker-1 oos=false")
	s.command("kubelet worker-1 renews")
	s.unread()
	s.command("pod db2 claim=data")
	s.command("bind pod=db2 node=worker-2")
	if got := s.command("run"); strings.Contains(got, "kubelet worker-2: db2 runs") {
		t.Errorf("the kubelet of worker-1 may live, and its volume is attached elsewhere:\n%s", got)
	}
	s.command("advance 6m")
	if got := s.command("run"); !strings.Contains(got, "kubelet worker-2: db2 runs") {
		t.Errorf("six minutes later:\n%s", got)
	}
}

// A time that is over but takes nothing is not counted anew by the next leader.
func TestTimeThatIsOverIsKept(t *testing.T) {
	s := newScript()
	for _, line := range []string{
		"cooperative", "policy fast driver=disk afterUnreachable=2m",
		"node worker-1 driver=disk limit=4", "node worker-2 driver=disk limit=4", "pv pv-1 claim=data", "pod db claim=data", "reserve db node=worker-1", "run",
		"kubelet worker-1 down", "node worker-1 ready=unknown", "run", "advance 2m", "run", "advance 10m", "run",
	} {
		s.command(line)
	}
	t.Log(s.command("show volume=pv-1"))
	s.restart()
	s.command("pod db2 claim=data")
	s.command("advance 50s") // it has to see for itself that the node is silent
	if got := s.command("fit pod=db2 node=worker-2"); got != "worker-2: allow\n" {
		t.Errorf("after the next leader has begun:\n%s", got)
	}
	if got := s.command("plan volume=pv-1"); strings.Contains(got, "write-hold") {
		t.Errorf("the hold is written again and again:\n%s", got)
	}
}
