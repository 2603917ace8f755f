// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

var disk = ledger.VolumeID{Driver: "d", Handle: "h"}

func dataAt(uid string, n ledger.NodeName, phase ledger.PodPhase) ledger.Event {
	return ledger.Pod{UID: uid, Version: "1", Namespace: "shop", Name: uid, Node: n, Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
}

func asksAt(name string, kind ledger.TicketType, n ledger.NodeName, changes ...func(*ledger.Ticket)) ledger.Event {
	k := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: name}, UID: name, Version: "1", Type: kind, Node: n, Phase: ledger.TicketPending, Volumes: []ledger.TicketVolume{{Claim: "data"}}}
	for _, change := range changes {
		change(&k)
	}
	return k
}

func grantedNow(k *ledger.Ticket) { k.Phase = ledger.TicketGranted }

func madeAt(n ledger.NodeName, changes ...func(*ledger.Attachment)) ledger.Event {
	a := ledger.Attachment{Name: ledger.AttachmentName(disk, n), UID: "a" + string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Ours: true, Attached: true}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func nodeAs(name ledger.NodeName, changes ...func(*ledger.NodeState)) ledger.Event {
	uid := map[ledger.NodeName]string{"well": "w", "dead": "x", "third": "z"}[name]
	n := ledger.NodeState{Name: name, UID: uid, Version: "5", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
	for _, change := range changes {
		n.Version = "6"
		change(&n)
	}
	return n
}

func outOfOrder(n *ledger.NodeState) { n.Ready, n.OutOfService = ledger.ReadyUnknown, true }

func silent(n *ledger.NodeState) { n.Ready = ledger.ReadyUnknown }

func reporting(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{disk} }

func using(n *ledger.NodeState) { n.InUse = []ledger.VolumeID{disk} }

var (
	noAttach   = ledger.Driver{Name: "d", Version: "1"}
	sharedDisk = ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessMany, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}
	alive      = nodeAs("dead")
)

func plannerOf(t *testing.T, a Arbiter, heldAt ledger.NodeName, written ledger.Hold, facts ...ledger.Event) *planner {
	t.Helper()
	if written.State == "" {
		written.State = ledger.HoldHeld
	}
	s, _, _ := concerned(t, "", heldAt, written, func(l *ledger.Ledger) {
		l.Apply(auditTime, nodeAs("third"))
		for _, e := range facts {
			l.Apply(auditTime, e)
		}
	})
	p := a.planner(s, s.Volume(disk), auditTime)
	p.hold = hold(p.volume)
	return p
}

func (p *planner) at(n ledger.NodeName) *ledger.VolumeOnNode { return p.volume.OnNode(n) }

// Users live where they stay, except at a fenced node, without attachments, or if they must yield.
func TestLiving(t *testing.T) {
	named := ledger.Hold{Requesters: []ledger.Requester{{UID: "m"}}}
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  bool
	}{
		"nobody":                {ledger.Hold{}, []ledger.Event{madeAt("well")}, false},
		"a pod":                 {ledger.Hold{}, []ledger.Event{dataAt("q", "well", ledger.PodLive)}, true},
		"one that leaves":       {ledger.Hold{}, []ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, false},
		"granted":               {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow)}, true},
		"asks":                  {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "well")}, false},
		"asks, and named":       {named, []ledger.Event{asksAt("m", ledger.TypeManual, "well")}, false},
		"leaves, and named":     {ledger.Hold{Requesters: []ledger.Requester{{UID: "q"}}}, []ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, false},
		"at a fenced node":      {ledger.Hold{}, []ledger.Event{dataAt("q", "well", ledger.PodLive), nodeAs("well", outOfOrder)}, false},
		"needs no attachment":   {ledger.Hold{}, []ledger.Event{dataAt("q", "well", ledger.PodLive), noAttach}, false},
		"has to give way":       {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow), dataAt("q", "dead", ledger.PodLive)}, false},
		"nobody else wants it":  {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow), dataAt("q", "well", ledger.PodLive)}, true},
		"shared, and others":    {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow), dataAt("q", "dead", ledger.PodLive), sharedDisk}, true},
		"others only ask":       {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow), asksAt("q", ledger.TypeManual, "dead")}, true},
		"the other yields, too": {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeBackup, "well", grantedNow), asksAt("o", ledger.TypeBackup, "dead", grantedNow)}, true},
		"the other is not it":   {ledger.Hold{}, []ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow), dataAt("q", "dead", ledger.PodLive)}, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, test.facts...)
		if got := p.living(p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}); p.living(nil) {
		t.Error("somebody lives nowhere")
	}
}

func TestRequestersOfAHold(t *testing.T) {
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	for name, test := range map[string]struct {
		named []ledger.Requester
		facts []ledger.Event
		want  []string
	}{
		"nobody":           {nil, nil, nil},
		"who lives":        {nil, []ledger.Event{dataAt("q", "well", ledger.PodLive)}, []string{"q"}},
		"who leaves":       {nil, []ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, []string{"q"}},
		"who is elsewhere": {nil, []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, nil},
		"who asks":         {nil, []ledger.Event{asksAt("m", ledger.TypeManual, "well")}, nil},
		"who asks, named":  {[]ledger.Requester{{UID: "m"}}, []ledger.Event{asksAt("m", ledger.TypeManual, "well")}, nil},
		"who migrates":     {nil, []ledger.Event{migrate, asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)}, []string{"m"}},
		"who may not":      {nil, []ledger.Event{asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)}, nil},
		"about to, named":  {[]ledger.Requester{{UID: "m"}}, []ledger.Event{migrate, asksAt("m", ledger.TypeLiveMigration, "dead")}, nil},
		"asks to migrate":  {nil, []ledger.Event{migrate, asksAt("m", ledger.TypeLiveMigration, "dead")}, nil},
		"another is named": {[]ledger.Requester{{UID: "m"}}, []ledger.Event{migrate, asksAt("m", ledger.TypeManual, "dead")}, nil},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Requesters: test.named}, test.facts...)
		var got []string
		for _, r := range p.requesters(ledger.Hold{}, p.at("well")) {
			got = append(got, r.UID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestRequestersOfADryRun(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Requesters: []ledger.Requester{{UID: "q"}}}, asksAt("m", ledger.TypeManual, "well"))
	p.snapshot = p.snapshot.With(&ledger.Delta{Removed: map[string]bool{"q": true}})
	if got := p.requesters(ledger.Hold{}, p.at("well")); len(got) > 0 {
		t.Errorf("taken away: %+v", got)
	}
}

func TestOnlyListed(t *testing.T) {
	other := ledger.VolumeID{Driver: "d", Handle: "other"}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  bool
	}{
		"listed":          {nil, true},
		"held":            {[]ledger.Event{ledger.HoldSeen{Volume: other, Hold: ledger.Hold{Version: "1"}}}, false},
		"with a PV":       {[]ledger.Event{ledger.PersistentVolume{Name: "o", Version: "1", Volume: other}}, false},
		"attached":        {[]ledger.Event{ledger.Attachment{Name: "o", UID: "o", Version: "1", Driver: "d", Node: "well", Inline: other}}, false},
		"a pod leaves it": {[]ledger.Event{ledger.Pod{UID: "q", Version: "1", Namespace: "shop", Name: "q", Node: "well", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "v", Inline: other}}}}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append(test.facts, nodeAs("well", func(n *ledger.NodeState) { n.InUse = []ledger.VolumeID{other} }))...)
		p.volume = p.snapshot.Volume(other)
		if got := p.onlyListed(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A hold names departed users for half a minute.
func TestLingers(t *testing.T) {
	left := []ledger.Event{dataAt("q", "well", ledger.PodLive), madeAt("well"), ledger.PodGone{UID: "q"}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		after time.Duration
		want  time.Duration // until the next check; 0: not lingering
	}{
		"just left":   {left, 0, 30 * time.Second},
		"left lately": {left, 29 * time.Second, time.Second},
		"long ago":    {left, 30 * time.Second, 0},
		"not left":    {left[:2], 0, 0},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		p.now = auditTime.Add(test.after)
		got := p.lingers(p.at("well"))
		if got != (test.want > 0) || got && !p.plan.Recheck.Equal(p.now.Add(test.want)) || !got && !p.plan.Recheck.IsZero() {
			t.Errorf("%s: %t, looked at again at %s", name, got, p.plan.Recheck)
		}
	}
	if p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}); p.lingers(nil) {
		t.Error("it lingers nowhere")
	}
}

// Without a hold: the node of a living user, or else where it is attached.
func TestFound(t *testing.T) {
	gone := func(a *ledger.Attachment) { a.Deleting = true }
	begun := func(a *ledger.Attachment) { a.Attached = false }
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"nowhere":                    {[]ledger.Event{alive}, ""},
		"attached":                   {[]ledger.Event{alive, madeAt("well")}, "well"},
		"attached, and begun":        {[]ledger.Event{alive, madeAt("dead", begun), madeAt("well")}, "well"},
		"begun, and attached":        {[]ledger.Event{alive, madeAt("dead"), madeAt("well", begun)}, "dead"},
		"attached, and leaving":      {[]ledger.Event{alive, madeAt("dead", gone), madeAt("well")}, "well"},
		"lived at, and attached":     {[]ledger.Event{alive, madeAt("dead", begun), dataAt("q", "dead", ledger.PodLive), madeAt("well")}, "dead"},
		"attached, and lived at":     {[]ledger.Event{alive, madeAt("dead"), madeAt("well", begun), dataAt("q", "well", ledger.PodLive)}, "well"},
		"lived at and attached":      {[]ledger.Event{alive, madeAt("dead", begun), dataAt("q", "dead", ledger.PodLive), madeAt("well"), dataAt("r", "well", ledger.PodLive)}, "well"},
		"lived at, not attached":     {[]ledger.Event{alive, dataAt("q", "dead", ledger.PodLive)}, ""},
		"alike at both, the first":   {[]ledger.Event{alive, madeAt("dead"), madeAt("well")}, "dead"},
		"listed by a silent node":    {nil, "dead"},
		"a creation is on its way":   {[]ledger.Event{alive, dataAt("q", "well", ledger.PodLive), ledger.AttachSent{Volume: disk, Node: "well"}}, "well"},
		"in volumesAttached":         {[]ledger.Event{alive, nodeAs("well", reporting)}, "well"},
		"in use, and somebody there": {[]ledger.Event{alive, nodeAs("well", using), dataAt("q", "well", ledger.PodLive)}, ""},
		"in use, and nobody there":   {[]ledger.Event{alive, nodeAs("well", using)}, "well"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, test.facts...)
		if got := p.found(); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestAsksToStay(t *testing.T) {
	refused := func(a *ledger.Attachment) { a.Deleting, a.DetachError = true, ledger.CallError{Code: 9, Message: "no"} }
	but := func(change func(*ledger.Attachment)) []ledger.Event {
		return []ledger.Event{dataAt("q", "well", ledger.PodLive), madeAt("well", refused, change)}
	}
	is := func(*ledger.Attachment) {}
	for name, test := range map[string]struct {
		arbiter Arbiter
		facts   []ledger.Event
		want    bool
	}{
		"refused":             {Arbiter{StayAttached: true}, but(is), true},
		"not switched on":     {Arbiter{}, but(is), false},
		"beside another":      {Arbiter{StayAttached: true, Cooperative: true}, but(is), false},
		"shared":              {Arbiter{StayAttached: true}, append(but(is), sharedDisk), false},
		"nobody lives there":  {Arbiter{StayAttached: true}, but(is)[1:], false},
		"no attachment":       {Arbiter{StayAttached: true}, but(is)[:1], false},
		"not our own":         {Arbiter{StayAttached: true}, but(func(a *ledger.Attachment) { a.Ours = false }), false},
		"not being deleted":   {Arbiter{StayAttached: true}, but(func(a *ledger.Attachment) { a.Deleting = false }), false},
		"not refused":         {Arbiter{StayAttached: true}, but(func(a *ledger.Attachment) { a.DetachError = ledger.CallError{} }), false},
		"of another machine":  {Arbiter{StayAttached: true}, append(but(func(a *ledger.Attachment) { a.NodeID = "i-1" }), ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2"}}}), false},
		"of the same machine": {Arbiter{StayAttached: true}, append(but(func(a *ledger.Attachment) { a.NodeID = "i-1" }), ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-1"}}}), true},
	} {
		p := plannerOf(t, test.arbiter, "well", ledger.Hold{}, test.facts...)
		if got := p.asksToStay(p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if p := plannerOf(t, Arbiter{StayAttached: true}, "well", ledger.Hold{}); p.asksToStay(nil) {
		t.Error("asked to stay nowhere")
	}
}

// A volume stays until an attachment there is attached or never will be.
func TestStays(t *testing.T) {
	refused := func(a *ledger.Attachment) { a.Deleting, a.DetachError = true, ledger.CallError{Code: 9, Message: "no"} }
	begun := func(a *ledger.Attachment) { a.Attached = false }
	stays := ledger.Hold{Stays: true, Transitions: 1}
	for name, test := range map[string]struct {
		was   ledger.Hold
		at    ledger.NodeName // where it is held by now
		next  ledger.NodeName
		facts []ledger.Event
		want  bool
	}{
		"without an attachment":      {stays, "well", "", nil, true},
		"one that is being deleted":  {stays, "well", "", []ledger.Event{madeAt("well", refused)}, true},
		"one that is begun":          {stays, "well", "", []ledger.Event{madeAt("well", begun)}, true},
		"one that is attached":       {stays, "well", "", []ledger.Event{madeAt("well")}, false},
		"begun at a fenced node":     {stays, "well", "", []ledger.Event{madeAt("well", begun), nodeAs("well", outOfOrder)}, false},
		"nobody's, reported":         {stays, "well", "", []ledger.Event{nodeAs("well", reporting)}, true},
		"it is held elsewhere now":   {stays, "dead", "", nil, false},
		"asked now":                  {ledger.Hold{}, "well", "", []ledger.Event{dataAt("q", "well", ledger.PodLive), madeAt("well", refused)}, true},
		"asked, and another is next": {ledger.Hold{}, "well", "dead", []ledger.Event{dataAt("q", "well", ledger.PodLive), madeAt("well", refused)}, false},
		"not asked":                  {ledger.Hold{}, "well", "", []ledger.Event{dataAt("q", "well", ledger.PodLive), madeAt("well")}, false},
	} {
		p := plannerOf(t, Arbiter{StayAttached: true}, "well", test.was, test.facts...)
		h := *p.volume.Hold
		h.Node, h.Next.Node = test.at, test.next
		if got := p.stays(*p.volume.Hold, h, p.at(test.at)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// At a fenced node a pod loses the promise; a granted ticket keeps it until it is told.
func TestPromiseNext(t *testing.T) {
	third := nodeAs("third")
	promised := func(uid string) ledger.Promise {
		return ledger.Promise{Node: "dead", To: ledger.Requester{Namespace: "shop", Name: uid, UID: uid}}
	}
	r := dataAt("r", "third", ledger.PodLive)
	for name, test := range map[string]struct {
		next  ledger.Promise
		facts []ledger.Event
		at    ledger.NodeName
		to    string
	}{
		"nobody":                     {ledger.Promise{}, nil, "", ""},
		"nobody before":              {ledger.Promise{}, []ledger.Event{r}, "third", "r"},
		"at the holder only":         {ledger.Promise{}, []ledger.Event{dataAt("q", "well", ledger.PodLive)}, "", ""},
		"a pod is there":             {promised("q"), []ledger.Event{dataAt("q", "dead", ledger.PodLive), r}, "dead", "q"},
		"kept, though another ranks": {promised("q"), []ledger.Event{dataAt("q", "dead", ledger.PodLive), dataAt("a", "third", ledger.PodLive)}, "dead", "q"},
		"another pod is there now":   {promised("o"), []ledger.Event{dataAt("q", "dead", ledger.PodLive)}, "dead", "q"},
		"another pod is there":       {promised("o"), []ledger.Event{dataAt("q", "third", ledger.PodLive)}, "third", "q"},
		"it has gone":                {promised("q"), []ledger.Event{r}, "third", "r"},
		"it asks":                    {promised("m"), []ledger.Event{asksAt("m", ledger.TypeManual, "dead"), r}, "third", "r"},
		"it leaves":                  {promised("q"), []ledger.Event{dataAt("q", "dead", ledger.PodTerminating), r}, "third", "r"},
		"a pod at a fenced node":     {promised("q"), []ledger.Event{dataAt("q", "dead", ledger.PodLive), nodeAs("dead", outOfOrder), r}, "third", "r"},
		"a ticket at a fenced node":  {promised("m"), []ledger.Event{asksAt("m", ledger.TypeManual, "dead", grantedNow), nodeAs("dead", outOfOrder), r}, "dead", "m"},
		"a ticket that gives way":    {promised("m"), []ledger.Event{asksAt("m", ledger.TypeBackup, "dead", grantedNow), r}, "third", "r"},
		"needs no attachment":        {promised("q"), []ledger.Event{dataAt("q", "dead", ledger.PodLive), noAttach}, "", ""},
		"of the holder itself":       {ledger.Promise{Node: "well", To: ledger.Requester{UID: "q"}}, []ledger.Event{dataAt("q", "well", ledger.PodLive), r}, "third", "r"},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Next: test.next}, append([]ledger.Event{third}, test.facts...)...)
		if got := p.promiseNext(*p.volume.Hold, "well"); got.Node != test.at || got.To.UID != test.to {
			t.Errorf("%s: %+v, want to %q at %q", name, got, test.to, test.at)
		}
	}
}
