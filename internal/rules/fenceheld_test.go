// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

var fencedVolume = ledger.VolumeID{Driver: "d", Handle: "h"}

func deadNode(version, uid, boot string, change func(*ledger.NodeState)) ledger.NodeState {
	n := ledger.NodeState{
		Name: "dead", UID: uid, Version: version, BootID: boot, Ready: ledger.ReadyUnknown, ReadySince: 40,
		Managed: true, Reporting: true, InUse: []ledger.VolumeID{fencedVolume},
	}
	change(&n)
	return n
}

func atDead(uid string, deleting bool) ledger.Attachment {
	return ledger.Attachment{Name: ledger.AttachmentName(fencedVolume, "dead"), UID: uid, Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Ours: true, Attached: true, Deleting: deleting}
}

// A fence stays until its outage ends or a user gets a right there.
func TestFenceOfANode(t *testing.T) {
	kept := ledger.Fence{Node: "dead", NodeUID: "x", BootID: "b", Attachment: "a", Rule: OutOfService, InUse: true, Since: 40}
	fresh := kept
	of := func(change func(*ledger.Fence)) ledger.Fence {
		f := kept
		f.InUse = false // it differs from a new one
		change(&f)
		return f
	}
	same := func(*ledger.Fence) {}
	plain := func(n *ledger.NodeState) {}
	tainted := func(n *ledger.NodeState) { n.OutOfService = true }
	attached, leaving := atDead("a", false), atDead("a", true)
	reported := func(n *ledger.NodeState) { n.OutOfService, n.Reported = true, []ledger.VolumeID{fencedVolume} }
	user := ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "dead", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	many := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: fencedVolume, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}
	byTime := func(f *ledger.Fence) { f.Rule = AfterPodGone }
	for name, test := range map[string]struct {
		old    ledger.Fence // zero: none
		node   func(*ledger.NodeState)
		facts  []ledger.Event
		want   ledger.Fence
		needed bool
	}{
		"the first":                        {ledger.Fence{}, tainted, []ledger.Event{attached}, fresh, true},
		"the same goes on":                 {of(same), tainted, []ledger.Event{attached}, of(same), true},
		"another attachment":               {of(func(f *ledger.Fence) { f.Attachment = "z" }), tainted, []ledger.Event{attached}, fresh, true},
		"another rule":                     {of(byTime), tainted, []ledger.Event{attached}, fresh, true},
		"another outage":                   {of(func(f *ledger.Fence) { f.Since = 39 }), tainted, []ledger.Event{attached}, fresh, true},
		"another Node":                     {of(func(f *ledger.Fence) { f.NodeUID = "z" }), tainted, []ledger.Event{attached}, fresh, true},
		"no rule any more":                 {of(same), plain, []ledger.Event{attached}, ledger.Fence{}, false},
		"never one":                        {ledger.Fence{}, plain, []ledger.Event{attached}, ledger.Fence{}, false},
		"the attacher's turn":              {of(same), tainted, []ledger.Event{leaving}, of(same), true},
		"it has gone":                      {of(same), tainted, nil, of(same), true},
		"it has gone, and nothing taken":   {ledger.Fence{}, tainted, nil, ledger.Fence{}, false},
		"gone, and the rule had ended":     {of(func(f *ledger.Fence) { f.Rule = "" }), tainted, nil, ledger.Fence{}, false},
		"gone, and still reported":         {of(func(f *ledger.Fence) { f.Attachment = "" }), reported, nil, of(func(f *ledger.Fence) { f.Attachment = "" }), true},
		"gone, in another outage":          {of(func(f *ledger.Fence) { f.Since = 39 }), tainted, nil, ledger.Fence{}, false},
		"gone, and the node is Ready":      {of(same), func(n *ledger.NodeState) { n.Ready = ledger.ReadyTrue }, nil, ledger.Fence{}, false},
		"gone, and it is shared by now":    {of(same), tainted, []ledger.Event{many}, ledger.Fence{}, false},
		"gone, and nobody there counts":    {of(same), tainted, []ledger.Event{user}, of(same), true},
		"gone by time, and a pod is there": {of(byTime), plain, []ledger.Event{user}, ledger.Fence{}, false},
		"gone by time":                     {of(byTime), plain, nil, of(byTime), true},
		"of no rule, nothing to say of it": {of(func(f *ledger.Fence) { f.Rule, f.Since = "", 0 }), func(n *ledger.NodeState) { n.ReadySince = 0 }, []ledger.Event{attached}, ledger.Fence{}, false},
		"reported, the Lease is not read":  {of(byTime), func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{fencedVolume} }, nil, ledger.Fence{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			hold := ledger.Hold{State: ledger.HoldHeld, Transitions: 1}
			if test.old != (ledger.Fence{}) {
				hold.Fences = []ledger.Fence{test.old}
			}
			s, _, _ := concerned(t, "", "dead", hold, func(l *ledger.Ledger) {
				l.Apply(auditTime, deadNode("2", "x", "b", test.node))
				for _, e := range test.facts {
					l.Apply(auditTime, e)
				}
			})
			v := s.Volume(fencedVolume)
			p := Arbiter{}.planner(s, v, auditTime)
			p.hold = *v.Hold
			f, needed := p.fence(*v.Hold, v.OnNode("dead"))
			if needed != test.needed || needed && f != test.want {
				t.Errorf("needed: %t, %+v\nwant %t, %+v", needed, f, test.needed, test.want)
			}
		})
	}
}

// The hold names the Node and boot of a forgotten volume, unless its holder does.
func TestFenceOfADoubt(t *testing.T) {
	for name, test := range map[string]struct {
		old             ledger.Fence
		heldAt          ledger.NodeName
		nodeUID         string // in the hold
		boot            string // in the hold
		trusted         bool
		want            bool
		wantUID, wantID string
	}{
		"held elsewhere":                   {ledger.Fence{}, "well", "x", "b", false, true, "y", "b"},
		"by another Node than the hold's":  {ledger.Fence{}, "dead", "x", "b", false, false, "", ""},
		"by the hold's own":                {ledger.Fence{}, "dead", "y", "b", false, true, "y", "b"},
		"the hold names none":              {ledger.Fence{}, "dead", "", "b", false, true, "y", "b"},
		"the hold names no boot":           {ledger.Fence{}, "dead", "x", "", false, true, "y", "b"},
		"the hold names another boot":      {ledger.Fence{}, "dead", "x", "old", false, true, "y", "b"},
		"said before":                      {ledger.Fence{Node: "dead", Attachment: "a", NodeUID: "x", BootID: "b"}, "dead", "x", "b", false, true, "x", "b"},
		"said before, of another boot":     {ledger.Fence{Node: "dead", Attachment: "a", NodeUID: "x", BootID: "old"}, "dead", "x", "b", false, true, "y", "b"},
		"said before, by a rule":           {ledger.Fence{Node: "dead", Attachment: "a", NodeUID: "x", BootID: "b", Rule: OutOfService}, "dead", "x", "b", false, true, "x", "b"},
		"said of another attachment":       {ledger.Fence{Node: "dead", Attachment: "z", NodeUID: "x", BootID: "old"}, "well", "", "", false, true, "y", "b"},
		"said of another, and by the hold": {ledger.Fence{Node: "dead", Attachment: "z", NodeUID: "x", BootID: "old"}, "dead", "x", "b", false, false, "", ""},
		"not doubted":                      {ledger.Fence{Node: "dead", Attachment: "a", NodeUID: "x", BootID: "old"}, "well", "x", "b", true, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			hold := ledger.Hold{State: ledger.HoldHeld, Transitions: 1, NodeUID: test.nodeUID, BootID: test.boot}
			if test.old != (ledger.Fence{}) {
				hold.Fences = []ledger.Fence{test.old}
			}
			s, _, _ := concerned(t, "", test.heldAt, hold, func(l *ledger.Ledger) {
				l.Apply(auditTime, deadNode("2", "x", "b", func(n *ledger.NodeState) { n.Ready, n.Reported = ledger.ReadyTrue, []ledger.VolumeID{fencedVolume} }))
				l.Apply(auditTime, atDead("a", false))
				if !test.trusted {
					l.Apply(auditTime, deadNode("3", "y", "b", func(n *ledger.NodeState) { n.Ready = ledger.ReadyTrue }))
				}
			})
			if isUnknown(s, fencedVolume, "dead") == test.trusted {
				t.Fatalf("doubted: %t", !test.trusted)
			}
			v := s.Volume(fencedVolume)
			place := v.OnNode("dead")
			p := Arbiter{}.planner(s, v, auditTime)
			p.hold = *v.Hold
			f, needed := p.unknownFence(test.old, s.Node("dead"), place, place.Own())
			want := ledger.Fence{Node: "dead", NodeUID: test.wantUID, BootID: test.wantID, Attachment: "a", InUse: true}
			if needed != test.want || needed && f != want {
				t.Errorf("needed: %t, %+v\nwant %t, %+v", needed, f, test.want, want)
			}
		})
	}
}

// Force waits until the hold names rule and attachment; without force, until it says nothing of the
// attachment.
func TestFenceIsWrittenFirst(t *testing.T) {
	va := atDead("a", false)
	attached := func(l *ledger.Ledger) { l.Apply(auditTime, va) }
	none := func(*ledger.Ledger) {}
	for name, test := range map[string]struct {
		fences []ledger.Fence
		facts  func(*ledger.Ledger)
		rule   string
		want   bool
	}{
		"nothing said, no force":         {nil, attached, "", true},
		"of it, no force":                {[]ledger.Fence{{Node: "dead", Attachment: "a", Rule: OutOfService}}, attached, "", false},
		"of another, no force":           {[]ledger.Fence{{Node: "dead", Attachment: "z", Rule: OutOfService}}, attached, "", true},
		"of another node, no force":      {[]ledger.Fence{{Node: "well", Attachment: "a", Rule: OutOfService}}, attached, "", true},
		"nothing said":                   {nil, attached, OutOfService, false},
		"of it":                          {[]ledger.Fence{{Node: "dead", Attachment: "a", Rule: OutOfService}}, attached, OutOfService, true},
		"by another rule":                {[]ledger.Fence{{Node: "dead", Attachment: "a", Rule: AfterPodGone}}, attached, OutOfService, false},
		"of another attachment":          {[]ledger.Fence{{Node: "dead", Attachment: "z", Rule: OutOfService}}, attached, OutOfService, false},
		"nothing said, nothing attached": {nil, none, OutOfService, true},
		"of no attachment, nothing is":   {[]ledger.Fence{{Node: "dead", Rule: OutOfService}}, none, OutOfService, true},
	} {
		s, _, _ := concerned(t, "", "dead", ledger.Hold{State: ledger.HoldHeld, Transitions: 1, Fences: test.fences}, test.facts)
		v := s.Volume(fencedVolume)
		place := v.OnNode("dead")
		if got := (Arbiter{}).planner(s, v, auditTime).fenceWritten(place, place.Own(), test.rule); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Attached counts by attachment, report or creation in flight, not by the kubelet's use.
func TestAttachedAt(t *testing.T) {
	if attachedAt(nil) {
		t.Error("nowhere")
	}
	for want, place := range map[bool]ledger.VolumeOnNode{false: {InUse: true, Users: []ledger.User{{Pod: "p"}}}, true: {Reported: true}} {
		if got := attachedAt(&place); got != want {
			t.Errorf("%+v: %t", place, got)
		}
	}
	if !attachedAt(&ledger.VolumeOnNode{Sent: true}) {
		t.Error("not where a creation is under way")
	}
}

func TestFenceNamesTheNode(t *testing.T) {
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		events []ledger.Event
		want   ledger.Fence
	}{
		"the Node is there":         {"well", nil, ledger.Fence{NodeUID: "x", BootID: "b", Since: 40, Renewed: 7, InUse: true}},
		"it is gone":                {"well", []ledger.Event{ledger.NodeGone{Name: "dead"}}, ledger.Fence{NodeUID: "x", BootID: "b", InUse: true}},
		"it is gone, and held here": {"dead", []ledger.Event{ledger.NodeGone{Name: "dead"}}, ledger.Fence{NodeUID: "x", BootID: "b", InUse: true}},
	} {
		s, v, _ := concerned(t, "", test.heldAt, ledger.Hold{State: ledger.HoldHeld, NodeUID: "held", BootID: "held"}, func(l *ledger.Ledger) {
			l.Apply(auditTime, deadNode("2", "x", "b", func(*ledger.NodeState) {}))
			l.Apply(auditTime, ledger.NodeLease{Node: "dead", Renewed: 7})
			for _, e := range test.events {
				l.Apply(auditTime, e)
			}
		})
		test.want.Node, test.want.Rule = "dead", OutOfService
		p := Arbiter{}.planner(s, v, auditTime)
		place := &ledger.VolumeOnNode{Node: "dead", InUse: true}
		if got := p.newFence(s.Node("dead"), place, nil, OutOfService); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if test.heldAt != "dead" {
			continue
		}
		want := ledger.Fence{Node: "dead", Rule: OutOfService, NodeUID: "held", BootID: "held", InUse: true}
		for what, n := range map[string]*ledger.Node{"a node that nobody knows": nil, "a node that nobody has seen": {NodeState: ledger.NodeState{Name: "dead"}}} {
			if got := p.newFence(n, place, nil, OutOfService); got != want {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
		}
	}
}

// A volume taken while in use ends the rights of all users there.
func TestWhatAKeptFenceEnds(t *testing.T) {
	for rule, want := range map[string]bool{OutOfService: true, AfterUnreachable: true, AfterPodGone: false} {
		s, v, _ := concerned(t, "", "dead", ledger.Hold{State: ledger.HoldHeld, Fences: []ledger.Fence{{Node: "dead", NodeUID: "x", Rule: rule, Since: 40}}}, func(l *ledger.Ledger) {
			l.Apply(auditTime, deadNode("2", "x", "", func(*ledger.NodeState) {}))
			l.Apply(auditTime, ledger.NodeLease{Node: "dead"})
		})
		if got := fenced(s, v, "dead", auditTime); got != want {
			t.Errorf("%s: fenced: %t", rule, got)
		}
	}
}

func TestDetachBesideAnotherAwaitsForce(t *testing.T) {
	s, _, _ := concerned(t, "", "dead", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
		l.Apply(auditTime, atDead("a", false))
	})
	v := s.Volume(fencedVolume)
	p := Arbiter{Cooperative: true}.planner(s, v, auditTime)
	place := v.OnNode("dead")
	p.detachUnreported(s.Node("dead"), place, place.Own())
	if len(p.plan.Steps) > 0 || !p.plan.Recheck.Equal(auditTime.Add(DefaultAfterPodGone)) {
		t.Errorf("planned %+v, looked at again at %s", p.plan.Steps, p.plan.Recheck)
	}
}

// In Cooperative mode fences stay while that boot may last, and no fence is added.
func TestFencesBesideAnother(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	doubted := ledger.Fence{Node: "well", NodeUID: "w", BootID: "b", Attachment: "a", InUse: true}
	taken := doubted
	taken.Rule = AfterPodGone
	said := func(boot string) ledger.Event {
		return ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, BootID: boot, Reported: []ledger.VolumeID{id}}
	}
	attached := ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}
	guest := ledger.Pod{UID: "g", Version: "1", Namespace: "shop", Name: "g", Node: "well", OptedOut: true, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	many := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}
	for name, test := range map[string]struct {
		was   []ledger.Fence
		facts []ledger.Event
		want  int
		write bool // the words of a hold that Moorage leaves have changed
	}{
		"the same boot":                    {[]ledger.Fence{doubted}, []ledger.Event{said("b")}, 1, false},
		"the same boot, left":              {[]ledger.Fence{doubted}, []ledger.Event{said("b"), guest}, 1, false},
		"the same boot, left and shared":   {[]ledger.Fence{doubted}, []ledger.Event{said("b"), guest, many}, 1, false},
		"taken, and attached by the other": {[]ledger.Fence{taken}, []ledger.Event{said("b"), attached}, 1, true},
		"another boot":                     {[]ledger.Fence{doubted}, []ledger.Event{said("c")}, 0, true},
		"another boot, left":               {[]ledger.Fence{doubted}, []ledger.Event{said("c"), guest}, 0, true},
		"another boot, left and shared":    {[]ledger.Fence{doubted}, []ledger.Event{said("c"), guest, many}, 0, true},
		"nothing was said":                 {nil, []ledger.Event{said("b"), attached}, 0, false},
		"nothing was said, left":           {nil, []ledger.Event{said("b"), attached, guest}, 0, false},
	} {
		hold := ledger.Hold{State: ledger.HoldFree, Transitions: 1, PVs: []string{"pv"}, Fences: test.was}
		s, v, _ := concerned(t, "", "", hold, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		p := Arbiter{Cooperative: true}.planner(s, v, auditTime)
		got := p.fences(*v.Hold, *v.Hold)
		if len(got) != test.want || test.want == 1 && got[0] != doubted {
			t.Errorf("%s: %+v", name, got)
		}
		p.leave()
		if wrote := len(p.plan.Steps) == 1; wrote != test.write || wrote && (p.plan.Steps[0].Kind != WriteHold || len(p.plan.Steps[0].Hold.Fences) != test.want) {
			t.Errorf("%s: left with %+v", name, p.plan.Steps)
		}
	}
}
