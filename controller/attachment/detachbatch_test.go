// SPDX-License-Identifier: Apache-2.0

package attachment

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestGathering(t *testing.T) {
	const interval = time.Second
	begin := time.Unix(1000, 0)
	unreport := func(node ledger.NodeName) rules.Step { return rules.Step{Kind: rules.Unreport, Node: node} }
	urgent := unreport("n1")
	urgent.Urgent = true
	g := newDetachBatch(interval)
	due := func(handle string, now time.Time, steps ...rules.Step) (int, time.Duration) {
		got, left := g.due(volume(handle), steps, now)
		return len(got), left
	}
	n, first := due("a", begin, unreport("n1"))
	if n != 0 || first <= 0 || first > interval {
		t.Fatalf("%d steps, the first is put off for %s", n, first)
	}
	later := begin.Add(first / 2)
	if n, left := due("b", later, unreport("n1")); n != 0 || left != first-first/2 {
		t.Errorf("%d steps, and another of the node is put off for %s, want %s", n, left, first-first/2)
	}
	if n, left := due("a", later, unreport("n1")); n != 0 || left != first-first/2 {
		t.Errorf("%d steps, and the first is put off for %s more, want %s", n, left, first-first/2)
	}
	turn := begin.Add(first)
	for _, handle := range []string{"a", "b"} {
		if n, left := due(handle, turn, unreport("n1")); n != 1 || left != 0 {
			t.Errorf("at the node's turn %s has %d steps, and is put off for %s", handle, n, left)
		}
	}
	if n, left := due("a", turn.Add(time.Hour), unreport("n1")); n != 1 || left != 0 {
		t.Errorf("what failed at its turn is put off again: %d steps, %s", n, left)
	}
	if n, _ := due("a", turn, urgent); n != 1 {
		t.Error("what somebody waits for is put off")
	}
	if n, _ := due("a", turn, unreport("n1")); n != 0 {
		t.Error("what was urgent for a while is done at once when nobody waits any more")
	}
	if n, _ := due("b", turn, unreport("n2")); n != 0 {
		t.Error("an Unreport at another node is due with the first one")
	}
	if n, _ := due("a", begin.Add(-time.Hour), unreport("n1")); n != 1 {
		t.Error("a clock that was set back puts it off for an hour")
	}
	for _, steps := range [][]rules.Step{nil, {{Kind: rules.Report, Node: "n1"}}, {unreport("n1"), {Kind: rules.WriteHold}}} {
		if n, left := due("c", begin, steps...); n != len(steps) || left != 0 {
			t.Errorf("%d of %d steps are left, put off for %s", n, len(steps), left)
		}
	}
	off := newDetachBatch(0)
	if got, left := off.due(volume("a"), []rules.Step{unreport("n1")}, begin); len(got) != 1 || left != 0 {
		t.Errorf("without an interval %d steps are left, put off for %s", len(got), left)
	}
}

// A volume without users leaves at once if another node asks for it.
func TestUnusedVolumesLeaveTogether(t *testing.T) {
	now := time.Unix(1000, 0)
	l := facts(now, "data", "logs")
	l.Apply(now, ledger.NodeState{Name: "n2", UID: "m", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	l.Apply(now, ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, NodeID: "i-2", Limit: ledger.NoLimit}}})
	for _, handle := range []string{"data", "logs"} {
		l.Apply(now, ledger.PersistentVolume{Name: handle, Version: "2", Volume: volume(handle), Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: handle}})
		l.Apply(now, attachmentOf(handle, "2", true))
		l.Apply(now, ledger.HoldSeen{Volume: volume(handle), Hold: ledger.Hold{Version: "1", Node: "n1", NodeUID: "n", Transitions: 1, State: ledger.HoldHeld, PVs: []string{handle}}})
		l.Apply(now, ledger.PodGone{UID: handle})
	}
	d := &doer{}
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time { return now }, Gather: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	after := map[string]time.Duration{"data": process(t, c, "data"), "logs": process(t, c, "logs")}
	c.flying.Wait()
	if after["data"] <= 0 || after["data"] > time.Minute || after["data"] != after["logs"] || d.count(rules.Unreport) != 0 {
		t.Fatalf("they are put off for %v, steps %+v", after, d.steps)
	}
	l.Apply(now, ledger.Pod{UID: "p2", Version: "1", Namespace: "s", Name: "p2", Node: "n2", Volumes: []ledger.PodVolume{{Name: "v", Claim: "logs"}}})
	for range 3 { // the hold comes first
		process(t, c, "logs")
		process(t, c, "data")
		c.flying.Wait()
		for _, s := range d.steps {
			if s.Kind == rules.WriteHold {
				s.Hold.Version = "2"
				l.Apply(now, ledger.HoldSeen{Volume: s.Volume, Hold: s.Hold})
			}
		}
	}
	for _, s := range d.steps {
		if s.Kind == rules.Unreport && s.Volume != volume("logs") {
			t.Errorf("%s leaves, for which nobody asks", s.Volume)
		}
	}
	if d.count(rules.Unreport) == 0 {
		t.Errorf("the volume is wanted elsewhere, and stays: %+v", d.steps)
	}
	now = now.Add(after["data"])
	process(t, c, "data")
	c.flying.Wait()
	if last := d.steps[len(d.steps)-1]; last.Kind != rules.Unreport || last.Volume != volume("data") {
		t.Errorf("at the node's turn: %+v", last)
	}
}

// A stale Unreport is tried again after its own pause, not a whole interval later.
func TestStaleUnreportHasHadItsTurn(t *testing.T) {
	now := time.Unix(1000, 0)
	l := facts(now, "data")
	l.Apply(now, ledger.PersistentVolume{Name: "data", Version: "2", Volume: volume("data"), Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "s", Name: "data"}})
	l.Apply(now, attachmentOf("data", "2", true))
	l.Apply(now, ledger.HoldSeen{Volume: volume("data"), Hold: ledger.Hold{Version: "1", Node: "n1", NodeUID: "n", Transitions: 1, State: ledger.HoldHeld, PVs: []string{"data"}}})
	l.Apply(now, ledger.PodGone{UID: "data"})
	d := &doer{do: func(s rules.Step) error {
		if s.Kind == rules.Unreport {
			return protocol.ErrStale // the test of volumesInUse failed, for all of the batch
		}
		return nil
	}}
	c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time { return now }, Gather: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	left := process(t, c, "data")
	if left <= 0 || d.count(rules.Unreport) != 0 {
		t.Fatalf("it is put off for %s, steps %+v", left, d.steps)
	}
	now = now.Add(left)
	process(t, c, "data")
	c.flying.Wait()
	if d.count(rules.Unreport) != 1 || c.Depth() != 1 {
		t.Fatalf("at the node's turn: %+v, %d are due", d.steps, c.Depth())
	}
	pause := process(t, c, "data") // attemptOrPatch has asked for it (controller.go, queue.Add(id))
	if pause <= 0 || pause > 10*time.Millisecond {
		t.Fatalf("it pauses for %s", pause)
	}
	now = now.Add(pause)
	again := process(t, c, "data")
	c.flying.Wait()
	if d.count(rules.Unreport) != 2 {
		t.Errorf("it is put off again, for %s", again)
	}
}

// A pod waits for the retraction of a stale report (planattach.go, retract).
func TestRetractIsNotPutOff(t *testing.T) {
	for name, gather := range map[string]time.Duration{"not gathered": 0, "gathered": time.Second} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			l := facts(now, "data") // its pod is bound to n1, and there is no VolumeAttachment
			node := ledger.NodeState{Name: "n1", UID: "n", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{volume("data")}}
			l.Apply(now, node)
			d := &doer{}
			d.do = func(s rules.Step) error {
				if s.Kind == rules.Unreport {
					l.Apply(now, ledger.Unreported{Volume: s.Volume, Node: s.Node, UID: s.UID, Version: s.Version})
					node.Version, node.Reported = "3", nil
					l.Apply(now, node)
				}
				return nil
			}
			c, err := New(Config{Snapshot: l.Snapshot, Do: d, Now: func() time.Time { return now }, Gather: gather})
			if err != nil {
				t.Fatal(err)
			}
			var after time.Duration
			for range 3 { // no time passes
				after = process(t, c, "data")
				c.flying.Wait()
			}
			if d.count(rules.Unreport) != 1 || d.count(rules.CreateAttachment) == 0 {
				t.Errorf("a pod waits, and its attach is begun after %s at the earliest: %+v", after, d.steps)
			}
		})
	}
}
