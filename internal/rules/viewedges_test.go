// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func codes(reasons []Reason) []ledger.Code {
	var list []ledger.Code
	for _, r := range reasons {
		list = append(list, r.Code)
	}
	return list
}

// A pending ticket keeps its volumes until it is told why it waits; in doubt it always does.
func TestWhoContends(t *testing.T) {
	for name, test := range map[string]struct {
		kind    ledger.TicketType
		reason  ledger.Code
		inDoubt bool
		want    bool
	}{
		"nobody has looked":        {ledger.TypeManual, "", false, true},
		"nobody has decided":       {ledger.TypeManual, ledger.CodePending, false, true},
		"it asks anew":             {ledger.TypeManual, NotGranted, false, true},
		"it waits for others":      {ledger.TypeManual, HeldElsewhere, false, false},
		"it waits for slots":       {ledger.TypeManual, NoFreeSlot, false, false},
		"it may have been granted": {ledger.TypeManual, HeldElsewhere, true, true},
	} {
		if got := contends(&ledger.Ticket{Type: test.kind, Phase: ledger.TicketPending, Reason: string(test.reason), InDoubt: test.inDoubt}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestContested(t *testing.T) {
	there := dataAt("old", "dead", ledger.PodLive)
	oos := nodeAs("dead", outOfOrder)
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"nobody elsewhere":       {[]ledger.Event{there, oos}, false},
		"a pod elsewhere":        {[]ledger.Event{there, oos, dataAt("q", "well", ledger.PodLive)}, true},
		"a ticket elsewhere":     {[]ledger.Event{there, oos, asksAt("m", ledger.TypeManual, "well")}, true},
		"one that leaves":        {[]ledger.Event{there, oos, dataAt("q", "well", ledger.PodTerminating)}, false},
		"the node is not fenced": {[]ledger.Event{there, dataAt("q", "well", ledger.PodLive)}, false},
		"the other is fenced":    {[]ledger.Event{there, oos, nodeAs("well", outOfOrder), dataAt("q", "well", ledger.PodLive)}, false},
		"shared":                 {[]ledger.Event{there, oos, dataAt("q", "well", ledger.PodLive), sharedDisk}, false},
		"needs no attachment":    {[]ledger.Event{there, oos, dataAt("q", "well", ledger.PodLive), noAttach}, false},
		"another pod there":      {[]ledger.Event{there, oos, dataAt("q", "dead", ledger.PodLive)}, false},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, test.facts...)
		if got := p.contested("dead"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Only a tool's ticket needs a bound claim.
func TestKeepsAGrant(t *testing.T) {
	claim := func(change func(*ledger.Claim)) ledger.Event {
		c := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Version: "2", PersistentVolume: "pv", Bound: true}
		change(&c)
		return c
	}
	unbound := claim(func(c *ledger.Claim) { c.PersistentVolume, c.Bound = "", false })
	grantedAway := []ledger.Event{ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "2", Node: "dead", State: ledger.HoldHeld, Transitions: 2}}, madeAt("dead"), dataAt("o", "dead", ledger.PodLive)}
	anotherDisk := []ledger.Event{
		ledger.PersistentVolume{Name: "other", Version: "1", Volume: ledger.VolumeID{Driver: "d", Handle: "other"}, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}},
		claim(func(c *ledger.Claim) { c.PersistentVolume = "other" }),
	}
	for name, test := range map[string]struct {
		kind  ledger.TicketType
		facts []ledger.Event
		want  []ledger.Code
	}{
		"nothing has changed":            {ledger.TypeManual, nil, nil},
		"its claim goes":                 {ledger.TypeManual, []ledger.Event{claim(func(c *ledger.Claim) { c.Deleting = true })}, []ledger.Code{ClaimDeleting}},
		"its claim is lost":              {ledger.TypeManual, []ledger.Event{claim(func(c *ledger.Claim) { c.Lost, c.Bound = true, false })}, []ledger.Code{ClaimLost}},
		"its claim is unbound":           {ledger.TypeManual, []ledger.Event{unbound}, []ledger.Code{ClaimUnbound}},
		"its volume is not seen":         {ledger.TypeManual, []ledger.Event{ledger.PersistentVolumeGone{Name: "pv"}}, nil},
		"its node is fenced":             {ledger.TypeManual, []ledger.Event{nodeAs("well", outOfOrder)}, nil},
		"fenced, and wanted":             {ledger.TypeManual, []ledger.Event{nodeAs("well", outOfOrder), dataAt("o", "dead", ledger.PodLive)}, []ledger.Code{NodeFenced}},
		"granted elsewhere":              {ledger.TypeManual, grantedAway, []ledger.Code{Outranked}},
		"its claim goes, and its volume": {ledger.TypeManual, append([]ledger.Event{claim(func(c *ledger.Claim) { c.Deleting = true })}, grantedAway...), []ledger.Code{ClaimDeleting}},
		"made again":                     {ledger.TypeManual, anotherDisk, []ledger.Code{ClaimMissing}},
		"made again, to be salvaged":     {ledger.TypeSalvage, anotherDisk, []ledger.Code{ClaimMissing}},
		"made again, and held elsewhere": {ledger.TypeManual, append(anotherDisk, ledger.HoldSeen{Volume: ledger.VolumeID{Driver: "d", Handle: "other"}, Hold: ledger.Hold{Version: "1", Node: "dead", State: ledger.HoldHeld, Transitions: 1}}, dataAt("o", "dead", ledger.PodLive)), []ledger.Code{ClaimMissing}},
		"it yields to who lives":         {ledger.TypeBackup, []ledger.Event{dataAt("o", "dead", ledger.PodLive)}, []ledger.Code{Outranked}},
		"it yields not":                  {ledger.TypeManual, []ledger.Event{dataAt("o", "dead", ledger.PodLive)}, nil},
		"held by nobody, lives there":    {ledger.TypeManual, []ledger.Event{ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "2", State: ledger.HoldFree, Transitions: 1}}, dataAt("a", "dead", ledger.PodLive)}, nil},
		"it migrates here":               {ledger.TypeLiveMigration, append([]ledger.Event{ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}}, grantedAway...), nil},
		"no hold, wanted elsewhere":      {ledger.TypeManual, []ledger.Event{ledger.HoldGone{Volume: disk}, nodeAs("well", outOfOrder), dataAt("o", "dead", ledger.PodLive)}, nil},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Transitions: 1}, append([]ledger.Event{alive, asksAt("m", test.kind, "well", grantedNow)}, test.facts...)...)
		v := Arbiter{}.Keeps(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime)
		if got := codes(v.Reasons); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestNotBegun(t *testing.T) {
	pending := ledger.Hold{State: ledger.HoldDetachPending, Reason: NodeUnreachable}
	migrate := []ledger.Event{ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}, asksAt("m", ledger.TypeLiveMigration, "well", grantedNow)}
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   ledger.Code
	}{
		"held here":                {"well", ledger.Hold{}, nil, Attaching},
		"held elsewhere":           {"dead", ledger.Hold{}, nil, NotGranted},
		"elsewhere, and migrates":  {"dead", ledger.Hold{}, migrate, Attaching},
		"elsewhere, and shared":    {"dead", ledger.Hold{}, []ledger.Event{sharedDisk}, Attaching},
		"no hold":                  {"well", ledger.Hold{}, []ledger.Event{ledger.HoldGone{Volume: disk}}, Attaching},
		"it waits for the node":    {"well", pending, []ledger.Event{nodeAs("well", silent)}, NodeUnreachable},
		"which is back":            {"well", pending, nil, Attaching},
		"it waits for other words": {"well", ledger.Hold{State: ledger.HoldDetachPending, Reason: InUse}, []ledger.Event{nodeAs("well", silent)}, Attaching},
		"it is held, and silent":   {"well", ledger.Hold{State: ledger.HoldHeld, Reason: NodeUnreachable}, []ledger.Event{nodeAs("well", silent)}, Attaching},
		"waits elsewhere, migrate": {"dead", pending, append(migrate, nodeAs("well", silent)), Attaching},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, append([]ledger.Event{dataAt("q", "well", ledger.PodLive)}, test.facts...)...)
		if got := p.notBegun(p.at("well"), Reason{Claim: "data"}); got.Code != test.want || got.Claim != "data" {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

func TestUndecided(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, dataAt("q", "well", ledger.PodLive), dataAt("r", "dead", ledger.PodTerminating))
	for name, test := range map[string]struct {
		link ledger.Link
		at   *ledger.VolumeOnNode
		node ledger.NodeName
		want ledger.Code
	}{
		"somebody has it":        {ledger.LinkUnbound, p.at("well"), "well", ClaimUnbound},
		"and it is bound":        {ledger.LinkVolume, p.at("well"), "well", NotGranted},
		"nobody is there":        {ledger.LinkUnbound, nil, "well", NotGranted},
		"somebody leaves only":   {ledger.LinkUnbound, p.at("dead"), "dead", NotGranted},
		"there is no such node":  {ledger.LinkUnbound, nil, "absent", NodeMissing},
		"no node is chosen":      {ledger.LinkUnbound, nil, "", NotGranted},
		"it is to stay detached": {ledger.LinkUnbound, nil, ledger.Detached, NotGranted},
	} {
		if got := undecided(p.snapshot, Need{Link: test.link}, test.at, test.node); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	for name, n := range map[ledger.Code]*ledger.Node{
		NodeMissing:   {},
		NodeUnmanaged: {Exists: true},
		NotReported:   {Exists: true, NodeState: ledger.NodeState{Managed: true}},
	} {
		if got := unreported(n); got != name {
			t.Errorf("it is not reported by %s, want %s", got, name)
		}
	}
	if got := unreported(nil); got != NodeMissing {
		t.Errorf("it is not reported by %s where no node is known", got)
	}
}

func TestAtMost(t *testing.T) {
	of := func(code ledger.Code, claims ...string) (list []Reason) {
		for _, claim := range claims {
			list = append(list, Reason{Code: code, Claim: claim})
		}
		return list
	}
	for _, test := range []struct{ is, want []Reason }{
		{of(InUse, "a", "b"), of(InUse, "a", "b")},
		{of(InUse, "a", "b", "c"), of(InUse, "a", "b")},
		{slices.Concat(of(InUse, "a", "b", "c"), of(Detaching, "d", "e", "f")), slices.Concat(of(InUse, "a", "b"), of(Detaching, "d", "e"))},
		{slices.Concat(of(InUse, "a"), of(Detaching, "d", "e")), slices.Concat(of(InUse, "a"), of(Detaching, "d", "e"))},
	} {
		if got := atMost(2, slices.Clone(test.is)); !slices.Equal(got, test.want) {
			t.Errorf("%+v\nwant %+v", got, test.want)
		}
	}
}

func TestUnknownCode(t *testing.T) {
	r := Reason{Code: "Odd", Node: "well"}
	if r.LiftedByEviction("well") || Transient("Odd") || CallOf("Odd") != CallNone || outcomeOf("Odd") != Wait || r.OfNodes() != "node(s) unfit: Odd" {
		t.Errorf("%+v of %q", rowOf("Odd"), r.OfNodes())
	}
}

func TestSatisfiedByWhat(t *testing.T) {
	held := ledger.Hold{State: ledger.HoldHeld, NodeUID: "w"}
	for name, test := range map[string]struct {
		arbiter Arbiter
		phase   ledger.TicketPhase
		facts   []ledger.Event
		want    []ledger.Code
	}{
		"not granted":            {Arbiter{}, ledger.TicketPending, []ledger.Event{madeAt("well"), nodeAs("well", reporting)}, []ledger.Code{NotGranted}},
		"nor attached":           {Arbiter{}, ledger.TicketPending, nil, []ledger.Code{NotGranted}},
		"not attached":           {Arbiter{}, ledger.TicketGranted, nil, []ledger.Code{Attaching}},
		"not reported":           {Arbiter{}, ledger.TicketGranted, []ledger.Event{madeAt("well")}, []ledger.Code{NotReported}},
		"not reported, beside":   {Arbiter{Cooperative: true}, ledger.TicketGranted, []ledger.Event{madeAt("well")}, nil},
		"not attached, beside":   {Arbiter{Cooperative: true}, ledger.TicketGranted, nil, []ledger.Code{Attaching}},
		"attached, and reported": {Arbiter{}, ledger.TicketGranted, []ledger.Event{madeAt("well"), nodeAs("well", reporting)}, nil},
		"attach refused":         {Arbiter{}, ledger.TicketGranted, []ledger.Event{madeAt("well", refusedToCome)}, []ledger.Code{AttachFailed}},
		"being detached":         {Arbiter{}, ledger.TicketGranted, []ledger.Event{madeAt("well", goes)}, []ledger.Code{Detaching}},
		"begun":                  {Arbiter{}, ledger.TicketGranted, []ledger.Event{madeAt("well", func(a *ledger.Attachment) { a.Attached = false })}, []ledger.Code{Attaching}},
		"the node is fenced":     {Arbiter{}, ledger.TicketGranted, []ledger.Event{madeAt("well"), nodeAs("well", outOfOrder)}, []ledger.Code{NodeFenced}},
	} {
		p := plannerOf(t, test.arbiter, "well", held, append([]ledger.Event{alive, asksAt("m", ledger.TypeManual, "well", func(k *ledger.Ticket) { k.Phase = test.phase })}, test.facts...)...)
		v := test.arbiter.Satisfied(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime)
		if got := codes(v.Reasons); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// Another ticket has the migrated volume only when its hold says so.
func TestSatisfiedBesideAMigration(t *testing.T) {
	second := func(k *ledger.Ticket) { k.Phase, k.Created = ledger.TicketGranted, 1 }
	for kind, want := range map[ledger.TicketType][]ledger.Code{
		ledger.TypeManual: {HeldElsewhere}, ledger.TypeBackup: {HeldElsewhere}, ledger.TypeLiveMigration: nil,
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{NodeUID: "x"}, nodeAs("dead", using, reporting), dataAt("q", "dead", ledger.PodLive), madeAt("dead"),
			madeAt("well"), nodeAs("well", reporting), ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true},
			asksAt("move", ledger.TypeLiveMigration, "well", grantedNow), asksAt("m", kind, "well", second))
		v := (Arbiter{}).Satisfied(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime)
		if got := codes(v.Reasons); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// Fit asks what else keeps an exclusive volume back; Grant asks for itself.
func TestHeldBack(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, alive, dataAt("q", "dead", ledger.PodLive), madeAt("dead"))
	need := Need{Name: "data", Volume: disk, Link: ledger.LinkVolume}
	w := evaluation{snapshot: p.snapshot, request: Request{Pod: "asks"}, node: "well", now: auditTime}
	if got := w.heldBack(p.volume, need); len(got) != 1 || got[0].Code != HeldElsewhere || got[0].Node != "dead" || got[0].Who.UID != "q" {
		t.Errorf("held back by %+v", got)
	}
	granting, own := w, w
	granting.queue = Arbiter{}.Queue(p.snapshot, "well", auditTime)
	own.request.Pod = "q"
	placeholder := &ledger.Volume{ID: ledger.UnboundClaim("d", "u"), OnNodes: p.volume.OnNodes, Hold: p.volume.Hold}
	if got := slices.Concat(granting.heldBack(p.volume, need), w.heldBack(placeholder, need)); len(got) > 0 {
		t.Errorf("held back by %+v", got)
	}
	if got := own.heldBack(p.volume, need); len(got) != 1 || got[0].Who.UID == "q" {
		t.Errorf("held back by itself: %+v", got)
	}
}

func TestBlockersAreThoseThatRankBefore(t *testing.T) {
	var facts []ledger.Event
	for i := range 40 {
		facts = append(facts, asksAt("t"+strconv.Itoa(i), ledger.TypeManual, "dead", func(k *ledger.Ticket) {
			k.Created = int64(i)
		}))
	}
	for created, want := range map[int64]int{0: 0, 1: 1, 2: 2, 15: 15, 16: 16, 30: fewUsers} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append(facts, alive)...)
		w := evaluation{snapshot: p.snapshot, request: Request{Pod: "asks", Who: ledger.Requester{UID: "asks"}, Created: created}, node: "dead", now: auditTime, queue: Arbiter{}.Queue(p.snapshot, "dead", auditTime)}
		got, _ := w.others(p.volume, ledger.AccessPod, Need{Name: "data", Volume: disk}, HeldElsewhere)
		if len(got) != want {
			t.Errorf("created at %d: %d keep it, want %d", created, len(got), want)
		}
		w.queue, w.node = nil, "well"
		if got, _ := w.others(p.volume, ledger.AccessNode, Need{Name: "data", Volume: disk}, HeldElsewhere); len(got) != want {
			t.Errorf("%d keep it from a scheduler's request, want %d", len(got), want)
		}
	}
}

// A rule of force needs no time if it has taken the volume before.
func TestPodGoneRule(t *testing.T) {
	after := func(d time.Duration) ledger.Event {
		return ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &d}
	}
	taken := func(rule string) ledger.Hold {
		return ledger.Hold{Fences: []ledger.Fence{{Node: "dead", NodeUID: "x", Rule: rule, Since: 40, Renewed: 7}}}
	}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		rule  string
		over  bool
		limit time.Duration
	}{
		"by default":                {ledger.Hold{}, nil, AfterPodGone, false, DefaultAfterPodGone},
		"after a minute":            {ledger.Hold{}, []ledger.Event{after(time.Minute)}, AfterPodGone, false, time.Minute},
		"at once":                   {ledger.Hold{}, []ledger.Event{after(0)}, AfterPodGone, false, 0}, // it was not Ready before
		"never":                     {ledger.Hold{}, []ledger.Event{after(never)}, "", false, 0},
		"never in this cluster":     {ledger.Hold{}, []ledger.Event{ledger.NoForceOnTimeout{}}, "", false, 0},
		"but for this driver":       {ledger.Hold{}, []ledger.Event{ledger.NoForceOnTimeout{}, after(time.Minute)}, AfterPodGone, false, time.Minute},
		"somebody uses it":          {ledger.Hold{}, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, "", false, 0},
		"somebody leaves it":        {ledger.Hold{}, []ledger.Event{dataAt("q", "dead", ledger.PodTerminating)}, "", false, 0},
		"somebody asks for it":      {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "dead")}, AfterPodGone, false, DefaultAfterPodGone},
		"the node is Ready":         {ledger.Hold{}, []ledger.Event{nodeAs("dead", using)}, "", false, 0},
		"taken by it":               {taken(AfterPodGone), nil, AfterPodGone, true, 0},
		"taken by another rule":     {taken(OutOfService), nil, AfterPodGone, false, DefaultAfterPodGone},
		"taken, and attached anew":  {taken(AfterPodGone), []ledger.Event{madeAt("dead")}, AfterPodGone, true, DefaultAfterPodGone},
		"attached anew, by another": {taken(OutOfService), []ledger.Event{madeAt("dead")}, AfterPodGone, false, DefaultAfterPodGone},
	} {
		away := nodeAs("dead", silent, using, func(n *ledger.NodeState) { n.Version, n.ReadySince = "4", 40 })
		p := plannerOf(t, Arbiter{}, "", test.hold, append([]ledger.Event{away, ledger.NodeLease{Node: "dead", Renewed: 7}}, test.facts...)...)
		got := podGone(p.snapshot, p.volume, p.at("dead"), auditTime)
		if got.Rule != test.rule || got.over() != test.over || got.Limit != test.limit {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
