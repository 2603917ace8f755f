// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// restartBehind: the watch of Nodes continues with a list only once the controller leads.
func (s *script) restartBehind(nodes []ledger.Event, heard ...ledger.Event) {
	s.beginBehind(nodes, heard...)
	s.saw(s.List(world.Nodes))
}

func (s *script) beginBehind(nodes []ledger.Event, heard ...ledger.Event) {
	s.begin()
	for _, k := range append(world.AllKinds(), world.NodeWords) {
		if k == world.Nodes {
			for _, e := range nodes {
				s.ledger.Apply(s.Now, e)
			}
			continue
		}
		s.saw(s.List(k))
	}
	for _, e := range heard {
		s.ledger.Apply(s.Now, e)
	}
	s.ledger.Apply(s.Now, ledger.Complete{})
	s.readLeases()
	for tasks := s.memory.TakeOver(s.snapshot()); len(tasks) > 0; tasks = s.memory.TakeOver(s.snapshot()) {
		for _, t := range tasks {
			s.carry(t)
		}
	}
}

func playOn(t *testing.T, s *script, lines ...string) {
	t.Helper()
	for _, line := range lines {
		t.Logf("> %s\n%s", line, s.command(line))
		for _, v := range s.broken() {
			t.Error(v)
		}
	}
}

func usedAtWorker1(t *testing.T, access string) (*script, []ledger.Event) {
	t.Helper()
	s := scriptAfter(t, `
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data access=`+access+`
pod db claim=data
bind pod=db node=worker-1
run
`)
	return s, s.List(world.Nodes)
}

func doubtedInASecondBoot(t *testing.T, access string) (*script, []ledger.Event) {
	t.Helper()
	s, before := usedAtWorker1(t, access)
	playOn(t, s, "kubelet worker-1 reboot", "round",
		"kubelet worker-1 stuck=pv-1", "kubelet worker-1 down", "delete pod=db force", "delete node=worker-1", "kubelet worker-1", "run", "show volume=pv-1")
	return s, before
}

func staysAtWorker1(t *testing.T, s *script) {
	t.Helper()
	if p := s.snapshot().Volume(s.volumeNamed("pv-1")).OnNode("worker-1"); p == nil || !p.HasAttachments() {
		t.Error("detached on the word of a kubelet that may have forgotten it, as the hold says")
	}
}

func TestTakeOverBehindTheBootOfADoubt(t *testing.T) {
	for name, access := range map[string]string{"exclusive": "RWO", "shared": "RWX"} {
		t.Run(name, func(t *testing.T) {
			s, before := doubtedInASecondBoot(t, access)
			s.restartBehind(before)
			playOn(t, s, "run", "show volume=pv-1")
			staysAtWorker1(t, s)
		})
	}
}

// A deleted Node's last known boot shows nothing of a later boot in the hold.
func TestTakeOverOfANodeThatIsGoneBehindItsBoot(t *testing.T) {
	for name, access := range map[string]string{"exclusive": "RWO", "shared": "RWX"} {
		t.Run(name, func(t *testing.T) {
			s, before := doubtedInASecondBoot(t, access)
			playOn(t, s, "kubelet worker-1 down", "delete node=worker-1", "run")
			s.restartBehind(before, ledger.NodeGone{Name: "worker-1"})
			playOn(t, s, "run", "show volume=pv-1", "kubelet worker-1", "run", "show volume=pv-1")
			staysAtWorker1(t, s)
		})
	}
}

func TestTakeOverReadsThatANodeIsGone(t *testing.T) {
	for name, access := range map[string]string{"exclusive": "RWO", "shared": "RWX"} {
		t.Run(name, func(t *testing.T) {
			s, before := doubtedInASecondBoot(t, access)
			playOn(t, s, "kubelet worker-1 down", "delete node=worker-1", "run")
			s.restartBehind(before)
			playOn(t, s, "do volume=pv-1", "show volume=pv-1")
			for _, e := range before { // its watch of Nodes continues with a list
				if n := e.(ledger.NodeState).Name; s.Get(world.Nodes, string(n)) == nil {
					s.ledger.Apply(s.Now, ledger.NodeGone{Name: n})
				}
			}
			playOn(t, s, "run", "show volume=pv-1", "kubelet worker-1", "run", "show volume=pv-1")
			staysAtWorker1(t, s)
		})
	}
}

// The cache has an earlier Node and boot than the hold.
func TestTakeOverReadsThatTheHoldersNodeIsGone(t *testing.T) {
	s, before := usedAtWorker1(t, "RWO")
	playOn(t, s, "kubelet worker-1 reboot down", "delete node=worker-1", "kubelet worker-1", "run", "show volume=pv-1",
		"kubelet worker-1 stuck=pv-1", "kubelet worker-1 down", "delete pod=db force", "delete node=worker-1")
	s.restartBehind(before)
	playOn(t, s, "do volume=pv-1", "show volume=pv-1")
	s.ledger.Apply(s.Now, ledger.NodeGone{Name: "worker-1"})
	playOn(t, s, "run", "show volume=pv-1", "kubelet worker-1", "run", "show volume=pv-1")
	staysAtWorker1(t, s)
}

// An attachment to the next machine does not prove that the left volume is attached again.
func TestTakeOverBehindAMachineThatIsReplaced(t *testing.T) {
	for name, how := range map[string]string{"by its own name": "", "by its node's name": "by-name\n"} {
		t.Run(name, func(t *testing.T) {
			s := scriptAfter(t, how+leftAtReplaced+`
fail attach volume=pv-1
csinode worker-1 driver=disk limit=4
run
show volume=pv-1
`)
			before := s.List(world.Nodes)
			playOn(t, s, "kubelet worker-1 down", "delete pod=db force", "delete node=worker-1", "node worker-1 new reporting=true",
				"fail attach volume=pv-1 ok", "fail detach volume=pv-1 ok")
			for _, n := range s.Keys(world.Attachments) {
				s.attacher(n) // there is no leader
			}
			s.beginBehind(before)
			s.doSteps(parse("do volume=pv-1")) // before the watch of Nodes continues
			s.saw(s.List(world.Nodes))
			playOn(t, s, "pod other claim=data", "reserve other node=worker-2", "run", "show volume=pv-1", "advance 7m", "run", "advance 7m", "run", "show volume=pv-1")
			if s.heldAt("pv-1") != "worker-1" {
				t.Errorf("held at %s, and attached to %v", s.heldAt("pv-1"), s.Disks.At[s.volumeNamed("pv-1")])
			}
		})
	}
}
