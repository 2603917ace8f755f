// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"cmp"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// How long it takes until a rule of force holds is told in whole steps, never less than
// is left; of no rule, and of one whose time is over, nothing is told.
func TestSecondsLeft(t *testing.T) {
	for _, test := range []struct {
		forcing forcing
		want    int64
	}{
		{forcing{}, 0},
		{forcing{Left: time.Minute, Step: time.Second}, 0},
		{forcing{Rule: AfterPodGone, Left: 0, Step: time.Minute}, 0},
		{forcing{Rule: AfterPodGone, Left: -1, Step: time.Minute}, 0},
		{forcing{Rule: AfterPodGone, Left: time.Minute, Step: time.Second - 1}, 0},
		{forcing{Rule: AfterPodGone, Left: 5 * time.Second, Step: time.Second}, 5},
		{forcing{Rule: AfterPodGone, Left: 5*time.Second + 1, Step: time.Second}, 6},
		{forcing{Rule: AfterPodGone, Left: 61 * time.Second, Step: time.Minute}, 120},
		{forcing{Rule: AfterPodGone, Left: time.Minute, Step: time.Minute}, 60},
		{forcing{Rule: AfterPodGone, Left: 5 * time.Second, Step: 30 * time.Second, Limit: 5 * time.Second}, 5},
		{forcing{Rule: AfterPodGone, Left: 31 * time.Second, Step: 30 * time.Second, Limit: 50 * time.Second}, 50},
		{forcing{Rule: AfterPodGone, Left: time.Second, Step: 30 * time.Second, Limit: time.Millisecond}, 1},
	} {
		if got := secondsLeft(test.forcing); got != test.want {
			t.Errorf("%+v: %d, want %d", test.forcing, got, test.want)
		}
	}
}

// Where no rule of time will ever force a volume off, that is told; and only where
// nobody uses it, so that force would be next.
func TestUntilForced(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	after := func(d time.Duration) func(*ledger.Ledger) {
		return func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.Policy{Name: "p", Version: "1", Driver: "d", AfterPodGone: &d})
		}
	}
	byDefault := func(*ledger.Ledger) {}
	for name, test := range map[string]struct {
		podAt  ledger.NodeName
		policy func(*ledger.Ledger)
		f      forcing
		want   int64
	}{
		"never":                     {"well", after(never), forcing{}, noTimeForces},
		"never, and somebody is up": {"dead", after(never), forcing{}, 0},
		"never, but for the taint":  {"well", after(never), forcing{Rule: OutOfService, Left: time.Second, Step: time.Second}, 1},
		"at once":                   {"well", after(0), forcing{}, 0},
		"in a while":                {"well", after(time.Minute), forcing{}, 0},
		"by default":                {"well", byDefault, forcing{}, 0},
	} {
		s, v, _ := concerned(t, test.podAt, "dead", ledger.Hold{State: ledger.HoldHeld}, test.policy)
		if got := untilForced(s, v, s.Volume(id).NodeVolume("dead"), test.f); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}

// What does not count any more: a pod that has finished, a ticket that is refused or
// gone, and in a dry run what it takes away. Who is leaving still uses the volume; a pod at a
// Node that does not exist may.
func TestStandings(t *testing.T) {
	l := ledger.New()
	see := func(e ledger.Event) { l.Apply(auditTime, e) }
	see(ledger.NodeState{Name: "n", UID: "n", Version: "1"})
	see(ledger.Pod{UID: "nowhere", Version: "1", Namespace: "s", Node: "never", Phase: ledger.PodLive})
	see(ledger.Pod{UID: "live", Version: "1", Namespace: "s", Node: "n", Phase: ledger.PodLive})
	see(ledger.Pod{UID: "finished", Version: "1", Namespace: "s", Node: "n", Phase: ledger.PodFinished})
	see(ledger.Pod{UID: "leaving", Version: "1", Namespace: "s", Node: "n", Phase: ledger.PodTerminating})
	id := func(name string) ledger.TicketID { return ledger.TicketID{Namespace: "s", Name: name} }
	for name, phase := range map[string]ledger.TicketPhase{"asks": ledger.TicketPending, "granted": ledger.TicketGranted, "refused": ledger.TicketRefused} {
		see(ledger.Ticket{ID: id(name), UID: name, Version: "1", Type: ledger.TypePod, Pod: "pod-" + name, Node: "n", Phase: phase})
	}
	see(ledger.Ticket{ID: id("ghost"), UID: "ghost", Version: "1", Type: ledger.TypePod, Pod: "pod-ghost", Node: "n"})
	see(ledger.TicketGone{ID: id("ghost")})
	s := l.Snapshot()
	for name, want := range map[string]standing{"live": living, "finished": gone, "leaving": leaving, "nowhere": leaving, "nobody": gone} {
		if got := standingOf(s, ledger.User{Pod: name}); got != want {
			t.Errorf("pod %s: %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]standing{"asks": asking, "granted": living, "refused": gone, "nobody": gone, "ghost": orphaned} {
		if got := standingOf(s, ledger.User{Ticket: id(name)}); got != want {
			t.Errorf("ticket %s: %d, want %d", name, got, want)
		}
	}
	d := &ledger.Delta{Granted: id("asks")}
	d.Remove("live")
	d.Remove("pod-granted")
	s = s.With(d)
	for name, want := range map[string]standing{"asks": living, "granted": gone, "ghost": orphaned} {
		if got := standingOf(s, ledger.User{Ticket: id(name)}); got != want {
			t.Errorf("in a dry run, ticket %s: %d, want %d", name, got, want)
		}
	}
	if got := standingOf(s, ledger.User{Pod: "live"}); got != gone {
		t.Errorf("a pod that a dry run takes away: %d", got)
	}
}

// A ticket that is named by the UID of another namespace's pod does not ask for that one: it stays where a dry run takes
// the pod away, mounts nothing with the pod's label, and its request is not the pod's.
func TestATicketOfAnotherNamespacesPod(t *testing.T) {
	disk := ledger.VolumeID{Driver: "d", Handle: "inline"}
	for _, namespace := range []string{"shop", "bank"} {
		k := ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "p"}, UID: "t", Version: "1", Type: ledger.TypePod, Pod: "p", Node: "n"}
		l := ledger.New()
		l.Apply(auditTime, ledger.Pod{UID: "p", Version: "1", Namespace: namespace, Name: "db", Phase: ledger.PodLive,
			Volumes: []ledger.PodVolume{{Name: "v", Inline: disk, SELinux: ledger.SELinux("a")}}})
		l.Apply(auditTime, k)
		s, own := l.Snapshot(), namespace == "shop"
		d := &ledger.Delta{}
		d.Remove("p")
		if got := standingOf(s.With(d), ledger.User{Ticket: k.ID}); (got == gone) != own {
			t.Errorf("in namespace %s: %d without the pod", namespace, got)
		}
		if got := mountedFor(s, ledger.User{Ticket: k.ID}, disk); (got != ledger.SELinuxUnknown) != own {
			t.Errorf("in namespace %s: mounted with %v", namespace, got)
		}
		if got := TicketRequest(s, &k).Pod; (got == "p") != own {
			t.Errorf("in namespace %s: the request of pod %q", namespace, got)
		}
	}
}

// Whether a pod counts by itself, so that its reservation may end.
func TestCovered(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	attached := func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: true})
	}
	with := func(p ledger.Pod, more ...ledger.Event) func(*ledger.Ledger) {
		p.UID, p.Version, p.Namespace, p.Name = "p", "2", cmp.Or(p.Namespace, "shop"), "db"
		return func(l *ledger.Ledger) {
			for _, e := range append(more, p) {
				l.Apply(auditTime, e)
			}
		}
	}
	claims := func(names ...string) (list []ledger.PodVolume) {
		for _, name := range names {
			list = append(list, ledger.PodVolume{Name: name, Claim: name})
		}
		return list
	}
	nfs := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "nfs"}, Version: "1", PersistentVolume: "nfs", Bound: true}
	export := ledger.PersistentVolume{Name: "nfs", Version: "1", Claim: nfs.Key}
	unseen := ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: "new"}, Version: "1", PersistentVolume: "new", Bound: true}
	unbound := ledger.Claim{Key: unseen.Key, Version: "1", Class: "gone"}
	for name, test := range map[string]struct {
		change        []func(*ledger.Ledger)
		covered, gone bool
	}{
		"gone":                    {[]func(*ledger.Ledger){func(l *ledger.Ledger) { l.Apply(auditTime, ledger.PodGone{UID: "p"}) }}, false, true},
		"finished":                {[]func(*ledger.Ledger){with(ledger.Pod{Phase: ledger.PodFinished, Volumes: claims("data")})}, true, false},
		"another namespace's":     {[]func(*ledger.Ledger){attached, with(ledger.Pod{Namespace: "bank", Node: "well", Volumes: claims("data")})}, false, true},
		"not bound":               {[]func(*ledger.Ledger){attached, with(ledger.Pod{Volumes: claims("data")})}, false, false},
		"bound elsewhere":         {[]func(*ledger.Ledger){with(ledger.Pod{Node: "dead", Volumes: claims("data")})}, true, false},
		"bound, and not attached": {[]func(*ledger.Ledger){with(ledger.Pod{Node: "well", Volumes: claims("data")})}, false, false},
		"bound, and attached":     {[]func(*ledger.Ledger){attached, with(ledger.Pod{Node: "well", Volumes: claims("data")})}, true, false},
		"attached, and the other volume is none to attach":           {[]func(*ledger.Ledger){attached, with(ledger.Pod{Node: "well", Volumes: claims("nfs", "data")}, nfs, export)}, true, false},
		"attached, and the other volume is of iSCSI":                 {[]func(*ledger.Ledger){attached, with(ledger.Pod{Node: "well", Volumes: append(claims("data"), ledger.PodVolume{Name: "i", Inline: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "i"}})})}, true, false},
		"attached, and the other driver attaches nothing":            {[]func(*ledger.Ledger){attached, with(ledger.Pod{Node: "well", Volumes: append(claims("data"), ledger.PodVolume{Name: "i", Inline: ledger.VolumeID{Driver: "files", Handle: "i"}})}, ledger.Driver{Name: "files", Version: "1"})}, true, false},
		"attached, and the other claim leads nowhere":                {[]func(*ledger.Ledger){attached, with(ledger.Pod{Node: "well", Volumes: claims("nothing", "data")})}, true, false},
		"attached, and the other PersistentVolume is not seen":       {[]func(*ledger.Ledger){attached, with(ledger.Pod{Node: "well", Volumes: claims("new", "data")}, unseen)}, false, false},
		"attached, and the other claim is not bound":                 {[]func(*ledger.Ledger){attached, with(ledger.Pod{Node: "well", Volumes: claims("new", "data")}, unbound)}, false, false},
		"the first is none to attach, and the other is not attached": {[]func(*ledger.Ledger){with(ledger.Pod{Node: "well", Volumes: claims("nfs", "data")}, nfs, export)}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, _, _ := concerned(t, "", "well", ledger.Hold{State: ledger.HoldHeld}, test.change...)
			k := &ledger.Ticket{ID: ledger.TicketID{Namespace: "shop", Name: "p"}, Type: ledger.TypePod, Pod: "p", Node: "well"}
			covered, isGone := Arbiter{}.Covered(s, k)
			if covered != test.covered || isGone != test.gone {
				t.Errorf("covered: %t, gone: %t", covered, isGone)
			}
		})
	}
}

// What is not known of a volume or a node keeps nobody from an answer.
func TestExplainWhatIsNotKnown(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	s, _, need := concerned(t, "well", "well", ledger.Hold{}, func(l *ledger.Ledger) {
		l.Apply(auditTime, ledger.HoldGone{Volume: id})
		l.Apply(auditTime, ledger.NodeState{Name: "dead", UID: "x", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	})
	if s.Volume(id).Hold != nil {
		t.Fatal("there is a hold")
	}
	if _, found := (Arbiter{}).Concern(s, s.Volume(id), auditTime); found {
		t.Error("a volume without a hold has a concern")
	}
	if r := (Arbiter{}).Explain(s, need, "well", auditTime).First(); r.Code != Attaching {
		t.Errorf("without a hold: %s", r.Code)
	}
	if got := unreported(nil); got != NodeMissing {
		t.Errorf("at a node that nobody knows: %s", got)
	}
	for want, n := range map[ledger.Code]ledger.Node{
		NodeMissing:   {NodeState: ledger.NodeState{Managed: true}},
		NodeUnmanaged: {Exists: true},
		NotReported:   {Exists: true, NodeState: ledger.NodeState{Managed: true}},
	} {
		if got := unreported(&n); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// An attachment is to another machine only where a driver that is registered says so.
func TestReplaced(t *testing.T) {
	va := &ledger.Attachment{Driver: "d", NodeID: "i-1"}
	at := func(id string, registered bool) *ledger.Node {
		return &ledger.Node{Drivers: []ledger.NodeDriver{{DriverOnNode: ledger.DriverOnNode{Name: "d", NodeID: id}, Registered: registered}}}
	}
	for name, test := range map[string]struct {
		n    *ledger.Node
		va   *ledger.Attachment
		want bool
	}{
		"another machine":             {at("i-2", true), va, true},
		"the same":                    {at("i-1", true), va, false},
		"it does not say":             {at("", true), va, false},
		"it was, and is not any more": {at("i-2", false), va, false},
		"no driver":                   {&ledger.Node{}, va, false},
		"no node":                     {nil, va, false},
		"no attachment":               {at("i-2", true), nil, false},
		"not published":               {at("i-2", true), &ledger.Attachment{Driver: "d"}, false},
	} {
		if got := replaced(test.n, test.va); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A ghost is promised nothing, whatever its phase; a pod has its right by itself.
func TestGrantees(t *testing.T) {
	id := func(name string) ledger.TicketID { return ledger.TicketID{Namespace: "shop", Name: name} }
	named := ledger.Requester{Ticket: true, Namespace: "shop", Name: "named", UID: "named"}
	refused := ledger.Requester{Ticket: true, Namespace: "shop", Name: "refused", UID: "refused"}
	s, v, _ := concerned(t, "well", "well", ledger.Hold{State: ledger.HoldHeld, Requesters: []ledger.Requester{named, refused}}, func(l *ledger.Ledger) {
		for name, phase := range map[string]ledger.TicketPhase{"named": ledger.TicketPending, "refused": ledger.TicketRefused, "asks": ledger.TicketPending, "granted": ledger.TicketGranted, "ghost": ledger.TicketGranted} {
			l.Apply(auditTime, ledger.Ticket{ID: id(name), UID: name, Version: "1", Type: ledger.TypeManual, Node: "well", Phase: phase, Volumes: []ledger.TicketVolume{{Claim: "data"}}})
		}
		l.Apply(auditTime, ledger.Ticket{ID: id("ghost"), UID: "ghost", Version: "2", Type: ledger.TypePod, Pod: "q", Node: "well", Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "data"}}})
		l.Apply(auditTime, ledger.TicketGone{ID: id("ghost")})
	})
	if k := s.Ticket(id("ghost")); k == nil || !k.Ghost {
		t.Fatalf("no ghost: %+v", k)
	}
	p := Arbiter{}.planner(s, v, auditTime)
	for name, want := range map[string]bool{"named": true, "refused": false, "asks": false, "granted": true, "ghost": false, "nobody": false} {
		if got := p.isGrantee(ledger.User{Ticket: id(name)}); got != want {
			t.Errorf("ticket %s is a grantee: %t", name, got)
		}
	}
	if p.isGrantee(ledger.User{Pod: "p"}) {
		t.Error("a pod is a grantee")
	}
}

// A pod that is terminating still keeps the volume where it is.
func TestInhabited(t *testing.T) {
	for phase, want := range map[ledger.PodPhase]bool{ledger.PodLive: true, ledger.PodTerminating: true, ledger.PodFinished: false} {
		s, v, _ := concerned(t, "", "well", ledger.Hold{State: ledger.HoldHeld}, func(l *ledger.Ledger) {
			l.Apply(auditTime, ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: "well", Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}})
		})
		place := &ledger.NodeVolume{Node: "well", Users: []ledger.User{{Pod: "p"}}}
		if got := (Arbiter{}).planner(s, v, auditTime).inhabited(place); got != want {
			t.Errorf("phase %d: %t", phase, got)
		}
	}
}

// Beside the attach/detach controller a volume is Moorage's once anything of it is:
// an own attachment, a creation under way, what was left where its detach failed, a user
// who has opted in; or a hold, where nobody else wants it.
func TestAdopted(t *testing.T) {
	id := ledger.VolumeID{Driver: "d", Handle: "h"}
	out := func(n ledger.NodeName) ledger.Pod {
		return ledger.Pod{UID: "p", Version: "2", Namespace: "shop", Name: "db", Node: n, OptedOut: true, Volumes: []ledger.PodVolume{{Name: "v", Claim: "data"}}}
	}
	attachment := func(ours bool) ledger.Attachment {
		return ledger.Attachment{Name: ledger.AttachmentName(id, "well"), UID: "a", Version: "1", Driver: "d", Node: "well", PersistentVolume: "pv", Ours: ours, Attached: true}
	}
	for name, test := range map[string]struct {
		heldAt ledger.NodeName
		hold   ledger.Hold
		facts  []ledger.Event
		want   bool
	}{
		"somebody who has opted out":            {"", ledger.Hold{}, []ledger.Event{out("well")}, false},
		"the same, and a hold":                  {"well", ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{out("well")}, false},
		"the same, and another's attachment":    {"", ledger.Hold{}, []ledger.Event{out("well"), attachment(false)}, false},
		"the same, and an own attachment":       {"", ledger.Hold{}, []ledger.Event{out("well"), attachment(true)}, true},
		"the same, and a creation is under way": {"", ledger.Hold{}, []ledger.Event{out("well"), ledger.AttachSent{Volume: id, Node: "well"}}, true},
		"the same, and what was left":           {"dead", ledger.Hold{State: ledger.HoldUnknown, Stays: true}, []ledger.Event{out("well")}, true},
		"nobody, and a hold":                    {"well", ledger.Hold{State: ledger.HoldHeld}, []ledger.Event{ledger.PodGone{UID: "p"}}, true},
		"nobody, and a hold that names no node": {"", ledger.Hold{State: ledger.HoldFree}, []ledger.Event{ledger.PodGone{UID: "p"}}, false},
		"somebody who has opted in":             {"", ledger.Hold{}, nil, true},
	} {
		s, v, _ := concerned(t, "well", test.heldAt, test.hold, func(l *ledger.Ledger) {
			for _, e := range test.facts {
				l.Apply(auditTime, e)
			}
		})
		if got := (Arbiter{Cooperative: true}).planner(s, v, auditTime).adopted(); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
		if !(Arbiter{}).planner(s, v, auditTime).adopted() {
			t.Errorf("%s: not Moorage's in Standalone mode", name)
		}
	}
}
