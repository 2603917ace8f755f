// SPDX-License-Identifier: Apache-2.0

package rules

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

// The lesser number, minus the free slots.
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

// A class inherits slots and calls.
func TestPolicyOfAClassInherits(t *testing.T) {
	short, long, slots := time.Minute, time.Hour, int32(3)
	all := ledger.Policy{
		Name: "all", Version: "1", Driver: "d", DetachDelay: short,
		LiveMigration: true, AfterPodGone: &short, AfterUnreachable: &short, MaxSlots: &slots, Headroom: 2,
	}
	says := ledger.FieldDetachDelay | ledger.FieldLiveMigration
	for name, test := range map[string]struct{ class, want ledger.Policy }{
		"nothing said": {ledger.Policy{}, all},
		"nothing is to be so": {ledger.Policy{Says: says}, ledger.Policy{
			AfterPodGone: &short, AfterUnreachable: &short, MaxSlots: &slots, Headroom: 2, Says: says}},
		"all said otherwise": {ledger.Policy{DetachDelay: long, AfterPodGone: &long, AfterUnreachable: &long, Headroom: 9},
			ledger.Policy{DetachDelay: long, LiveMigration: true,
				AfterPodGone: &long, AfterUnreachable: &long, MaxSlots: &slots, Headroom: 2}},
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
