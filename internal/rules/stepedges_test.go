// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// -1: more than one
func only(p *planner) Kind {
	switch len(p.plan.Steps) {
	case 0:
		return 0
	case 1:
		return p.plan.Steps[0].Kind
	}
	return 255
}

func TestAcquire(t *testing.T) {
	lives := dataAt("q", "well", ledger.PodLive)
	begun := func(a *ledger.Attachment) { a.Attached = false }
	unmanaged := func(n *ledger.NodeState) { n.Managed = false }
	other := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2"}}}
	was := func(a *ledger.Attachment) { a.NodeID = "i-1" }
	for name, test := range map[string]struct {
		arbiter Arbiter
		heldAt  ledger.NodeName
		facts   []ledger.Event
		want    Kind
	}{
		"nothing is there":             {Arbiter{}, "well", nil, CreateAttachment},
		"held elsewhere":               {Arbiter{}, "dead", nil, 0},
		"the node is gone":             {Arbiter{}, "well", []ledger.Event{ledger.NodeGone{Name: "well"}}, 0},
		"attached":                     {Arbiter{}, "well", []ledger.Event{madeAt("well")}, Report},
		"attached, beside another":     {Arbiter{Cooperative: true}, "well", []ledger.Event{madeAt("well")}, 0},
		"attached, not ours to write":  {Arbiter{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", unmanaged)}, 0},
		"attached, and the node gone":  {Arbiter{}, "well", []ledger.Event{madeAt("well"), ledger.NodeGone{Name: "well"}}, 0},
		"attached to another machine":  {Arbiter{}, "well", []ledger.Event{madeAt("well", was), other}, 0},
		"attached and reported":        {Arbiter{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", reporting)}, 0},
		"being attached":               {Arbiter{}, "well", []ledger.Event{madeAt("well", begun)}, 0},
		"being detached":               {Arbiter{}, "well", []ledger.Event{madeAt("well", goes)}, 0},
		"detach refused, ours to stay": {Arbiter{StayAttached: true}, "well", []ledger.Event{madeAt("well", refusedToGo)}, 0},
		"detach refused, it is said":   {Arbiter{StayAttached: true}, "well", []ledger.Event{madeAt("well", refusedToGo), ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "2", Node: "well", Stays: true}}}, MarkWanted},
		"gone lately, beside another":  {Arbiter{Cooperative: true}, "well", []ledger.Event{madeAt("well"), ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")}}, 0},
		"gone lately":                  {Arbiter{}, "well", []ledger.Event{madeAt("well"), ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")}}, CreateAttachment},
		"reported from before":         {Arbiter{}, "well", []ledger.Event{nodeAs("well", reporting)}, Unreport},
		"from before, being attached":  {Arbiter{}, "well", []ledger.Event{madeAt("well", begun), nodeAs("well", reporting)}, Unreport},
		"from before, and in use":      {Arbiter{}, "well", []ledger.Event{nodeAs("well", reporting, using)}, CreateAttachment},
		"from before, beside another":  {Arbiter{Cooperative: true}, "well", []ledger.Event{nodeAs("well", reporting)}, CreateAttachment},
		"refused too early":            {Arbiter{}, "well", []ledger.Event{madeAt("well", refusedToCome, func(a *ledger.Attachment) { a.Ours = false })}, RetryAttach},
		"shared, and it was not once":  {Arbiter{}, "well", []ledger.Event{madeAt("well"), sharedDisk, ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "2", Node: "well", NodeUID: "old"}}}, Report},
		"the hold names an old Node":   {Arbiter{}, "well", []ledger.Event{madeAt("well"), ledger.HoldSeen{Volume: disk, Hold: ledger.Hold{Version: "2", Node: "well", NodeUID: "old"}}}, 0},
		"somebody is left elsewhere":   {Arbiter{}, "well", []ledger.Event{madeAt("dead")}, 0},
	} {
		p := plannerOf(t, test.arbiter, test.heldAt, ledger.Hold{Transitions: 4}, append([]ledger.Event{alive, lives}, test.facts...)...)
		if p.hold.NodeUID == "old" {
			p.hold.NodeUID = "w"
		}
		p.acquire(p.at("well"))
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
			continue
		}
		for _, s := range p.plan.Steps {
			va := p.at("well").Own()
			if s.Node != "well" || s.Kind == CreateAttachment && (s.PV != "pv" || s.Transitions != 4 || s.Beside != "") || (s.Kind == Report || s.Kind == Unreport) && (s.NodeUID != "w" || va != nil && (s.UID != va.UID || s.Version != va.Version)) {
				t.Errorf("%s: %+v", name, s)
			}
		}
	}
}

func TestAcquireWithoutAnAttachment(t *testing.T) {
	id := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	pv := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: id, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}
	lists := func(n *ledger.NodeState) { n.Reported = []ledger.VolumeID{id} }
	held := func(n ledger.NodeName) ledger.Event {
		return ledger.HoldSeen{Volume: id, Hold: ledger.Hold{Version: "1", Node: n, State: ledger.HoldHeld, NodeUID: "w"}}
	}
	for name, test := range map[string]struct {
		arbiter Arbiter
		facts   []ledger.Event
		want    Kind
	}{
		"held here":             {Arbiter{}, []ledger.Event{held("well")}, Report},
		"reported":              {Arbiter{}, []ledger.Event{held("well"), nodeAs("well", lists)}, 0},
		"beside another":        {Arbiter{Cooperative: true}, []ledger.Event{held("well")}, 0},
		"held elsewhere":        {Arbiter{}, []ledger.Event{held("third")}, 0},
		"not held":              {Arbiter{}, nil, 0},
		"it is elsewhere, too":  {Arbiter{}, []ledger.Event{held("well"), nodeAs("dead", lists)}, 0},
		"not ours to write":     {Arbiter{}, []ledger.Event{held("well"), nodeAs("well", func(n *ledger.NodeState) { n.Managed = false })}, 0},
		"held by no Node known": {Arbiter{}, []ledger.Event{held("well"), nodeAs("well", func(n *ledger.NodeState) { n.UID = "v" })}, Report},
	} {
		s, _, _ := concerned(t, "", "", ledger.Hold{}, func(l *ledger.Ledger) {
			for _, e := range append([]ledger.Event{alive, pv, dataAt("q", "well", ledger.PodLive)}, test.facts...) {
				l.Apply(auditTime, e)
			}
		})
		p := test.arbiter.planner(s, s.Volume(id), auditTime)
		p.hold = hold(p.volume)
		p.acquire(p.at("well"))
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
		}
	}
}

func TestDetachUnreported(t *testing.T) {
	for name, test := range map[string]struct {
		facts   []ledger.Event
		stage   ledger.ProofStage
		after   time.Duration
		want    Kind
		recheck time.Duration
	}{
		"nothing is proved":     {[]ledger.Event{madeAt("well")}, ledger.ProofNone, time.Minute, ProveAbsent, 0},
		"it is absent":          {[]ledger.Event{madeAt("well")}, ledger.ProofUnreported, time.Minute, ConfirmUnwanted, 0},
		"it is unwanted":        {[]ledger.Event{madeAt("well")}, ledger.ProofUnwanted, time.Minute, DeleteAttachment, 0},
		"it may be the other's": {[]ledger.Event{madeAt("well")}, ledger.ProofNone, time.Second, 0, time.Second},
		"long enough":           {[]ledger.Event{madeAt("well")}, ledger.ProofNone, 2 * time.Second, ProveAbsent, 0},
		"not our own":           {[]ledger.Event{madeAt("well", func(a *ledger.Attachment) { a.Ours = false })}, ledger.ProofNone, time.Minute, 0, 0},
		"none":                  {[]ledger.Event{nodeAs("well", using)}, ledger.ProofNone, time.Minute, 0, 0},
		"being deleted":         {[]ledger.Event{madeAt("well", goes)}, ledger.ProofNone, time.Minute, 0, 0},
		"reported":              {[]ledger.Event{madeAt("well"), nodeAs("well", reporting)}, ledger.ProofNone, time.Minute, 0, 0},
		"in use":                {[]ledger.Event{madeAt("well"), nodeAs("well", using)}, ledger.ProofNone, time.Minute, 0, 0},
		"a pod is there":        {[]ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodTerminating)}, ledger.ProofNone, time.Minute, 0, 0},
		"a ticket asks":         {[]ledger.Event{madeAt("well"), asksAt("m", ledger.TypeManual, "well")}, ledger.ProofNone, time.Minute, 0, 0},
		"the node is silent":    {[]ledger.Event{madeAt("well"), nodeAs("well", using, silent)}, ledger.ProofNone, time.Minute, 0, 5 * time.Minute},
	} {
		p := plannerOf(t, Arbiter{Cooperative: true}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		p.now = auditTime.Add(test.after)
		place := *p.at("well")
		place.Proof.Stage = test.stage
		p.detachUnreported(p.snapshot.Node("well"), &place, place.Own())
		if got := only(p); got != test.want || got == DeleteAttachment && p.plan.Steps[0].Within != besideWindow {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
		}
		if got := p.plan.Recheck; got.IsZero() != (test.recheck == 0) || test.recheck != 0 && !got.Equal(p.now.Add(test.recheck)) {
			t.Errorf("%s: looked at again at %s, want in %s", name, got.Sub(p.now), test.recheck)
		}
	}
}

// In Cooperative mode an ended attachment is not made again for eight seconds.
func TestGoneBeside(t *testing.T) {
	went := []ledger.Event{madeAt("well"), ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")}, dataAt("q", "well", ledger.PodLive)}
	for name, test := range map[string]struct {
		arbiter Arbiter
		facts   []ledger.Event
		after   time.Duration
		want    bool
	}{
		"alone":         {Arbiter{}, went, 0, true},
		"at once":       {Arbiter{Cooperative: true}, went, 0, false},
		"too early":     {Arbiter{Cooperative: true}, went, 7 * time.Second, false},
		"late enough":   {Arbiter{Cooperative: true}, went, 8 * time.Second, true},
		"none went":     {Arbiter{Cooperative: true}, went[2:], 0, true},
		"one elsewhere": {Arbiter{Cooperative: true}, []ledger.Event{madeAt("dead"), ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "dead")}, went[2]}, 0, true},
	} {
		p := plannerOf(t, test.arbiter, "well", ledger.Hold{}, test.facts...)
		p.now = auditTime.Add(test.after)
		if got := p.gone(p.at("well")); got != test.want || got != p.plan.Recheck.IsZero() || !got && !p.plan.Recheck.Equal(auditTime.Add(8*time.Second)) {
			t.Errorf("%s: %t, looked at again at %s", name, got, p.plan.Recheck)
		}
	}
}

// A live migration's two nodes don't block each other.
func TestElsewhere(t *testing.T) {
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	toDead := asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)
	toWell := asksAt("o", ledger.TypeLiveMigration, "well", grantedNow)
	for name, test := range map[string]struct {
		at, holder ledger.NodeName
		facts      []ledger.Event
		want       int
	}{
		"nowhere":                    {"well", "well", []ledger.Event{alive, madeAt("well")}, 0},
		"at another one":             {"well", "well", []ledger.Event{alive, madeAt("well"), madeAt("dead")}, 1},
		"shared":                     {"well", "well", []ledger.Event{alive, madeAt("well"), madeAt("dead"), sharedDisk}, 0},
		"at a migration's target":    {"well", "well", []ledger.Event{migrate, alive, madeAt("well"), madeAt("dead"), toDead}, 0},
		"the target, at the holder":  {"dead", "well", []ledger.Event{migrate, alive, madeAt("well"), madeAt("dead"), toDead}, 0},
		"the target, at a third one": {"dead", "well", []ledger.Event{migrate, alive, madeAt("third"), madeAt("dead"), toDead}, 1},
		"two targets, at the other":  {"dead", "well", []ledger.Event{migrate, alive, nodeAs("third"), madeAt("third"), toDead, asksAt("o", ledger.TypeLiveMigration, "third", grantedNow)}, 1},
		"no target, at the holder":   {"dead", "well", []ledger.Event{alive, madeAt("well")}, 1},
		"the target as the holder":   {"dead", "dead", []ledger.Event{migrate, alive, madeAt("well"), madeAt("dead"), toDead}, 1},
		"and another target":         {"dead", "dead", []ledger.Event{migrate, alive, madeAt("well"), madeAt("dead"), toDead, toWell}, 0},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, test.facts...)
		if got := p.elsewhere(test.at, test.holder); len(got) != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestStuckAt(t *testing.T) {
	other := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", NodeID: "i-2"}}}
	was := func(a *ledger.Attachment) { a.NodeID = "i-1" }
	foreign := ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Attached: true}
	anotherDisk := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: ledger.VolumeID{Driver: "d", Handle: "new"}, Access: ledger.AccessNode}
	inline := ledger.Pod{UID: "i", Version: "1", Namespace: "shop", Name: "i", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: disk}}}
	both := func(a *ledger.Attachment) {
		was(a)
		goes(a)
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  ledger.Code
	}{
		"nothing":                       {[]ledger.Event{madeAt("well")}, Detaching},
		"another's attachment":          {[]ledger.Event{foreign}, ForeignAttachment},
		"one of each":                   {[]ledger.Event{foreign, madeAt("well")}, Detaching},
		"another machine's":             {[]ledger.Event{madeAt("well", was), other}, NodeReplaced},
		"another machine's, and used":   {[]ledger.Event{madeAt("well", was), other, dataAt("q", "well", ledger.PodLive)}, NodeReplaced},
		"made for another, and used":    {[]ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodLive), inline, ledger.PersistentVolumeGone{Name: "pv"}, anotherDisk}, VolumeReplaced},
		"its PersistentVolume is gone":  {[]ledger.Event{madeAt("well"), ledger.PersistentVolumeGone{Name: "pv"}}, Detaching},
		"another machine's, it goes":    {[]ledger.Event{madeAt("well", both), other}, Detaching},
		"made for another disk":         {[]ledger.Event{madeAt("well"), ledger.PersistentVolumeGone{Name: "pv"}, anotherDisk}, VolumeReplaced},
		"made for another, and it goes": {[]ledger.Event{madeAt("well", goes), ledger.PersistentVolumeGone{Name: "pv"}, anotherDisk}, Detaching},
		"it goes":                       {[]ledger.Event{madeAt("well", goes)}, Detaching},
		"the detach is refused":         {[]ledger.Event{madeAt("well", refusedToGo)}, DetachFailed},
		"somebody lives":                {[]ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodLive)}, HeldElsewhere},
		"somebody leaves":               {[]ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodTerminating)}, InUse},
		"leaves a silent node":          {[]ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodTerminating), nodeAs("well", silent)}, NodeUnreachable},
		"lives at a fenced node":        {[]ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodLive), nodeAs("well", outOfOrder)}, Detaching},
		"in use":                        {[]ledger.Event{madeAt("well"), nodeAs("well", using)}, InUse},
		"the node is not managed":       {[]ledger.Event{madeAt("well"), nodeAs("well", func(n *ledger.NodeState) { n.Managed = false })}, NodeUnmanaged},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		if got := stuckAt(Arbiter{}, p.snapshot, p.volume, p.at("well"), auditTime); got.Code != test.want || got.Node != "well" {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

func TestSource(t *testing.T) {
	pv := func(name, claim string, deleting bool) ledger.Event {
		return ledger.PersistentVolume{Name: name, Version: "2", Volume: disk, Access: ledger.AccessNode, Deleting: deleting, Claim: ledger.ClaimKey{Namespace: "shop", Name: claim}}
	}
	inline := ledger.Pod{UID: "i", Version: "1", Namespace: "shop", Name: "i", Node: "well", Volumes: []ledger.PodVolume{{Name: "v", Inline: disk}}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  string
		lasts bool
	}{
		"its PersistentVolume":             {nil, "pv", true},
		"one that is being deleted":        {[]ledger.Event{pv("pv", "data", true)}, "pv", false},
		"the other one is not":             {[]ledger.Event{pv("pv", "data", true), pv("z", "", false)}, "z", true},
		"both are, and one has a claim":    {[]ledger.Event{pv("pv", "", true), pv("z", "data", true)}, "z", false},
		"the one with a claim":             {[]ledger.Event{pv("a", "", false)}, "pv", true},
		"the first with a claim":           {[]ledger.Event{pv("a", "other", false)}, "a", true},
		"the first, without a claim":       {[]ledger.Event{pv("pv", "", false), pv("z", "", false)}, "pv", true},
		"a pod names it inline":            {[]ledger.Event{inline}, "pv", true},
		"inline, and it is being deleted":  {[]ledger.Event{inline, pv("pv", "data", true)}, "", true},
		"no PersistentVolume":              {[]ledger.Event{ledger.PersistentVolumeGone{Name: "pv"}}, "", false},
		"none, and a pod names it inline":  {[]ledger.Event{inline, ledger.PersistentVolumeGone{Name: "pv"}}, "", true},
		"another is there, and is deleted": {[]ledger.Event{ledger.PersistentVolumeGone{Name: "pv"}, pv("z", "data", true)}, "z", false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{madeAt("well")}, test.facts...)...)
		if got := p.source(); got != test.want || p.lasts() != test.lasts {
			t.Errorf("%s: attached by %q, lasts: %t; want %q, %t", name, got, p.lasts(), test.want, test.lasts)
		}
	}
}

func TestOtherVolumesAttachment(t *testing.T) {
	other := ledger.VolumeID{Driver: "d", Handle: "old"}
	theirs := func(n ledger.NodeName, pv string) ledger.Event {
		return ledger.Attachment{Name: ledger.AttachmentName(other, n), UID: "o", Version: "1", Driver: "d", Node: n, PersistentVolume: pv, Attached: true}
	}
	before := []ledger.Event{
		ledger.PersistentVolume{Name: "pv", Version: "2", Volume: other}, ledger.PersistentVolume{Name: "other", Version: "1", Volume: other},
	}
	after := ledger.PersistentVolume{Name: "pv", Version: "3", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}}
	for name, test := range map[string]struct {
		theirs ledger.Event
		facts  []ledger.Event
		want   string
	}{
		"made for the old one":        {theirs("well", "pv"), nil, ledger.AttachmentName(other, "well")},
		"at another node":             {theirs("dead", "pv"), nil, ""},
		"for another PV":              {theirs("well", "other"), nil, ""},
		"no PV to attach this one by": {theirs("well", "pv"), []ledger.Event{ledger.PersistentVolumeGone{Name: "pv"}}, ""},
		"its own":                     {madeAt("well"), nil, ""},
	} {
		facts := append(append(append([]ledger.Event{}, before...), test.theirs), after)
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append(facts, test.facts...)...)
		if got := p.otherVolumesAttachment(p.snapshot.Node("well")); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// With refused attaches at several nodes the reported volume stays reported.
func TestUnattached(t *testing.T) {
	said := func(n ledger.NodeName) ledger.Hold {
		return ledger.Hold{Message: Reason{Code: AttachFailed, Claim: "data", Node: n, Detail: "no", GRPC: 9}.Message()}
	}
	for name, test := range map[string]struct {
		was   ledger.Hold
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"nowhere":       {ledger.Hold{}, []ledger.Event{madeAt("dead"), madeAt("well")}, ""},
		"at one":        {ledger.Hold{}, []ledger.Event{madeAt("dead"), madeAt("well", refusedToCome)}, "well"},
		"at both":       {ledger.Hold{}, []ledger.Event{madeAt("dead", refusedToCome), madeAt("well", refusedToCome)}, "dead"},
		"as it said":    {said("well"), []ledger.Event{madeAt("dead", refusedToCome), madeAt("well", refusedToCome)}, "well"},
		"it said so of": {said("well"), []ledger.Event{madeAt("dead", refusedToCome), madeAt("well")}, "dead"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append([]ledger.Event{sharedDisk}, test.facts...)...)
		got, found := p.unattached(test.was)
		if found != (test.want != "") || got.Node != test.want {
			t.Errorf("%s: %+v (%t), want at %q", name, got, found, test.want)
		}
	}
}

// Not with a rule of force there, nor without the holder's Node in the hold, except for a migration's
// target.
func TestReport(t *testing.T) {
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	toDead := asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)
	fence := func(rule string) ledger.Hold {
		return ledger.Hold{NodeUID: "w", Fences: []ledger.Fence{{Node: "well", Rule: rule}}}
	}
	for name, test := range map[string]struct {
		hold ledger.Hold
		at   ledger.NodeName
		want Kind
	}{
		"as it should be":             {ledger.Hold{NodeUID: "w"}, "well", Report},
		"by force, it says":           {fence(AfterPodGone), "well", 0},
		"of a mount of before":        {fence(""), "well", Report},
		"the hold names an old Node":  {ledger.Hold{NodeUID: "old"}, "well", 0},
		"the same, where it migrates": {ledger.Hold{NodeUID: "old"}, "dead", Report},
	} {
		p := plannerOf(t, Arbiter{}, "well", test.hold, alive, migrate, toDead, madeAt("well"), madeAt("dead"))
		p.hold.NodeUID = "w"
		p.report(p.snapshot.Node(test.at), p.at(test.at), p.at(test.at).Own())
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
		}
	}
}

func TestCreateBeside(t *testing.T) {
	for at, want := range map[ledger.NodeName]ledger.NodeName{"dead": "well", "well": ""} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, alive, dataAt("q", "well", ledger.PodLive), dataAt("r", "dead", ledger.PodLive))
		p.create(p.snapshot.Node(at), p.at(at))
		if len(p.plan.Steps) != 1 || p.plan.Steps[0].Beside != want || p.plan.Steps[0].Node != at {
			t.Errorf("at %s: %+v", at, p.plan.Steps)
		}
	}
}

// Only the kubelet's own word takes back a report older than its attachment's end.
func TestStale(t *testing.T) {
	for name, test := range map[string]struct {
		arbiter Arbiter
		node    ledger.Event
		want    bool
	}{
		"not in use":     {Arbiter{}, nodeAs("well", reporting), true},
		"in use":         {Arbiter{}, nodeAs("well", reporting, using), false},
		"not reported":   {Arbiter{}, nodeAs("well", using), false},
		"beside another": {Arbiter{Cooperative: true}, nodeAs("well", reporting), false},
		"out of service": {Arbiter{}, nodeAs("well", reporting, using, outOfOrder), false},
	} {
		p := plannerOf(t, test.arbiter, "well", ledger.Hold{}, alive, test.node)
		if got := p.stale(p.at("well")); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A Cooperative delete ends before the attach/detach controller looks, half a second after a bind.
func TestBoundOfDeletes(t *testing.T) {
	if besideWindow >= 500*time.Millisecond {
		t.Errorf("a delete may take %s", besideWindow)
	}
}
