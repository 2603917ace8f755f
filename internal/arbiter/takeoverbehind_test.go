// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// restartBehind replaces the controller by one whose cache of Nodes is as it was before: its watch of Nodes has ended, and
// goes on with a list once it leads. What it hears of them meanwhile is told before it leads.
func (s *script) restartBehind(nodes []ledger.Event, heard ...ledger.Event) {
	s.beginBehind(nodes, heard...)
	s.saw(s.List(world.Nodes))
}

// beginBehind is restartBehind before that list.
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

// playOn plays more lines.
func playOn(t *testing.T, s *script, lines ...string) {
	t.Helper()
	for _, line := range lines {
		t.Logf("> %s\n%s", line, s.command(line))
		for _, v := range s.broken() {
			t.Error(v)
		}
	}
}

// doubtedInASecondBoot has a volume in doubt in a second boot of a machine, which a controller that is behind has not seen.
func doubtedInASecondBoot(t *testing.T, access string) (*script, []ledger.Event) {
	t.Helper()
	s := scriptAfter(t, `
node worker-1 driver=disk limit=4
node worker-2 driver=disk limit=4
pv pv-1 claim=data access=`+access+`
pod db claim=data
bind pod=db node=worker-1
run
`)
	before := s.List(world.Nodes)
	playOn(t, s, "kubelet worker-1 reboot", "round",
		"kubelet worker-1 stuck=pv-1", "kubelet worker-1 down", "delete pod=db force", "delete node=worker-1", "kubelet worker-1", "run", "show volume=pv-1")
	return s, before
}

func staysAtWorker1(t *testing.T, s *script) {
	t.Helper()
	if p := s.snapshot().Volume(s.volumeNamed("pv-1")).NodeVolume("worker-1"); p == nil || !p.HasAttachments() {
		t.Error("detached on the word of a kubelet that may have forgotten it, as the hold says")
	}
}

// A leader whose cache of Nodes is behind the boot that a hold's entry for a node tells of does not take that boot for over.
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

// The same where the Node is gone when it begins to lead, as it knows: that an earlier boot of it was known last shows nothing of
// a later one, of which the hold tells.
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
