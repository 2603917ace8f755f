// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func takenFrom(changes ...func(*ledger.Fence)) ledger.Fence {
	f := ledger.Fence{Node: "dead", NodeUID: "x", BootID: "b", Attachment: "a", Rule: OutOfService, InUse: true, Since: 40, Renewed: 7}
	for _, change := range changes {
		change(&f)
	}
	return f
}

func noRule(f *ledger.Fence)         { f.Rule = "" }
func ofNoBoot(f *ledger.Fence)       { f.BootID = "" }
func ofAnotherNode(f *ledger.Fence)  { f.NodeUID = "z" }
func ofAnother(f *ledger.Fence)      { f.Attachment = "z" }
func ofAnotherTime(f *ledger.Fence)  { f.Since = 39 }
func wasNotInUse(f *ledger.Fence)    { f.InUse = false }
func ofANodeUnknown(f *ledger.Fence) { f.Node = "unknown" }

// An older mount is remembered while its boot may last.
func TestMountOfBefore(t *testing.T) {
	none := func(*ledger.NodeState) {}
	noBoot := func(n *ledger.NodeState) { n.BootID = "" }
	place := func(uid string, change func(*ledger.VolumeOnNode)) func(*ledger.Volume) *ledger.VolumeOnNode {
		return func(v *ledger.Volume) *ledger.VolumeOnNode {
			p := *v.OnNode("dead")
			change(&p)
			return &p
		}
	}
	nowhere := func(*ledger.Volume) *ledger.VolumeOnNode { return nil }
	there := place("", func(*ledger.VolumeOnNode) {})
	reported := place("", func(p *ledger.VolumeOnNode) { p.Reported = true })
	for name, test := range map[string]struct {
		old   ledger.Fence
		boot  func(*ledger.NodeState)
		facts []ledger.Event
		place func(*ledger.Volume) *ledger.VolumeOnNode
		want  bool
	}{
		"taken":                              {takenFrom(), none, nil, there, true},
		"taken, and nothing is left there":   {takenFrom(), none, nil, nowhere, true},
		"nobody knows the node":              {takenFrom(ofANodeUnknown), none, nil, nowhere, false},
		"the Node is gone":                   {takenFrom(), none, []ledger.Event{ledger.NodeGone{Name: "dead"}}, nowhere, false},
		"the node says no boot":              {takenFrom(), noBoot, nil, there, true},
		"of another boot":                    {takenFrom(func(f *ledger.Fence) { f.BootID = "z" }), none, nil, there, false},
		"of another Node of that boot":       {takenFrom(ofAnotherNode), none, nil, there, true},
		"of no boot, and the node says one":  {takenFrom(ofNoBoot), none, nil, there, false},
		"of no boot, of this Node":           {takenFrom(ofNoBoot), noBoot, nil, there, true},
		"of no boot, of another Node":        {takenFrom(ofNoBoot, ofAnotherNode), noBoot, nil, there, false},
		"it was not in use":                  {takenFrom(wasNotInUse), none, nil, there, false},
		"it is still reported":               {takenFrom(), none, nil, reported, false},
		"reported again, and no rule":        {takenFrom(noRule), none, nil, reported, true},
		"it is still attached":               {takenFrom(), none, []ledger.Event{atDead("a", false)}, there, false},
		"attached still, and no rule":        {takenFrom(noRule), none, []ledger.Event{atDead("a", false)}, there, true},
		"attached anew":                      {takenFrom(ofAnother), none, []ledger.Event{atDead("a", false)}, there, true},
		"of no attachment, and there is one": {takenFrom(func(f *ledger.Fence) { f.Attachment = "" }), none, []ledger.Event{atDead("a", false)}, there, true},
		"of no attachment, and none is":      {takenFrom(func(f *ledger.Fence) { f.Attachment = "" }), none, nil, there, true},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, append([]ledger.Event{deadNode("2", "x", "b", test.boot)}, test.facts...)...)
		got, kept := p.mountOfBefore(test.old, test.place(p.volume))
		want := ledger.Fence{}
		if test.want {
			want = test.old
			want.Rule, want.Since, want.Renewed = "", 0, 0
		}
		if kept != test.want || got != want {
			t.Errorf("%s: %t, %+v\nwant %+v", name, kept, got, want)
		}
	}
}

func TestMountOfBeforeAtOneOfSeveral(t *testing.T) {
	of := func(uid string) ledger.Fence {
		return takenFrom(func(f *ledger.Fence) { f.NodeUID, f.SystemUUID, f.BootID = uid, ledger.OtherMachine, "" })
	}
	for name, test := range map[string]struct {
		uid  string
		gone bool
		want string
	}{
		"of this Node":    {"x", false, "b"},
		"of another Node": {"z", false, "b"},
		"it is gone":      {"x", true, ""},
	} {
		facts := []ledger.Event{deadNode("2", "x", "b", ofMachine("m", "b"))}
		if test.gone {
			facts = append(facts, ledger.NodeGone{Name: "dead"})
		}
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, facts...)
		f, kept := p.mountOfBefore(of(test.uid), nil)
		if kept != (test.want != "") || f.BootID != test.want || kept && f.SystemUUID != "m" {
			t.Errorf("%s: %t, %+v", name, kept, f)
		}
	}
}

// Words about the detach come before words about older mounts.
func TestFenceGoesOnAboutMounts(t *testing.T) {
	tainted := func(n *ledger.NodeState) { n.OutOfService = true }
	back := func(n *ledger.NodeState) { n.Ready = ledger.ReadyTrue }
	of := func(change ...func(*ledger.Fence)) []ledger.Fence { return []ledger.Fence{takenFrom(change...)} }
	ended := takenFrom(noRule)
	ended.Since, ended.Renewed = 0, 0
	for name, test := range map[string]struct {
		old    []ledger.Fence
		node   func(*ledger.NodeState)
		facts  []ledger.Event
		want   ledger.Fence
		needed bool
	}{
		"nothing was said":              {nil, back, nil, ledger.Fence{}, false},
		"the node is back":              {of(), back, nil, ended, true},
		"it is back, and was not used":  {of(wasNotInUse), back, nil, ledger.Fence{}, false},
		"the outage goes on":            {of(func(f *ledger.Fence) { f.Renewed = 0 }), tainted, nil, takenFrom(func(f *ledger.Fence) { f.Renewed = 0 }), true},
		"said of another node":          {of(func(f *ledger.Fence) { f.Node = "well" }), back, nil, ledger.Fence{}, false},
		"another outage, it is tainted": {of(ofAnotherTime), tainted, []ledger.Event{atDead("z", false)}, ledger.Fence{Node: "dead", NodeUID: "x", BootID: "b", Attachment: "z", Rule: OutOfService, InUse: true, Since: 40}, true},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{Fences: test.old}, append([]ledger.Event{deadNode("2", "x", "b", test.node)}, test.facts...)...)
		got, needed := p.fence(*p.volume.Hold, p.at("dead"))
		if needed != test.needed || needed && got != test.want {
			t.Errorf("%s: %t, %+v\nwant %t, %+v", name, needed, got, test.needed, test.want)
		}
	}
}

func TestListOfFences(t *testing.T) {
	third := ledger.NodeState{Name: "a-node", UID: "third", Version: "1", Ready: ledger.ReadyTrue, BootID: "b", Managed: true, Reporting: true}
	tainted := deadNode("2", "x", "b", func(n *ledger.NodeState) { n.OutOfService = true })
	elsewhere := ledger.Fence{Node: "a-node", NodeUID: "third", BootID: "b", InUse: true}
	gone := ledger.Fence{Node: "unknown", BootID: "b", InUse: true}
	now := takenFrom(func(f *ledger.Fence) { f.Renewed = 0 })
	for name, test := range map[string]struct {
		was  []ledger.Fence
		want []ledger.NodeName
	}{
		"of where it is":                  {nil, []ledger.NodeName{"dead"}},
		"of where it was, too":            {[]ledger.Fence{elsewhere}, []ledger.NodeName{"a-node", "dead"}},
		"of where it is, said before":     {[]ledger.Fence{now, elsewhere}, []ledger.NodeName{"a-node", "dead"}},
		"not of a node that nobody knows": {[]ledger.Fence{gone, now}, []ledger.NodeName{"dead"}},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{Fences: test.was}, third, tainted, atDead("a", false))
		before := p.hold
		var got []ledger.NodeName
		for _, f := range p.fences(*p.volume.Hold, ledger.Hold{Node: "well"}) {
			got = append(got, f.Node)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: of %q, want %q", name, got, test.want)
		}
		if p.hold.Node != before.Node {
			t.Errorf("%s: the planner's hold is at %q", name, p.hold.Node)
		}
	}
}

// A full list has no room for nodes that the volume has left.
func TestFullListOfFences(t *testing.T) {
	third := ledger.NodeState{Name: "a-node", UID: "third", Version: "1", Ready: ledger.ReadyTrue, BootID: "b", Managed: true, Reporting: true}
	elsewhere := ledger.Fence{Node: "a-node", NodeUID: "third", BootID: "b", InUse: true}
	was := ledger.Hold{Fences: slices.Repeat([]ledger.Fence{elsewhere}, maxFences+1)}
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, third)
	if got := len(p.fences(was, ledger.Hold{})); got != maxFences {
		t.Errorf("%d fences, want %d", got, maxFences)
	}
}

// A fence stands for the rule during the outage, unless a rule has ended, the node is Ready, or the volume
// is attached again.
func TestKeptFence(t *testing.T) {
	out := func(n *ledger.NodeState) {}
	read := ledger.NodeLease{Node: "dead", Renewed: 7}
	for name, test := range map[string]struct {
		fences      []ledger.Fence
		node        func(*ledger.NodeState)
		facts       []ledger.Event
		found, kept bool
	}{
		"the outage goes on":     {[]ledger.Fence{takenFrom()}, out, []ledger.Event{read}, true, true},
		"nothing is said":        {nil, out, []ledger.Event{read}, false, false},
		"said of another node":   {[]ledger.Fence{takenFrom(func(f *ledger.Fence) { f.Node = "well" })}, out, []ledger.Event{read}, false, false},
		"the rule has ended":     {[]ledger.Fence{takenFrom(noRule)}, out, []ledger.Event{read}, false, false},
		"the node is Ready":      {[]ledger.Fence{takenFrom()}, func(n *ledger.NodeState) { n.Ready = ledger.ReadyTrue }, nil, false, false},
		"it is attached":         {[]ledger.Fence{takenFrom()}, out, []ledger.Event{read, atDead("z", false)}, false, false},
		"it is reported":         {[]ledger.Fence{takenFrom()}, func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{disk} }, []ledger.Event{read}, false, false},
		"another outage":         {[]ledger.Fence{takenFrom(ofAnotherTime)}, out, []ledger.Event{read}, true, false},
		"the Lease has moved":    {[]ledger.Fence{takenFrom(func(f *ledger.Fence) { f.Renewed = 6 })}, out, []ledger.Event{read}, true, false},
		"the Lease is not read":  {[]ledger.Fence{takenFrom()}, out, nil, true, false},
		"of another Node":        {[]ledger.Fence{takenFrom(ofAnotherNode)}, out, []ledger.Event{read}, true, false},
		"nothing is there of it": {[]ledger.Fence{takenFrom()}, func(n *ledger.NodeState) { n.InUse = nil }, []ledger.Event{read}, true, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{Fences: test.fences}, append([]ledger.Event{deadNode("2", "x", "b", test.node)}, test.facts...)...)
		f, kept := keptFence(p.snapshot, p.volume, "dead")
		if found := f != (ledger.Fence{}); kept != test.kept || found != test.found {
			t.Errorf("%s: %t, %+v", name, kept, f)
		}
	}
}

// Force remains due while volumesAttached or a live attachment names the volume, without a creation in
// flight.
func TestForcedPlace(t *testing.T) {
	tainted := func(n *ledger.NodeState) { n.OutOfService = true }
	reported := func(n *ledger.NodeState) { n.OutOfService, n.Reported = true, []ledger.VolumeID{disk} }
	sent := ledger.AttachSent{Volume: disk, Node: "dead"}
	for name, test := range map[string]struct {
		node  func(*ledger.NodeState)
		facts []ledger.Event
		want  string
	}{
		"attached":                    {tainted, []ledger.Event{atDead("a", false)}, OutOfService},
		"being deleted":               {tainted, []ledger.Event{atDead("a", true)}, ""},
		"being deleted, and reported": {reported, []ledger.Event{atDead("a", true)}, OutOfService},
		"reported only":               {reported, nil, OutOfService},
		"nothing":                     {tainted, nil, ""},
		"about to be attached":        {reported, []ledger.Event{dataAt("q", "dead", ledger.PodLive), sent}, ""},
		"sent, and it is there":       {tainted, []ledger.Event{dataAt("q", "dead", ledger.PodLive), sent, atDead("a", false)}, OutOfService},
		"no rule holds":               {func(*ledger.NodeState) {}, []ledger.Event{atDead("a", false)}, ""},
		"its kubelet's word will do":  {func(n *ledger.NodeState) { n.Ready, n.InUse = ledger.ReadyTrue, nil }, []ledger.Event{atDead("a", false)}, ""},
		"the node is not managed":     {func(n *ledger.NodeState) { n.OutOfService, n.Managed = true, false }, []ledger.Event{atDead("a", false)}, ""},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, append([]ledger.Event{deadNode("2", "x", "b", test.node)}, test.facts...)...)
		place := p.at("dead")
		if got := p.forced(place, place.Own()); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// A deleted, unwritten hold permits no force, and delays no unforced detach.
func TestUnwrittenFence(t *testing.T) {
	for rule, want := range map[string]bool{OutOfService: false, "": true} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{Fences: []ledger.Fence{takenFrom(func(f *ledger.Fence) { f.Rule = rule })}}, atDead("a", false), ledger.HoldGone{Volume: disk})
		if h := p.volume.Hold; h == nil || h.Version != "" {
			t.Fatalf("the hold is %+v", h)
		}
		place := p.at("dead")
		if got := p.fenceWritten(place, place.Own(), rule); got != want {
			t.Errorf("rule %q: %t", rule, got)
		}
	}
}

func TestFenceOfADoubtThatLeaves(t *testing.T) {
	doubted := func(uid string, deleting bool, change func(*ledger.NodeState)) []ledger.Event {
		made := func(n *ledger.NodeState) { n.Ready, n.Reported = ledger.ReadyTrue, []ledger.VolumeID{disk} }
		return []ledger.Event{deadNode("2", "y", "b", made), atDead(uid, deleting), deadNode("3", "x", "b", change), ledger.NodeLease{Node: "dead", Renewed: 7}}
	}
	tainted := func(n *ledger.NodeState) { n.OutOfService = true }
	plain := func(*ledger.NodeState) {}
	said := ledger.Fence{Node: "dead", NodeUID: "x", BootID: "b", Attachment: "a", InUse: true}
	of := func(change func(*ledger.Fence)) ledger.Fence {
		f := said
		change(&f)
		return f
	}
	for name, test := range map[string]struct {
		old   ledger.Fence
		facts []ledger.Event
		want  ledger.Fence
	}{
		"by force, being deleted":          {takenFrom(), doubted("a", true, tainted), takenFrom()},
		"by force, not being deleted":      {takenFrom(), doubted("a", false, tainted), said},
		"without a rule, being deleted":    {takenFrom(noRule), doubted("a", true, tainted), said},
		"no rule is over":                  {takenFrom(), doubted("a", true, plain), said},
		"of another, being deleted":        {takenFrom(ofAnother), doubted("a", true, tainted), said},
		"of another node, being deleted":   {takenFrom(func(f *ledger.Fence) { f.Node = "well" }), doubted("a", true, tainted), said},
		"said by another Node of the boot": {takenFrom(noRule, ofAnotherNode), doubted("a", false, plain), of(func(f *ledger.Fence) { f.NodeUID = "z" })},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		if !isUnknown(p.snapshot, disk, "dead") {
			t.Fatalf("%s: nothing is doubted", name)
		}
		place := p.at("dead")
		if got, needed := p.unknownFence(test.old, p.snapshot.Node("dead"), place, place.Own()); !needed || got != test.want {
			t.Errorf("%s: %t, %+v\nwant %+v", name, needed, got, test.want)
		}
	}
	left := ledger.Hold{Stays: true}
	for name, test := range map[string]struct {
		old  ledger.Fence
		want ledger.Fence
	}{
		"left, and by force":  {takenFrom(), takenFrom()},
		"left, and by none":   {takenFrom(noRule, ofAnotherNode), of(func(f *ledger.Fence) { f.NodeUID = "z" })},
		"left, nothing said":  {ledger.Fence{}, of(func(f *ledger.Fence) { f.Attachment = "" })},
		"left, said of no VA": {takenFrom(noRule, func(f *ledger.Fence) { f.Attachment = "" }), of(func(f *ledger.Fence) { f.Attachment = "" })},
	} {
		facts := append(doubted("a", false, tainted), ledger.AttachmentGone{Name: atDead("a", false).Name})
		p := plannerOf(t, Arbiter{}, "dead", left, facts...)
		if !isUnknown(p.snapshot, disk, "dead") || !p.at("dead").Left {
			t.Fatalf("%s: nothing is doubted, or left", name)
		}
		if got, needed := p.unknownFence(test.old, p.snapshot.Node("dead"), p.at("dead"), nil); !needed || got != test.want {
			t.Errorf("%s: %t, %+v\nwant %+v", name, needed, got, test.want)
		}
	}
}

// Without an attachment, a doubt is reported only for a left volume or at the holder's node.
func TestDoubtWithoutAnAttachment(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	lists := func(v ledger.VolumeID) func(*ledger.NodeState) {
		return func(n *ledger.NodeState) {
			n.Ready, n.Reported, n.InUse = ledger.ReadyTrue, []ledger.VolumeID{v}, []ledger.VolumeID{v}
		}
	}
	back := func(v ledger.VolumeID) func(*ledger.NodeState) {
		return func(n *ledger.NodeState) { n.Ready, n.InUse = ledger.ReadyTrue, []ledger.VolumeID{v} }
	}
	for name, test := range map[string]struct {
		v      ledger.VolumeID
		stays  bool
		heldAt ledger.NodeName // in the planned hold
		want   bool
	}{
		"left there":               {disk, true, "dead", true},
		"needs none, held":         {iscsi, false, "dead", true},
		"needs none, held no more": {iscsi, false, "well", false},
	} {
		l := ledger.New()
		for _, e := range []ledger.Event{
			ledger.PersistentVolume{Name: "pv", Version: "1", Volume: test.v, Access: ledger.AccessNode},
			ledger.HoldSeen{Volume: test.v, Hold: ledger.Hold{Version: "1", Node: "dead", State: ledger.HoldHeld, Stays: test.stays}},
			deadNode("1", "y", "b", lists(test.v)), deadNode("2", "x", "b", back(test.v)),
		} {
			l.Apply(auditTime, e)
		}
		s := l.Snapshot()
		p := Arbiter{}.planner(s, s.Volume(test.v), auditTime)
		p.hold = ledger.Hold{Node: test.heldAt}
		if !isUnknown(s, test.v, "dead") {
			t.Fatalf("%s: nothing is doubted", name)
		}
		if f, needed := p.fenceNow(*p.volume.Hold, p.at("dead")); needed != test.want {
			t.Errorf("%s: %t, %+v", name, needed, f)
		}
	}
}

func TestFenceOfWhatIsInUse(t *testing.T) {
	for name, test := range map[string]struct {
		n    *ledger.Node
		used bool
		want bool
	}{
		"the list names it":     {&ledger.Node{Exists: true, NodeState: ledger.NodeState{Reporting: true}}, true, true},
		"the list does not":     {&ledger.Node{Exists: true, NodeState: ledger.NodeState{Reporting: true}}, false, false},
		"there is none":         {&ledger.Node{Exists: true}, false, true},
		"nobody knows the node": {nil, false, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{})
		if got := p.newFence(test.n, &ledger.VolumeOnNode{Node: "third", InUse: test.used}, nil, ""); got.InUse != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A left volume stays reported while the outage may last.
func TestFenceWithoutALease(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, dataAt("q", "nowhere", ledger.PodLive))
	if f, needed := p.fence(*p.volume.Hold, p.at("nowhere")); needed {
		t.Errorf("of a node that nobody has seen: %+v", f)
	}
	byTime := takenFrom(func(f *ledger.Fence) { f.Rule = AfterPodGone })
	p = plannerOf(t, Arbiter{}, "dead", ledger.Hold{Stays: true, Fences: []ledger.Fence{byTime}}, deadNode("2", "x", "b", func(*ledger.NodeState) {}))
	if f, needed := p.fence(*p.volume.Hold, p.at("dead")); !p.at("dead").Left || !needed || f != byTime {
		t.Errorf("of what was left: %t, %+v", needed, f)
	}
}

// A taken volume stays reported unless it is wanted there again.
func TestFencesOfTheHoldToBe(t *testing.T) {
	byTime := takenFrom(func(f *ledger.Fence) { f.Rule, f.Renewed = AfterPodGone, 0 })
	for to, want := range map[ledger.NodeName]string{"well": AfterPodGone, "dead": ""} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{Fences: []ledger.Fence{byTime}}, deadNode("2", "x", "b", func(*ledger.NodeState) {}), dataAt("q", "dead", ledger.PodLive))
		if got := p.fences(*p.volume.Hold, ledger.Hold{Node: to}); len(got) != 1 || got[0].Rule != want {
			t.Errorf("held at %s: %+v", to, got)
		}
	}
}

// The Lease completes an earlier fence only if its silence is the same.
func TestFenceIsCompletedByTheLease(t *testing.T) {
	tainted := func(n *ledger.NodeState) { n.OutOfService = true }
	read := ledger.NodeLease{Node: "dead", Renewed: 7}
	for name, test := range map[string]struct {
		old   ledger.Fence
		node  func(*ledger.NodeState)
		facts []ledger.Event
		gone  bool // since
		want  int64
	}{
		"read now":              {takenFrom(), tainted, []ledger.Event{read}, false, 7},
		"not read yet":          {takenFrom(), tainted, nil, false, 0},
		"the rule is not over":  {takenFrom(), func(*ledger.NodeState) {}, []ledger.Event{read}, false, 0},
		"without a rule":        {takenFrom(noRule), tainted, []ledger.Event{read}, false, 0},
		"of another Node":       {takenFrom(ofAnotherNode), tainted, []ledger.Event{read}, false, 0},
		"of another outage":     {takenFrom(ofAnotherTime), tainted, []ledger.Event{read}, false, 0},
		"the Node has gone now": {takenFrom(), tainted, []ledger.Event{read}, true, 0},
	} {
		var hold ledger.Hold
		if test.gone {
			hold.Fences = []ledger.Fence{takenFrom()}
			test.facts = append(test.facts, ledger.NodeGone{Name: "dead"})
		}
		p := plannerOf(t, Arbiter{}, "dead", hold, append([]ledger.Event{deadNode("2", "x", "b", test.node)}, test.facts...)...)
		old := test.old
		old.Renewed = 0
		place := &ledger.VolumeOnNode{Node: "dead", InUse: true}
		if got := p.withLease(old, p.snapshot.Node("dead"), place); got.Renewed != test.want {
			t.Errorf("%s: %+v", name, got)
		}
		if again := !p.plan.Recheck.IsZero(); again != (name == "the rule is not over") {
			t.Errorf("%s: looked at again when the rule is over: %t", name, again)
		}
	}
}
