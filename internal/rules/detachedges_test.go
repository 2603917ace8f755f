// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func goes(a *ledger.Attachment) { a.Deleting = true }
func refusedToGo(a *ledger.Attachment) {
	a.Deleting, a.DetachError = true, ledger.CallError{Code: 9, Message: "no"}
}

func refusedToCome(a *ledger.Attachment) {
	a.Attached, a.AttachError = false, ledger.CallError{Code: 9, Message: "no"}
}

// First out of volumesAttached, then the pods' list, then the deletion. Force needs a rule.
func TestDetachSteps(t *testing.T) {
	proof := func(stage ledger.ProofStage, forced bool) ledger.Proof {
		return ledger.Proof{Stage: stage, Forced: forced}
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		proof ledger.Proof
		rule  string
		want  Kind // 0: none
	}{
		"nothing is proved":               {[]ledger.Event{madeAt("well")}, ledger.Proof{}, "", Unreport},
		"it is reported":                  {[]ledger.Event{madeAt("well"), nodeAs("well", reporting)}, proof(ledger.ProofUnwanted, false), "", Unreport},
		"reported, without an attachment": {[]ledger.Event{nodeAs("well", reporting)}, ledger.Proof{}, "", Unreport},
		"no attachment":                   {[]ledger.Event{nodeAs("well", using)}, proof(ledger.ProofUnwanted, false), "", Unreport},
		"unreported":                      {[]ledger.Event{madeAt("well")}, proof(ledger.ProofUnreported, false), "", ConfirmUnwanted},
		"unreported by force":             {[]ledger.Event{madeAt("well")}, proof(ledger.ProofUnreported, true), "", Unreport},
		"by force, under a rule":          {[]ledger.Event{madeAt("well")}, proof(ledger.ProofUnreported, true), AfterPodGone, ConfirmUnwanted},
		"unwanted":                        {[]ledger.Event{madeAt("well")}, proof(ledger.ProofUnwanted, false), "", DeleteAttachment},
		"out of service":                  {[]ledger.Event{madeAt("well")}, proof(ledger.ProofUnreported, true), OutOfService, DeleteAttachment},
		"unreachable":                     {[]ledger.Event{madeAt("well")}, proof(ledger.ProofUnreported, true), AfterUnreachable, DeleteAttachment},
		"needs no attachment any more":    {[]ledger.Event{madeAt("well"), noAttach}, proof(ledger.ProofUnreported, false), "", DeleteAttachment},
		"being deleted":                   {[]ledger.Event{madeAt("well", goes)}, proof(ledger.ProofUnwanted, false), "", 0},
		"being deleted, and reported":     {[]ledger.Event{madeAt("well", goes), nodeAs("well", reporting)}, proof(ledger.ProofUnwanted, false), "", Unreport},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, test.facts...)
		place := *p.at("well")
		place.Proof = test.proof
		p.detach(p.snapshot.Node("well"), &place, place.Own(), test.rule)
		if got := p.plan.Steps; len(got) > 1 || len(got) == 1 && (got[0].Kind != test.want || got[0].NodeUID != "w" || got[0].Rule != test.rule) || len(got) == 0 && test.want != 0 {
			t.Errorf("%s: %+v, want %s", name, got, test.want)
		}
	}
}

func TestDelayed(t *testing.T) {
	policy := ledger.Policy{Name: "p", Version: "1", Driver: "d", DetachDelay: time.Minute}
	full := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 1}}}
	roomy := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 2}}}
	endless := ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: ledger.NoLimit}}}
	for name, test := range map[string]struct {
		facts []ledger.Event
		next  ledger.NodeName
		after time.Duration
		want  time.Duration
	}{
		"kept":                  {[]ledger.Event{policy, madeAt("well")}, "", 0, time.Minute},
		"for a while":           {[]ledger.Event{policy, madeAt("well")}, "", 59 * time.Second, time.Second},
		"long enough":           {[]ledger.Event{policy, madeAt("well")}, "", time.Minute, 0},
		"by no policy":          {[]ledger.Event{madeAt("well")}, "", 0, 0},
		"used":                  {[]ledger.Event{policy, madeAt("well"), dataAt("q", "well", ledger.PodLive)}, "", 0, 0},
		"only reported":         {[]ledger.Event{policy, nodeAs("well", reporting)}, "", 0, 0},
		"being detached":        {[]ledger.Event{policy, madeAt("well", goes)}, "", 0, 0},
		"the node is silent":    {[]ledger.Event{policy, madeAt("well"), nodeAs("well", silent)}, "", 0, 0},
		"the node is drained":   {[]ledger.Event{policy, madeAt("well"), nodeAs("well", func(n *ledger.NodeState) { n.Draining = true })}, "", 0, 0},
		"needs no attachment":   {[]ledger.Event{policy, madeAt("well"), noAttach}, "", 0, 0},
		"somebody is next":      {[]ledger.Event{policy, madeAt("well")}, "dead", 0, 0},
		"next, and it's shared": {[]ledger.Event{policy, madeAt("well"), sharedDisk}, "dead", 0, time.Minute},
		"the PV goes away":      {[]ledger.Event{policy, madeAt("well"), ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode, Deleting: true}}, "", 0, 0},
		"the PV is gone":        {[]ledger.Event{policy, madeAt("well"), ledger.PersistentVolumeGone{Name: "pv"}}, "", 0, 0},
		"named by a pod itself": {[]ledger.Event{policy, madeAt("well"), ledger.Pod{UID: "i", Version: "1", Namespace: "shop", Name: "i", Node: "dead", Phase: ledger.PodTerminating, Volumes: []ledger.PodVolume{{Name: "v", Inline: disk}}}, ledger.PersistentVolumeGone{Name: "pv"}}, "", 0, time.Minute},
		"no slot is free":       {[]ledger.Event{policy, madeAt("well"), full}, "", 0, 0},
		"one slot is free":      {[]ledger.Event{policy, madeAt("well"), roomy}, "", 0, time.Minute},
		"slots without an end":  {[]ledger.Event{policy, madeAt("well"), endless}, "", 0, time.Minute},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		p.now = auditTime.Add(test.after)
		p.hold.Next.Node = test.next
		if got := p.delayed(p.hold, p.snapshot.Node("well"), p.at("well")); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	p := plannerOf(t, Arbiter{}, "dead", ledger.Hold{}, policy, alive, madeAt("well"))
	if got := p.delayed(p.hold, p.snapshot.Node("well"), p.at("well")); got != 0 {
		t.Errorf("kept for %s at a node that does not hold it", got)
	}
}

func TestUrgentUnreport(t *testing.T) {
	limit := func(n int32) ledger.Event {
		return ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: n}}}
	}
	for name, test := range map[string]struct {
		facts []ledger.Event
		next  ledger.NodeName
		rule  string
		want  bool
	}{
		"nobody waits":        {[]ledger.Event{limit(2)}, "", "", false},
		"somebody is next":    {nil, "dead", "", true},
		"the last slot":       {[]ledger.Event{limit(1)}, "", "", true},
		"the node is drained": {[]ledger.Event{nodeAs("well", func(n *ledger.NodeState) { n.Draining = true })}, "", "", true},
		"the PV is gone":      {[]ledger.Event{ledger.PersistentVolumeGone{Name: "pv"}}, "", "", true},
		"by force":            {nil, "", AfterPodGone, true},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive, madeAt("well")}, test.facts...)...)
		p.hold.Next.Node = test.next
		place := p.at("well")
		p.detach(p.snapshot.Node("well"), place, place.Own(), test.rule)
		if got := p.plan.Steps; len(got) != 1 || got[0].Kind != Unreport || got[0].Urgent != test.want {
			t.Errorf("%s: %+v, want urgent %t", name, got, test.want)
		}
	}
}

func TestSpare(t *testing.T) {
	limits := func(d, other int32) ledger.Event {
		return ledger.NodeDrivers{Node: "well", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: d}, {Name: "other", Limit: other}}}
	}
	full := limits(1, 9)
	for name, test := range map[string]struct {
		facts []ledger.Event
		node  ledger.NodeName
		want  int
	}{
		"full":                   {[]ledger.Event{madeAt("well"), full}, "well", 1},
		"one slot is free":       {[]ledger.Event{madeAt("well"), limits(2, 9)}, "well", 0},
		"another driver is full": {[]ledger.Event{madeAt("well"), limits(2, 0)}, "well", 0},
		"used":                   {[]ledger.Event{madeAt("well"), full, dataAt("q", "well", ledger.PodLive)}, "well", 0},
		"only reported":          {[]ledger.Event{nodeAs("well", reporting), full}, "well", 0},
		"no such node":           {[]ledger.Event{madeAt("well"), full}, "none", 0},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		if got := Spare(p.snapshot, test.node); len(got) != test.want {
			t.Errorf("%s: %v, want %d", name, got, test.want)
		}
	}
}

// The hold must name the node; not in Cooperative mode, nor with a user.
func TestKeep(t *testing.T) {
	policy := ledger.Policy{Name: "p", Version: "1", Driver: "d", DetachDelay: time.Minute}
	said := ledger.Hold{Node: "well", Reason: DetachDelayed, Message: "said"}
	for name, test := range map[string]struct {
		arbiter    Arbiter
		was        ledger.Hold
		requesters []ledger.Requester
		after      time.Duration
		says       ledger.Code
		old        bool // in the old wording
	}{
		"kept":                  {Arbiter{}, ledger.Hold{}, nil, 31 * time.Second, DetachDelayed, false},
		"kept no more":          {Arbiter{}, ledger.Hold{Node: "well"}, nil, time.Hour, "", false},
		"it said so":            {Arbiter{}, said, nil, time.Hour, DetachDelayed, true},
		"it said so elsewhere":  {Arbiter{}, ledger.Hold{Node: "dead", Reason: DetachDelayed, Message: "said"}, nil, time.Hour, "", false},
		"it said another thing": {Arbiter{}, ledger.Hold{Node: "well", Reason: DetachFailed, Message: "said"}, nil, time.Hour, "", false},
		"beside another":        {Arbiter{Cooperative: true}, ledger.Hold{}, nil, 31 * time.Second, "", false},
		"for somebody":          {Arbiter{}, ledger.Hold{}, []ledger.Requester{{UID: "q"}}, 31 * time.Second, "", false},
		"who has just left":     {Arbiter{}, ledger.Hold{}, nil, 29 * time.Second, "", false},
	} {
		p := plannerOf(t, test.arbiter, "well", ledger.Hold{}, alive, policy, madeAt("well"))
		p.now = auditTime.Add(test.after)
		h := ledger.Hold{Node: "well", Requesters: test.requesters}
		p.keep(test.was, &h, p.at("well"))
		if h.Reason != test.says || test.old != (h.Message == "said") || (test.says == "") != (h.Message == "") {
			t.Errorf("%s: %q %q, want %q", name, h.Reason, h.Message, test.says)
		}
	}
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, alive, policy, madeAt("well"))
	p.now = auditTime.Add(31 * time.Second)
	h := ledger.Hold{Node: "well"}
	if p.keep(ledger.Hold{}, &h, p.at("well")); h.Message != (Reason{Code: DetachDelayed, Claim: "data", Node: "well", Until: auditTime.Add(time.Minute).Unix()}).Message() {
		t.Errorf("it says %q", h.Message)
	}
}

// The node must be Ready, and Moorage must write its status.
func TestPutBack(t *testing.T) {
	doubt := func(n *ledger.NodeState) { n.UID, n.BootID = "other", "b" }
	held := ledger.Hold{NodeUID: "w", BootID: "b"}
	for name, test := range map[string]struct {
		arbiter Arbiter
		hold    ledger.Hold
		facts   []ledger.Event
		want    bool
	}{
		"it may be forgotten": {Arbiter{}, held, []ledger.Event{madeAt("well"), nodeAs("well", doubt)}, true},
		"it is not":           {Arbiter{}, held, []ledger.Event{madeAt("well"), nodeAs("well")}, false},
		"beside another":      {Arbiter{Cooperative: true}, held, []ledger.Event{madeAt("well"), nodeAs("well", doubt)}, false},
		"no attachment":       {Arbiter{}, held, []ledger.Event{nodeAs("well", doubt, using)}, false},
		"not attached":        {Arbiter{}, held, []ledger.Event{madeAt("well", func(a *ledger.Attachment) { a.Attached = false }), nodeAs("well", doubt)}, false},
		"being deleted":       {Arbiter{}, held, []ledger.Event{madeAt("well", goes), nodeAs("well", doubt)}, false},
		"it is there":         {Arbiter{}, held, []ledger.Event{madeAt("well"), nodeAs("well", doubt, reporting)}, false},
		"the node is silent":  {Arbiter{}, held, []ledger.Event{madeAt("well"), nodeAs("well", doubt, silent)}, false},
		"not ours to write":   {Arbiter{}, held, []ledger.Event{madeAt("well"), nodeAs("well", doubt, func(n *ledger.NodeState) { n.Managed = false })}, false},
	} {
		p := plannerOf(t, test.arbiter, "well", test.hold, append([]ledger.Event{alive}, test.facts...)...)
		place := p.at("well")
		p.putBack(p.snapshot.Node("well"), place, place.Own())
		if got := len(p.plan.Steps) == 1 && p.plan.Steps[0].Kind == Report; got != test.want || len(p.plan.Steps) > 0 != test.want {
			t.Errorf("%s: %+v", name, p.plan.Steps)
		}
	}
}

// A pod, a counting granted ticket, or the next ticket.
func TestWhoKeepsAVolumeBack(t *testing.T) {
	waitsFor := func(k *ledger.Ticket) { k.Reason = string(HeldElsewhere) }
	for name, test := range map[string]struct {
		facts              []ledger.Event
		next               ledger.NodeName
		inhabited, awaited bool
	}{
		"nobody":                  {nil, "", false, false},
		"a pod":                   {[]ledger.Event{dataAt("q", "well", ledger.PodLive)}, "", true, false},
		"a pod that leaves":       {[]ledger.Event{dataAt("q", "well", ledger.PodTerminating)}, "", true, false},
		"a pod, the node fenced":  {[]ledger.Event{dataAt("q", "well", ledger.PodLive), nodeAs("well", outOfOrder)}, "", false, false},
		"a pod, not attached for": {[]ledger.Event{dataAt("q", "well", ledger.PodLive), noAttach}, "", false, false},
		"a granted ticket":        {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow)}, "", true, false},
		"one, the node fenced":    {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", grantedNow), nodeAs("well", outOfOrder)}, "", false, false},
		"a ticket":                {[]ledger.Event{asksAt("m", ledger.TypeManual, "well")}, "", false, true},
		"one that waits":          {[]ledger.Event{asksAt("m", ledger.TypeManual, "well", waitsFor)}, "", false, false},
		"another is next":         {[]ledger.Event{asksAt("m", ledger.TypeManual, "well")}, "dead", false, false},
		"next, and it's shared":   {[]ledger.Event{asksAt("m", ledger.TypeManual, "well"), sharedDisk}, "dead", false, true},
		"the node is silent":      {[]ledger.Event{asksAt("m", ledger.TypeManual, "well"), nodeAs("well", silent)}, "", false, false},
		"a ticket, no attachment": {[]ledger.Event{asksAt("m", ledger.TypeManual, "well"), noAttach}, "", false, false},
		"the PV is being deleted": {[]ledger.Event{asksAt("m", ledger.TypeManual, "well"), ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"}, Deleting: true}}, "", false, false},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive, madeAt("well")}, test.facts...)...)
		p.hold.Next.Node = test.next
		place := p.at("well")
		if got := p.inhabited(place); got != test.inhabited {
			t.Errorf("%s: somebody keeps it: %t", name, got)
		}
		if got := p.awaited(p.snapshot.Node("well"), place); got != test.awaited {
			t.Errorf("%s: a ticket keeps it: %t", name, got)
		}
	}
}

// A holder's node comes before a target. A deletion takes the error back only if it was not reported.
func TestRefusedAttach(t *testing.T) {
	both := func(a *ledger.Attachment) {
		refusedToCome(a)
		a.Deleting = true
	}
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	target := asksAt("m", ledger.TypeLiveMigration, "dead", grantedNow)
	for name, test := range map[string]struct {
		told  ledger.HoldState
		state ledger.HoldState
		says  ledger.Code
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"attached":                     {ledger.HoldHeld, ledger.HoldHeld, "", []ledger.Event{madeAt("well")}, ""},
		"refused":                      {ledger.HoldHeld, ledger.HoldHeld, "", []ledger.Event{madeAt("well", refusedToCome)}, "well"},
		"refused, and it goes":         {ledger.HoldHeld, ledger.HoldHeld, "", []ledger.Event{madeAt("well", both)}, ""},
		"it goes, and it was told":     {ledger.HoldAttachFailed, ledger.HoldHeld, "", []ledger.Event{madeAt("well", both)}, "well"},
		"worse is told":                {ledger.HoldHeld, ledger.HoldUnknown, "", []ledger.Event{madeAt("well", refusedToCome)}, ""},
		"another thing is told":        {ledger.HoldHeld, ledger.HoldHeld, NodeFenced, []ledger.Event{madeAt("well", refusedToCome)}, ""},
		"refused elsewhere":            {ledger.HoldHeld, ledger.HoldHeld, "", []ledger.Event{madeAt("dead", refusedToCome)}, ""},
		"refused to a migration":       {ledger.HoldHeld, ledger.HoldHeld, "", []ledger.Event{migrate, target, madeAt("dead", refusedToCome)}, "dead"},
		"refused to both of them":      {ledger.HoldHeld, ledger.HoldHeld, "", []ledger.Event{migrate, target, madeAt("dead", refusedToCome), madeAt("well", refusedToCome)}, "well"},
		"refused to a migration ended": {ledger.HoldHeld, ledger.HoldHeld, "", []ledger.Event{migrate, madeAt("dead", refusedToCome)}, ""},
	} {
		p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, append([]ledger.Event{alive}, test.facts...)...)
		h := ledger.Hold{Node: "well", State: test.state, Reason: test.says}
		p.refused(ledger.Hold{State: test.told}, &h)
		want := ledger.Hold{Node: "well", State: test.state, Reason: test.says}
		if test.want != "" {
			want.State, want.Reason = ledger.HoldAttachFailed, AttachFailed
			want.Message = Reason{Code: AttachFailed, Claim: "data", Node: test.want, Detail: "no", GRPC: 9}.Message()
		}
		if !sameHold(h, want) {
			t.Errorf("%s: %s %s %q, want at %q", name, h.State, h.Reason, h.Message, test.want)
		}
	}
}

// An added boot, or PersistentVolumes without a node, make no difference.
func TestSameHold(t *testing.T) {
	full := func() ledger.Hold {
		return ledger.Hold{
			Version: "1", Node: "n", NodeUID: "u", BootID: "b", Next: ledger.Promise{Node: "m"}, Transitions: 2, State: ledger.HoldHeld, Reason: InUse, Message: "why",
			Force: &ledger.Force{Rule: AfterPodGone}, Fences: []ledger.Fence{{Node: "o"}}, Requesters: []ledger.Requester{{UID: "q"}}, Waiting: []ledger.Requester{{UID: "r"}}, PVs: []string{"pv"},
		}
	}
	for name, test := range map[string]struct {
		change func(*ledger.Hold)
		same   bool
	}{
		"nothing":         {func(*ledger.Hold) {}, true},
		"its version":     {func(h *ledger.Hold) { h.Version = "2" }, true},
		"the same force":  {func(h *ledger.Hold) { h.Force = &ledger.Force{Rule: AfterPodGone} }, true},
		"the node":        {func(h *ledger.Hold) { h.Node = "x" }, false},
		"the Node's UID":  {func(h *ledger.Hold) { h.NodeUID = "x" }, false},
		"the boot":        {func(h *ledger.Hold) { h.BootID = "x" }, false},
		"no boot now":     {func(h *ledger.Hold) { h.BootID = "" }, false},
		"who is next":     {func(h *ledger.Hold) { h.Next.Node = "x" }, false},
		"the transitions": {func(h *ledger.Hold) { h.Transitions = 3 }, false},
		"the state":       {func(h *ledger.Hold) { h.State = ledger.HoldFree }, false},
		"that it stays":   {func(h *ledger.Hold) { h.Stays = true }, false},
		"the reason":      {func(h *ledger.Hold) { h.Reason = Detaching }, false},
		"the words":       {func(h *ledger.Hold) { h.Message = "x" }, false},
		"the force":       {func(h *ledger.Hold) { h.Force = &ledger.Force{Rule: OutOfService} }, false},
		"no force":        {func(h *ledger.Hold) { h.Force = nil }, false},
		"the fences":      {func(h *ledger.Hold) { h.Fences = nil }, false},
		"for whom":        {func(h *ledger.Hold) { h.Requesters = nil }, false},
		"who waits":       {func(h *ledger.Hold) { h.Waiting = nil }, false},
		"the PVs":         {func(h *ledger.Hold) { h.PVs = nil }, false},
	} {
		is := full()
		test.change(&is)
		if got := sameHold(full(), is); got != test.same {
			t.Errorf("%s: the same: %t", name, got)
		}
	}
	was, is := full(), full()
	was.BootID = ""
	if !sameHold(was, is) {
		t.Error("a hold is written only to name the boot")
	}
	was, is = full(), full()
	was.Node, is.Node, is.PVs = "", "", nil
	if !sameHold(was, is) {
		t.Error("a hold that names no node is written for its PersistentVolumes")
	}
	was.Force = nil
	if sameHold(was, is) {
		t.Error("a hold with a force is as one without")
	}
}

func TestRelease(t *testing.T) {
	delay := ledger.Policy{Name: "p", Version: "1", Driver: "d", DetachDelay: time.Minute}
	booted := func(n *ledger.NodeState) { n.BootID = "b" }
	listed := nodeAs("dead", silent, using)
	for name, test := range map[string]struct {
		arbiter Arbiter
		hold    ledger.Hold
		at      ledger.NodeName
		facts   []ledger.Event
		after   time.Duration
		want    Kind
		uid     string        // of the Node in the step
		recheck time.Duration // 0: never
	}{
		"unwanted":                      {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well")}, 0, Unreport, "w", 0},
		"reported, without attachment":  {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{nodeAs("well", reporting)}, 0, Unreport, "w", 0},
		"only listed in use":            {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{nodeAs("well", using)}, 0, 0, "", 0},
		"listed by a node that is gone": {Arbiter{}, ledger.Hold{}, "dead", []ledger.Event{listed, ledger.NodeGone{Name: "dead"}}, 0, 0, "", DefaultAfterPodGone},
		"gone for long enough":          {Arbiter{}, ledger.Hold{}, "dead", []ledger.Event{listed, ledger.NodeGone{Name: "dead"}}, DefaultAfterPodGone, Unreport, "", 0},
		"only asked for at one":         {Arbiter{}, ledger.Hold{}, "dead", []ledger.Event{alive, asksAt("m", ledger.TypeManual, "dead"), ledger.NodeGone{Name: "dead"}}, 0, 0, "", 0},
		"beside another":                {Arbiter{Cooperative: true}, ledger.Hold{}, "well", []ledger.Event{madeAt("well")}, time.Minute, ProveAbsent, "w", 0},
		"a pod is there":                {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), dataAt("q", "well", ledger.PodTerminating)}, 0, 0, "", 0},
		"a ticket asks for it":          {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), asksAt("m", ledger.TypeManual, "well")}, 0, 0, "", 0},
		"kept for a while":              {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), delay}, 0, 0, "", time.Minute},
		"the node is silent":            {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", silent, using)}, 0, 0, "", DefaultAfterPodGone},
		"in use":                        {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", using)}, 0, 0, "", 0},
		"it may be forgotten":           {Arbiter{}, ledger.Hold{NodeUID: "old", BootID: "b"}, "well", []ledger.Event{madeAt("well"), nodeAs("well", booted)}, 0, Report, "w", 0},
		"out of service, not said yet":  {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", using, outOfOrder)}, 0, 0, "", 0},
		"a pod leaves it out of order":  {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", using, outOfOrder), dataAt("q", "well", ledger.PodTerminating)}, 0, RemovePod, "", 0},
		"one lives where it leaves":     {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", using, outOfOrder), dataAt("q", "well", ledger.PodLive)}, 0, 0, "", 0},
		"a ticket is where it leaves":   {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", using, outOfOrder), asksAt("m", ledger.TypeManual, "well", grantedNow)}, 0, 0, "", 0},
		"a pod leaves a Ready node":     {Arbiter{}, ledger.Hold{}, "well", []ledger.Event{madeAt("well"), nodeAs("well", func(n *ledger.NodeState) { n.OutOfService = true }), dataAt("q", "well", ledger.PodTerminating)}, 0, 0, "", 0},
	} {
		facts := test.facts
		if test.at == "well" {
			facts = append([]ledger.Event{alive}, facts...)
		}
		p := plannerOf(t, test.arbiter, test.at, test.hold, facts...)
		p.now = auditTime.Add(test.after)
		p.hold.NodeUID = "w"
		if test.want == Report { // as it should be: of the Node that may have forgotten it
			p.hold.NodeUID, p.hold.BootID = test.hold.NodeUID, test.hold.BootID
		}
		p.release(p.at(test.at))
		if got := only(p); got != test.want || got != 0 && p.plan.Steps[0].NodeUID != test.uid || got == RemovePod && p.plan.Steps[0].UID != "q" {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
		}
		if got := p.plan.Recheck; got.IsZero() != (test.recheck == 0) || test.recheck != 0 && !got.Equal(p.now.Add(test.recheck)) {
			t.Errorf("%s: looked at again at %s", name, got)
		}
	}
	if abandoned(nil) {
		t.Error("somebody vouches for a node that nobody knows")
	}
}
