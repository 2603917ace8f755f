// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func unreachableAfter(d time.Duration) ledger.Event {
	return ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterUnreachable: &d}
}

// In order: the old holder's node while it may be there, the next, the present, the first user's.
func TestHolder(t *testing.T) {
	toDead := ledger.Promise{Node: "dead", To: ledger.Requester{Namespace: "shop", Name: "q", UID: "q"}}
	third := nodeAs("third")
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   ledger.NodeName
	}{
		"nobody":                        {"", ledger.Hold{}, nil, ""},
		"nobody any more":               {"well", ledger.Hold{}, nil, ""},
		"still attached":                {"well", ledger.Hold{}, []ledger.Event{madeAt("well"), dataAt("q", "dead", ledger.PodLive)}, "well"},
		"still used":                    {"well", ledger.Hold{}, []ledger.Event{dataAt("q", "well", ledger.PodTerminating), dataAt("r", "dead", ledger.PodLive)}, "well"},
		"only asked for":                {"well", ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "well"), dataAt("q", "dead", ledger.PodLive)}, "dead"},
		"who is next":                   {"well", ledger.Hold{Next: toDead}, []ledger.Event{dataAt("q", "dead", ledger.PodLive), dataAt("a", "third", ledger.PodLive)}, "dead"},
		"next, and gone":                {"well", ledger.Hold{Next: toDead}, []ledger.Event{dataAt("a", "third", ledger.PodLive)}, "third"},
		"found elsewhere":               {"well", ledger.Hold{}, []ledger.Event{madeAt("third"), dataAt("q", "dead", ledger.PodLive)}, "third"},
		"found, though nobody held it":  {"", ledger.Hold{}, []ledger.Event{madeAt("third"), dataAt("q", "dead", ledger.PodLive)}, "third"},
		"who ranks first, at the first": {"", ledger.Hold{}, []ledger.Event{dataAt("a", "dead", ledger.PodLive), dataAt("q", "third", ledger.PodLive)}, "dead"},
		"of a type that nobody knows":   {"", ledger.Hold{}, []ledger.Event{asksAt("m", "Unheard", "dead", grantedNow)}, "dead"},
		"found, and another is next":    {"", ledger.Hold{Next: toDead}, []ledger.Event{madeAt("third"), dataAt("q", "dead", ledger.PodLive)}, "third"},
		"left nowhere":                  {"", ledger.Hold{Stays: true}, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, "dead"},
		"who ranks first":               {"", ledger.Hold{}, []ledger.Event{dataAt("q", "dead", ledger.PodLive), dataAt("a", "third", ledger.PodLive)}, "third"},
		"left there":                    {"well", ledger.Hold{Stays: true}, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, "well"},
		"left at a node that is lost":   {"dead", ledger.Hold{Stays: true, Fences: []ledger.Fence{{Node: "dead", Rule: OutOfService, NodeUID: "x"}}}, []ledger.Event{nodeAs("dead", outOfOrder), ledger.NodeGone{Name: "dead"}, dataAt("q", "well", ledger.PodLive)}, "well"},
	} {
		facts := append([]ledger.Event{third, alive}, test.facts...)
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, facts...)
		if got := p.holder(hold(p.volume)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestDescribe(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	foreign := ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}
	for name, test := range map[string]struct {
		next  ledger.NodeName
		facts []ledger.Event
		state ledger.HoldState
		says  ledger.Code
	}{
		"somebody lives":          {"", []ledger.Event{alive, madeAt("well"), lives}, ledger.HoldHeld, ""},
		"and another is next":     {"dead", []ledger.Event{alive, madeAt("well"), lives}, ledger.HoldHeld, ""},
		"nobody lives":            {"", []ledger.Event{alive, madeAt("well")}, ledger.HoldHeld, ""},
		"nothing is there":        {"", []ledger.Event{alive}, ledger.HoldHeld, ""},
		"it goes":                 {"", []ledger.Event{alive, madeAt("well", goes)}, ledger.HoldHeld, ""},
		"the detach is refused":   {"", []ledger.Event{alive, madeAt("well", refusedToGo)}, ledger.HoldDetachPending, DetachFailed},
		"though somebody lives":   {"", []ledger.Event{alive, madeAt("well", refusedToGo), lives}, ledger.HoldDetachPending, DetachFailed},
		"in use":                  {"", []ledger.Event{alive, madeAt("well"), nodeAs("well", using)}, ledger.HoldHeld, ""},
		"the node is silent":      {"", []ledger.Event{alive, madeAt("well"), nodeAs("well", silent, using)}, ledger.HoldDetachPending, NodeUnreachable},
		"and somebody lives":      {"", []ledger.Event{alive, madeAt("well"), nodeAs("well", silent, using), lives}, ledger.HoldHeld, ""},
		"another's attachment":    {"", []ledger.Event{alive, foreign}, ledger.HoldUnknown, ForeignAttachment},
		"somebody else's, lives":  {"", []ledger.Event{alive, foreign, lives}, ledger.HoldHeld, ""},
		"it is elsewhere, too":    {"", []ledger.Event{alive, madeAt("well"), lives, madeAt("dead", refusedToGo)}, ledger.HoldUnknown, DetachFailed},
		"elsewhere, not answered": {"", []ledger.Event{madeAt("well"), lives}, ledger.HoldUnknown, NodeUnreachable},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		h := ledger.Hold{Node: "well", Next: ledger.Promise{Node: test.next}}
		p.describe(ledger.Hold{}, &h, p.at("well"))
		if h.State != test.state || h.Reason != test.says || (h.Message == "") != (test.says == "") {
			t.Errorf("%s: %s %s %q", name, h.State, h.Reason, h.Message)
		}
	}
}

func TestRevoke(t *testing.T) {
	at := func(n ledger.NodeName, kind ledger.TicketType, changes ...func(*ledger.Ticket)) ledger.Event {
		return asksAt("m", kind, n, changes...)
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"granted at the holder's": {[]ledger.Event{alive, at("well", ledger.TypeManual, grantedNow), nodeAs("well", outOfOrder)}, "well"},
		"granted at the next":     {[]ledger.Event{at("dead", ledger.TypeManual, grantedNow), nodeAs("dead", outOfOrder)}, "dead"},
		"granted elsewhere":       {[]ledger.Event{alive, nodeAs("third", outOfOrder), at("third", ledger.TypeManual, grantedNow)}, ""},
		"not fenced":              {[]ledger.Event{alive, at("well", ledger.TypeManual, grantedNow)}, ""},
		"it only asks":            {[]ledger.Event{alive, at("well", ledger.TypeManual), nodeAs("well", outOfOrder)}, ""},
		"a pod":                   {[]ledger.Event{alive, dataAt("q", "well", ledger.PodLive), nodeAs("well", outOfOrder)}, ""},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		h := ledger.Hold{Node: "well", Next: ledger.Promise{Node: "dead"}}
		p.revoke(&h)
		want := Reason{Code: NodeFenced, Claim: "data", Node: test.want}.Message()
		if test.want == "" && h.Reason != "" || test.want != "" && (h.Reason != NodeFenced || h.Message != want) {
			t.Errorf("%s: %s %q", name, h.Reason, h.Message)
		}
	}
}

// The time runs from when this process saw both, or from an earlier process's count.
func TestPodGone(t *testing.T) {
	away := func(n *ledger.NodeState) {
		n.Ready, n.ReadySince, n.Version, n.InUse = ledger.ReadyUnknown, 40, "8", []ledger.VolumeID{disk}
	}
	silentSince := []ledger.Event{nodeAs("dead", away), ledger.NodeLease{Node: "dead", Renewed: 7}}
	with := func(more ...ledger.Event) []ledger.Event { return append(slices.Clone(silentSince), more...) }
	measured := ledger.Hold{Force: &ledger.Force{Rule: AfterPodGone, Node: "dead", NodeUID: "x", Since: 40, Renewed: 7, Elapsed: 3 * time.Minute}}
	taken := func(rule string, renewed int64) ledger.Hold {
		return ledger.Hold{Fences: []ledger.Fence{{Node: "dead", NodeUID: "x", Rule: rule, Since: 40, Renewed: renewed}}}
	}
	q := dataAt("q", "dead", ledger.PodLive)
	detached := ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "dead")}
	minutes := func(d time.Duration) ledger.Event {
		return ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &d}
	}
	for name, test := range map[string]struct {
		hold    ledger.Hold
		facts   []ledger.Event
		later   []ledger.Event // half a minute after that
		dry     *ledger.Delta
		after   time.Duration
		elapsed time.Duration // none: no rule
		over    bool
	}{
		"long enough":                         {ledger.Hold{}, silentSince, nil, nil, 6 * time.Minute, 6 * time.Minute, true},
		"not so long":                         {ledger.Hold{}, silentSince, nil, nil, 5 * time.Minute, 5 * time.Minute, false},
		"the node answers":                    {ledger.Hold{}, []ledger.Event{alive}, nil, nil, time.Hour, never, false},
		"somebody uses it":                    {ledger.Hold{}, with(q), nil, nil, time.Hour, never, false},
		"its user left later":                 {ledger.Hold{}, with(q), []ledger.Event{ledger.PodGone{UID: "q"}}, nil, 2 * time.Minute, 90 * time.Second, false},
		"the node fell silent later":          {ledger.Hold{}, []ledger.Event{alive}, silentSince, nil, 2 * time.Minute, 90 * time.Second, false},
		"a dry run grants it there":           {ledger.Hold{}, with(asksAt("m", ledger.TypeManual, "dead")), nil, &ledger.Delta{Granted: ledger.TicketID{Namespace: "shop", Name: "m"}}, time.Hour, never, false},
		"a dry run takes its user away":       {ledger.Hold{}, with(q), nil, &ledger.Delta{Removed: map[string]bool{"q": true}}, time.Hour, never, false},
		"never, by the policy":                {ledger.Hold{}, with(minutes(never)), nil, nil, time.Hour, never, false},
		"at once, by the policy":              {ledger.Hold{}, with(minutes(0)), nil, nil, 0, 0, false},
		"at once, and seen for long enough":   {ledger.Hold{}, with(minutes(0)), nil, nil, leaseGrace, leaseGrace, true},
		"measured before":                     {measured, silentSince, nil, nil, time.Minute, 4 * time.Minute, false},
		"before, and its user left later":     {measured, with(q), []ledger.Event{ledger.PodGone{UID: "q"}}, nil, time.Minute, 30 * time.Second, false},
		"before, and the node was Ready then": {measured, []ledger.Event{alive}, silentSince, nil, time.Minute, 30 * time.Second, false},
		"taken so in this outage":             {taken(AfterPodGone, 7), with(detached), nil, nil, 0, 0, true},
		"taken so in another outage":          {taken(AfterPodGone, 6), with(detached), nil, nil, 0, 0, false},
		"taken by another rule":               {taken(OutOfService, 7), with(detached), nil, nil, 0, 0, false},
	} {
		s, _, _ := concerned(t, "", "dead", test.hold, func(l *ledger.Ledger) {
			for _, e := range append([]ledger.Event{madeAt("dead")}, test.facts...) {
				l.Apply(auditTime, e)
			}
			for _, e := range test.later {
				l.Apply(auditTime.Add(30*time.Second), e)
			}
		})
		if test.dry != nil {
			s = s.With(test.dry)
		}
		v := s.Volume(disk)
		f := podGone(s, v, v.OnNode("dead"), auditTime.Add(test.after))
		if (f.Rule == AfterPodGone) != (test.elapsed != never) || f.over() != test.over || test.elapsed != never && f.Elapsed != test.elapsed {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestKeepClock(t *testing.T) {
	ran := &ledger.Force{Rule: AfterUnreachable, Node: "dead", NodeUID: "x"}
	for name, test := range map[string]struct {
		force  *ledger.Force
		fences []ledger.Fence
		facts  []ledger.Event
		after  time.Duration
		want   bool
	}{
		"over":           {ran, nil, nil, 10 * time.Minute, true},
		"not over":       {ran, nil, nil, 9 * time.Minute, false},
		"none ran":       {nil, nil, nil, 10 * time.Minute, false},
		"another rule's": {&ledger.Force{Rule: AfterPodGone, Node: "dead"}, nil, nil, 10 * time.Minute, false},
		"elsewhere":      {&ledger.Force{Rule: AfterUnreachable, Node: "well"}, nil, nil, 10 * time.Minute, false},
		"taken by it":    {ran, []ledger.Fence{{Node: "dead", Rule: AfterUnreachable}}, nil, 10 * time.Minute, false},
		"without a time": {&ledger.Force{Rule: OutOfService, Node: "dead"}, nil, []ledger.Event{nodeAs("dead", outOfOrder)}, 0, false},
	} {
		facts := append([]ledger.Event{unreachableAfter(10 * time.Minute), ledger.Complete{}, madeAt("dead"), dataAt("q", "dead", ledger.PodLive)}, test.facts...)
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, facts...)
		p.now = auditTime.Add(test.after)
		h := ledger.Hold{Node: "dead", Fences: test.fences}
		p.keepClock(ledger.Hold{Force: test.force}, &h, p.at("dead"))
		if got := h.Force != nil; got != test.want || got && (h.Force.Rule != AfterUnreachable || h.Force.Elapsed != 10*time.Minute) {
			t.Errorf("%s: %+v", name, h.Force)
		}
	}
	p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{})
	h := ledger.Hold{Node: "dead"}
	if p.keepClock(ledger.Hold{Force: ran}, &h, nil); h.Force != nil {
		t.Errorf("nowhere: %+v", h.Force)
	}
}

func TestAwaits(t *testing.T) {
	for name, test := range map[string]struct {
		f    forcing
		want time.Duration // 0: never
	}{
		"no rule":          {forcing{}, 0},
		"over":             {forcing{Rule: AfterPodGone, Step: time.Minute}, 0},
		"it begins":        {forcing{Rule: AfterPodGone, Left: 6 * time.Minute, Step: time.Minute}, time.Minute},
		"within a step":    {forcing{Rule: AfterPodGone, Elapsed: 90 * time.Second, Left: 6 * time.Minute, Step: time.Minute}, 30 * time.Second},
		"the last step":    {forcing{Rule: AfterPodGone, Elapsed: 90 * time.Second, Left: 10 * time.Second, Step: time.Minute}, 10 * time.Second},
		"almost a step":    {forcing{Rule: AfterPodGone, Elapsed: time.Minute - time.Millisecond, Left: 5 * time.Minute, Step: time.Minute}, minWait},
		"a step has begun": {forcing{Rule: AfterPodGone, Elapsed: 60 * time.Second, Left: 5 * time.Minute, Step: time.Minute}, time.Minute},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
		p.awaits(test.f)
		if got := p.plan.Recheck; got.IsZero() != (test.want == 0) || test.want != 0 && !got.Equal(auditTime.Add(test.want)) {
			t.Errorf("%s: at %s", name, got)
		}
	}
}

func TestAccessOfANeed(t *testing.T) {
	for name, test := range map[string]struct {
		need Need
		want []ledger.Access
	}{
		"the claim's":     {Need{Claim: &ledger.Claim{Access: ledger.AccessPod}, Access: ledger.AccessMany}, []ledger.Access{ledger.AccessPod}},
		"its own":         {Need{Access: ledger.AccessMany}, []ledger.Access{ledger.AccessMany}},
		"it needs none":   {Need{Link: ledger.LinkNone, Access: ledger.AccessMany}, nil},
		"it lies outside": {Need{Link: ledger.LinkOutside}, nil},
	} {
		var r Request
		r.need(test.need)
		if len(r.Needs) != len(test.want) || len(r.Needs) > 0 && r.Needs[0].Access != test.want[0] {
			t.Errorf("%s: %+v", name, r.Needs)
		}
	}
}

// A node without a read Lease says nothing of an outage, only while it exists.
func TestNodesComeAndGo(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
	more := plannerOf(t, Arbiter{}, "", ledger.Hold{}, nodeAs("fourth"))
	if !Eased(p.snapshot, more.snapshot, Request{}, "fourth") || !Eased(more.snapshot, p.snapshot, Request{}, "fourth") || Eased(p.snapshot, p.snapshot, Request{}, "fourth") {
		t.Error("a node that comes or goes eases nothing, or nothing does")
	}
	for name, test := range map[string]struct {
		n    *ledger.Node
		want bool
	}{
		"nobody":   {nil, false},
		"gone":     {&ledger.Node{}, false},
		"not read": {&ledger.Node{Exists: true}, true},
		"read":     {&ledger.Node{Exists: true, RenewedAt: auditTime}, false},
	} {
		if got := leaseUnread(test.n); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestLonger(t *testing.T) {
	for _, test := range []struct{ a, b, want time.Duration }{
		{1, 2, 2}, {2, 1, 2}, {0, 0, 0}, {never, 1, never}, {1, never, never}, {never, never, never}, {0, never, never}, {-5, 0, never},
	} {
		if got := longer(test.a, test.b); got != test.want {
			t.Errorf("%d and %d: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestUnexplainedUseIsLookedAtAgain(t *testing.T) {
	left := []ledger.Event{madeAt("well"), nodeAs("well", using), ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		after time.Duration
		want  time.Duration // 0: never
	}{
		"at once":         {left, 0, time.Minute},
		"after a while":   {left, 59 * time.Second, time.Second},
		"long enough":     {left, time.Minute, 0},
		"longer":          {left, time.Hour, 0},
		"it was not left": {left[1:2], 0, 0},
		"it is attached":  {left[:2], 0, 0},
		"attached anew":   {append(slices.Clone(left), madeAt("well", func(a *ledger.Attachment) { a.UID = "anew" })), 0, 0},
		"node is silent":  {append(slices.Clone(left), nodeAs("well", silent, using, func(n *ledger.NodeState) { n.Version = "7" })), 0, 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append([]ledger.Event{alive}, test.facts...)...)
		p.now = auditTime.Add(test.after)
		p.stuck(p.at("well"))
		if got := p.plan.Recheck; got.IsZero() != (test.want == 0) || test.want != 0 && !got.Equal(p.now.Add(test.want)) {
			t.Errorf("%s: looked at again at %s, want in %s", name, got.Sub(p.now), test.want)
		}
	}
}

func TestExcludes(t *testing.T) {
	zone := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"},
		Affinity: ledger.NewNodeAffinity(ledger.NodeTerm{Labels: []ledger.NodeRequirement{{Key: "zone", Operator: ledger.NodeExists}}})}
	labeled := nodeAs("well", func(n *ledger.NodeState) { n.Labels = map[string]string{"zone": "a"} })
	for name, test := range map[string]struct {
		node  ledger.NodeName
		facts []ledger.Event
		want  bool
	}{
		"anywhere":                 {"well", nil, false},
		"in no zone":               {"well", []ledger.Event{zone}, true},
		"in a zone":                {"well", []ledger.Event{zone, labeled}, false},
		"one that has gone":        {"well", []ledger.Event{zone, ledger.NodeGone{Name: "well"}}, false},
		"one that nobody knows":    {"nowhere", []ledger.Event{zone}, false},
		"its PersistentVolume has": {"well", []ledger.Event{zone, ledger.PersistentVolumeGone{Name: "pv"}}, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		if got := excludes(p.snapshot, p.snapshot.Volume(disk), test.node); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{})
	if excludes(p.snapshot, nil, "well") {
		t.Error("what is no volume is excluded")
	}
}

// For a volume for one node, tickets elsewhere are passed over if other users live at the node.
func TestOthers(t *testing.T) {
	asks := asksAt("m", ledger.TypeManual, "dead")
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	for name, test := range map[string]struct {
		access ledger.Access
		facts  []ledger.Event
		want   []ledger.NodeName
		passed bool
	}{
		"nobody":                         {ledger.AccessNode, nil, nil, false},
		"somebody here":                  {ledger.AccessNode, []ledger.Event{dataAt("q", "well", ledger.PodLive)}, nil, false},
		"here, and for one pod":          {ledger.AccessPod, []ledger.Event{dataAt("q", "well", ledger.PodLive)}, []ledger.NodeName{"well"}, false},
		"somebody there":                 {ledger.AccessNode, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, []ledger.NodeName{"dead"}, false},
		"asks there":                     {ledger.AccessNode, []ledger.Event{asks}, []ledger.NodeName{"dead"}, false},
		"asks there, others here":        {ledger.AccessNode, []ledger.Event{asks, dataAt("q", "well", ledger.PodLive)}, nil, true},
		"asks there, others here, a pod": {ledger.AccessPod, []ledger.Event{asks, dataAt("q", "well", ledger.PodLive)}, []ledger.NodeName{"dead", "well"}, false},
		"somebody else's attachment":     {ledger.AccessNode, []ledger.Event{ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Attached: true}}, []ledger.NodeName{"dead"}, false},
		"theirs, here":                   {ledger.AccessNode, []ledger.Event{ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}}, nil, false},
		"leaves there, others here":      {ledger.AccessNode, []ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodLive), dataAt("o", "dead", ledger.PodTerminating)}, nil, false},
		"migrates there, others here":    {ledger.AccessNode, []ledger.Event{migrate, madeAt("well"), dataAt("q", "well", ledger.PodLive), migration("m", "dead", ledger.TicketGranted)}, nil, true},
		"is where others migrate to":     {ledger.AccessNode, []ledger.Event{migrate, madeAt("third"), dataAt("q", "third", ledger.PodLive), dataAt("o", "dead", ledger.PodLive), migration("m", "dead", ledger.TicketGranted)}, []ledger.NodeName{"dead", "dead", "third"}, false},
		"waits where it is not":          {ledger.AccessNode, []ledger.Event{madeAt("third"), dataAt("q", "third", ledger.PodLive), dataAt("o", "dead", ledger.PodLive)}, []ledger.NodeName{"third"}, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append([]ledger.Event{alive}, test.facts...)...)
		w := evaluation{snapshot: p.snapshot, request: Request{Pod: "asks", Created: 5}, node: "well", now: auditTime}
		got, passed := w.others(p.volume, test.access, Need{Name: "data", Volume: disk}, HeldElsewhere)
		var at []ledger.NodeName
		for _, r := range got {
			at = append(at, r.Node)
			if r.Code != HeldElsewhere && (r.Code != ForeignAttachment || !r.Who.IsZero()) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if len(at) != len(test.want) || passed != test.passed {
			t.Errorf("%s: at %q, passed over: %t", name, at, passed)
			continue
		}
		for i := range at {
			if at[i] != test.want[i] {
				t.Errorf("%s: at %q, want %q", name, at, test.want)
			}
		}
	}
}

func TestOutageOfANodeThatHasGone(t *testing.T) {
	before := ledger.Hold{Force: &ledger.Force{Rule: AfterPodGone, Node: "dead", NodeUID: "x"}}
	f := forcing{Rule: AfterPodGone, Elapsed: 70 * time.Second, Left: time.Minute, Step: 30 * time.Second}
	place := &ledger.VolumeOnNode{Node: "dead"}
	for name, test := range map[string]struct {
		hold ledger.Hold
		at   *ledger.VolumeOnNode
		want string
	}{
		"it said so":           {before, place, "x"},
		"it said nothing":      {ledger.Hold{}, place, ""},
		"it spoke of another":  {before, &ledger.VolumeOnNode{Node: "third"}, ""},
		"it said so of no UID": {ledger.Hold{Force: &ledger.Force{Node: "dead"}}, place, ""},
	} {
		p := plannerOf(t, Arbiter{}, "dead", test.hold)
		if got := outage(p.volume, test.at, nil, f); got.NodeUID != test.want || got.Elapsed != time.Minute || got.Rule != AfterPodGone || got.Node != test.at.Node {
			t.Errorf("%s: %+v", name, got)
		}
	}
	p := plannerOf(t, Arbiter{}, "dead", before)
	if got := outage(p.volume, place, &ledger.Node{NodeState: ledger.NodeState{UID: "y", ReadySince: 40}, Exists: true, Renewed: 7}, f); got.NodeUID != "y" || got.Since != 40 || got.Renewed != 7 {
		t.Errorf("of a Node that is there: %+v", got)
	}
}
