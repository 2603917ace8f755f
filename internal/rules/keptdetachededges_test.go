// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func keepsOff(name string, changes ...func(*ledger.Ticket)) ledger.Event {
	return asksAt(name, ledger.TypeSalvage, ledger.Detached, append([]func(*ledger.Ticket){grantedNow}, changes...)...)
}

func isPending(k *ledger.Ticket) { k.Phase = ledger.TicketPending }

func TestInUseByWhomATicketWaitsFor(t *testing.T) {
	asks := Request{Type: ledger.TypeSalvage, Ticket: ledger.TicketID{Namespace: "shop", Name: "own"}, Who: ledger.Requester{Ticket: true, Namespace: "shop", Name: "own", UID: "own"}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"nobody":                  {nil, false},
		"a pod":                   {[]ledger.Event{dataAt("q", "well", ledger.PodLive)}, true},
		"one that leaves":         {[]ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, false},
		"at a fenced node":        {[]ledger.Event{dataAt("q", "well", ledger.PodLive), nodeAs("well", outOfOrder)}, false},
		"a ticket":                {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow)}, true},
		"one that yields":         {[]ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow)}, false},
		"one that asks":           {[]ledger.Event{asksAt("m", ledger.TypeManual, "well")}, false},
		"itself":                  {[]ledger.Event{asksAt("own", ledger.TypeManual, "well", grantedNow)}, false},
		"who keeps it detached":   {[]ledger.Event{keepsOff("m")}, false},
		"a pod beside who leaves": {[]ledger.Event{dataAt("o", "well", ledger.PodTerminating), dataAt("q", "dead", ledger.PodLive)}, true},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		w := evaluation{snapshot: p.snapshot, now: auditTime, request: asks}
		if got := w.inUse(p.volume); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Earlier pending tickets keep the volume only if it has no user.
func TestKeptFrom(t *testing.T) {
	early := func(k *ledger.Ticket) { k.Created = 1 }
	late := func(k *ledger.Ticket) { k.Created = 9 }
	many := []ledger.Event{}
	for i := range fewUsers + 3 {
		many = append(many, keepsOff(fmt.Sprintf("many-%02d", i)))
	}
	for name, test := range map[string]struct {
		node  ledger.NodeName
		facts []ledger.Event
		want  int
	}{
		"nobody":                        {"well", nil, 0},
		"granted":                       {"well", []ledger.Event{keepsOff("m")}, 1},
		"granted, of one for no node":   {ledger.Detached, []ledger.Event{keepsOff("m")}, 0},
		"it asks before":                {"well", []ledger.Event{keepsOff("m", isPending, early)}, 1},
		"it asks after":                 {"well", []ledger.Event{keepsOff("m", isPending, late)}, 0},
		"asks before, and a pod has it": {"well", []ledger.Event{keepsOff("m", isPending, early), dataAt("q", "dead", ledger.PodLive)}, 0},
		"granted, and a pod has it":     {"well", []ledger.Event{keepsOff("m"), dataAt("q", "dead", ledger.PodLive)}, 1},
		"granted, and another asks":     {"well", []ledger.Event{keepsOff("m"), keepsOff("n", isPending, early)}, 2},
		"another, and a pod has it":     {"well", []ledger.Event{keepsOff("m"), keepsOff("n", isPending, early), dataAt("q", "dead", ledger.PodLive)}, 1},
		"many":                          {"well", many, fewUsers},
		"the request's own":             {"well", []ledger.Event{keepsOff("own")}, 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{alive, sharedDisk}, test.facts...)...)
		w := evaluation{snapshot: p.snapshot, now: auditTime, node: test.node, places: true, request: Request{
			Type: ledger.TypeSalvage, Created: 5, Ticket: ledger.TicketID{Namespace: "shop", Name: "own"}, Who: ledger.Requester{Ticket: true, Namespace: "shop", Name: "own", UID: "own"},
		}}
		got := w.keptFrom(p.volume, Need{Name: "data", Volume: disk})
		if len(got) != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestKeptDetached(t *testing.T) {
	named := ledger.Hold{Requesters: []ledger.Requester{{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}}}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  bool
	}{
		"nobody":          {ledger.Hold{}, nil, false},
		"granted":         {ledger.Hold{}, []ledger.Event{keepsOff("m")}, true},
		"asks":            {ledger.Hold{}, []ledger.Event{keepsOff("m", isPending)}, false},
		"asks, and named": {named, []ledger.Event{keepsOff("m", isPending)}, false},
		"granted a node":  {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow)}, false},
	} {
		p := plannerOf(t, Arbiter{}, ledger.Detached, test.hold, append([]ledger.Event{sharedDisk}, test.facts...)...)
		if got := keptDetached(p.snapshot, p.volume); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		want := ledger.AccessMany
		if test.want {
			want = ledger.AccessNode
		}
		if got := access(p.snapshot, p.volume, ledger.AccessMany); got != want {
			t.Errorf("%s: for %s", name, got)
		}
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, keepsOff("m"))
	single := *p.volume
	single.Access = ledger.AccessPod
	if got := access(p.snapshot, &single, ledger.AccessPod); got != ledger.AccessPod {
		t.Errorf("a volume for one pod that is kept detached is for %s", got)
	}
}

func TestNeverAttached(t *testing.T) {
	nfs := ledger.PersistentVolume{Name: "nfs", Version: "1"}
	unseen := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "new"}, Version: "1"}
	for name, test := range map[string]struct {
		node   ledger.NodeName
		volume ledger.TicketVolume
		facts  []ledger.Event
		want   bool
	}{
		"it is attached":                    {ledger.Detached, ledger.TicketVolume{Claim: "data"}, nil, false},
		"its driver attaches nothing":       {ledger.Detached, ledger.TicketVolume{Claim: "data"}, []ledger.Event{noAttach}, true},
		"it is of no driver":                {ledger.Detached, ledger.TicketVolume{PersistentVolume: "nfs"}, []ledger.Event{nfs}, true},
		"its claim is not bound":            {ledger.Detached, ledger.TicketVolume{Claim: "new"}, []ledger.Event{unseen}, false},
		"of a node, and attaches nothing":   {"well", ledger.TicketVolume{Claim: "data"}, []ledger.Event{noAttach}, false},
		"of a node, and it is of no driver": {"well", ledger.TicketVolume{PersistentVolume: "nfs"}, []ledger.Event{nfs}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append(test.facts, asksAt("m", ledger.TypeSalvage, test.node, func(k *ledger.Ticket) { k.Volumes[0] = test.volume }))...)
		got := neverAttached(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}))
		if len(got) > 0 != test.want || test.want && (got[0].Code != NeverAttached || got[0].Claim != test.volume.Claim+test.volume.PersistentVolume) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestDetachedEverywhere(t *testing.T) {
	data := ledger.ClaimKey{Namespace: "shop", Name: "data"}
	lost := ledger.Claim{Key: data, Version: "2", PersistentVolume: "pv", Lost: true}
	satisfied := func(k *ledger.Ticket) { k.SatisfiedSince = 1000 }
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		facts  []ledger.Event
		want   []ledger.Code
	}{
		"the hold says so":                   {ledger.Detached, []ledger.Event{keepsOff("m")}, nil},
		"it names a node":                    {"well", []ledger.Event{keepsOff("m")}, []ledger.Code{NotGranted}},
		"it was deleted":                     {ledger.Detached, []ledger.Event{keepsOff("m"), ledger.HoldGone{Volume: disk}}, []ledger.Code{NotGranted}},
		"attached":                           {ledger.Detached, []ledger.Event{keepsOff("m"), madeAt("well")}, []ledger.Code{Detaching}},
		"a kubelet has it":                   {ledger.Detached, []ledger.Event{keepsOff("m"), nodeAs("well", using)}, []ledger.Code{InUseUnexplained}},
		"a pod is bound past it":             {ledger.Detached, []ledger.Event{keepsOff("m"), nodeAs("well", using), dataAt("q", "well", ledger.PodLive)}, []ledger.Code{HeldElsewhere}},
		"past it, and it was told":           {ledger.Detached, []ledger.Event{keepsOff("m", satisfied), nodeAs("well", using), dataAt("q", "well", ledger.PodLive)}, nil},
		"a kubelet has it, and it was told":  {ledger.Detached, []ledger.Event{keepsOff("m", satisfied), nodeAs("well", using)}, []ledger.Code{InUseUnexplained}},
		"its claim is lost":                  {ledger.Detached, []ledger.Event{keepsOff("m"), lost}, []ledger.Code{ClaimLost}},
		"lost, and attached":                 {ledger.Detached, []ledger.Event{keepsOff("m"), madeAt("well"), lost}, []ledger.Code{ClaimLost}},
		"its driver attaches nothing":        {ledger.Detached, []ledger.Event{keepsOff("m"), noAttach}, []ledger.Code{NeverAttached}},
		"attaches nothing, and is held":      {"well", []ledger.Event{keepsOff("m"), noAttach}, []ledger.Code{NeverAttached}},
		"attaches nothing, and is in use so": {ledger.Detached, []ledger.Event{keepsOff("m"), noAttach, nodeAs("well", using)}, []ledger.Code{NeverAttached}},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		reasons := Arbiter{}.detached(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime)
		if got := codes(reasons); !slices.Equal(got, test.want) || len(reasons) > 0 && reasons[0].Claim != "data" {
			t.Errorf("%s: %+v, want %q", name, reasons, test.want)
		}
	}
	unwritten := ledger.Hold{Fences: []ledger.Fence{{Node: "third", NodeUID: "z"}}}
	p := plannerOf(t, Arbiter{}, ledger.Detached, unwritten, alive, keepsOff("m"), ledger.HoldGone{Volume: disk})
	if got := codes((Arbiter{}).detached(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime)); !slices.Equal(got, []ledger.Code{NotGranted}) {
		t.Errorf("the hold was deleted, and is to be written again: %q", got)
	}
	p = plannerOf(t, Arbiter{}, ledger.Detached, ledger.Hold{}, alive, keepsOff("m"), madeAt("well"))
	p.snapshot.PersistentVolume("pv").Claim = ledger.ClaimKey{Namespace: "shop", Name: "other"}
	if got := (Arbiter{}).detached(p.snapshot, p.snapshot.Ticket(ledger.TicketID{Namespace: "shop", Name: "m"}), auditTime); len(got) != 1 || got[0].Claim != "data" {
		t.Errorf("a claim is told by another name than the ticket's: %+v", got)
	}
}

func TestSomewhere(t *testing.T) {
	taken := func(n ledger.NodeName) ledger.Hold {
		return ledger.Hold{Fences: []ledger.Fence{{Node: n, NodeUID: "o", SystemUUID: "y", BootID: "y", InUse: true}}}
	}
	var many, known []ledger.Event
	var manyTaken ledger.Hold
	for i := range fewUsers + 2 {
		n := ledger.NodeName(fmt.Sprintf("n%02d", i))
		node := ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
		known, many = append(known, node), append(many, node, madeAt(n))
		manyTaken.Fences = append(manyTaken.Fences, ledger.Fence{Node: n, NodeUID: "o", SystemUUID: "y", BootID: "y", InUse: true})
	}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		told  bool
		want  []ledger.NodeName
	}{
		"nowhere":                     {ledger.Hold{}, nil, false, nil},
		"attached":                    {ledger.Hold{}, []ledger.Event{madeAt("well")}, false, []ledger.NodeName{"well"}},
		"attached, and it was told":   {ledger.Hold{}, []ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodLive)}, true, []ledger.NodeName{"well"}},
		"left at a node":              {ledger.Hold{Stays: true}, nil, false, []ledger.NodeName{"third"}},
		"only wanted":                 {ledger.Hold{}, []ledger.Event{dataAt("q", "well", ledger.PodLive)}, false, nil},
		"moorage-node finds it":       {ledger.Hold{}, []ledger.Event{again(), dataAt("q", "well", ledger.PodLive), says(finds)}, true, []ledger.NodeName{"well"}},
		"taken from there":            {taken("well"), []ledger.Event{dataAt("q", "well", ledger.PodLive)}, false, []ledger.NodeName{"well"}},
		"taken from where nobody is":  {taken("dead"), nil, false, []ledger.NodeName{"dead"}},
		"taken, and that is over":     {ledger.Hold{Fences: []ledger.Fence{{Node: "dead", NodeUID: "o", SystemUUID: "y", BootID: "y"}}}, nil, false, nil},
		"who keeps it, at no node":    {ledger.Hold{}, []ledger.Event{keepsOff("m")}, false, nil},
		"kept, as a hold also has it": {taken(ledger.Detached), []ledger.Event{keepsOff("m")}, false, nil},
		"at many nodes":               {ledger.Hold{}, many, false, make([]ledger.NodeName, fewUsers)},
		"taken from many":             {manyTaken, known, false, make([]ledger.NodeName, fewUsers)},
	} {
		p := plannerOf(t, Arbiter{}, "third", test.hold, append([]ledger.Event{alive}, test.facts...)...)
		var at []ledger.NodeName
		for _, r := range p.somewhere(test.told) {
			at = append(at, r.Node)
		}
		if len(at) != len(test.want) || len(at) == 1 && at[0] != test.want[0] {
			t.Errorf("%s: at %q", name, at)
		}
	}
}

// Signs of a mount: a doubted list, moorage-node's finding, or a forced detach in use if the boot outlasts
// the outage.
func TestRemains(t *testing.T) {
	fence := func(change func(*ledger.Fence)) ledger.Hold {
		f := ledger.Fence{Node: "well", NodeUID: "w", SystemUUID: "m", BootID: "b", InUse: true}
		change(&f)
		return ledger.Hold{Fences: []ledger.Fence{f}}
	}
	same := func(*ledger.Fence) {}
	atDead := func(change func(*ledger.Fence)) ledger.Hold {
		return fence(func(f *ledger.Fence) {
			f.Node, f.NodeUID, f.SystemUUID, f.BootID, f.Rule, f.Since, f.Renewed = "dead", "x", "", "", AfterPodGone, 40, 7
			change(f)
		})
	}
	outage := []ledger.Event{nodeAs("dead", silent, using, func(n *ledger.NodeState) { n.ReadySince = 40 }), ledger.NodeLease{Node: "dead", Renewed: 7}, dataAt("q", "dead", ledger.PodLive)}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		node  ledger.NodeName
		facts []ledger.Event
		want  ledger.Code // empty: no
	}{
		"nothing says so":                   {ledger.Hold{}, "well", []ledger.Event{again()}, ""},
		"in doubt":                          {ledger.Hold{}, "well", inDoubt(), InUseUnknown},
		"in doubt, and out of service":      {ledger.Hold{}, "well", inDoubt(again(outOfOrder, func(n *ledger.NodeState) { n.Version = "8" })), ""},
		"moorage-node finds it":             {ledger.Hold{}, "well", []ledger.Event{again(), says(finds)}, StagedAtNode},
		"moorage-node finds nothing":        {ledger.Hold{}, "well", []ledger.Event{again(), says()}, ""},
		"taken in use":                      {fence(same), "well", []ledger.Event{again()}, InUseUnknown},
		"taken, and it was not in use":      {fence(func(f *ledger.Fence) { f.InUse = false }), "well", []ledger.Event{again()}, ""},
		"taken in a boot that is over":      {fence(func(f *ledger.Fence) { f.BootID = "a" }), "well", []ledger.Event{again()}, ""},
		"taken from elsewhere":              {fence(func(f *ledger.Fence) { f.Node = "third" }), "well", []ledger.Event{again()}, ""},
		"taken, and a rule of force holds":  {fence(same), "well", []ledger.Event{again(outOfOrder, func(n *ledger.NodeState) { n.Version = "8" })}, ""},
		"taken in the outage that goes on":  {atDead(same), "dead", outage, ""},
		"taken in another outage, a pod is": {atDead(func(f *ledger.Fence) { f.Since = 39 }), "dead", outage, InUseUnknown},
	} {
		p := plannerOf(t, Arbiter{}, "", test.hold, test.facts...)
		place := &ledger.VolumeOnNode{Node: test.node}
		if is := p.at(test.node); is != nil {
			place = is
		}
		if got := p.remains(place); got != (test.want != "") {
			t.Errorf("%s: %t", name, got)
		}
		if test.want == "" {
			continue
		}
		if r := p.mountOf(place); r.Code != test.want || r.Node != test.node || r.Volume != disk || r.Claim != "data" || (r.Detail == forgetfulTaken) != (test.want == InUseUnknown) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// An unattached volume may be mounted if the kubelet's list or the hold says so, and nothing contradicts.
func TestMayBeInUse(t *testing.T) {
	for name, test := range map[string]struct {
		facts []ledger.Event
		place ledger.VolumeOnNode
		want  bool
	}{
		"neither":                   {nil, ledger.VolumeOnNode{Node: "well"}, false},
		"neither, of a silent node": {[]ledger.Event{nodeAs("well", silent)}, ledger.VolumeOnNode{Node: "well"}, false},
		"neither, and it is gone":   {[]ledger.Event{ledger.NodeGone{Name: "well"}}, ledger.VolumeOnNode{Node: "well"}, false},
		"listed":                    {nil, ledger.VolumeOnNode{Node: "well", InUse: true}, true},
		"held, and not listed":      {nil, ledger.VolumeOnNode{Node: "well", Held: true}, false},
		"held, and nobody says":     {[]ledger.Event{ledger.NodeGone{Name: "well"}}, ledger.VolumeOnNode{Node: "well", Held: true}, true},
		"listed, out of service":    {[]ledger.Event{nodeAs("well", outOfOrder)}, ledger.VolumeOnNode{Node: "well", InUse: true}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		test.place.Users = []ledger.User{{Pod: "q"}} // no time of the policy runs
		if name == "listed, out of service" {
			test.place.Users = nil
		}
		if got := p.mayBeInUse(&test.place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestStaysDetached(t *testing.T) {
	created := func(at int64) func(*ledger.Ticket) { return func(k *ledger.Ticket) { k.Created = at } }
	yielding := func(k *ledger.Ticket) { k.Type, k.SatisfiedSince, k.YieldingSince = ledger.TypeBackup, 900, 1000 }
	for name, test := range map[string]struct {
		facts []ledger.Event
		dry   *ledger.Delta
		want  string
		until int64
	}{
		"one":                           {[]ledger.Event{keepsOff("m")}, nil, "m", 0},
		"the older of two":              {[]ledger.Event{keepsOff("m", created(5)), keepsOff("n", created(4))}, nil, "n", 0},
		"the older of two, first":       {[]ledger.Event{keepsOff("m", created(4)), keepsOff("n", created(5))}, nil, "m", 0},
		"one that asks":                 {[]ledger.Event{keepsOff("m", isPending)}, nil, "m", 0},
		"one that asks, and is older":   {[]ledger.Event{keepsOff("m", created(5)), keepsOff("n", isPending, created(4))}, nil, "n", 0},
		"it is asked to let go":         {[]ledger.Event{keepsOff("m", yielding)}, nil, "m", 1030},
		"the other is asked to let go":  {[]ledger.Event{keepsOff("m", created(4)), keepsOff("n", created(5), yielding)}, nil, "m", 0},
		"the first of two is asked to":  {[]ledger.Event{keepsOff("m", created(4), yielding), keepsOff("n", created(5), func(k *ledger.Ticket) { k.Type = ledger.TypeBackup })}, nil, "m", 1030},
		"the second is listed at first": {[]ledger.Event{keepsOff("n", created(5), func(k *ledger.Ticket) { k.Type = ledger.TypeBackup }), keepsOff("m", created(4), yielding)}, nil, "m", 1030},
	} {
		p := plannerOf(t, Arbiter{}, ledger.Detached, ledger.Hold{}, test.facts...)
		if test.dry != nil {
			p.snapshot = p.snapshot.With(test.dry)
		}
		r := p.staysDetached(Reason{Node: ledger.Detached, Claim: "data"})
		if r.Code != StaysDetached || r.Node != "" || r.Who.Name != test.want || r.Claim != "data" || r.Until != test.until {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// Messages never show the node name that stands for no node.
func TestNamedDetached(t *testing.T) {
	who := ledger.Requester{Ticket: true, Namespace: "shop", Name: "m", UID: "m"}
	for name, test := range map[string]struct {
		reason Reason
		want   ledger.Code
		detail string
		until  int64
	}{
		"held there":           {Reason{Code: HeldElsewhere, Node: ledger.Detached, Who: who, Detail: "x"}, StaysDetached, string(ledger.TypeBackup), 1030},
		"used by another":      {Reason{Code: UsedByOtherPod, Node: ledger.Detached, Who: who}, StaysDetached, string(ledger.TypeBackup), 1030},
		"by nobody known":      {Reason{Code: HeldElsewhere, Node: ledger.Detached, Detail: "x"}, StaysDetached, "", 0},
		"held at a node":       {Reason{Code: HeldElsewhere, Node: "well", Who: who, Detail: "x"}, HeldElsewhere, "x", 0},
		"of something else":    {Reason{Code: NoFreeSlot, Node: ledger.Detached, Who: who, Detail: "x"}, NoFreeSlot, "x", 0},
		"else, and at no node": {Reason{Code: ClaimLost, Node: ledger.Detached, Detail: "x"}, ClaimLost, "x", 0},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, keepsOff("m", func(k *ledger.Ticket) { k.Type, k.SatisfiedSince, k.YieldingSince = ledger.TypeBackup, 900, 1000 }))
		got := test.reason.named(p.snapshot)
		if got.Code != test.want || got.Detail != test.detail || got.Until != test.until || (got.Node == "") != (test.want == StaysDetached) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
