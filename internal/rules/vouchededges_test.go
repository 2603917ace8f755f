// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Only if the policy names the condition, for the present machine and its silence.
func TestFencedBy(t *testing.T) {
	for name, test := range map[string]struct {
		condition string
		change    func(*ledger.Node)
		want      bool
	}{
		"it is believed":            {"Cut", func(*ledger.Node) {}, true},
		"the policy names none":     {"", func(*ledger.Node) {}, false},
		"none, and one has no name": {"", func(n *ledger.Node) { n.FencedAt[0].Type = "" }, false},
		"the policy names another":  {"Off", func(n *ledger.Node) { n.Renewed = 0 }, false},
		"the kubelet was heard":     {"Cut", func(n *ledger.Node) { n.FencedAt[0].Void = true }, false},
		"nobody has read the Lease": {"Cut", func(n *ledger.Node) { n.Renewed, n.RenewedAt = 0, time.Time{} }, false},
		"renewed at that second":    {"Cut", func(n *ledger.Node) { n.Renewed = 50e6 }, false},
		"renewed after it":          {"Cut", func(n *ledger.Node) { n.Renewed = 51e6 }, false},
		"the Node is gone":          {"Cut", func(n *ledger.Node) { n.Exists = false }, false},
	} {
		n := silentNode(func(n *ledger.Node) {
			n.SystemUUID, n.Renewed = "m", 50e6-1
			n.FencedAt = []ledger.FencedAt{{FencedCondition: ledger.FencedCondition{Type: "Cut", Since: 50}, At: time.Unix(120, 0)}}
			test.change(n)
		})
		f := fencedBy(ledger.New().Snapshot(), &ledger.Volume{ID: disk}, test.condition, n, time.Unix(200, 0))
		if f.over() != test.want || test.want != (f.Rule == FencedCondition) {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestNetworkFenced(t *testing.T) {
	policy := ledger.Policy{Driver: "d", NetworkFence: ledger.NetworkFence{Class: "c"}}
	for name, test := range map[string]struct {
		policy ledger.Policy
		change func(*ledger.Node)
		hold   *ledger.Hold
		facts  []ledger.Event
		want   string
	}{
		"it is cut off":           {policy, func(*ledger.Node) {}, nil, nil, NetworkFence},
		"the policy has no class": {ledger.Policy{Driver: "d"}, func(*ledger.Node) {}, nil, nil, ""},
		"nobody has compared it":  {policy, func(*ledger.Node) {}, nil, []ledger.Event{ledger.CutOffBelieved{}}, ""},
		"from another storage":    {policy, func(n *ledger.Node) { n.CutOff = []string{"e"} }, nil, nil, ""},
		"the Node is gone":        {policy, func(n *ledger.Node) { n.Exists = false }, nil, nil, ""},
		"the one before was":      {policy, func(n *ledger.Node) { n.CutBefore = n.CutOff }, nil, nil, ""},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		n := silentNode(func(n *ledger.Node) {
			n.SystemUUID, n.CutOff = "m", []string{"d"}
			test.change(n)
		})
		if f := networkFenced(p.snapshot, &ledger.Volume{ID: disk, Hold: test.hold}, test.policy, n); f.Rule != test.want || f.Left != 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// Evidence about the present machine does not count then.
func TestMayBeAtAnother(t *testing.T) {
	taken := func(n ledger.NodeName, machine string) ledger.Hold {
		return ledger.Hold{Fences: []ledger.Fence{{Node: n, SystemUUID: machine, BootID: "q", InUse: true, Attachment: "awell"}}}
	}
	held := func(machine string) ledger.Hold { return ledger.Hold{NodeUID: "w", SystemUUID: machine, BootID: "b"} }
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   bool
	}{
		"seen at this one":           {"", ledger.Hold{}, inDoubt(), false},
		"seen at another":            {"", ledger.Hold{}, append(inDoubt(), nodeAs("well", ofMachine("z", "c"), func(n *ledger.NodeState) { n.Version = "9" })), true},
		"held by this one":           {"well", held("m"), []ledger.Event{madeAt("well"), again()}, false},
		"held by another":            {"well", held("z"), []ledger.Event{madeAt("well"), again()}, true},
		"the hold has no machine":    {"well", held(""), []ledger.Event{madeAt("well"), again()}, false},
		"taken from this one":        {"", taken("well", "m"), []ledger.Event{madeAt("well"), again()}, false},
		"taken from another":         {"", taken("well", "z"), []ledger.Event{madeAt("well"), again()}, true},
		"taken from elsewhere":       {"", taken("dead", "z"), []ledger.Event{madeAt("well"), again()}, false},
		"taken, of no known machine": {"", taken("well", ""), []ledger.Event{madeAt("well"), again()}, false},
		"nobody says":                {"", ledger.Hold{}, []ledger.Event{madeAt("well"), again()}, false},
	} {
		p := plannerOf(t, Arbiter{}, test.heldAt, test.hold, test.facts...)
		if got := mayBeAtAnother(p.snapshot, p.volume, p.snapshot.Node("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Without a VolumeAttachment: when the node omits the volume.
func TestTaken(t *testing.T) {
	there := []ledger.Event{madeAt("well")}
	for name, test := range map[string]struct {
		facts []ledger.Event
		fence ledger.Fence
		want  bool
	}{
		"it is there":                  {there, ledger.Fence{Rule: AfterPodGone, Attachment: "awell"}, false},
		"it is being deleted":          {[]ledger.Event{madeAt("well", goes)}, ledger.Fence{Rule: AfterPodGone, Attachment: "awell"}, true},
		"another one is there":         {there, ledger.Fence{Rule: AfterPodGone, Attachment: "before"}, true},
		"it is gone":                   {[]ledger.Event{dataAt("q", "well", ledger.PodLive)}, ledger.Fence{Rule: AfterPodGone, Attachment: "awell"}, true},
		"nothing is there any more":    {nil, ledger.Fence{Rule: AfterPodGone, Attachment: "awell"}, true},
		"the rule has ended":           {nil, ledger.Fence{Attachment: "awell"}, false},
		"no attachment is meant":       {nil, ledger.Fence{Rule: AfterPodGone}, false},
		"none is meant, there is one":  {there, ledger.Fence{Rule: AfterPodGone}, false},
		"and that one has been marked": {[]ledger.Event{madeAt("well", goes)}, ledger.Fence{Rule: AfterPodGone}, false},
	} {
		test.fence.Node = "well"
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		if got := Taken(p.volume, test.fence); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	for name, test := range map[string]struct {
		places []ledger.VolumeOnNode
		rule   string
		want   bool
	}{
		"it is listed":             {[]ledger.VolumeOnNode{{Node: "well", Reported: true}}, AfterPodGone, false},
		"it is not":                {[]ledger.VolumeOnNode{{Node: "well", InUse: true}}, AfterPodGone, true},
		"nothing is there":         {nil, AfterPodGone, true},
		"not listed, and no rule":  {nil, "", false},
		"it is listed by another":  {[]ledger.VolumeOnNode{{Node: "dead", Reported: true}}, AfterPodGone, true},
		"listed, and without rule": {[]ledger.VolumeOnNode{{Node: "well", Reported: true}}, "", false},
	} {
		if got := Taken(&ledger.Volume{ID: iscsi, OnNodes: test.places}, ledger.Fence{Node: "well", Rule: test.rule}); got != test.want {
			t.Errorf("without an attachment, %s: %t", name, got)
		}
	}
}

// An unpublish does not tell a machine from an earlier machine of its name.
func TestUnpublishOfAnotherMachine(t *testing.T) {
	other := again(ofMachine("z", "c"), func(n *ledger.NodeState) { n.Version = "8" })
	heldByZ := ledger.Hold{NodeUID: "w2", BootID: "c", SystemUUID: "z"}
	user := dataAt("q", "well", ledger.PodLive)
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  bool
	}{
		"the same machine":                     {ledger.Hold{}, inDoubt(), true},
		"another machine":                      {ledger.Hold{}, inDoubt(other), false},
		"another one, as the hold says":        {heldByZ, []ledger.Event{again(), madeAt("well")}, false},
		"the hold says so, nothing is mounted": {heldByZ, []ledger.Event{again(), user}, true},
		"another one, and nothing is there":    {heldByZ, []ledger.Event{again()}, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, test.facts...)
		if got := unpublishCuts(p.snapshot, p.volume, p.at("well"), p.snapshot.Node("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestNothingIsForcedFromNowhere(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{})
	if f := podGone(p.snapshot, p.volume, &ledger.VolumeOnNode{Node: ledger.Detached}, auditTime.Add(time.Hour)); f.Rule != "" {
		t.Errorf("%+v", f)
	}
}

// The policy's times for an earlier machine run while it does not use the volume, and begin anew with each
// process.
func TestFormer(t *testing.T) {
	another := nodeAs("well", ofMachine("z", "c"), func(n *ledger.NodeState) { n.Version = "7" })
	first := []ledger.Event{nodeAs("well", ofMachine("m", "b"), using, func(n *ledger.NodeState) { n.ReadySince = 40 }), madeAt("well")}
	then := func(is ledger.Event, more ...ledger.Event) []ledger.Event {
		return append(append(append([]ledger.Event{}, first...), is), more...)
	}
	as := func(changes ...func(*ledger.NodeState)) ledger.Event {
		changes = append([]func(*ledger.NodeState){ofMachine("z", "c")}, changes...)
		return nodeAs("well", append(changes, func(n *ledger.NodeState) { n.Version = "7" })...)
	}
	policy := func(gone, unreachable time.Duration) ledger.Event {
		return ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &gone, AfterUnreachable: &unreachable}
	}
	measured := ledger.Hold{Force: &ledger.Force{Rule: AfterPodGone, Node: "well", NodeUID: "w", Since: 40, Elapsed: 3 * time.Minute}}
	unreached := ledger.Hold{Force: &ledger.Force{Rule: AfterUnreachable, Node: "well", NodeUID: "w", Since: 40, Elapsed: 3 * time.Minute}}
	since40 := func(n *ledger.NodeState) { n.ReadySince = 40 }
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		rule  string
		left  time.Duration // after two minutes
	}{
		"another machine":                   {ledger.Hold{}, then(another), AfterPodGone, 4 * time.Minute},
		"no time, by the policy":            {ledger.Hold{}, then(another, policy(never, never)), "", 0},
		"at once, by the policy":            {ledger.Hold{}, then(another, policy(0, never)), AfterPodGone, 0},
		"as unreachable":                    {ledger.Hold{}, then(another, policy(never, 5*time.Minute)), AfterUnreachable, 3 * time.Minute},
		"as unreachable, at once":           {ledger.Hold{}, then(another, policy(never, 0)), AfterUnreachable, 0},
		"what is over first":                {ledger.Hold{}, then(another, policy(10*time.Minute, 5*time.Minute)), AfterUnreachable, 3 * time.Minute},
		"the same machine, made again":      {ledger.Hold{}, inDoubt(), "", 0},
		"another boot of it":                {ledger.Hold{}, then(as(ofMachine("m", "c"))), "", 0},
		"it has not said which boot":        {ledger.Hold{}, then(as(ofMachine("z", ""))), "", 0},
		"it is not Ready":                   {ledger.Hold{}, then(as(silent)), "", 0},
		"its kubelet has not reported":      {ledger.Hold{}, then(as(func(n *ledger.NodeState) { n.UID, n.Reporting = "w2", false })), "", 0},
		"it lists the volume, not attached": {ledger.Hold{}, then(as(using)), AfterPodGone, 4 * time.Minute},
		"it lists the volume":               {ledger.Hold{}, then(as(using, reporting)), "", 0},
		"somebody is to use it there":       {ledger.Hold{}, then(another, dataAt("q", "well", ledger.PodLive)), AfterPodGone, 4 * time.Minute},
		"somebody uses it there":            {ledger.Hold{}, then(as(reporting), dataAt("q", "well", ledger.PodLive)), "", 0},
		"the driver calls it otherwise": {ledger.Hold{}, []ledger.Event{first[0], madeAt("well", func(a *ledger.Attachment) { a.NodeID = "i-1" }), another,
			ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2"}}}}, "", 0},
		"nothing is in doubt":           {ledger.Hold{}, []ledger.Event{another, madeAt("well")}, "", 0},
		"another process had begun":     {measured, then(as(since40), ledger.NodeLease{Node: "well"}), AfterPodGone, 4 * time.Minute},
		"and had as unreachable":        {unreached, then(as(since40), ledger.NodeLease{Node: "well"}, policy(never, 5*time.Minute)), AfterUnreachable, 3 * time.Minute},
		"another one, in the same boot": {ledger.Hold{}, then(as(ofMachine("z", "b"))), "", 0},
		"it may be a clone":             {ledger.Hold{}, then(nodeAs("third", ofMachine("m", "x")), as(ofMachine("m", "c"))), "", 0},
		"it names no machine by now":    {ledger.Hold{}, then(as(ofMachine("", "c"))), "", 0},
	} {
		p := plannerOf(t, Arbiter{}, "", test.hold, test.facts...)
		f := former(p.snapshot, p.volume, p.at("well"), auditTime.Add(2*time.Minute))
		if f.Rule != test.rule || f.Left != test.left || f.Former != (test.rule != "") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// A left volume is attached again to be detached.
func TestTakeBack(t *testing.T) {
	another := func(change func(*ledger.NodeState)) ledger.Event {
		return nodeAs("well", ofMachine("z", "c"), change, func(n *ledger.NodeState) { n.Version = "7" })
	}
	same := func(*ledger.NodeState) {}
	waits := dataAt("q", "well", ledger.PodLive)
	first := nodeAs("well", ofMachine("m", "b"), using)
	written := ledger.Hold{Fences: []ledger.Fence{{Node: "well", NodeUID: "w", SystemUUID: "m", BootID: "b", Rule: AfterPodGone, Attachment: "awell", InUse: true}}}
	left := ledger.Hold{Stays: true}
	for name, test := range map[string]struct {
		hold    ledger.Hold
		facts   []ledger.Event
		after   time.Duration
		want    Kind
		recheck time.Duration // 0: none
	}{
		"the time runs":                      {written, []ledger.Event{first, madeAt("well"), another(same), waits}, 2 * time.Minute, 0, 30 * time.Second},
		"it is over, and the hold says so":   {written, []ledger.Event{first, madeAt("well"), another(same), waits}, 6 * time.Minute, Unreport, 0},
		"the hold does not say so":           {ledger.Hold{}, []ledger.Event{first, madeAt("well"), another(same), waits}, 6 * time.Minute, 0, 0},
		"the node's list is not ours":        {ledger.Hold{}, []ledger.Event{first, madeAt("well"), another(func(n *ledger.NodeState) { n.Managed = false }), waits}, 6 * time.Minute, 0, 0},
		"left there, and the time runs":      {left, []ledger.Event{first, another(same), waits}, 2 * time.Minute, 0, 30 * time.Second},
		"left there, and it is over":         {left, []ledger.Event{first, another(same), waits}, 6 * time.Minute, CreateAttachment, 0},
		"left there, and nobody waits":       {left, []ledger.Event{first, another(same)}, 6 * time.Minute, 0, 0},
		"left there, and nobody attaches it": {left, []ledger.Event{first, another(same), waits, ledger.NodeDriversGone{Node: "well"}}, 6 * time.Minute, 0, 0},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, test.facts...)
		p.now = auditTime.Add(test.after)
		p.takeBack(p.snapshot.Node("well"), p.at("well"))
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
		}
		if got := p.plan.Recheck; got.IsZero() != (test.recheck == 0) || test.recheck != 0 && !got.Equal(p.now.Add(test.recheck)) {
			t.Errorf("%s: looked at again in %s", name, got.Sub(p.now))
		}
	}
}
