// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Except if it goes elsewhere, or an attachment exists or is in flight.
func TestAttachAbandoned(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	alive := ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	attachment := ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true}
	for name, test := range map[string]struct {
		stays bool
		is    ledger.NodeName
		facts []ledger.Event
		want  bool
	}{
		"left there":                       {true, "well", []ledger.Event{alive}, true},
		"not left there":                   {false, "well", []ledger.Event{alive}, false},
		"it goes elsewhere":                {true, "dead", []ledger.Event{alive}, false},
		"not left there, only reported":    {false, "well", []ledger.Event{alive, nodeAs("well", reporting)}, false},
		"somebody wants it there":          {true, "well", []ledger.Event{alive, dataAt("q", "well", ledger.PodLive)}, false},
		"there is an attachment":           {true, "well", []ledger.Event{alive, attachment}, false},
		"a creation is under way":          {true, "well", []ledger.Event{alive, ledger.AttachSent{Volume: id, Node: "well"}}, false},
		"its hold has to be written first": {true, "well", []ledger.Event{alive, ledger.HoldGone{Volume: id}}, false},
		"it may be elsewhere, too":         {true, "well", nil, false},
	} {
		s, v, _ := concerned(t, "", "well", ledger.Hold{State: ledger.HoldUnknown, Stays: test.stays, Transitions: 1}, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		p := Arbiter{}.planner(s, v, auditTime)
		p.hold.Node = test.is
		p.attachAbandoned()
		if got := len(p.plan.Steps) == 1 && p.plan.Steps[0].Kind == CreateAttachment && p.plan.Steps[0].Node == "well"; got != test.want || len(p.plan.Steps) > 0 != test.want {
			t.Errorf("%s: planned %+v", name, p.plan.Steps)
		}
	}
}

// Otherwise an attacher would wait for the migration's target to lose the volume.
func TestAttachAbandonedBesideAMigration(t *testing.T) {
	left := ledger.Hold{State: ledger.HoldUnknown, Stays: true, Transitions: 1}
	migrates := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	target := asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"its target has it":         {[]ledger.Event{alive, migrates, target, madeAt("dead")}, "dead"},
		"its target has it not yet": {[]ledger.Event{alive, migrates, target}, "dead"}, // it may be made at the same time
		"its target is asked for":   {[]ledger.Event{alive, migrates, target, ledger.AttachSent{Volume: disk, Node: "dead"}}, "dead"},
		"nothing migrates":          {[]ledger.Event{alive, migrates}, ""},
	} {
		p := plannerOf(t, Arbiter{}, "well", left, test.facts...)
		p.attachAbandoned()
		if steps := p.plan.Steps; len(steps) != 1 || steps[0].Node != "well" || steps[0].Beside != test.want {
			t.Errorf("%s: planned %+v", name, steps)
		}
	}
}

// An attachment is deleted once attached: until then its attacher may not have seen it.
func TestDetachAbandoned(t *testing.T) {
	made := func(change func(*ledger.Attachment)) ledger.Event {
		return madeAt("well", func(a *ledger.Attachment) { a.Attached = false; change(a) })
	}
	for name, test := range map[string]struct {
		stays bool
		made  ledger.Event
		want  bool // its detach begins
	}{
		"yet to be attached":       {true, made(func(*ledger.Attachment) {}), false},
		"it could not be attached": {true, made(func(a *ledger.Attachment) { a.AttachError = ledger.CallError{Code: 9, Message: "no"} }), false},
		"attached":                 {true, madeAt("well"), true},
		"not left there before":    {false, made(func(*ledger.Attachment) {}), true},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{State: ledger.HoldUnknown, Stays: test.stays, Transitions: 1}, alive, test.made)
		p.release(p.at("well"))
		if got := len(p.plan.Steps) > 0; got != test.want {
			t.Errorf("%s: planned %+v", name, p.plan.Steps)
		}
	}
}

// Only if the hold says so, for a living user, after a refused detach.
func TestAskToStay(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	leaving := ledger.Attachment{
		Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "7", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true,
		Attached: true, Deleting: true, DetachError: ledger.CallError{Code: 9, Message: "no"},
	}
	wanted, willing := leaving, leaving
	wanted.Wanted, willing.DetachError = true, ledger.CallError{}
	for name, test := range map[string]struct {
		heldAt     ledger.NodeName
		stays      bool
		podAt      ledger.NodeName
		attachment ledger.Attachment
		next       ledger.NodeName
		gone       bool // the hold was deleted
		want       bool
	}{
		"refused, and wanted again": {"well", true, "well", leaving, "", false, true},
		"not written yet":           {"well", false, "well", leaving, "", false, false},
		"it stays elsewhere":        {"dead", true, "well", leaving, "", false, false},
		"nobody wants it here":      {"well", true, "dead", leaving, "", false, false},
		"asked already":             {"well", true, "well", wanted, "", false, false},
		"another is next":           {"well", true, "well", leaving, "dead", false, false},
		"its hold is to be written": {"well", true, "well", leaving, "", true, false},
		"not refused":               {"well", true, "well", willing, "", false, false},
	} {
		s, _, _ := concerned(t, test.podAt, test.heldAt, ledger.Hold{State: ledger.HoldUnknown, Stays: test.stays, Transitions: 1}, func(l *ledger.Ledger) {
			l.Apply(auditTime, test.attachment)
			if test.gone {
				l.Apply(auditTime, ledger.HoldGone{Volume: id})
			}
		})
		v := s.Volume(id)
		p := Arbiter{StayAttached: true}.planner(s, v, auditTime)
		p.hold.Next.Node = test.next
		p.askToStay(v.OnNode("well"))
		steps := p.plan.Steps
		if got := len(steps) == 1 && steps[0].Kind == MarkWanted && steps[0].Version == "7" && steps[0].Who == "shop/db"; got != test.want || len(steps) > 0 != test.want {
			t.Errorf("%s: planned %+v", name, steps)
		}
	}
}

func TestWhoHas(t *testing.T) {
	id := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	node := func(reported ...ledger.VolumeID) ledger.NodeState {
		return ledger.NodeState{Name: "n1", UID: "n", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: reported}
	}
	for name, test := range map[string]struct {
		node ledger.NodeState
		hold []ledger.Event
		want ledger.NodeName
	}{
		"reported":                     {node(id), nil, "n1"},
		"not reported":                 {node(), nil, ""},
		"held":                         {node(), []ledger.Event{ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "1", Node: "n1", State: ledger.HoldHeld}}}, "n1"},
		"held elsewhere, and reported": {node(id), []ledger.Event{ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "1", Node: "n2", State: ledger.HoldHeld}}}, ""},
	} {
		l := ledger.New()
		for _, e := range append([]ledger.Event{
			test.node,
			ledger.PersistentVolume{Name: "pv", Version: "1", Volume: id, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
			ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "1", PersistentVolume: "pv", Bound: true},
			ledger.Pod{UID: "p", Version: "1", Namespace: "shop", Name: "db", Node: "n1", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
		}, test.hold...) {
			l.Apply(auditTime, e)
		}
		s := l.Snapshot()
		if got := (evaluation{snapshot: s, request: Request{Pod: "q"}, node: "n2", now: auditTime}).has(s.Volume(id)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
