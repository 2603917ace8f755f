// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// The new leader saw the volume leave volumesAttached, but not the hold that says why.
func TestTakeOverWithALateHold(t *testing.T) {
	for _, name := range []string{"before the hold is seen", "after the hold is seen"} {
		t.Run(name, func(t *testing.T) {
			s := newScript()
			for _, line := range []string{
				"node worker-1 driver=disk limit=4 boot=a1", "pv pv-1 claim=data", "pod db claim=data", "bind pod=db node=worker-1", "run",
			} {
				s.command(line)
			}
			v := s.volumeNamed("pv-1")
			standby := ledger.New()
			for _, k := range world.AllKinds() {
				for _, e := range s.List(k) {
					standby.Apply(s.Now, e)
				}
			}
			standby.Apply(s.Now, ledger.Complete{})

			for _, line := range []string{
				"kubelet worker-1 down", "node worker-1 ready=unknown", "delete pod=db force", "run",
				"refuse write=delete-attachment", "advance 6m", "round", "round",
			} {
				s.command(line)
			}
			n, _ := s.Node("worker-1")
			late := list[ledger.HoldSeen](s.cluster, world.Holds)[0]
			if f := late.Hold.Fences; len(f) != 1 || slices.Contains(n.Reported, v) {
				t.Fatalf("fences %v, reported %v", f, n.Reported)
			}
			for _, k := range world.AllKinds() {
				for _, e := range s.List(k) {
					if k != world.Holds {
						standby.Apply(s.Now, e)
					}
				}
			}
			standby.Apply(s.Now, ledger.PodGone{UID: "db.1"})
			s.command("node worker-1 ready=true")
			s.command("report worker-1 inUse=")
			n, _ = s.Node("worker-1")
			standby.Apply(s.Now, n)

			s.begin()
			s.ledger, s.refuses = standby, map[string]bool{}
			for tasks := s.memory.TakeOver(s.snapshot()); len(tasks) > 0; tasks = s.memory.TakeOver(s.snapshot()) {
				for _, task := range tasks {
					s.carry(task)
				}
			}
			if name == "after the hold is seen" {
				s.ledger.Apply(s.Now, late)
			}
			did := s.command("run")
			for _, fault := range s.broken() {
				t.Errorf("%s\n%s", fault, did)
			}
			if p := s.snapshot().Volume(v).OnNode("worker-1"); !p.HasOwn() || !s.snapshot().IsUnknown(s.snapshot().Volume(v), p) {
				t.Errorf("the kubelet is believed: %s", did)
			}
		})
	}
}
