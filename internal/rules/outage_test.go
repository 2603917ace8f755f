// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func silentNode(change func(*ledger.Node)) *ledger.Node {
	n := &ledger.Node{
		NodeState: ledger.NodeState{Name: "n1", UID: "u1", Ready: ledger.ReadyUnknown, ReadySince: 40},
		Exists:    true, NotReady: time.Unix(100, 0), Renewed: 7, RenewedAt: time.Unix(90, 0), LeaseRead: time.Unix(150, 0),
	}
	change(n)
	return n
}

// After Ready=False a silence counts only as far as the Lease stood still.
func TestSilence(t *testing.T) {
	now := time.Unix(200, 0)
	for name, test := range map[string]struct {
		node         *ledger.Node
		since, until int64 // 0: no time
		whole        bool
		least        time.Duration
	}{
		"no node":                        {nil, 0, 200, false, 0},
		"unknown":                        {silentNode(func(*ledger.Node) {}), 100, 200, false, 0},
		"unknown, and seen to fail":      {silentNode(func(n *ledger.Node) { n.SawFail = true }), 100, 200, true, 0},
		"unknown, and heard since":       {silentNode(func(n *ledger.Node) { n.Heard = time.Unix(120, 0) }), 120, 200, true, leaseGrace},
		"unknown, and heard before":      {silentNode(func(n *ledger.Node) { n.Heard = time.Unix(80, 0) }), 100, 200, true, leaseGrace},
		"its own word":                   {silentNode(func(n *ledger.Node) { n.Ready = ledger.ReadyFalse }), 100, 150, false, leaseGrace},
		"its own word, and renewed":      {silentNode(func(n *ledger.Node) { n.Ready, n.RenewedAt = ledger.ReadyFalse, time.Unix(130, 0) }), 130, 150, false, leaseGrace},
		"its last word, and it is gone":  {silentNode(func(n *ledger.Node) { n.Ready, n.Exists = ledger.ReadyFalse, false }), 100, 200, false, 0},
		"unknown, and nobody can read":   {silentNode(func(n *ledger.Node) { n.UnreadSince = time.Unix(140, 0) }), 100, 140, false, 0},
		"its own word, and unread later": {silentNode(func(n *ledger.Node) { n.Ready, n.UnreadSince = ledger.ReadyFalse, time.Unix(160, 0) }), 100, 150, false, leaseGrace},
		"its own word, and nobody reads": {silentNode(func(n *ledger.Node) { n.Ready, n.LeaseRead = ledger.ReadyFalse, time.Time{} }), 100, 0, false, leaseGrace},
	} {
		got := silenceOf(test.node, now)
		if unix(got.since) != test.since || unix(got.until) != test.until || got.whole != test.whole || got.least != test.least {
			t.Errorf("%s: from %d to %d (begin seen: %t), want from %d to %d (%t), at least %s", name, unix(got.since), unix(got.until), got.whole, test.since, test.until, test.whole, test.least)
		}
	}
}

func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// An earlier measure continues only in the same outage; fences end only if that is known to be over.
func TestOutages(t *testing.T) {
	measured := ledger.Force{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Since: 40, Renewed: 7}
	of := func(change func(*ledger.Force)) ledger.Force {
		f := measured
		change(&f)
		return f
	}
	unseen := of(func(f *ledger.Force) { f.NodeUID, f.Since, f.Renewed = "", 0, 0 })
	for name, test := range map[string]struct {
		was        ledger.Force
		node       *ledger.Node
		same, over bool
	}{
		"as it was":                           {measured, silentNode(func(*ledger.Node) {}), true, false},
		"Ready":                               {measured, silentNode(func(n *ledger.Node) { n.Ready = ledger.ReadyTrue }), true, true},
		"Ready again in between":              {measured, silentNode(func(n *ledger.Node) { n.ReadySince = 41 }), false, true},
		"since nobody says when":              {of(func(f *ledger.Force) { f.Since = 0 }), silentNode(func(n *ledger.Node) { n.ReadySince = 0 }), false, false},
		"renewed since":                       {measured, silentNode(func(n *ledger.Node) { n.Renewed = 8 }), false, true},
		"renewed, and no Lease was read then": {of(func(f *ledger.Force) { f.Renewed = 0 }), silentNode(func(*ledger.Node) {}), false, false},
		"no Lease is read now":                {measured, silentNode(func(n *ledger.Node) { n.Renewed, n.RenewedAt = 0, time.Time{} }), false, false},
		"no Lease was read then nor now":      {of(func(f *ledger.Force) { f.Renewed = 0 }), silentNode(func(n *ledger.Node) { n.Renewed, n.RenewedAt = 0, time.Time{} }), false, false},
		"there was no Lease, nor is now":      {of(func(f *ledger.Force) { f.Renewed = 0 }), silentNode(func(n *ledger.Node) { n.Renewed = 0 }), true, false},
		"another Node":                        {measured, silentNode(func(n *ledger.Node) { n.UID = "u2" }), false, true},
		"of another name":                     {of(func(f *ledger.Force) { f.Node = "n2" }), silentNode(func(*ledger.Node) {}), false, false},
		"the Node has gone":                   {measured, silentNode(func(n *ledger.Node) { n.Exists = false }), true, false},
		"gone, and Ready in between":          {measured, silentNode(func(n *ledger.Node) { n.Exists, n.ReadySince = false, 41 }), false, true},
		"gone, and was gone":                  {of(func(f *ledger.Force) { f.Since = 0 }), silentNode(func(n *ledger.Node) { n.Exists = false }), true, false},
		"gone, and renewed before":            {measured, silentNode(func(n *ledger.Node) { n.Exists, n.Renewed = false, 8 }), true, false},
		"nobody knows a Node":                 {unseen, nil, true, false},
		"nobody has seen its Node":            {unseen, silentNode(func(n *ledger.Node) { n.UID, n.Exists = "", false }), true, false},
		"gone then, and nobody sees it now":   {of(func(f *ledger.Force) { f.Since = 0 }), silentNode(func(n *ledger.Node) { n.UID, n.Exists = "", false }), true, false},
		"nobody has seen another's Node":      {of(func(f *ledger.Force) { f.Node, f.Since = "n2", 0 }), silentNode(func(n *ledger.Node) { n.UID, n.Exists = "", false }), false, false},
		"there was a Node, and nobody knows":  {measured, nil, false, false},
	} {
		if got := sameOutage(test.was, test.node); got != test.same {
			t.Errorf("%s: the same outage: %t", name, got)
		}
		if got := outageOver(test.was, test.node); got != test.over {
			t.Errorf("%s: over: %t", name, got)
		}
	}
}

// It is open only until the Lease is read.
func TestOutageThatMayContinue(t *testing.T) {
	measured := func(change func(*ledger.Force)) *ledger.Force {
		f := ledger.Force{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Since: 40, Renewed: 7}
		change(&f)
		return &f
	}
	same := func(*ledger.Force) {}
	unread := func(n *ledger.Node) { n.RenewedAt = time.Time{} }
	for name, test := range map[string]struct {
		was  *ledger.Force
		node *ledger.Node
		want bool
	}{
		"the Lease is not read":   {measured(same), silentNode(unread), true},
		"it is read":              {measured(same), silentNode(func(*ledger.Node) {}), false},
		"nothing was measured":    {nil, silentNode(unread), false},
		"of another node":         {measured(func(f *ledger.Force) { f.Node = "n2" }), silentNode(unread), false},
		"Ready again in between":  {measured(func(f *ledger.Force) { f.Since = 39 }), silentNode(unread), false},
		"of another Node":         {measured(func(f *ledger.Force) { f.NodeUID = "u2" }), silentNode(unread), false},
		"the Node is gone":        {measured(same), silentNode(func(n *ledger.Node) { unread(n); n.Exists = false }), false},
		"nobody knows the node":   {measured(same), nil, false},
		"the node is Ready again": {measured(same), silentNode(func(n *ledger.Node) { unread(n); n.Ready = ledger.ReadyTrue }), false},
	} {
		if got := mayContinue(test.was, test.node); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Twelve steps of whole seconds, each half a minute or more.
func TestStepsOfARule(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, time.Minute: 30 * time.Second, 6 * time.Minute: 30 * time.Second, 10 * time.Minute: 50 * time.Second,
		10*time.Minute + 5*time.Second: 50 * time.Second, time.Hour: 5 * time.Minute,
	} {
		f := timing{rule: AfterPodGone, limit: limit}.run(&ledger.Volume{}, silentNode(func(*ledger.Node) {}), time.Unix(200, 0))
		if f.Step != want {
			t.Errorf("of %s: %s, want %s", limit, f.Step, want)
		}
	}
}

func TestKeptOutage(t *testing.T) {
	place, f := &ledger.VolumeOnNode{Node: "n1"}, forcing{Rule: AfterPodGone, Elapsed: 95 * time.Second, Left: 265 * time.Second, Limit: 6 * time.Minute, Step: 30 * time.Second}
	over := f
	over.Elapsed, over.Left = 400*time.Second, 0
	begun := f
	begun.Elapsed = 29 * time.Second
	v := &ledger.Volume{}
	for name, test := range map[string]struct {
		node *ledger.Node
		f    forcing
		want ledger.Force
	}{
		"of a Node":           {silentNode(func(*ledger.Node) {}), f, ledger.Force{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Since: 40, Renewed: 7, Elapsed: 90 * time.Second}},
		"just begun":          {silentNode(func(*ledger.Node) {}), begun, ledger.Force{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Since: 40}},
		"over":                {silentNode(func(*ledger.Node) {}), over, ledger.Force{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Since: 40, Renewed: 7, Elapsed: 6 * time.Minute}},
		"of one that is gone": {silentNode(func(n *ledger.Node) { n.Exists = false }), f, ledger.Force{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Elapsed: 90 * time.Second}},
		"of none":             {nil, f, ledger.Force{Rule: AfterPodGone, Node: "n1", Elapsed: 90 * time.Second}},
	} {
		if got := outage(v, place, test.node, test.f); *got != test.want {
			t.Errorf("%s: %+v, want %+v", name, *got, test.want)
		}
	}
}

// This process's part of the time counts, or more if another process measured the same outage.
func TestRunOfARule(t *testing.T) {
	now := time.Unix(1000, 0)
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	measured := func(f ledger.Force, fences ...ledger.Fence) *ledger.Volume {
		l := ledger.New()
		l.Apply(time.Unix(800, 0), ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "1", Node: "n1", Force: &f, Fences: fences}})
		return l.Snapshot().Volume(id)
	}
	before := ledger.Force{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Since: 40, Renewed: 7, Elapsed: 3 * time.Minute}
	fence := ledger.Fence{Rule: AfterPodGone, Node: "n1", NodeUID: "u1", Since: 40, Renewed: 7}
	other, elsewhere := before, fence
	other.Rule, elsewhere.Rule = AfterUnreachable, AfterUnreachable
	rule := func(change func(*timing)) timing {
		r := timing{rule: AfterPodGone, limit: 10 * time.Minute, silence: silence{since: time.Unix(900, 0), until: now}, continues: true}
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		timing        timing
		v             *ledger.Volume
		node          *ledger.Node
		elapsed, left time.Duration
	}{
		"seen alone":                  {rule(func(r *timing) {}), measured(other), silentNode(func(*ledger.Node) {}), 100 * time.Second, 500 * time.Second},
		"measured before":             {rule(func(r *timing) {}), measured(before), silentNode(func(*ledger.Node) {}), 380 * time.Second, 220 * time.Second},
		"measured in another outage":  {rule(func(r *timing) {}), measured(before), silentNode(func(n *ledger.Node) { n.ReadySince = 41 }), 100 * time.Second, 500 * time.Second},
		"begun under our eyes":        {rule(func(r *timing) { r.continues = false }), measured(before, fence), silentNode(func(*ledger.Node) {}), 100 * time.Second, 500 * time.Second},
		"over before":                 {rule(func(r *timing) {}), measured(before, fence), silentNode(func(*ledger.Node) {}), 600 * time.Second, 0},
		"over before by another rule": {rule(func(r *timing) {}), measured(before, elsewhere), silentNode(func(*ledger.Node) {}), 380 * time.Second, 220 * time.Second},
		"over before, other outage":   {rule(func(r *timing) {}), measured(other, fence), silentNode(func(n *ledger.Node) { n.ReadySince = 41 }), 100 * time.Second, 500 * time.Second},
		"not begun":                   {rule(func(r *timing) { r.since, r.continues = time.Time{}, false }), measured(other), silentNode(func(*ledger.Node) {}), 0, 10 * time.Minute},
		"known up to before it began": {rule(func(r *timing) { r.until = time.Unix(890, 0) }), measured(other), silentNode(func(*ledger.Node) {}), 0, 10 * time.Minute},
		"known up to a while ago":     {rule(func(r *timing) { r.until = time.Unix(950, 0) }), measured(before), silentNode(func(*ledger.Node) {}), 330 * time.Second, 270 * time.Second},
		"longer than it takes":        {rule(func(r *timing) { r.since = time.Unix(100, 0) }), measured(other), silentNode(func(*ledger.Node) {}), 900 * time.Second, 0},
		"over, as was known":          {rule(func(r *timing) { r.until, r.limit = time.Unix(950, 0), 50*time.Second }), measured(other), silentNode(func(*ledger.Node) {}), 50 * time.Second, 0},
		"nobody could read":           {rule(func(r *timing) { r.unread, r.again = 60*time.Second, time.Unix(970, 0) }), measured(other), silentNode(func(*ledger.Node) {}), 40 * time.Second, 560 * time.Second},
		"nobody could, and measured":  {rule(func(r *timing) { r.unread, r.again = 60*time.Second, time.Unix(970, 0) }), measured(before), silentNode(func(*ledger.Node) {}), 320 * time.Second, 280 * time.Second},
		"nobody could, before it":     {rule(func(r *timing) { r.unread, r.again = 60*time.Second, time.Unix(890, 0) }), measured(other), silentNode(func(*ledger.Node) {}), 100 * time.Second, 500 * time.Second},
		"over, and just read again":   {rule(func(r *timing) { r.limit, r.unread, r.again = 30*time.Second, 60*time.Second, time.Unix(970, 0) }), measured(other), silentNode(func(*ledger.Node) {}), 40 * time.Second, leaseGrace - 30*time.Second},
		"over, and read for a while":  {rule(func(r *timing) { r.limit, r.unread, r.again = 30*time.Second, 20*time.Second, time.Unix(950, 0) }), measured(other), silentNode(func(*ledger.Node) {}), 80 * time.Second, 0},
		"over, and read lately":       {rule(func(r *timing) { r.limit, r.read = 30*time.Second, time.Unix(970, 0) }), measured(other), silentNode(func(*ledger.Node) {}), 100 * time.Second, leaseGrace - 30*time.Second},
		"taken before, read lately":   {rule(func(r *timing) { r.read = time.Unix(970, 0) }), measured(before, fence), silentNode(func(*ledger.Node) {}), 600 * time.Second, 0},
		"over, and unread now":        {rule(func(r *timing) { r.limit, r.read, r.deaf = 30*time.Second, time.Unix(900, 0), true }), measured(other), silentNode(func(*ledger.Node) {}), 100 * time.Second, minWait},
		"over, unread, never read":    {rule(func(r *timing) { r.limit, r.deaf = 30*time.Second, true }), measured(other), silentNode(func(*ledger.Node) {}), 100 * time.Second, minWait},
		"nearly over, as is known":    {rule(func(r *timing) { r.limit = 100*time.Second + time.Millisecond }), measured(other), silentNode(func(*ledger.Node) {}), 100 * time.Second, time.Millisecond},
		"nearly over, as was known":   {rule(func(r *timing) { r.until, r.limit = time.Unix(950, 0), 50*time.Second+time.Millisecond }), measured(other), silentNode(func(*ledger.Node) {}), 50 * time.Second, minWait},
	} {
		f := test.timing.run(test.v, test.node, now)
		if f.Elapsed != test.elapsed || f.Left != test.left || f.Rule != AfterPodGone {
			t.Errorf("%s: %s has run for %s, %s left; want %s, %s", name, f.Rule, f.Elapsed, f.Left, test.elapsed, test.left)
		}
	}
}

func TestAlike(t *testing.T) {
	node := func(change func(*ledger.Node)) *ledger.Node {
		n := silentNode(func(*ledger.Node) {})
		n.CSINode, n.CSIRev, n.Heard, n.Labels = true, "1", time.Unix(110, 0), map[string]string{"zone": "a"}
		n.Drivers = []ledger.NodeDriver{{DriverOnNode: ledger.DriverOnNode{Name: "d", NodeID: "i", Limit: 3}, Registered: true, Used: 2}}
		change(n)
		return n
	}
	if !alike(node(func(*ledger.Node) {}), node(func(n *ledger.Node) { n.Drivers[0].Used = 1 })) {
		t.Error("two nodes that differ in used slots alone are not alike")
	}
	for name, change := range map[string]func(*ledger.Node){
		"it exists":            func(n *ledger.Node) { n.Exists = false },
		"its CSINode exists":   func(n *ledger.Node) { n.CSINode = false },
		"its CSINode":          func(n *ledger.Node) { n.CSIRev = "2" },
		"not ready since":      func(n *ledger.Node) { n.NotReady = time.Unix(101, 0) },
		"heard":                func(n *ledger.Node) { n.Heard = time.Unix(111, 0) },
		"its Lease":            func(n *ledger.Node) { n.RenewedAt = time.Unix(91, 0) },
		"its object":           func(n *ledger.Node) { n.UID = "u2" },
		"its machine":          func(n *ledger.Node) { n.SystemUUID = "m2" },
		"its provider's name":  func(n *ledger.Node) { n.ProviderID = "cloud://2" },
		"its boot":             func(n *ledger.Node) { n.BootID = "b2" },
		"a storage's cut":      func(n *ledger.Node) { n.CutOff = []string{"d"} },
		"whose that cut is":    func(n *ledger.Node) { n.CutBefore = []string{"d"} },
		"its health":           func(n *ledger.Node) { n.Ready = ledger.ReadyFalse },
		"its health since":     func(n *ledger.Node) { n.ReadySince = 41 },
		"its taint":            func(n *ledger.Node) { n.OutOfService = true },
		"whose lists":          func(n *ledger.Node) { n.Managed = true },
		"its being drained":    func(n *ledger.Node) { n.Draining = true },
		"its kubelet's report": func(n *ledger.Node) { n.Reporting = true },
		"its labels":           func(n *ledger.Node) { n.Labels = map[string]string{"zone": "b"} },
		"a driver more":        func(n *ledger.Node) { n.Drivers = append(n.Drivers, ledger.NodeDriver{}) },
		"a driver's limit":     func(n *ledger.Node) { n.Drivers[0].Limit = 4 },
		"a driver's listing":   func(n *ledger.Node) { n.Drivers[0].Registered = false },
		"a driver's refusal":   func(n *ledger.Node) { n.Drivers[0].Exhausted = true },
	} {
		if alike(node(func(*ledger.Node) {}), node(change)) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

// An etcd object has a bound, and all controllers write the same list.
func TestRequestersAreBounded(t *testing.T) {
	var list []ledger.Requester
	for i := range 3 * maxListed {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		list = append(list, ledger.Requester{Namespace: "s", Name: name, UID: name}, ledger.Requester{Namespace: "s", Name: name, UID: name})
	}
	got := listed(slices.Clone(list))
	if len(got) != maxListed || got[0].Name != "aa" || got[1].Name != "ab" {
		t.Errorf("%d are listed, from %v on", len(got), got[:2])
	}
	last, first := ledger.Requester{Namespace: "t", Name: "z", UID: "must"}, ledger.Requester{Namespace: "s", Name: "aa", UID: "aa"}
	if got := listed(slices.Clone(list), last, first); len(got) != maxListed || got[0] != first || got[maxListed-1] != last {
		t.Errorf("%d are listed, of those that must be %v and %v", len(got), got[0], got[len(got)-1])
	}
	if got := listed(slices.Clone(list), last, last, first); len(got) != maxListed {
		t.Errorf("%d are listed, of which two must be, one of them named twice", len(got))
	}
	if got := listed(nil, slices.Clone(list)...); len(got) != maxListed || got[0] != first {
		t.Errorf("%d are listed where more must be than there is room for", len(got))
	}
	if got := listed([]ledger.Requester{{Namespace: "t", Name: "a", UID: "3"}, {Namespace: "s", Name: "b", UID: "2"}, {Namespace: "s", Name: "b", UID: "1"}}); got[0].UID != "1" || got[1].UID != "2" || got[2].UID != "3" {
		t.Errorf("listed as %v", got)
	}
}
