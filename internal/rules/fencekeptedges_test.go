// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// A fence stays while the outage lasts, unless the volume came back or a user may have it there.
func TestFenceIsKept(t *testing.T) {
	by := func(rule string) func(*ledger.Fence) { return func(f *ledger.Fence) { f.Rule = rule } }
	same := func(*ledger.VolumeOnNode) {}
	lives := []ledger.Event{dataAt("q", "dead", ledger.PodLive)}
	for name, test := range map[string]struct {
		old    ledger.Fence
		heldAt ledger.NodeName // in the planned hold
		facts  []ledger.Event
		change func(*ledger.VolumeOnNode)
		want   bool
	}{
		"it has gone":                     {takenFrom(), "well", nil, same, true},
		"its rule has ended":              {takenFrom(noRule), "well", nil, same, false},
		"in another outage":               {takenFrom(ofAnotherTime), "well", nil, same, false},
		"of another Node":                 {takenFrom(ofAnotherNode), "well", nil, same, false},
		"it is attached anew":             {takenFrom(), "well", []ledger.Event{atDead("z", false)}, same, false},
		"it is in volumesAttached":        {takenFrom(), "well", nil, func(p *ledger.VolumeOnNode) { p.Reported = true }, false},
		"its creation is sent":            {takenFrom(), "well", nil, func(p *ledger.VolumeOnNode) { p.Sent = true }, false},
		"shared, by the taint":            {takenFrom(), "well", []ledger.Event{sharedDisk}, same, false},
		"shared, the machine is off":      {takenFrom(by(NodeShutdown)), "well", []ledger.Event{sharedDisk}, same, true},
		"shared, it was unpublished":      {takenFrom(by(UnpublishFences)), "well", []ledger.Event{sharedDisk}, same, true},
		"a pod is there, held elsewhere":  {takenFrom(), "well", lives, same, true},
		"a pod is there, and it is its":   {takenFrom(), "dead", lives, same, false},
		"nobody is there, and it is held": {takenFrom(), "dead", nil, same, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{deadNode("2", "x", "b", func(*ledger.NodeState) {})}, test.facts...)...)
		p.hold.Node = test.heldAt
		place := *p.at("dead")
		test.change(&place)
		f, kept := p.fenceKept(test.old, true, p.snapshot.Node("dead"), &place)
		if kept != test.want || f != test.old {
			t.Errorf("%s: %t, %+v", name, kept, f)
		}
	}
}

// A forced detach waits for the hold's fence; an unforced detach waits until that fence is gone.
func TestFenceWrittenFor(t *testing.T) {
	said := func(attachment, rule string) []ledger.Fence {
		return []ledger.Fence{{Node: "dead", Attachment: attachment, Rule: rule}}
	}
	for name, test := range map[string]struct {
		fences   []ledger.Fence
		attached bool
		rule     string
		want     bool
	}{
		"the rule is said":               {said("a", OutOfService), true, OutOfService, true},
		"of another attachment":          {said("z", OutOfService), true, OutOfService, false},
		"another rule is":                {said("a", AfterPodGone), true, OutOfService, false},
		"nothing is":                     {nil, true, OutOfService, false},
		"by none, nothing is said":       {nil, true, "", true},
		"by none, it is said of it":      {said("a", OutOfService), true, "", false},
		"by none, said of another":       {said("z", OutOfService), true, "", true},
		"nothing is there, by a rule":    {nil, false, OutOfService, true},
		"nothing is there, rule is said": {said("", OutOfService), false, OutOfService, true},
		"by none, a rule is said":        {said("", OutOfService), false, "", false},
		"by none, a mount of before":     {said("", ""), false, "", true},
		"nothing is there, of one":       {said("a", ""), false, "", true},
	} {
		p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{Fences: test.fences}, atDead("a", false))
		place := p.at("dead")
		if !test.attached {
			place = &ledger.VolumeOnNode{Node: "dead"}
		}
		if got := p.fenceWritten(place, place.Own(), test.rule); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFenceOfNoRuleDoesNotGoOn(t *testing.T) {
	old := ledger.Fence{Node: "well", NodeUID: "w", Attachment: "awell", InUse: true}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, nodeAs("well", silent), madeAt("well"))
	if f, needed := p.fenceNow(ledger.Hold{Fences: []ledger.Fence{old}}, p.at("well")); needed {
		t.Errorf("%+v", f)
	}
}

// In Cooperative mode a reported volume may never have been taken: an older mount may exist.
func TestTakenBesideAnother(t *testing.T) {
	for cooperative, want := range map[bool]bool{true: true, false: false} {
		p := plannerOf(t, Arbiter{Cooperative: cooperative}, "dead", ledger.Hold{}, deadNode("2", "x", "b", func(*ledger.NodeState) {}))
		place := *p.at("dead")
		place.Reported = true
		if _, got := p.mountOfBefore(takenFrom(), &place); got != want {
			t.Errorf("beside another %t: reported, and a mount of before may be there: %t", cooperative, got)
		}
	}
	before := ledger.Hold{NodeUID: "before", BootID: "b", Fences: []ledger.Fence{takenFrom()}}
	p := plannerOf(t, Arbiter{Cooperative: true}, "dead", before, deadNode("2", "x", "b", func(*ledger.NodeState) {}))
	if f, kept := p.fenceNow(*p.volume.Hold, p.at("dead")); !kept || f != takenFrom() {
		t.Errorf("taken by a rule, and granted for a Node before: %t, %+v", kept, f)
	}
}

// A fence tells of an outage only while the Node exists.
func TestFenceNamesWhatIsKnown(t *testing.T) {
	node := func(uid string, exists bool) *ledger.Node {
		return &ledger.Node{Exists: exists, NodeState: ledger.NodeState{Name: "well", UID: uid, SystemUUID: "z", BootID: "c", ReadySince: 40, Reporting: true}, Renewed: 7}
	}
	ofHold, ofNode := [3]string{"h", "m", "b"}, [3]string{"w", "z", "c"}
	for name, test := range map[string]struct {
		at    ledger.NodeName
		n     *ledger.Node
		want  [3]string
		since int64
	}{
		"nobody knows the node":               {"well", nil, ofHold, 0},
		"nobody has seen the Node":            {"well", node("", false), ofHold, 0},
		"nobody knows it, and it is not held": {"third", nil, [3]string{}, 0},
		"nobody has seen it, nor is it held":  {"third", node("", false), [3]string{}, 0},
		"the Node is there":                   {"well", node("w", true), ofNode, 40},
		"the Node is gone":                    {"well", node("w", false), ofNode, 0},
		"it is there, and not held":           {"third", node("w", true), ofNode, 40},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{NodeUID: "h", SystemUUID: "m", BootID: "b"})
		f := p.newFence(test.n, &ledger.VolumeOnNode{Node: test.at}, nil, "")
		if got := [3]string{f.NodeUID, f.SystemUUID, f.BootID}; got != test.want || f.Since != test.since || (f.Renewed == 7) != (test.since == 40) || f.Node != test.at {
			t.Errorf("%s: %+v", name, f)
		}
	}
}
