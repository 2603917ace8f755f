// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func TestFenceOfAFormerMachine(t *testing.T) {
	first := []ledger.Event{nodeAs("well", ofMachine("m", "b"), using), madeAt("well")}
	then := func(changes ...func(*ledger.NodeState)) []ledger.Event {
		changes = append([]func(*ledger.NodeState){ofMachine("z", "c")}, changes...)
		return append(first[:2:2], nodeAs("well", append(changes, func(n *ledger.NodeState) { n.Version, n.ReadySince = "7", 40 })...))
	}
	now := ledger.Fence{Node: "well", NodeUID: "w", SystemUUID: "z", BootID: "c", Attachment: "awell", Since: 40, InUse: true}
	was := ledger.Fence{Node: "well", NodeUID: "w", SystemUUID: "m", BootID: "b", Attachment: "awell", InUse: true}
	ofBefore := now // the outage is the present machine's
	ofBefore.SystemUUID, ofBefore.BootID = was.SystemUUID, was.BootID
	ofBoth := now // it lists the volume, too
	ofBoth.SystemUUID, ofBoth.BootID = ledger.OtherMachine, ""
	ofBothGone, ofBeforeGone := ofBoth, ofBefore
	ofBothGone.Since, ofBeforeGone.Since = 0, 0
	gone := ledger.NodeGone{Name: "well"}
	taken := ledger.Unreported{Volume: disk, Node: "well", UID: "awell", Version: "1", Forced: true}
	naming := func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{disk} }
	by := func(rule string, f ledger.Fence) ledger.Fence { f.Rule = rule; return f }
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		facts  []ledger.Event
		rule   string
		want   ledger.Fence
	}{
		"of a former machine":              {"", then(), AfterPodGone, by(AfterPodGone, was)},
		"of one whose Node the hold names": {"well", then(), AfterPodGone, by(AfterPodGone, was)},
		"by no rule":                       {"", then(), "", was},
		"of one that is not Ready":         {"", then(silent), AfterPodGone, by(AfterPodGone, ofBefore)},
		"of one whose pods wait for it":    {"", then(silent, using), AfterPodGone, by(AfterPodGone, ofBefore)},
		"of one that has it in use itself": {"", then(silent, using, naming), AfterPodGone, by(AfterPodGone, ofBoth)},
		"of one whose pods waited, gone":   {"", append(then(silent, using), gone), AfterPodGone, by(AfterPodGone, ofBeforeGone)},
		"of one that had, and is gone":     {"", append(then(silent, using, naming), gone), AfterPodGone, by(AfterPodGone, ofBothGone)},
		"of one gone, taken, another rule": {"", append(then(silent, using, naming), gone, taken), AfterUnreachable, by(AfterUnreachable, ofBothGone)},
		"of the machine that is there":     {"", then(ofMachine("m", "b")), OutOfService, ledger.Fence{Node: "well", NodeUID: "w", SystemUUID: "m", BootID: "b", Attachment: "awell", Since: 40, Rule: OutOfService}},
	} {
		hold := ledger.Hold{}
		if test.heldAt != "" {
			hold = ledger.Hold{NodeUID: "h", SystemUUID: "m", BootID: "b"}
		}
		p := plannerOf(t, Arbiter{}, test.heldAt, hold, test.facts...)
		place := *p.at("well")
		if name == "of a former machine" || name == "of one whose Node the hold names" {
			place.InUse = false // whatever the list says
		}
		if got := p.newFence(p.snapshot.Node("well"), &place, place.Own(), test.rule); got != test.want {
			t.Errorf("%s:\n%+v, want\n%+v", name, got, test.want)
		}
	}
}

// The hold names boot and machine of a possibly forgotten attachment, unless the holder does.
func TestDoubtedFenceTells(t *testing.T) {
	granted := func(change func(*ledger.Hold)) ledger.Hold {
		h := ledger.Hold{Node: "well", NodeUID: "w", SystemUUID: "m", BootID: "b"}
		change(&h)
		return h
	}
	nothing := func(*ledger.Hold) {}
	fence := func(machine, boot string) ledger.Hold {
		return ledger.Hold{Fences: []ledger.Fence{{Node: "well", NodeUID: "v", SystemUUID: machine, BootID: boot, Attachment: "awell", InUse: true}}}
	}
	unknown := []ledger.Event{madeAt("well"), ledger.TookOver{}}
	for name, test := range map[string]struct {
		hold  ledger.Hold // as in the API, at no node
		is    ledger.Hold // as planned
		facts []ledger.Event
		old   ledger.Fence
		says  bool
		want  [3]string // NodeUID, SystemUUID, BootID
	}{
		"nothing is in doubt":            {ledger.Hold{}, ledger.Hold{}, []ledger.Event{again(), madeAt("well")}, ledger.Fence{}, false, [3]string{}},
		"as seen":                        {ledger.Hold{}, ledger.Hold{}, inDoubt(), ledger.Fence{}, true, [3]string{"w2", "m", "b"}},
		"the holder says the same":       {ledger.Hold{}, granted(nothing), inDoubt(), ledger.Fence{}, false, [3]string{}},
		"the holder is another boot's":   {ledger.Hold{}, granted(func(h *ledger.Hold) { h.BootID = "y" }), inDoubt(), ledger.Fence{}, true, [3]string{"w2", "m", "b"}},
		"the holder is another machine":  {ledger.Hold{}, granted(func(h *ledger.Hold) { h.SystemUUID = "y" }), inDoubt(), ledger.Fence{}, true, [3]string{"w2", "m", "b"}},
		"the holder is another node":     {ledger.Hold{}, granted(func(h *ledger.Hold) { h.Node = "third" }), inDoubt(), ledger.Fence{}, true, [3]string{"w2", "m", "b"}},
		"the holder is this Node":        {ledger.Hold{}, granted(func(h *ledger.Hold) { h.NodeUID = "w2" }), inDoubt(), ledger.Fence{}, true, [3]string{"w2", "m", "b"}},
		"the holder, and an entry":       {ledger.Hold{}, granted(nothing), inDoubt(), ledger.Fence{Node: "well", NodeUID: "v", SystemUUID: "m", BootID: "b", Attachment: "awell"}, true, [3]string{"v", "m", "b"}},
		"an entry of no known machine":   {fence("", ""), ledger.Hold{}, unknown, fence("", "").Fences[0], true, [3]string{"v", "", ""}},
		"an entry of a machine, no boot": {fence("m", ""), ledger.Hold{}, unknown, fence("m", "").Fences[0], true, [3]string{"v", "m", ""}},
		"an entry of a boot, no machine": {fence("", "b"), ledger.Hold{}, unknown, fence("", "b").Fences[0], true, [3]string{"v", "", "b"}},
	} {
		p := plannerOf(t, Arbiter{}, "", test.hold, test.facts...)
		p.hold = test.is
		place := p.at("well")
		f, says := p.unknownFence(test.old, p.snapshot.Node("well"), place, place.Own())
		if says != test.says || says && (f.Attachment != "awell" || f.Since != 0 || f.Rule != "") || [3]string{f.NodeUID, f.SystemUUID, f.BootID} != test.want {
			t.Errorf("%s: %t %+v", name, says, f)
		}
	}
}

// With several possible machines the fence names the present Node.
func TestFenceOfSeveralMachines(t *testing.T) {
	state := func(version string, reported ...ledger.VolumeID) ledger.Event {
		return nodeAs("well", ofMachine("z", "c"), using, func(n *ledger.NodeState) { n.Version, n.Reported = version, reported })
	}
	first := nodeAs("well", ofMachine("m", "b"), using)
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, first, madeAt("well"), state("7", disk), state("8"))
	f, says := p.fence(ledger.Hold{}, p.at("well"))
	if want := (ledger.Fence{Node: "well", NodeUID: "w", SystemUUID: ledger.OtherMachine, Attachment: "awell", InUse: true}); !says || f != want {
		t.Errorf("%t %+v", says, f)
	}
	if f, kept := p.mountOfBefore(f, nil); !kept || f.SystemUUID != "z" || f.BootID != "c" {
		t.Errorf("it has left: %t %+v", kept, f)
	}
}

// The hold still tells of the mount if the VolumeAttachment is deleted.
func TestFenceOfSeveralMachinesWhoseNodeIsMadeAgain(t *testing.T) {
	state := func(uid, version string, reported ...ledger.VolumeID) ledger.Event {
		return nodeAs("well", ofMachine("z", "c"), using, func(n *ledger.NodeState) { n.UID, n.Version, n.Reported = uid, version, reported })
	}
	events := []ledger.Event{nodeAs("well", ofMachine("m", "b"), using), madeAt("well"), state("w", "7", disk), state("w", "8")}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, events...)
	f, _ := p.fence(ledger.Hold{}, p.at("well"))
	was := ledger.Hold{Fences: []ledger.Fence{f}}

	events = append(events, ledger.NodeGone{Name: "well"}, state("w2", "12"))
	p = plannerOf(t, Arbiter{}, "", was, events...)
	f, says := p.fence(was, p.at("well"))
	if !says {
		t.Fatal("the hold does not tell of it any more")
	}
	was.Fences[0] = f
	p = plannerOf(t, Arbiter{}, "", was, append(events, ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")})...)
	if list := p.fences(was, ledger.Hold{}); len(list) != 1 || list[0].SystemUUID != "z" || list[0].BootID != "c" {
		t.Errorf("its VolumeAttachment has been deleted: %+v", list)
	}
}

// In Cooperative mode the hold tells of an earlier Node's grant and of taken volumes.
func TestFenceBesideAnother(t *testing.T) {
	before := ledger.Hold{NodeUID: "w", SystemUUID: "m", BootID: "b"}
	user := dataAt("q", "dead", ledger.PodLive)
	for name, test := range map[string]struct {
		heldAt, node ledger.NodeName
		hold         ledger.Hold
		facts        []ledger.Event
		want         bool
	}{
		"for a Node before":              {"well", "well", before, append(inDoubt(), user), true},
		"for this Node":                  {"well", "well", ledger.Hold{NodeUID: "w2", SystemUUID: "m", BootID: "b"}, append(inDoubt(), user), false},
		"held elsewhere":                 {"third", "well", ledger.Hold{NodeUID: "o", SystemUUID: "y", BootID: "y"}, append(inDoubt(), user), false},
		"of the node that has it not":    {"well", "dead", before, append(inDoubt(), user), false},
		"nothing was granted for a Node": {"well", "well", ledger.Hold{}, append(inDoubt(), user), false},
	} {
		p := plannerOf(t, Arbiter{Cooperative: true}, test.heldAt, test.hold, append([]ledger.Event{alive}, test.facts...)...)
		p.hold = ledger.Hold{Node: "third"}
		if _, got := p.fenceNow(ledger.Hold{}, p.at(test.node)); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestEntryNamesOneBoot(t *testing.T) {
	b := func(machine, boot string) ledger.Boot { return ledger.Boot{SystemUUID: machine, BootID: boot} }
	for name, test := range map[string]struct {
		boots []ledger.Boot
		want  ledger.Boot
	}{
		"one":                {[]ledger.Boot{b("m", "b")}, b("m", "b")},
		"twice the same":     {[]ledger.Boot{b("m", "b"), b("m", "b")}, b("m", "b")},
		"two of a machine":   {[]ledger.Boot{b("m", "b"), b("m", "c")}, b("m", "")},
		"of two machines":    {[]ledger.Boot{b("m", "b"), b("z", "b")}, b(ledger.OtherMachine, "")},
		"two, and then both": {[]ledger.Boot{b("m", "b"), b("m", "c"), b("z", "d")}, b(ledger.OtherMachine, "")},
	} {
		if got := inBoots(ledger.Fence{}, test.boots).Boot(); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}
