// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Which steps let a volume go without its kubelet's word.
func TestForces(t *testing.T) {
	attached, plain := ledger.VolumeID{Driver: "d", Handle: "h"}, ledger.VolumeID{Driver: "kubernetes.io/nfs", Handle: "h"}
	for _, test := range []struct {
		do   Action
		v    ledger.VolumeID
		rule string
		want bool
	}{
		{DeleteAttachment, attached, OutOfService, true},
		{DeleteAttachment, attached, "", false},
		{Unreport, attached, OutOfService, false},
		{Unreport, plain, OutOfService, plain.NoAttach()},
		{Unreport, plain, "", false},
		{Report, plain, OutOfService, false},
	} {
		if got := (Step{Do: test.do, Volume: test.v, Rule: test.rule}).Forces(); got != test.want {
			t.Errorf("%s of %s by %q: %t", test.do, test.v, test.rule, got)
		}
	}
}

// A hold names its Node and boot, or all of it that there is to name.
func TestNamesNode(t *testing.T) {
	for name, test := range map[string]struct {
		is, said ledger.Hold
		drops    bool
		want     bool
	}{
		"it does":                     {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u", BootID: "b"}, false, true},
		"another Node":                {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "v", BootID: "b"}, false, false},
		"another boot":                {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u", BootID: "c"}, false, false},
		"no boot is known":            {ledger.Hold{NodeUID: "u"}, ledger.Hold{NodeUID: "u", BootID: "c"}, false, true},
		"it names none":               {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u"}, false, false},
		"it can name none":            {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u"}, true, true},
		"it could, and names another": {ledger.Hold{NodeUID: "u", BootID: "b"}, ledger.Hold{NodeUID: "u", BootID: "c"}, true, false},
	} {
		s, v, _ := concerned(t, "well", "well", ledger.Hold{}, func(l *ledger.Ledger) { l.Apply(auditTime, ledger.HoldBoots{Dropped: test.drops}) })
		p := Arbiter{}.planner(s, v, auditTime)
		p.hold = test.is
		if got := p.namesNode(test.said); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// The words on a volume that was left where its detach failed say what it waits for: a
// PersistentVolume, where none names it and no pod does.
func TestUnknownSaysWhatToDo(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	noPV := func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.PersistentVolumeGone{Name: "pv"})
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true})
	}
	inline := func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Pod{UID: "i", Version: "1", Namespace: "shop", Name: "i", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: id}}})
	}
	both := func(l *ledger.Ledger) {
		inline(l)
		noPV(l)
	}
	for name, test := range map[string]struct {
		change func(*ledger.Ledger)
		state  ledger.HoldState
		want   string
	}{
		"a PersistentVolume":      {func(*ledger.Ledger) {}, ledger.HoldHeld, "anew"},
		"none":                    {noPV, ledger.HoldHeld, "make one, or detach it there by hand"},
		"one, and a pod inline":   {inline, ledger.HoldHeld, "it is being attached anew"},
		"none, but a pod inline":  {both, ledger.HoldHeld, "it is being attached anew"},
		"attached anew, it fails": {func(*ledger.Ledger) {}, ledger.HoldAttachFailed, "it is being attached anew: why"},
	} {
		s, v, _ := concerned(t, "well", "well", ledger.Hold{Stays: true}, test.change)
		p := Arbiter{}.planner(s, v, auditTime)
		h := ledger.Hold{Node: "well", State: test.state, Message: "why", Reason: AttachFailed}
		p.unknown(&h)
		if h.State != ledger.HoldUnknown || h.Reason != "" || !strings.Contains(h.Message, test.want) || strings.Contains(h.Message, "why") != strings.Contains(test.want, "why") {
			t.Errorf("%s: %s %q %q", name, h.State, h.Reason, h.Message)
		}
	}
	s, v, _ := concerned(t, "well", "well", ledger.Hold{Stays: true})
	h := ledger.Hold{Node: "well", State: ledger.HoldDetachPending, Message: "why"}
	Arbiter{}.planner(s, v, auditTime).unknown(&h)
	if h.State != ledger.HoldDetachPending || h.Message != "why" {
		t.Errorf("a detach that waits is told otherwise: %+v", h)
	}
}

// What is lost is at a node that is fenced and has no Node any more.
func TestLost(t *testing.T) {
	tainted := ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true}
	fence := ledger.Hold{State: ledger.HoldHeld, Fences: []ledger.Fence{{Node: "dead", Rule: OutOfService, NodeUID: "x"}}}
	for name, test := range map[string]struct {
		hold ledger.Hold
		node []ledger.Event
		want bool
	}{
		"silent":               {ledger.Hold{State: ledger.HoldHeld}, nil, false},
		"out of service":       {ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{tainted}, false},
		"gone":                 {ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{ledger.NodeGone{Name: "dead"}}, false},
		"taken there and gone": {fence, []ledger.Event{tainted, ledger.NodeGone{Name: "dead"}}, true},
	} {
		s, v, _ := concerned(t, "", "dead", test.hold, func(l *ledger.Ledger) {
			for _, e := range test.node {
				l.Apply(auditTime, e)
			}
		})
		if got := (Arbiter{}).planner(s, v, auditTime).lost("dead"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Beside the attach/detach controller what a hold has said of a shared volume goes, once
// nobody who has opted in uses the volume.
func TestNoteOfASharedVolumeGoes(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	for name, test := range map[string]struct {
		hold ledger.Hold
		want Action
	}{
		"all it says is old":           {ledger.Hold{State: ledger.HoldAttachFailed, Reason: AttachFailed, Message: "why"}, DeleteHold},
		"its transitions have to stay": {ledger.Hold{State: ledger.HoldAttachFailed, Reason: AttachFailed, Message: "why", Transitions: 3}, WriteHold},
		"it says nothing":              {ledger.Hold{State: ledger.HoldFree, Transitions: 3}, 0},
	} {
		s, _, _ := concerned(t, "well", "", test.hold, func(l *ledger.Ledger) {
			for _, e := range []ledger.Event{
				ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
				ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
				ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", OptedOut: true, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}},
			} {
				l.Apply(auditTime, e)
			}
		})
		steps := Arbiter{Cooperative: true}.Plan(s, id, auditTime).Steps
		switch {
		case test.want == 0 && len(steps) == 0:
		case len(steps) != 1 || steps[0].Do != test.want || steps[0].Expect != "1":
			t.Errorf("%s: planned %+v", name, steps)
		case test.want == WriteHold && (steps[0].Hold.State != ledger.HoldFree || steps[0].Hold.Transitions != 3):
			t.Errorf("%s: written %+v", name, steps[0].Hold)
		}
	}
}

// A hold lists no more fences than it has room for.
func TestFencesFit(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	s, v, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}})
		for i := range maxFences + 10 {
			n := ledger.NodeName(fmt.Sprintf("n%03d", i))
			l.Apply(auditTime, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true, InUse: []ledger.VolumeID{id}, Reported: []ledger.VolumeID{id}})
			l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, n), UID: "a" + string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Ours: true, Attached: true})
		}
	})
	if got := len(Arbiter{}.planner(s, v, auditTime).fences(ledger.Hold{}, ledger.Hold{})); got != maxFences {
		t.Errorf("%d fences, want %d", got, maxFences)
	}
	if got := (Arbiter{Cooperative: true}).planner(s, v, auditTime).fences(ledger.Hold{}, ledger.Hold{}); got != nil {
		t.Errorf("fences beside the attach/detach controller: %d", len(got))
	}
}

// Why a volume is not to be detached: another machine has the node's name, or another
// disk the PersistentVolume's; the node is not managed, or does not answer.
func TestSafeToDetachSaysWhy(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	attachment := func(node ledger.NodeName, change func(*ledger.Attachment)) ledger.Attachment {
		a := ledger.Attachment{Name: ledger.AttachmentName(id, node), UID: "a", Version: "1", Driver: "d", Node: node, PersistentVolume: "pv", Ours: true, Attached: true}
		change(&a)
		return a
	}
	same := func(*ledger.Attachment) {}
	well := ledger.NodeState{Name: "well", UID: "w", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	used, unmanaged, fresh := well, well, well
	used.InUse, unmanaged.Managed, fresh.UID, fresh.Reporting = []ledger.VolumeID{id}, false, "another", false
	for name, test := range map[string]struct {
		node  ledger.NodeName
		facts []ledger.Event
		want  ledger.Code
	}{
		"not in use":      {"well", []ledger.Event{attachment("well", same)}, ""},
		"in use":          {"well", []ledger.Event{attachment("well", same), used}, InUse},
		"not managed":     {"well", []ledger.Event{attachment("well", same), unmanaged}, NodeUnmanaged},
		"a new node":      {"well", []ledger.Event{attachment("well", same), used, ledger.NodeGone{Name: "well"}, fresh}, InUseUnknown},
		"does not answer": {"dead", []ledger.Event{attachment("dead", same)}, NodeUnreachable},
		"another machine": {"well", []ledger.Event{
			attachment("well", func(a *ledger.Attachment) { a.NodeID = "i-1" }),
			ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2", Limit: 4}}},
		}, NodeReplaced},
		"another disk": {"well", []ledger.Event{
			attachment("well", same), ledger.PersistentVolumeGone{Name: "pv"},
			ledger.PersistentVolume{Name: "pv", UID: "new", Version: "2", Volume: ledger.VolumeID{Driver: "d", Handle: "other"}, Access: ledger.AccessNode},
		}, VolumeReplaced},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
				for _, e := range test.facts {
					l.Apply(auditTime, e)
				}
			})
			v := s.Volume(id)
			verdict, rule := Arbiter{}.SafeToDetach(s, v, v.NodeVolume(test.node), auditTime)
			if verdict.Allowed() != (test.want == "") || !verdict.Allowed() && verdict.First().Code != test.want || rule != "" {
				t.Errorf("%+v by %q, want %q", verdict, rule, test.want)
			}
		})
	}
}

// Beside the attach/detach controller, too, what waits for a rule of force is looked at
// again when its time is over.
func TestUnreportedIsLookedAtAgain(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	after := time.Hour
	s, _, _ := concerned(t, "", "dead", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &after})
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "dead"), UID: "a", Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Ours: true, Attached: true})
	})
	for name, a := range map[string]Arbiter{"alone": {}, "beside": {Cooperative: true}} {
		if plan := a.Plan(s, id, auditTime); plan.Recheck.IsZero() || plan.Recheck.After(auditTime.Add(after)) {
			t.Errorf("%s: looked at again at %s, and it is %s", name, plan.Recheck, auditTime)
		}
	}
}
