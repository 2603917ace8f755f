// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A hold from the volume's exclusive time keeps its transitions.
func TestWriteNote(t *testing.T) {
	fence := []ledger.Fence{{Node: "dead", Rule: OutOfService}}
	force := &ledger.Force{Rule: AfterPodGone, Node: "dead"}
	pending := ledger.Hold{State: ledger.HoldDetachPending, Reason: NodeUnreachable}
	failed := ledger.Hold{State: ledger.HoldAttachFailed, Reason: AttachFailed}
	for name, test := range map[string]struct {
		was, note ledger.Hold
		do        Kind // 0: nothing
		state     ledger.HoldState
	}{
		"no hold, and nothing to say":      {ledger.Hold{}, ledger.Hold{}, 0, ""},
		"no hold, and something to say":    {ledger.Hold{}, pending, WriteHold, ledger.HoldDetachPending},
		"force was counted, and is over":   {ledger.Hold{Version: "1", Force: force}, ledger.Hold{}, DeleteHold, ""},
		"there were fences":                {ledger.Hold{Version: "1", Fences: fence}, ledger.Hold{}, DeleteHold, ""},
		"an attach failed":                 {ledger.Hold{Version: "1", State: ledger.HoldAttachFailed}, ledger.Hold{}, DeleteHold, ""},
		"it said nothing":                  {ledger.Hold{Version: "1", State: ledger.HoldFree}, ledger.Hold{}, 0, ""},
		"it said nothing, and now it does": {ledger.Hold{Version: "1", State: ledger.HoldFree}, failed, WriteHold, ledger.HoldAttachFailed},
		"it says so already":               {ledger.Hold{Version: "1", State: ledger.HoldAttachFailed, Reason: AttachFailed}, ledger.Hold{Version: "1", State: ledger.HoldAttachFailed, Reason: AttachFailed}, 0, ""},
		"exclusive once, and held":         {ledger.Hold{Version: "1", State: ledger.HoldHeld, Transitions: 1}, pending, WriteHold, ledger.HoldDetachPending},
		"a brake is over":                  {ledger.Hold{Version: "1", State: ledger.HoldDetachPending}, ledger.Hold{}, DeleteHold, ""},
		"exclusive once, and at a node":    {ledger.Hold{Version: "1", Node: "well", State: ledger.HoldHeld, Transitions: 1}, ledger.Hold{Transitions: 1}, WriteHold, ledger.HoldFree},
		"at a node, and not written":       {ledger.Hold{Node: "well", State: ledger.HoldHeld, Transitions: 1}, ledger.Hold{Transitions: 1}, WriteHold, ledger.HoldFree},
		"it was left, and is no more":      {ledger.Hold{Version: "1", Node: "well", State: ledger.HoldUnknown, Transitions: 1, Stays: true}, ledger.Hold{Transitions: 1}, WriteHold, ledger.HoldFree},
		"at a node, by somebody's hand":    {ledger.Hold{Version: "1", Node: "well", State: ledger.HoldHeld}, ledger.Hold{}, DeleteHold, ""},
		"exclusive once, and a fence now":  {ledger.Hold{Version: "1", State: ledger.HoldHeld, Transitions: 1}, ledger.Hold{Fences: fence, Transitions: 1}, WriteHold, ledger.HoldFree},
		"exclusive once, nothing to say":   {ledger.Hold{Version: "1", State: ledger.HoldHeld, Transitions: 1}, ledger.Hold{Transitions: 1}, 0, ""},
		"exclusive once, force is over":    {ledger.Hold{Version: "1", Force: force, Transitions: 1}, ledger.Hold{Transitions: 1}, WriteHold, ledger.HoldFree},
		"exclusive once, other fences":     {ledger.Hold{Version: "1", Force: force, Transitions: 1}, ledger.Hold{Transitions: 1, Fences: fence}, WriteHold, ledger.HoldFree},
		"exclusive once, and it fails":     {ledger.Hold{Version: "1", Fences: fence, Transitions: 1}, ledger.Hold{State: ledger.HoldAttachFailed, Transitions: 1}, WriteHold, ledger.HoldAttachFailed},
	} {
		t.Run(name, func(t *testing.T) {
			s, v, _ := concerned(t, "", "", ledger.Hold{})
			p := Arbiter{}.planner(s, v, auditTime)
			p.writeShared(test.was, test.note)
			steps := p.plan.Steps
			switch {
			case test.do == 0 && len(steps) == 0:
			case len(steps) != 1 || steps[0].Kind != test.do || steps[0].Expect != test.was.Version:
				t.Errorf("planned %+v", steps)
			case test.do == WriteHold && steps[0].Hold.State != test.state:
				t.Errorf("it says %q", steps[0].Hold.State)
			}
		})
	}
}

func sharedAt(t *testing.T, attachment func(*ledger.Attachment), nodes ...ledger.NodeName) *planner {
	t.Helper()
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	s, v, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}})
		for _, n := range nodes {
			l.Apply(auditTime, ledger.NodeState{Name: n, UID: string(n), Version: "2", Ready: ledger.ReadyUnknown, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}, Reported: []ledger.VolumeID{id}})
			l.Apply(auditTime, ledger.NodeDrivers{Node: n, Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2"}}})
			a := ledger.Attachment{Name: ledger.AttachmentName(id, n), UID: "a" + string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Ours: true, Attached: true}
			attachment(&a)
			l.Apply(auditTime, a)
		}
	})
	return Arbiter{}.planner(s, v, auditTime)
}

// A shared volume does not wait for a node with a new machine: no time ends that.
func TestOverdue(t *testing.T) {
	if place := sharedAt(t, func(*ledger.Attachment) {}, "dead").overdue(); place == nil || place.Node != "dead" {
		t.Errorf("overdue: %+v", place)
	}
	if place := sharedAt(t, func(a *ledger.Attachment) { a.NodeID = "i-1" }, "dead").overdue(); place != nil {
		t.Errorf("overdue at another machine: %+v", place)
	}
	endless := never
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, sharedDisk, madeAt("dead"), ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &endless})
	if place := p.overdue(); place != nil {
		t.Errorf("overdue where no rule ends it: %+v", place)
	}
	anew := nodeAs("dead", silent, func(n *ledger.NodeState) { n.UID, n.Reporting = "anew", false })
	p = plannerOf(t, Arbiter{}, "", ledger.Hold{}, sharedDisk, alive, ledger.NodeGone{Name: "dead"}, anew, asksAt("m", ledger.TypeManual, "dead"))
	if place := p.overdue(); place != nil {
		t.Errorf("overdue where it is only asked for: %+v", place)
	}
	p = plannerOf(t, Arbiter{}, "", ledger.Hold{}, sharedDisk, unreachableAfter(10*time.Minute), madeAt("dead"), dataAt("q", "dead", ledger.PodLive))
	if place := p.overdue(); place == nil || place.Node != "dead" {
		t.Errorf("overdue where somebody still claims it: %+v", place)
	}
}

func TestLongestOverdue(t *testing.T) {
	for name, test := range map[string]struct {
		later ledger.NodeName // falls silent a minute after the other
		want  ledger.NodeName
	}{
		"the first longer":  {"well", "dead"},
		"the second longer": {"dead", "well"},
		"both alike":        {"", "dead"},
	} {
		s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
			for _, e := range []ledger.Event{sharedDisk, alive, madeAt("dead"), madeAt("well")} {
				l.Apply(auditTime, e)
			}
			for _, n := range []ledger.NodeName{"dead", "well"} {
				at := auditTime
				if n == test.later {
					at = at.Add(time.Minute)
				}
				l.Apply(at, nodeAs(n, using, silent))
			}
		})
		p := Arbiter{}.planner(s, s.Volume(disk), auditTime.Add(2*time.Minute))
		if place := p.overdue(); place == nil || place.Node != test.want {
			t.Errorf("%s: %+v", name, place)
		}
	}
}

func TestNote(t *testing.T) {
	waits := sharedAt(t, func(a *ledger.Attachment) { a.NodeID = "i-2" }, "dead").sharedHold(ledger.Hold{})
	if waits.State != ledger.HoldDetachPending || waits.Reason != NodeUnreachable || waits.Message == "" || waits.Force == nil || waits.Force.Node != "dead" || len(waits.Fences) > 0 {
		t.Errorf("of one that waits: %+v", waits)
	}
	taken := plannerOf(t, Arbiter{}, "", ledger.Hold{}, sharedDisk, madeAt("dead"), nodeAs("dead", using, outOfOrder)).sharedHold(ledger.Hold{})
	if taken.State != "" || len(taken.Fences) != 1 || taken.Fences[0].Node != "dead" || taken.Fences[0].Rule != OutOfService {
		t.Errorf("of one that is taken by force: %+v", taken)
	}
}

func TestForcedBy(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	tainted := func(reported ...ledger.VolumeID) ledger.NodeState {
		return ledger.NodeState{Name: "dead", UID: "x", Version: "3", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}, Reported: reported}
	}
	attachment := ledger.Attachment{Name: ledger.AttachmentName(id, "dead"), UID: "a", Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Ours: true, Attached: true}
	leaving := attachment
	leaving.Version, leaving.Deleting = "2", true
	wants := ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "dead", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  string
	}{
		"attached and reported":                        {[]ledger.Event{attachment, tainted(id)}, OutOfService},
		"attached, and not reported":                   {[]ledger.Event{attachment, tainted()}, OutOfService},
		"leaving, and reported":                        {[]ledger.Event{attachment, leaving, tainted(id)}, OutOfService},
		"leaving, and not reported":                    {[]ledger.Event{attachment, leaving, tainted()}, ""},
		"reported only":                                {[]ledger.Event{tainted(id)}, OutOfService},
		"neither":                                      {[]ledger.Event{tainted()}, ""},
		"a creation is under way":                      {[]ledger.Event{wants, ledger.AttachSent{Volume: id, Node: "dead"}, tainted(id)}, ""},
		"a creation is under way, and has got through": {[]ledger.Event{wants, ledger.AttachSent{Volume: id, Node: "dead"}, attachment, tainted(id)}, OutOfService},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
				for _, e := range test.facts {
					l.Apply(auditTime, e)
				}
			})
			v := s.Volume(id)
			p := Arbiter{}.planner(s, v, auditTime)
			place := v.OnNode("dead")
			if got := p.forced(place, place.Own()); got != test.want {
				t.Errorf("by %q, want %q", got, test.want)
			}
		})
	}
}

// During the attacher's turn a fence without a rule goes; with a rule it stays.
func TestFenceOfWhatLeaves(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	for name, test := range map[string]struct {
		rule, of string
		stands   bool // the attachment is not being deleted
		want     bool
	}{
		"by a rule":               {OutOfService, "a", false, true},
		"by none":                 {"", "a", false, false},
		"of an attachment before": {OutOfService, "b", false, false},
		"not begun":               {OutOfService, "a", true, false},
	} {
		old := ledger.Fence{Node: "dead", Attachment: test.of, Rule: test.rule, NodeUID: "x"}
		s, _, _ := concerned(t, "", "", ledger.Hold{Fences: []ledger.Fence{old}}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "3", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true})
			l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "dead"), UID: "a", Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Ours: true, Attached: true, Deleting: !test.stands})
		})
		v := s.Volume(id)
		if isUnknown(s, id, "dead") {
			t.Fatal("its kubelet is doubted")
		}
		place := v.OnNode("dead")
		f, needed := Arbiter{}.planner(s, v, auditTime).unknownFence(old, s.Node("dead"), place, place.Own())
		if needed != test.want || needed && f != old {
			t.Errorf("%s: needed: %t, %+v", name, needed, f)
		}
	}
}

func TestHasRight(t *testing.T) {
	ask := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "m"}, UID: "t", Version: "1", Type: ledger.TypeManual, Node: "well", Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	granted, pod := ask, ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	granted.Phase = ledger.TicketGranted
	leaving := pod
	leaving.Phase = ledger.PodTerminating
	named := ledger.Hold{State: ledger.HoldHeld, Requesters: []ledger.Requester{{UID: "t"}}}
	for name, test := range map[string]struct {
		hold           ledger.Hold
		facts          []ledger.Event
		right, promise bool
	}{
		"lives":           {ledger.Hold{}, []ledger.Event{pod}, true, true},
		"leaves":          {ledger.Hold{}, []ledger.Event{leaving}, true, true},
		"granted":         {ledger.Hold{}, []ledger.Event{granted}, true, true},
		"asks":            {ledger.Hold{}, []ledger.Event{ask}, false, false},
		"asks, and named": {named, []ledger.Event{ask}, false, false},
		"lives, fenced":   {ledger.Hold{}, []ledger.Event{pod, nodeAs("well", outOfOrder)}, false, false},
		"granted, fenced": {ledger.Hold{}, []ledger.Event{granted, nodeAs("well", outOfOrder)}, false, true},
		"not attached to": {ledger.Hold{}, []ledger.Event{pod, noAttach}, false, false},
	} {
		s, v, _ := concerned(t, "", "well", test.hold, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		p := Arbiter{}.planner(s, v, auditTime)
		if right, promise := p.hasRight(v.OnNode("well"), false), p.hasRight(v.OnNode("well"), true); right != test.right || promise != test.promise {
			t.Errorf("%s: %t, by the promise %t", name, right, promise)
		}
	}
	s, v, _ := concerned(t, "", "well", ledger.Hold{})
	if (Arbiter{}).planner(s, v, auditTime).hasRight(nil, true) {
		t.Error("somebody has a right nowhere")
	}
}

func TestHolderNode(t *testing.T) {
	was := ledger.Hold{Node: "well", NodeUID: "old", BootID: "old", SystemUUID: "m"}
	same := ledger.Hold{Node: "well", NodeUID: "w", BootID: "old", SystemUUID: "m"}
	other := ledger.Hold{Node: "dead", NodeUID: "w", BootID: "old", SystemUUID: "m"}
	node := func(boot string) []ledger.Event {
		return []ledger.Event{ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, SystemUUID: map[bool]string{true: "m"}[boot != ""], BootID: boot}}
	}
	for name, test := range map[string]struct {
		was       ledger.Hold
		at        ledger.NodeName
		facts     []ledger.Event
		uid, boot string
	}{
		"new there":                         {ledger.Hold{}, "well", node("b"), "w", "b"},
		"there before, and booted":          {was, "well", node("b"), "w", "b"},
		"the same Node, and booted":         {same, "well", node("b"), "w", "b"},
		"there before, and it does not say": {same, "well", node(""), "w", "old"},
		"another Node that does not say":    {was, "well", node(""), "w", ""},
		"elsewhere before, it does not say": {other, "well", node(""), "w", ""},
		"gone":                              {was, "well", []ledger.Event{ledger.NodeGone{Name: "well"}}, "old", "old"},
		"elsewhere before, and gone":        {other, "well", []ledger.Event{ledger.NodeGone{Name: "well"}}, "w", ""},
		"nobody knows it":                   {ledger.Hold{}, "nowhere", nil, "", ""},
		"nobody knows it any more":          {ledger.Hold{Node: "nowhere", NodeUID: "n", BootID: "b"}, "nowhere", nil, "n", "b"},
	} {
		s, v, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		uid, boot, machine := Arbiter{}.planner(s, v, auditTime).holderNode(test.was, test.at, v.OnNode(test.at))
		if uid != test.uid || boot != test.boot || (machine == "m") != (boot == "old" || boot == "b" && test.at == "well") {
			t.Errorf("%s: %q %q, want %q %q", name, uid, boot, test.uid, test.boot)
		}
	}
}
