// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestToldAccess(t *testing.T) {
	known := func(v *ledger.Volume) *ledger.Volume { return v }
	none := func(*ledger.Volume) *ledger.Volume { return nil }
	yetToBe := func(v *ledger.Volume) *ledger.Volume {
		return &ledger.Volume{ID: ledger.UnboundClaim("d", "u"), OnNodes: v.OnNodes}
	}
	unnamed := func(v *ledger.Volume) *ledger.Volume {
		return &ledger.Volume{ID: v.ID, OnNodes: v.OnNodes}
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		of    func(*ledger.Volume) *ledger.Volume
		need  ledger.Access
		want  ledger.Access
	}{
		"its PersistentVolume's":         {nil, known, ledger.AccessMany, ledger.AccessNode},
		"nobody knows it":                {nil, none, ledger.AccessMany, ledger.AccessMany},
		"it is yet to be":                {nil, yetToBe, ledger.AccessMany, ledger.AccessMany},
		"a pod has it, and nothing says": {nil, unnamed, ledger.AccessMany, ledger.AccessUnknown},
		"it is shared":                   {[]ledger.Event{sharedDisk}, known, ledger.AccessNode, ledger.AccessMany},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{dataAt("q", "well", ledger.PodLive)}, test.facts...)...)
		if got := told(test.of(p.volume), test.need); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestHeldWithoutAnAttachment(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	pod := ledger.Pod{UID: "p", Version: "1", Namespace: "shop", Name: "p", Node: "m", Volumes: []ledger.PodVolume{{Name: "v", Inline: iscsi, Access: ledger.AccessMany}}}
	for at, want := range map[ledger.NodeName]ledger.Access{"": ledger.AccessMany, "n": ledger.AccessNode} {
		l := ledger.New()
		l.Apply(auditTime, pod)
		l.Apply(auditTime, ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", Node: at, Transitions: 1}})
		s := l.Snapshot()
		if got := access(s, s.Volume(iscsi), ledger.AccessUnknown); got != want {
			t.Errorf("held at %q: %s, want %s", at, got, want)
		}
	}
}

// Nodes that lost the volume, fenced nodes, and reports of another boot are omitted.
func TestMountedAlone(t *testing.T) {
	forgotMounted := func(w *ledger.NodeWord) { forgot(w); w.Mounted = w.Has }
	there := func(changes ...func(*ledger.NodeWord)) []ledger.Event {
		return []ledger.Event{again(), says(append([]func(*ledger.NodeWord){forgotMounted}, changes...)...)}
	}
	var many []ledger.Event
	var few []ledger.NodeName
	for i := range fewUsers + 2 {
		n := ledger.NodeName(fmt.Sprintf("many-%02d", i))
		word := says(forgotMounted, func(w *ledger.NodeWord) { w.Node, w.UID, w.NodeUID = n, "word-"+string(n), string(n) })
		many = append(many, ledger.NodeState{Name: n, UID: string(n), Version: "1", BootID: "b", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}, word)
		if i < fewUsers {
			few = append(few, n)
		}
	}
	taken := ledger.Hold{Fences: []ledger.Fence{{Node: "well"}}}
	for name, test := range map[string]struct {
		hold   ledger.Hold
		facts  []ledger.Event
		not    ledger.NodeName
		after  time.Duration
		want   []ledger.NodeName
		detail string
	}{
		"at another node":           {ledger.Hold{}, there(), "third", 0, []ledger.NodeName{"well"}, ""},
		"at the node itself":        {ledger.Hold{}, there(), "well", 0, nil, ""},
		"the hold says it is taken": {taken, there(), "third", 0, nil, ""},
		"the node is fenced":        {ledger.Hold{}, append(there(), again(outOfOrder, func(n *ledger.NodeState) { n.Version = "8" })), "third", 0, nil, ""},
		"the word is of before":     {ledger.Hold{}, there(ofBoot("a")), "third", 0, nil, ""},
		"it owes an answer":         {ledger.Hold{}, there(asked), "third", LookPatience - 1, []ledger.NodeName{"well"}, ""},
		"nobody answers there":      {ledger.Hold{}, there(asked), "third", LookPatience, []ledger.NodeName{"well"}, oldWord},
		"at many nodes":             {ledger.Hold{}, many, "third", 0, few, ""},
	} {
		p := plannerOf(t, Arbiter{}, "", test.hold, test.facts...)
		var got []ledger.NodeName
		for _, r := range alone(p.snapshot, p.volume, test.not, auditTime.Add(test.after)) {
			got = append(got, r.Node)
			if r.Code != StagedAtNode || r.Volume != disk || r.Claim != "data" || r.Detail != test.detail {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: at %q, want %q", name, got, test.want)
		}
	}
}

// A pod of a deleted Node runs nowhere, unless a volume may be there.
func TestRunsNowhereBesideVolumes(t *testing.T) {
	gone := ledger.NodeGone{Name: "third"}
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	held := ledger.HoldSeen{Volume: iscsi, Hold: ledger.Hold{Version: "1", Node: "third", State: ledger.HoldHeld}}
	for name, test := range map[string]struct {
		at    ledger.NodeName
		facts []ledger.Event
		want  claimState
	}{
		"its Node is there":           {"third", nil, active},
		"it is gone":                  {"third", []ledger.Event{gone}, terminating},
		"gone, and it is attached":    {"third", []ledger.Event{madeAt("third"), gone}, active},
		"gone, one is held there":     {"third", []ledger.Event{held, gone}, active},
		"gone, and one may be in use": {"third", []ledger.Event{nodeAs("third", using), gone}, active},
		"it is not bound":             {"", nil, active},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{dataAt("q", test.at, ledger.PodLive)}, test.facts...)...)
		if got := claimStateOf(p.snapshot, ledger.User{Pod: "q"}); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
