// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// An unbound claim is in order if its class waits for the first consumer.
func TestBrokenNeeds(t *testing.T) {
	of := func(class string) *ledger.Claim { return &ledger.Claim{Class: class} }
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, ledger.StorageClass{Name: "wait", Version: "1", Driver: "d", WaitForFirst: true}, ledger.StorageClass{Name: "now", Version: "1", Driver: "d"})
	for name, test := range map[string]struct {
		need Need
		want ledger.Code
		why  string
	}{
		"a volume":                 {Need{Link: ledger.LinkVolume, Volume: disk}, "", ""},
		"no claim":                 {Need{Link: ledger.LinkMissing}, ClaimMissing, ""},
		"somebody else's claim":    {Need{Link: ledger.LinkMissing, Claim: of("")}, ClaimMissing, notTheirs},
		"a lost claim":             {Need{Link: ledger.LinkLost, Claim: of("")}, ClaimLost, ""},
		"a volume not seen":        {Need{Link: ledger.LinkUnseen, Claim: of("")}, VolumeMissing, ""},
		"a claim that goes":        {Need{Link: ledger.LinkVolume, Volume: disk, Claim: &ledger.Claim{Deleting: true}}, ClaimDeleting, ""},
		"unbound, it waits":        {Need{Link: ledger.LinkUnbound, Claim: of("wait")}, "", ""},
		"unbound, it has to be":    {Need{Link: ledger.LinkUnbound, Claim: of("wait"), Bound: true}, ClaimUnbound, ""},
		"unbound, it is under way": {Need{Link: ledger.LinkUnbound, Claim: of("now")}, ClaimUnbound, ""},
		"unbound, of no class":     {Need{Link: ledger.LinkUnbound, Claim: of("unknown")}, ClaimUnbound, ""},
		"unbound, and no claim":    {Need{Link: ledger.LinkUnbound}, ClaimUnbound, ""},
	} {
		test.need.Name = "data"
		var want []Reason
		if test.want != "" {
			want = []Reason{{Code: test.want, Volume: test.need.Volume, Claim: "data", Detail: test.why}}
		}
		if got := test.need.broken(p.snapshot, p.snapshot.Volume(test.need.Volume)); !slices.Equal(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
		r := Request{Needs: []Need{{Volume: disk}, test.need}}
		if got := (Arbiter{}).Admissible(p.snapshot, r); got.First().Code != test.want {
			t.Errorf("%s, anywhere: %+v", name, got)
		}
	}
}

func TestWhereARequestFits(t *testing.T) {
	zone := ledger.PersistentVolume{Name: "pv", Version: "2", Volume: disk, Access: ledger.AccessNode, Claim: ledger.ClaimKey{Namespace: "shop", Name: "data"},
		Affinity: ledger.NewNodeAffinity(ledger.NodeTerm{Labels: []ledger.NodeRequirement{{Key: "zone", Operator: ledger.NodeExists}}})}
	there := []ledger.Event{alive, madeAt("dead"), dataAt("q", "dead", ledger.PodLive)}
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  []ledger.Code
	}{
		"nothing":                           {nil, nil},
		"somebody has it":                   {there, []ledger.Code{HeldElsewhere}},
		"somebody has it, attached by none": {append(there, noAttach), nil},
		"the volume can't be used":          {[]ledger.Event{zone}, []ledger.Code{NodeExcluded}},
		"can't be used, attached by none":   {[]ledger.Event{zone, noAttach}, nil},
		"the node is fenced":                {[]ledger.Event{nodeAs("well", outOfOrder)}, []ledger.Code{NodeFenced}},
		"fenced, and attached by none":      {[]ledger.Event{nodeAs("well", outOfOrder), noAttach}, nil},
		"fenced, and shared":                {[]ledger.Event{nodeAs("well", outOfOrder), sharedDisk}, nil},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, test.facts...)
		v := Arbiter{}.Fit(p.snapshot, PodRequest(p.snapshot, p.snapshot.Pod("p")), "well", auditTime)
		if got := codes(v.Reasons); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if first := v.First(); !v.Allowed() && (first.Volume != disk || first.Claim != "data") {
			t.Errorf("%s: %+v", name, first)
		}
	}
}

// Pods of a dry run with such claims don't block each other.
func TestClaimsOfNoDriverAreApart(t *testing.T) {
	claim := func(name string) ledger.Event {
		return ledger.Claim{Key: ledger.ClaimKey{Namespace: "shop", Name: name}, UID: name, Version: "1", Class: "later", Access: ledger.AccessNode}
	}
	pod := func(name string) ledger.Event {
		return ledger.Pod{UID: name, Version: "1", Namespace: "shop", Name: name, Volumes: []ledger.PodVolume{{Name: "v", Claim: name}}}
	}
	later := ledger.StorageClass{Name: "later", Version: "1", WaitForFirst: true}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, alive, later, claim("a"), claim("b"), pod("a"), pod("b"))
	d := &ledger.Delta{}
	d.Add("b", "dead")
	s := p.snapshot.With(d)
	if v := (Arbiter{}).Fit(s, PodRequest(s, s.Pod("a")), "well", auditTime); !v.Allowed() {
		t.Errorf("%+v", v)
	}
}

// A live migration and its followers are not limited to the volume's node.
func TestNodesOfARequest(t *testing.T) {
	migrate := ledger.Policy{Name: "p", Version: "1", Driver: "d", LiveMigration: true}
	there := []ledger.Event{madeAt("dead"), dataAt("q", "dead", ledger.PodLive)}
	for name, test := range map[string]struct {
		kind  ledger.TicketType
		facts []ledger.Event
		want  ledger.NodeName
	}{
		"nobody has it":                  {ledger.TypeManual, nil, ""},
		"somebody has it":                {ledger.TypeManual, there, "dead"},
		"has it, and it is shared":       {ledger.TypeManual, append(there[:2:2], sharedDisk), ""},
		"has it, and attaches nothing":   {ledger.TypeManual, append(there[:2:2], noAttach), ""},
		"has it, and this one migrates":  {ledger.TypeLiveMigration, append(there[:2:2], migrate), ""},
		"has it, and none may migrate":   {ledger.TypeLiveMigration, there, "dead"},
		"has it, and another migrates":   {ledger.TypeManual, append(there[:2:2], migrate, migration("m", "well", ledger.TicketGranted)), ""},
		"has it, and another may do so":  {ledger.TypeManual, append(there[:2:2], migrate), "dead"},
		"has it, and another is to wait": {ledger.TypeManual, append(there[:2:2], migrate, migration("m", "well", ledger.TicketPending)), "dead"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{State: ledger.HoldFree}, append([]ledger.Event{alive}, test.facts...)...)
		r := needing("d/none", "d/h")
		r.Type, r.Created = test.kind, 9
		if got, narrowed := (Arbiter{}).Nodes(p.snapshot, r, auditTime); got != test.want || narrowed != (test.want != "") {
			t.Errorf("%s: %q (%t), want %q", name, got, narrowed, test.want)
		}
	}
}
