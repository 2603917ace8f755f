// SPDX-License-Identifier: Apache-2.0

package write

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// A rule holds at a newer Node only if nothing but own tested patches lies between.
func TestLineage(t *testing.T) {
	node := func(version string, change func(*ledger.NodeState)) ledger.NodeState {
		n := ledger.NodeState{Name: "n1", UID: "u", Version: version, OutOfService: true, Labels: map[string]string{}}
		if change != nil {
			change(&n)
		}
		return n
	}
	cut := func(n *ledger.NodeState) { n.OutOfService = false }
	tested := func(version string) protocol.NodePatch { return protocol.NodePatch{Node: "n1", Version: version} }
	tests := map[string]struct {
		patched func(*lineages)
		now     string
		change  protocol.Change
		want    string // the version that the change names then
	}{
		"two own patches": {func(l *lineages) {
			l.patched(node("1", nil), node("2", func(n *ledger.NodeState) { n.Labels, n.Reported = nil, []ledger.VolumeID{{Driver: "d"}} }), tested("1"))
			l.patched(node("2", nil), node("3", nil), tested("2"))
		}, "3", protocol.Change{Rule: "R", Version: "1"}, "3"},
		"no rule": {func(l *lineages) { l.patched(node("1", nil), node("2", nil), tested("1")) }, "2", protocol.Change{Version: "1"}, "1"},
		"somebody else wrote after": {func(l *lineages) { l.patched(node("1", nil), node("2", nil), tested("1")) }, "3",
			protocol.Change{Rule: "R", Version: "1"}, "1"},
		"somebody else wrote between": {func(l *lineages) {
			l.patched(node("1", nil), node("2", nil), tested("1"))
			l.patched(node("3", nil), node("4", nil), tested("3"))
		}, "4", protocol.Change{Rule: "R", Version: "1"}, "1"},
		"the patch tested no version": {func(l *lineages) { l.patched(node("1", nil), node("2", nil), tested("")) }, "2",
			protocol.Change{Rule: "R", Version: "1"}, "1"},
		"something else has changed with it": {func(l *lineages) { l.patched(node("1", nil), node("2", cut), tested("1")) }, "2",
			protocol.Change{Rule: "R", Version: "1"}, "1"},
		"it only tested": {func(l *lineages) {
			l.patched(node("1", nil), node("2", nil), tested("1"))
			l.patched(node("2", nil), node("2", nil), tested("2"))
		}, "2", protocol.Change{Rule: "R", Version: "1"}, "2"},
	}
	for name, test := range tests {
		var l lineages
		test.patched(&l)
		if got := l.atNewest(node(test.now, nil), test.change).Version; got != test.want {
			t.Errorf("%s: the change names version %s, want %s", name, got, test.want)
		}
	}
	var l lineages
	for i := range 2 * maxLineage {
		l.patched(node(string(rune('a'+i)), nil), node(string(rune('b'+i)), nil), tested(string(rune('a'+i))))
	}
	if n := len(l.all["n1"]); n != maxLineage {
		t.Errorf("%d versions are remembered", n)
	}
}

func TestLineageOfGoneNodes(t *testing.T) {
	l, facts := lineages{}, ledger.New()
	for _, name := range []ledger.NodeName{"n1", "n2", "n3"} {
		is := ledger.NodeState{Name: name, UID: string(name), Version: "1"}
		facts.Apply(time.Now(), is)
		then := is
		then.Version = "2"
		l.patched(is, then, protocol.NodePatch{Node: name, Version: "1"})
	}
	facts.Apply(time.Now(), ledger.NodeGone{Name: "n1"})
	facts.Apply(time.Now(), ledger.NodeGone{Name: "n2"})
	facts.Apply(time.Now(), ledger.NodeDrivers{Node: "n2", Version: "1"})
	if l.prune(facts.Snapshot()); len(l.all) != 1 || len(l.all["n3"]) != 2 {
		t.Errorf("it remembers %v", l.all)
	}
}
