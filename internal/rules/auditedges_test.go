// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestTransitions(t *testing.T) {
	with := func(n int64) func(*ledger.Attachment) {
		return func(a *ledger.Attachment) { a.Transitions = n }
	}
	for name, test := range map[string]struct {
		was   int64
		facts []ledger.Event
		want  int64
	}{
		"none":             {0, nil, 0},
		"the hold's":       {3, []ledger.Event{madeAt("well", with(2))}, 3},
		"an attachment's":  {1, []ledger.Event{madeAt("dead", with(2)), madeAt("well", with(4))}, 4},
		"the first one's":  {1, []ledger.Event{madeAt("dead", with(5)), madeAt("well", with(4))}, 5},
		"a foreign one's":  {1, []ledger.Event{madeAt("well", with(2)), ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Transitions: 7}}, 7},
		"as many as there": {4, []ledger.Event{madeAt("well", with(4))}, 4},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Transitions: 1}, test.facts...)
		if got := p.transitions(ledger.Hold{Transitions: test.was}); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// Next users and live migrations don't count.
func TestWaiting(t *testing.T) {
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	for name, test := range map[string]struct {
		next  string
		facts []ledger.Event
		want  []string
	}{
		"nobody":            {"", []ledger.Event{dataAt("q", "well", ledger.PodLive)}, nil},
		"who lives":         {"", []ledger.Event{dataAt("q", "dead", ledger.PodLive), dataAt("r", "third", ledger.PodLive)}, []string{"q", "r"}},
		"but who is next":   {"q", []ledger.Event{dataAt("q", "dead", ledger.PodLive), dataAt("r", "third", ledger.PodLive)}, []string{"r"}},
		"not who leaves":    {"", []ledger.Event{dataAt("q", "dead", ledger.PodTerminating)}, nil},
		"nor who asks":      {"", []ledger.Event{asksAt("m", ledger.TypeManual, "dead")}, nil},
		"who is granted":    {"", []ledger.Event{asksAt("m", ledger.TypeManual, "dead", grantedNow)}, []string{"m"}},
		"nor who migrates":  {"", []ledger.Event{migrate, asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)}, nil},
		"who may not, does": {"", []ledger.Event{asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)}, []string{"m"}},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		var got []string
		for _, r := range p.waiting("well", ledger.Requester{UID: test.next}) {
			got = append(got, r.UID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestFenceRules(t *testing.T) {
	brief, long := unreachableAfter(time.Second), unreachableAfter(10*time.Minute)
	taken := func(rule string) ledger.Hold {
		return ledger.Hold{Fences: []ledger.Fence{{Node: "dead", NodeUID: "x", Rule: rule, Since: 40, Renewed: 7}}}
	}
	away := nodeAs("dead", silent, func(n *ledger.NodeState) { n.Version, n.ReadySince = "4", 40 })
	lease := ledger.NodeLease{Node: "dead", Renewed: 7}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		after time.Duration
		rule  string
		over  bool
	}{
		"none":                          {ledger.Hold{}, nil, time.Hour, "", false},
		"out of service":                {ledger.Hold{}, []ledger.Event{nodeAs("dead", outOfOrder)}, 0, OutOfService, true},
		"out of service, and Ready":     {ledger.Hold{}, []ledger.Event{nodeAs("dead", func(n *ledger.NodeState) { n.OutOfService = true })}, 0, "", false},
		"out of service, and gone":      {ledger.Hold{}, []ledger.Event{nodeAs("dead", outOfOrder), ledger.NodeGone{Name: "dead"}}, 0, "", false},
		"it does not answer":            {ledger.Hold{}, []ledger.Event{long}, 0, AfterUnreachable, false},
		"for long":                      {ledger.Hold{}, []ledger.Event{long}, 10 * time.Minute, AfterUnreachable, true},
		"at once, by the policy":        {ledger.Hold{}, []ledger.Event{unreachableAfter(0)}, 0, AfterUnreachable, true},
		"never, by the policy":          {ledger.Hold{}, []ledger.Event{unreachableAfter(never)}, time.Hour, "", false},
		"not so long":                   {ledger.Hold{}, []ledger.Event{long}, 10*time.Minute - 1, AfterUnreachable, false},
		"it answers":                    {ledger.Hold{}, []ledger.Event{long, alive}, 10 * time.Minute, "", false},
		"both, the taint first":         {ledger.Hold{}, []ledger.Event{long, nodeAs("dead", outOfOrder)}, 0, OutOfService, true},
		"a kubelet's word, not tainted": {ledger.Hold{}, []ledger.Event{brief, nodeAs("dead", func(n *ledger.NodeState) { n.Ready = ledger.ReadyFalse })}, time.Hour, AfterUnreachable, false},
		"taken by the taint":            {taken(OutOfService), []ledger.Event{away, lease}, 0, OutOfService, true},
		"taken, and seen otherwise":     {taken(OutOfService), []ledger.Event{away, ledger.NodeLease{Node: "dead", Renewed: 8}}, 0, "", false},
		"taken, and attached again":     {taken(OutOfService), []ledger.Event{away, lease, madeAt("dead")}, 0, "", false},
		"taken since a pod has gone":    {taken(AfterPodGone), []ledger.Event{away, lease}, 0, "", false},
		"nothing was taken":             {taken(""), []ledger.Event{away, lease}, 0, "", false},
		"taken, and it is Ready":        {taken(OutOfService), []ledger.Event{away, lease, nodeAs("dead", func(n *ledger.NodeState) { n.ReadySince = 40 })}, 0, "", false},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, test.facts...)
		if got := fence(p.snapshot, p.volume, "dead", auditTime.Add(test.after)); got.Rule != test.rule || got.over() != test.over {
			t.Errorf("%s: %+v, want %q", name, got, test.rule)
		}
	}
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, long)
	if got := fence(p.snapshot, p.volume, "nowhere", auditTime.Add(time.Hour)); got != (forcing{}) {
		t.Errorf("at a node that nobody knows: %+v", got)
	}
}

// The attachment exists and was never attached.
func TestReportedEarly(t *testing.T) {
	begun := func(a *ledger.Attachment) { a.Attached = false }
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"not reported":             {[]ledger.Event{madeAt("well", begun)}, false},
		"reported, being attached": {[]ledger.Event{madeAt("well", begun), nodeAs("well", reporting)}, true},
		"reported and attached":    {[]ledger.Event{madeAt("well"), nodeAs("well", reporting)}, false},
		"reported, no attachment":  {[]ledger.Event{nodeAs("well", reporting)}, false},
		"reported, it goes":        {[]ledger.Event{madeAt("well", begun, goes), nodeAs("well", reporting)}, false},
		"reported from before":     {[]ledger.Event{madeAt("well"), nodeAs("well", reporting), ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")}, madeAt("well", begun, func(a *ledger.Attachment) { a.UID = "next" })}, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		if got := reportedEarly(p.volume, p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	made := ledger.Attachment{Name: ledger.AttachmentName(iscsi, "well"), UID: "i", Version: "1", Driver: iscsi.Driver, Node: "well", Inline: iscsi}
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, made, nodeAs("well", func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{iscsi} }))
	v := p.snapshot.Volume(iscsi)
	if place := v.OnNode("well"); !place.HasOwn() || !place.Reported || reportedEarly(v, place) {
		t.Errorf("of one that needs no attachment: %+v", place)
	}
}

func TestAuditOfAll(t *testing.T) {
	other := ledger.VolumeID{Driver: "d", Handle: "a"}
	begun := func(n ledger.NodeName) ledger.Event {
		return ledger.Attachment{Name: ledger.AttachmentName(other, n), UID: "o" + string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "other"}
	}
	lists := func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{other} }
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{},
		ledger.PersistentVolume{Name: "other", Version: "1", Volume: other, Access: ledger.AccessNode}, madeAt("well"), madeAt("dead"), begun("well"), begun("dead"),
		nodeAs("well", lists), nodeAs("dead", lists))
	for _, n := range []ledger.NodeName{"well", "dead"} {
		p.snapshot.Node(n).Drivers[0].Used = 7
	}
	var got []string
	for _, v := range (Arbiter{}).Audit(p.snapshot, auditTime) {
		got = append(got, v.Invariant+" "+v.Volume.Handle+" "+string(v.Node))
	}
	want := []string{"I1 a ", "I1 h ", "I2  dead", "I2  well", "I5 a dead", "I5 a well"}
	if !slices.Equal(got, want) {
		t.Errorf("it finds %q, want %q", got, want)
	}
}

func TestLeftToDo(t *testing.T) {
	lost := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "2", PersistentVolume: "pv", Lost: true}
	held := ledger.Hold{NodeUID: "w", Transitions: 1, PVs: []string{"pv"}, Requesters: []ledger.Requester{{Namespace: "shop", Name: "q", UID: "q"}}}
	lives := dataAt("q", "well", ledger.PodLive)
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   []string
	}{
		"nothing":                            {"", ledger.Hold{State: ledger.HoldFree, Transitions: 1}, nil, nil},
		"nothing, and it is reported":        {"well", held, []ledger.Event{lives, madeAt("well"), nodeAs("well", reporting)}, nil},
		"a report":                           {"well", held, []ledger.Event{lives, madeAt("well")}, []string{"I6"}},
		"a ticket to grant":                  {"", ledger.Hold{State: ledger.HoldFree, Transitions: 1}, []ledger.Event{asksAt("m", ledger.TypeManual, "well")}, []string{"I7"}},
		"another's waits, and is denied":     {"", ledger.Hold{State: ledger.HoldFree, Transitions: 1}, []ledger.Event{asksAt("m", ledger.TypeManual, "well"), lost}, nil},
		"a report, and a grant to take back": {"well", held, []ledger.Event{lives, madeAt("well"), asksAt("m", ledger.TypeManual, "dead", grantedNow, func(k *ledger.Ticket) { k.Volumes[0].Claim = "none" })}, []string{"I1", "I6"}},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, append([]ledger.Event{alive}, test.facts...)...)
		var got []string
		for _, v := range (Arbiter{}).AuditAtRest(p.snapshot, auditTime) {
			got = append(got, v.Invariant)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %+v, want %q", name, (Arbiter{}).AuditAtRest(p.snapshot, auditTime), test.want)
		}
	}
}

func TestUnreportedAtRest(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	other := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2"}}}
	for name, test := range map[string]struct {
		arbiter Arbiter
		facts   []ledger.Event
		want    bool
	}{
		"attached":                  {Arbiter{}, []ledger.Event{lives, madeAt("well")}, true},
		"reported":                  {Arbiter{}, []ledger.Event{lives, madeAt("well"), nodeAs("well", reporting)}, false},
		"nobody wants it":           {Arbiter{}, []ledger.Event{madeAt("well")}, false},
		"no attachment":             {Arbiter{}, []ledger.Event{lives}, false},
		"being attached":            {Arbiter{}, []ledger.Event{lives, madeAt("well", func(a *ledger.Attachment) { a.Attached = false })}, false},
		"being detached":            {Arbiter{}, []ledger.Event{lives, madeAt("well", goes)}, false},
		"attached to another":       {Arbiter{}, []ledger.Event{lives, madeAt("well", func(a *ledger.Attachment) { a.NodeID = "i-1" }), other}, false},
		"not ours to write":         {Arbiter{}, []ledger.Event{lives, madeAt("well"), nodeAs("well", func(n *ledger.NodeState) { n.Managed = false })}, false},
		"beside another controller": {Arbiter{Cooperative: true}, []ledger.Event{lives, madeAt("well")}, false},
	} {
		p := plannerOf(t, test.arbiter, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		if got := test.arbiter.unreported(p.snapshot, p.volume, auditTime); len(got) > 0 != test.want || test.want && (got[0].Invariant != "I4" || got[0].Node != "well") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// If both times are over, the rule that ends all rights counts.
func TestSooner(t *testing.T) {
	none, soon, late := forcing{}, forcing{Rule: AfterPodGone, Left: time.Second}, forcing{Rule: AfterUnreachable, Left: time.Minute}
	over := forcing{Rule: OutOfService}
	for _, test := range []struct{ a, b, want forcing }{
		{none, none, none}, {none, soon, soon}, {soon, none, soon}, {soon, late, soon}, {late, soon, soon}, {over, soon, over}, {soon, over, over}, {none, over, over}, {over, forcing{Rule: AfterPodGone}, over},
	} {
		if got := test.a.sooner(test.b); got != test.want {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, got)
		}
	}
}

// Leave ends Moorage's records of the volume.
func TestLeave(t *testing.T) {
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   Kind
	}{
		"held":                    {"well", ledger.Hold{Transitions: 3}, nil, WriteHold},
		"held by nobody":          {"", ledger.Hold{State: ledger.HoldFree}, nil, 0},
		"nothing is left of it":   {"", ledger.Hold{State: ledger.HoldFree}, []ledger.Event{alive, ledger.PersistentVolumeGone{Name: "pv"}}, DeleteHold},
		"shared, and it was told": {"", ledger.Hold{State: ledger.HoldAttachFailed}, []ledger.Event{sharedDisk}, DeleteHold},
		"shared, nothing told":    {"", ledger.Hold{State: ledger.HoldFree}, []ledger.Event{sharedDisk}, 0},
	} {
		p := plannerOf(t, Arbiter{Cooperative: true}, test.heldAt, test.hold, test.facts...)
		p.leave()
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
		}
		if test.want == WriteHold && (p.plan.Steps[0].Hold.State != ledger.HoldFree || p.plan.Steps[0].Hold.Node != "" || p.plan.Steps[0].Hold.Transitions != 3 || p.plan.Steps[0].Expect != "1") {
			t.Errorf("%s: %+v", name, p.plan.Steps[0])
		}
	}
}

func TestBooksThatAreWrong(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*ledger.Node)
		want   []string
	}{
		"they are right":        {func(*ledger.Node) {}, nil},
		"they count too many":   {func(n *ledger.Node) { n.Drivers[0].Used = 7 }, []string{"I2: d^ at well: the ledger counts 7 slots, there are 1"}},
		"they count too few":    {func(n *ledger.Node) { n.Drivers[0].Used = 0 }, []string{"I2: d^ at well: the ledger counts 0 slots, there are 1"}},
		"they know no such":     {func(n *ledger.Node) { n.Drivers = nil }, []string{"I2: d^ at well: the ledger counts no slots, there are 1"}},
		"they know one of two":  {func(n *ledger.Node) { n.Drivers[0].Name = "e" }, []string{"I2: d^ at well: the ledger counts no slots, there are 1", "I2: e^ at well: the ledger counts 1 slots of attachments, there are 0", "I2: e^ at well: the ledger counts 1 slots, there are 0"}},
		"they miss attachments": {func(n *ledger.Node) { n.Drivers[0].Occupied = 0 }, []string{"I2: d^ at well: the ledger counts 0 slots of attachments, there are 1"}},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, madeAt("well"))
		test.change(p.snapshot.Node("well"))
		var got []string
		for _, v := range (Arbiter{}).AuditCounts(p.snapshot) {
			got = append(got, v.String())
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
