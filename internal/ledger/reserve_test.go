// SPDX-License-Identifier: Apache-2.0

package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func unboundPod(version string) ledger.Pod {
	p := boundPod(version)
	p.Node = ""
	return p
}

func withDisk(events ...ledger.Event) *ledger.Ledger {
	l := ledger.New()
	for _, e := range append([]ledger.Event{pvOf("pv", "1", firstDisk), claimOf("c", "1", "pv", false)}, events...) {
		l.Apply(time.Unix(1000, 0), e)
	}
	return l
}

type place struct {
	node     ledger.NodeName
	reserved bool
	uses     []ledger.NodeName
}

func placeOf(t *testing.T, l *ledger.Ledger) (at place, known bool) {
	t.Helper()
	s := l.Snapshot()
	for _, n := range []ledger.NodeName{"n1", "n2"} {
		used := false
		if p := s.Volume(firstDisk).OnNode(n); p != nil {
			used = slices.Contains(p.Users, ledger.User{Pod: "pod"})
		}
		if used {
			at.uses = append(at.uses, n)
		}
		taken := int32(0)
		if node := s.Node(n); node != nil {
			taken = node.Driver("d").Taken()
		}
		if used != (taken == 1) {
			t.Errorf("the pod uses the volume at %s: %t, and %d slots are taken", n, used, taken)
		}
	}
	if p := s.Pod("pod"); p != nil {
		at.node, at.reserved, known = p.Node, p.Reserved, true
	}
	return at, known
}

// The pod counts until it is seen at a node, gone, or given up.
func TestReserve(t *testing.T) {
	now := time.Unix(2000, 0)
	atN1, atN2 := []ledger.NodeName{"n1"}, []ledger.NodeName{"n2"}
	boundAtN2 := boundPod("3")
	boundAtN2.Node = "n2"
	copied := boundPod("3") // from a ledger
	copied.Reserved = true
	finished := boundPod("3")
	finished.Phase = ledger.PodFinished
	reserve := func(l *ledger.Ledger) { l.Reserve(now, unboundPod("2"), "n1") }
	unreserve := func(l *ledger.Ledger) { l.Unreserve(now, "pod") }
	apply := func(events ...ledger.Event) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			for _, e := range events {
				l.Apply(now, e)
			}
		}
	}
	for name, test := range map[string]struct {
		steps []func(*ledger.Ledger)
		want  place
		gone  bool // the ledger does not know the pod
	}{
		"before the pod is known":            {[]func(*ledger.Ledger){reserve}, place{"n1", true, atN1}, false},
		"and given up":                       {[]func(*ledger.Ledger){reserve, unreserve}, place{}, true},
		"and seen, and given up":             {[]func(*ledger.Ledger){reserve, apply(unboundPod("2")), unreserve}, place{}, false},
		"and a newer one seen, and given up": {[]func(*ledger.Ledger){reserve, apply(unboundPod("3")), unreserve}, place{}, false},
		"and an older one seen":              {[]func(*ledger.Ledger){reserve, apply(unboundPod("1"))}, place{"n1", true, atN1}, false},
		"a pod that is known":                {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve}, place{"n1", true, atN1}, false},
		"it is given up":                     {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, unreserve}, place{}, false},
		"it is changed":                      {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(unboundPod("3"))}, place{"n1", true, atN1}, false},
		"it is changed, and given up":        {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(unboundPod("3")), unreserve}, place{}, false},
		"it is told of once more":            {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(unboundPod("2"))}, place{"n1", true, atN1}, false},
		"it is bound there":                  {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(boundPod("3"))}, place{"n1", false, atN1}, false},
		"it is bound there, and given up":    {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(boundPod("3")), unreserve}, place{"n1", false, atN1}, false},
		"an event never reserves":            {[]func(*ledger.Ledger){apply(copied)}, place{"n1", false, atN1}, false},
		"it is bound elsewhere":              {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(boundAtN2)}, place{"n2", false, atN2}, false},
		"bound elsewhere, and given up":      {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(boundAtN2), unreserve}, place{"n2", false, atN2}, false},
		"bound elsewhere, told late":         {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(boundAtN2, unboundPod("2"))}, place{"n2", false, atN2}, false},
		"it is bound elsewhere before":       {[]func(*ledger.Ledger){apply(boundAtN2), reserve}, place{"n2", false, atN2}, false},
		"it ends":                            {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(finished)}, place{"n1", false, nil}, false},
		"it is gone":                         {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(ledger.PodGone{UID: "pod"})}, place{}, true},
		"it is gone, and given up":           {[]func(*ledger.Ledger){apply(unboundPod("2")), reserve, apply(ledger.PodGone{UID: "pod"}), unreserve}, place{}, true},
		"it was never seen, and is gone":     {[]func(*ledger.Ledger){reserve, apply(ledger.PodGone{UID: "pod"})}, place{}, true},
		"what is not reserved is given up":   {[]func(*ledger.Ledger){apply(unboundPod("2")), unreserve}, place{}, false},
		"at another node than before": {[]func(*ledger.Ledger){reserve, func(l *ledger.Ledger) { l.Reserve(now, unboundPod("2"), "n2") }},
			place{"n2", true, atN2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := withDisk()
			for _, step := range test.steps {
				step(l)
			}
			got, known := placeOf(t, l)
			if got.node != test.want.node || got.reserved != test.want.reserved || !slices.Equal(got.uses, test.want.uses) || known == test.gone {
				t.Errorf("it counts as %+v, known: %t; want %+v, gone: %t", got, known, test.want, test.gone)
			}
		})
	}
}

func TestUnreservedPodLeavesNothingAtItsClaim(t *testing.T) {
	now := time.Unix(2000, 0)
	l := withDisk()
	l.Reserve(now, unboundPod("2"), "n1")
	if pods := l.Snapshot().ClaimPods(dataClaim); !slices.Equal(pods, []string{"pod"}) {
		t.Errorf("reserved: the claim has %v", pods)
	}
	l.Unreserve(now, "pod")
	if pods := l.Snapshot().ClaimPods(dataClaim); len(pods) > 0 {
		t.Errorf("given up: the claim has %v", pods)
	}
	l.Apply(now, unboundPod("2")) // its first event comes late
	if at, known := placeOf(t, l); !known || at.node != "" || len(at.uses) > 0 {
		t.Errorf("seen after that it counts as %+v, known: %t", at, known)
	}
}

func TestReserveKeepsWhatWasSeen(t *testing.T) {
	now := time.Unix(2000, 0)
	l := withDisk(unboundPod("3"))
	old := unboundPod("2")
	old.Priority = 7
	l.Reserve(now, old, "n1")
	if p := l.Snapshot().Pod("pod"); p.Version != "3" || p.Priority != 0 || p.Node != "n1" {
		t.Errorf("reserved: %+v", p)
	}
	l.Apply(now, old)
	if p := l.Snapshot().Pod("pod"); p.Version != "3" || p.Priority != 0 {
		t.Errorf("an older version has come: %+v", p)
	}
	changed := unboundPod("4")
	changed.Priority = 9
	l.Apply(now, changed)
	if p := l.Snapshot().Pod("pod"); p.Priority != 9 || p.Node != "n1" || !p.Reserved {
		t.Errorf("a newer version has come: %+v", p)
	}
}

// An event without an effect is not told.
func TestReservationsAreGathered(t *testing.T) {
	now := time.Unix(2000, 0)
	l := withDisk(unboundPod("2"))
	changes := l.Gather()
	for _, step := range []struct {
		name string
		does func() ledger.Touched
		want bool
	}{
		{"nothing is given up", func() ledger.Touched { return l.Unreserve(now, "pod") }, false},
		{"nobody is given up", func() ledger.Touched { return l.Unreserve(now, "other") }, false},
		{"reserved", func() ledger.Touched { return l.Reserve(now, unboundPod("2"), "n1") }, true},
		{"given up", func() ledger.Touched { return l.Unreserve(now, "pod") }, true},
		{"reserved once more", func() ledger.Touched { return l.Reserve(now, unboundPod("2"), "n1") }, true},
		{"bound", func() ledger.Touched { return l.Apply(now, boundPod("3")) }, true},
		{"a bound pod is reserved", func() ledger.Touched { return l.Reserve(now, unboundPod("2"), "n2") }, false},
		{"a bound pod is given up", func() ledger.Touched { return l.Unreserve(now, "pod") }, false},
	} {
		touched := step.does()
		_, volumes, nodes := changes.Take()
		if volumes[firstDisk] != step.want || slices.Contains(touched.Volumes, firstDisk) != step.want {
			t.Errorf("%s: gathered are %v and %v, touched is %+v", step.name, volumes, nodes, touched)
		}
		if !step.want && len(volumes)+len(nodes) > 0 {
			t.Errorf("%s: gathered are %v and %v", step.name, volumes, nodes)
		}
		if step.want && step.name != "bound" && (!nodes["n1"] || !slices.Contains(touched.Pods, "pod")) {
			t.Errorf("%s: gathered are the nodes %v, touched is %+v", step.name, nodes, touched)
		}
	}
}

// The slot stays through binding and provisioning.
func TestReservedClaimBecomesAVolume(t *testing.T) {
	now := time.Unix(2000, 0)
	l := ledger.New()
	class := ledger.StorageClass{Name: "late", Version: "1", Driver: "d", WaitForFirst: true}
	claim := ledger.Claim{Key: dataClaim, UID: "c", Version: "1", Class: "late"}
	for _, e := range []ledger.Event{ledger.Driver{Name: "d", Version: "1", AttachRequired: true}, ledger.NodeDrivers{Node: "n1", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "n1", Limit: 2}}}, class, claim, unboundPod("2")} {
		l.Apply(now, e)
	}
	taken := func() int { return int(l.Snapshot().Node("n1").Driver("d").Taken()) }
	for _, step := range []struct {
		name string
		does func()
		want int
	}{
		{"reserved", func() { l.Reserve(now, unboundPod("2"), "n1") }, 1},
		{"the volume is made", func() { l.Apply(now, pvOf("pv", "3", firstDisk)) }, 1},
		{"the claim is bound", func() { l.Apply(now, claimOf("c", "4", "pv", false)) }, 1},
		{"the pod is bound", func() { l.Apply(now, boundPod("5")) }, 1},
		{"the pod is gone", func() { l.Apply(now, ledger.PodGone{UID: "pod"}) }, 0},
	} {
		step.does()
		if got := taken(); got != step.want {
			t.Errorf("%s: %d slots are taken, want %d", step.name, got, step.want)
		}
	}
}
