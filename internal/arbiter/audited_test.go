// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

var (
	auditTime = time.Unix(1000, 0)
	audited   = ledger.VolumeID{Driver: "d", Handle: "h"}
)

// audit is what Audit finds wrong with a volume, by its invariants.
func audit(a Arbiter, access ledger.Access, events ...ledger.Event) []string {
	l := ledger.New()
	l.Apply(auditTime, ledger.PersistentVolume{Name: "pv", Version: "1", Volume: audited, Access: access})
	for _, n := range []ledger.NodeName{"n1", "n2", "n3"} {
		l.Apply(auditTime, ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
	}
	for _, e := range events {
		l.Apply(auditTime, e)
	}
	var found []string
	for _, v := range a.AuditVolume(l.Snapshot(), audited, auditTime) {
		found = append(found, v.Invariant)
	}
	return found
}

func auditedAttachment(n ledger.NodeName, change func(*ledger.Attachment)) ledger.Attachment {
	a := ledger.Attachment{Name: ledger.AttachmentName(audited, n), UID: string(n), Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Attached: true}
	change(&a)
	return a
}

// What Audit takes for broken, and what may be seen for a while though all is well.
func TestWhatAuditFinds(t *testing.T) {
	at := func(n ledger.NodeName) ledger.Event { return auditedAttachment(n, func(*ledger.Attachment) {}) }
	begun := auditedAttachment("n1", func(a *ledger.Attachment) { a.Attached = false })
	leaving := auditedAttachment("n1", func(a *ledger.Attachment) { a.Attached, a.Deleting = false, true })
	foreign := auditedAttachment("n1", func(a *ledger.Attachment) { a.Attached, a.Name = false, "foreign" })
	reports := ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, Reported: []ledger.VolumeID{audited}}
	fenced := ledger.NodeState{Name: "n2", UID: "n2", Version: "2", Ready: ledger.ReadyUnknown, OutOfService: true, Managed: true, Reporting: true}
	migrates := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	target := ledger.Ticket{ID: ledger.TicketID{Namespace: "s", Name: "m"}, UID: "m", Version: "1", Type: ledger.TypeLiveMigration, Node: "n3", Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{PersistentVolume: "pv"}}}
	user := ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "p", Node: "n2", Volumes: []ledger.PodVolume{{Name: "v", Inline: audited}}}
	cooperative := Arbiter{Cooperative: true}
	for name, test := range map[string]struct {
		arbiter Arbiter
		access  ledger.Access
		events  []ledger.Event
		want    []string
	}{
		"attached":                             {Arbiter{}, ledger.AccessNode, []ledger.Event{at("n1"), reports}, nil},
		"reported before it is attached":       {Arbiter{}, ledger.AccessNode, []ledger.Event{begun, reports}, []string{"I5"}},
		"so by the other controller":           {cooperative, ledger.AccessNode, []ledger.Event{begun, reports}, nil},
		"not reported":                         {Arbiter{}, ledger.AccessNode, []ledger.Event{begun}, nil},
		"reported while it leaves":             {Arbiter{}, ledger.AccessNode, []ledger.Event{leaving, reports}, nil},
		"reported from before it was made":     {Arbiter{}, ledger.AccessNode, []ledger.Event{at("n1"), reports, ledger.AttachmentGone{Name: ledger.AttachmentName(audited, "n1")}, begun}, nil},
		"reported of somebody else's":          {Arbiter{}, ledger.AccessNode, []ledger.Event{foreign, reports}, nil},
		"at two nodes":                         {Arbiter{}, ledger.AccessNode, []ledger.Event{at("n1"), at("n2")}, []string{"I1"}},
		"at two nodes, for one pod":            {Arbiter{}, ledger.AccessPod, []ledger.Event{at("n1"), at("n2")}, []string{"I1"}},
		"at two nodes, of which one is fenced": {Arbiter{}, ledger.AccessNode, []ledger.Event{at("n1"), at("n2"), fenced}, nil},
		"at two nodes, shared":                 {Arbiter{}, ledger.AccessMany, []ledger.Event{at("n1"), at("n2")}, nil},
		"at two nodes, who knows how":          {Arbiter{}, ledger.AccessUnknown, []ledger.Event{at("n1"), at("n2")}, nil},
		"at two nodes, in migration":           {Arbiter{}, ledger.AccessNode, []ledger.Event{migrates, at("n1"), at("n2")}, nil},
		"at three nodes, in migration":         {Arbiter{}, ledger.AccessNode, []ledger.Event{migrates, at("n1"), at("n2"), at("n3")}, []string{"I1"}},
		"at three nodes, of which one is next": {Arbiter{}, ledger.AccessNode, []ledger.Event{migrates, target, at("n1"), at("n2"), at("n3")}, nil},
		"at one node, and used at another":     {Arbiter{}, ledger.AccessNode, []ledger.Event{user, at("n1")}, nil},
	} {
		if got := audit(test.arbiter, test.access, test.events...); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
	if got := (Arbiter{}).AuditVolume(ledger.New().Snapshot(), audited, auditTime); got != nil {
		t.Errorf("of a volume that nobody knows: %v", got)
	}
}

// A reservation names what needs an attachment, and by what a later object of the name
// is told apart.
func TestReservation(t *testing.T) {
	l := ledger.New()
	pod := ledger.Pod{UID: "p", Version: "1", Namespace: "s", Name: "web", Created: 7, Volumes: []ledger.PodVolume{
		{Name: "a", Claim: "data"}, {Name: "b", Claim: "nfs"}, {Name: "c", Inline: ledger.VolumeID{Driver: "d", Handle: "i"}}, {Name: "e"}, {Name: "f", Inline: ledger.VolumeID{Driver: "files", Handle: "i"}},
	}}
	key := func(name string) ledger.ClaimKey { return ledger.ClaimKey{Namespace: "s", Name: name} }
	for _, e := range []ledger.Event{
		ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
		ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 2}}},
		ledger.PersistentVolume{Name: "pv", Version: "1", Volume: audited, Access: ledger.AccessNode, Claim: key("data")},
		ledger.PersistentVolume{Name: "nfs", Version: "1", Claim: key("nfs")},
		ledger.Driver{Name: "files", Version: "1"},
		ledger.Claim{Key: key("data"), UID: "c1", Version: "1", Bound: true, PersistentVolume: "pv"},
		ledger.Claim{Key: key("nfs"), UID: "c2", Version: "1", Bound: true, PersistentVolume: "nfs"},
		pod,
	} {
		l.Apply(auditTime, e)
	}
	tickets, v := Arbiter{}.Reserve(l.Snapshot(), &pod, "n1", "moorage-scheduler", auditTime)
	want := ledger.Ticket{
		ID: ledger.TicketID{Namespace: "s", Name: "p"}, Type: ledger.TypePod, Node: "n1", Scheduler: "moorage-scheduler", Pod: "p", PodName: "web", Created: 7,
		Volumes: []ledger.TicketVolume{{Claim: "data", ClaimUID: "c1"}, {PodVolume: "c"}},
	}
	if !v.Allowed() || len(tickets) != 1 || !reflect.DeepEqual(tickets[0], want) {
		t.Errorf("%s: %+v, want %+v", v.Outcome, tickets, want)
	}
	pod.Volumes = pod.Volumes[1:2]
	if tickets, v := (Arbiter{}).Reserve(l.Snapshot(), &pod, "n1", "", auditTime); !v.Allowed() || tickets != nil {
		t.Errorf("nothing to attach: %s, %+v", v.Outcome, tickets)
	}
	l.Apply(auditTime, ledger.NodeDrivers{Node: "n1", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "d", Limit: 0}}})
	pod.Volumes = []ledger.PodVolume{{Name: "a", Claim: "data"}}
	if tickets, v := (Arbiter{}).Reserve(l.Snapshot(), &pod, "n1", "", auditTime); v.Allowed() || tickets != nil {
		t.Errorf("a full node: %s, %+v", v.Outcome, tickets)
	}
}

// A node's slots are what the driver says or the policy, whichever is less, but for those
// that are kept free.
func TestLimit(t *testing.T) {
	most := func(n int32) *int32 { return &n }
	for _, test := range []struct {
		driver   int32
		max      *int32
		headroom int32
		want     int32
	}{
		{ledger.NoLimit, nil, 0, ledger.NoLimit}, {ledger.NoLimit, nil, 2, ledger.NoLimit},
		{5, nil, 0, 5}, {5, nil, 2, 3}, {5, nil, 5, 0}, {5, nil, 9, 0}, {0, nil, 0, 0}, {0, nil, 1, 0},
		{5, most(3), 0, 3}, {3, most(5), 0, 3}, {5, most(5), 1, 4}, {ledger.NoLimit, most(4), 1, 3}, {5, most(0), 0, 0},
	} {
		policy := ledger.Policy{MaxSlots: test.max, Headroom: test.headroom}
		if got := Limit(ledger.NodeDriver{DriverOnNode: ledger.DriverOnNode{Limit: test.driver}}, policy); got != test.want {
			t.Errorf("%+v: %d slots, want %d", test, got, test.want)
		}
	}
}

// A policy of a class says what it says, and leaves the rest to the one for all of its
// driver, of which alone are a node's slots and the driver's calls.
func TestPolicyOfAClassInherits(t *testing.T) {
	short, long, slots := time.Minute, time.Hour, int32(3)
	all := ledger.Policy{
		Name: "all", Version: "1", Driver: "d", DetachDelay: short, BindUngranted: true, EmptyIsExclusive: true,
		LiveMigration: true, AfterPodGone: &short, AfterUnreachable: &short, GrantTimeout: short, MaxSlots: &slots, Headroom: 2,
	}
	says := ledger.FieldDetachDelay | ledger.FieldOnControllerDown | ledger.FieldEmptyAccessModes | ledger.FieldLiveMigration
	for name, test := range map[string]struct{ class, want ledger.Policy }{
		"nothing said": {ledger.Policy{}, all},
		"nothing is to be so": {ledger.Policy{Says: says}, ledger.Policy{
			AfterPodGone: &short, AfterUnreachable: &short, GrantTimeout: short, MaxSlots: &slots, Headroom: 2, Says: says}},
		"all said otherwise": {ledger.Policy{DetachDelay: long, AfterPodGone: &long, AfterUnreachable: &long, GrantTimeout: long, Headroom: 9},
			ledger.Policy{DetachDelay: long, BindUngranted: true, EmptyIsExclusive: true, LiveMigration: true,
				AfterPodGone: &long, AfterUnreachable: &long, GrantTimeout: long, MaxSlots: &slots, Headroom: 2}},
	} {
		l := ledger.New()
		l.Apply(auditTime, all)
		test.class.Name, test.class.Version, test.class.Driver, test.class.Class = "fast", "2", "d", "fast"
		l.Apply(auditTime, test.class)
		got := PolicyFor(l.Snapshot(), "d", "fast")
		test.want.Name, test.want.Version, test.want.Driver, test.want.Class = got.Name, got.Version, got.Driver, got.Class
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
		if got := PolicyFor(l.Snapshot(), "d", ""); got.Name != "all" {
			t.Errorf("%s: without a class %q applies", name, got.Name)
		}
		if got := PolicyFor(l.Snapshot(), "d", "slow"); got.Name != "all" {
			t.Errorf("%s: to another class %q applies", name, got.Name)
		}
		if got := PolicyFor(l.Snapshot(), "e", "fast"); got.Name != "" || got.Driver != "e" {
			t.Errorf("%s: to another driver %+v applies", name, got)
		}
	}
}
