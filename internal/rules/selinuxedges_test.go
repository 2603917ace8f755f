// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

var (
	firstLabel  = ledger.SELinuxLabel("", "s0:c1")
	secondLabel = ledger.SELinuxLabel("", "s0:c2")
)

func mountsWithLabel(uid string, n ledger.NodeName, phase ledger.PodPhase, label ledger.SELinux) ledger.Event {
	return ledger.Pod{UID: uid, Version: "1", Namespace: "shop", Name: uid, Node: n, Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data", SELinux: label}}}
}

func labelling(more ...ledger.Event) []ledger.Event {
	return append([]ledger.Event{
		alive, sharedDisk, ledger.Driver{Name: "d", Version: "1", AttachRequired: true, SELinuxMount: true},
		nodeAs("well", func(n *ledger.NodeState) { n.SELinuxMount = true }),
	}, more...)
}

func asksWithLabel(s ledger.Snapshot) (evaluation, Need) {
	r := Request{Pod: "asks", Created: 1, Who: ledger.Requester{Namespace: "shop", Name: "asks", UID: "asks"}, Ticket: ledger.TicketID{Namespace: "shop", Name: "asks"}}
	return evaluation{snapshot: s, request: r, node: "well", now: auditTime}, Need{Name: "data", Volume: disk, SELinux: firstLabel}
}

func TestLabelledOtherwise(t *testing.T) {
	q := mountsWithLabel("q", "well", ledger.PodLive, secondLabel)
	leaves := mountsWithLabel("q", "well", ledger.PodTerminating, secondLabel)
	same := func(*evaluation, *Need) {}
	for name, test := range map[string]struct {
		facts  []ledger.Event
		change func(*evaluation, *Need)
		want   int
	}{
		"nobody is there":               {nil, same, 0},
		"a pod with another label":      {[]ledger.Event{q}, same, 1},
		"with the same label":           {[]ledger.Event{mountsWithLabel("q", "well", ledger.PodLive, firstLabel)}, same, 0},
		"at another node":               {[]ledger.Event{mountsWithLabel("q", "dead", ledger.PodLive, secondLabel)}, same, 0},
		"who asks is no pod":            {[]ledger.Event{q}, func(w *evaluation, _ *Need) { w.request.Pod = "" }, 0},
		"a node that nobody knows":      {[]ledger.Event{q}, func(w *evaluation, _ *Need) { w.node = "nowhere" }, 0},
		"the node mounts without":       {[]ledger.Event{q, nodeAs("well", func(n *ledger.NodeState) { n.Version = "7" })}, same, 0},
		"the driver mounts without":     {[]ledger.Event{q, ledger.Driver{Name: "d", Version: "2", AttachRequired: true}}, same, 0},
		"one that leaves":               {[]ledger.Event{leaves}, same, 1},
		"it leaves, and counts as gone": {[]ledger.Event{leaves}, func(w *evaluation, _ *Need) { w.detached = true }, 0},
		"itself, and it leaves":         {[]ledger.Event{leaves}, func(w *evaluation, _ *Need) { w.request.Pod = "q" }, 0},
		"itself":                        {[]ledger.Event{q}, func(w *evaluation, _ *Need) { w.request.Pod = "q" }, 0},
		"its label is not known":        {[]ledger.Event{q}, func(_ *evaluation, n *Need) { n.SELinux = ledger.SELinuxUnknown }, 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, labelling(test.facts...)...)
		w, need := asksWithLabel(p.snapshot)
		test.change(&w, &need)
		got := w.labelledOtherwise(w.snapshot.Volume(need.Volume), need)
		if len(got) != test.want {
			t.Errorf("%s: %+v, want %d", name, got, test.want)
		}
		for _, r := range got {
			if r.Code != SELinuxConflict || r.Volume != disk || r.Claim != "data" || r.Node != "well" || r.Who.UID != "q" {
				t.Errorf("%s: %+v", name, r)
			}
		}
	}
}

func TestLabelledOtherwiseInADryRun(t *testing.T) {
	for name, test := range map[string]struct {
		at    ledger.NodeName
		label ledger.SELinux
		pod   string // the requesting pod
		want  int
	}{
		"tried there":                 {"well", secondLabel, "asks", 1},
		"tried there, the same label": {"well", firstLabel, "asks", 0},
		"tried at another node":       {"dead", secondLabel, "asks", 0},
		"it is the one that asks":     {"well", secondLabel, "new", 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, labelling(mountsWithLabel("new", "", ledger.PodLive, test.label))...)
		d := &ledger.Delta{}
		d.Add("new", test.at)
		w, need := asksWithLabel(p.snapshot.With(d))
		w.request.Pod = test.pod
		if got := w.labelledOtherwise(w.snapshot.Volume(need.Volume), need); len(got) != test.want {
			t.Errorf("%s: %+v, want %d", name, got, test.want)
		}
	}
}

func TestFewAreLabelledOtherwise(t *testing.T) {
	for name, test := range map[string]struct{ there, tried, want int }{
		"a few are there":    {fewUsers, 0, fewUsers},
		"many are there":     {fewUsers + 4, 0, fewUsers},
		"many are tried":     {0, fewUsers + 4, fewUsers},
		"some of both":       {fewUsers - 2, 4, fewUsers},
		"one of each":        {1, 1, 2},
		"many, and one more": {fewUsers + 4, 1, fewUsers},
	} {
		var facts []ledger.Event
		d := &ledger.Delta{}
		for i := range test.there {
			facts = append(facts, mountsWithLabel(fmt.Sprint("there", i), "well", ledger.PodLive, secondLabel))
		}
		for i := range test.tried {
			uid := fmt.Sprint("tried", i)
			facts = append(facts, mountsWithLabel(uid, "", ledger.PodLive, secondLabel))
			d.Add(uid, "well")
		}
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, labelling(facts...)...)
		w, need := asksWithLabel(p.snapshot.With(d))
		if got := w.labelledOtherwise(w.snapshot.Volume(need.Volume), need); len(got) != test.want {
			t.Errorf("%s: %d are told, want %d", name, len(got), test.want)
		}
	}
}

// The label of the pod's first mention of the volume counts; otherwise unknown.
func TestMountLabel(t *testing.T) {
	names := func(uid string, volumes ...ledger.PodVolume) ledger.Event {
		return ledger.Pod{UID: uid, Version: "1", Namespace: "shop", Name: uid, Volumes: volumes}
	}
	first, second := ledger.PodVolume{Name: "a", Claim: "data", SELinux: firstLabel}, ledger.PodVolume{Name: "b", Claim: "data", SELinux: secondLabel}
	other := ledger.PodVolume{Name: "c", Claim: "other", SELinux: secondLabel}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, names("twice", first, second), names("second", other, first), names("none", other),
		asksAt("manual", ledger.TypeManual, "well"))
	ticket := func(name string) ledger.User {
		return ledger.User{Ticket: ledger.TicketID{Namespace: "shop", Name: name}}
	}
	for name, test := range map[string]struct {
		user ledger.User
		want ledger.SELinux
	}{
		"a pod that names it twice":      {ledger.User{Pod: "twice"}, firstLabel},
		"a pod that names another first": {ledger.User{Pod: "second"}, firstLabel},
		"a pod that does not name it":    {ledger.User{Pod: "none"}, ledger.SELinuxUnknown},
		"a pod that is not known":        {ledger.User{Pod: "nobody"}, ledger.SELinuxUnknown},
		"a ticket of nobody":             {ticket("manual"), ledger.SELinuxUnknown},
		"a ticket that is not known":     {ticket("nobody"), ledger.SELinuxUnknown},
	} {
		if got := mountedFor(p.snapshot, test.user, disk); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
