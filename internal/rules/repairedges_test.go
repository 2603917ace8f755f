// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// repairable are facts that permit to unstage the volume, which node well's kubelet has forgotten.
func repairable(more ...ledger.Event) []ledger.Event {
	return append([]ledger.Event{ledger.Policy{Name: "p", Version: "1", Driver: "d", RepairStaged: true}, again(), madeAt("well"), says(canUnstage)}, more...)
}

// canUnstage has a report say that the volume is forgotten and can be unstaged.
func canUnstage(w *ledger.NodeWord) {
	hasLooked(w)
	forgot(w)
	w.Repairable = w.Has
}

// proved has a place prove that the volume has left it.
func proved(p *ledger.NodeVolume) { p.Proof = ledger.Proof{Stage: ledger.ProofUnreported, Look: 1} }

// A volume that has left volumesAttached is provably unused only by the kubelet's word and a later look,
// without users, if the policy has it unstaged.
func TestAbandonedAt(t *testing.T) {
	for name, test := range map[string]struct {
		facts  []ledger.Event
		change func(*ledger.NodeVolume)
		want   bool
	}{
		"it is proved":                  {repairable(), func(*ledger.NodeVolume) {}, true},
		"and no pod wants it":           {repairable(), func(p *ledger.NodeVolume) { p.Proof.Stage = ledger.ProofUnwanted }, true},
		"the driver attaches nothing":   {repairable(noAttach), func(*ledger.NodeVolume) {}, false},
		"the policy does not have it":   {repairable(ledger.PolicyGone{Name: "p"}), func(*ledger.NodeVolume) {}, false},
		"one user":                      {repairable(), func(p *ledger.NodeVolume) { p.Users = []ledger.User{{Pod: "q"}} }, false},
		"the kubelet lists it":          {repairable(), func(p *ledger.NodeVolume) { p.InUse = true }, false},
		"nothing is proved":             {repairable(), func(p *ledger.NodeVolume) { p.Proof.Stage = ledger.ProofNone }, false},
		"by a rule of force":            {repairable(), func(p *ledger.NodeVolume) { p.Proof.Forced = true }, false},
		"it has not looked":             {repairable(), func(p *ledger.NodeVolume) { p.Proof.Look = 2 }, false},
		"what the list says is doubted": {append(inDoubt(), repairable()...), func(*ledger.NodeVolume) {}, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		place := *p.at("well")
		proved(&place)
		test.change(&place)
		if name == "what the list says is doubted" {
			place.InUse = false
		}
		if got := p.abandonedAt(p.snapshot.Node("well"), &place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// An order goes only to a node that exists and reports that it can carry it out, a limited number at a
// time.
func TestOrderable(t *testing.T) {
	same := func(*ledger.NodeVolume) {}
	node := func(change func(*ledger.Node)) func(*ledger.Node) { return change }
	full := func(standing int) func(*ledger.NodeWord) {
		return func(w *ledger.NodeWord) {
			for i := range standing {
				w.Orders = append(w.Orders, ledger.UnstageOrder{Volume: ledger.VolumeID{Driver: "e", Handle: string(rune('A' + i))}, Number: int64(i + 1)})
			}
		}
	}
	words := func(changes ...func(*ledger.NodeWord)) []ledger.Event {
		return repairable(says(append([]func(*ledger.NodeWord){canUnstage, func(w *ledger.NodeWord) { w.Version = "2" }}, changes...)...))
	}
	for name, test := range map[string]struct {
		facts  []ledger.Event
		node   func(*ledger.Node)
		change func(*ledger.NodeVolume)
		want   bool
	}{
		"it is":                            {words(), nil, same, true},
		"the Node is gone":                 {words(), node(func(n *ledger.Node) { n.Exists = false }), same, false},
		"another controller's":             {words(), node(func(n *ledger.Node) { n.Managed = false }), same, false},
		"not Ready":                        {words(), node(func(n *ledger.Node) { n.Ready = ledger.ReadyUnknown }), same, false},
		"it is listed as attached":         {words(), nil, func(p *ledger.NodeVolume) { p.Reported = true }, false},
		"it can't read everything":         {words(partly), nil, same, false},
		"it may not":                       {words(func(w *ledger.NodeWord) { w.Repairs = false }), nil, same, false},
		"one order less than there may be": {words(full(MaxOrders - 1)), nil, same, true},
		"as many as there may be":          {words(full(MaxOrders)), nil, same, false},
		"it could not unstage it":          {words(func(w *ledger.NodeWord) { w.Repairable = nil }), nil, same, false},
		"somebody wants it":                {words(), nil, func(p *ledger.NodeVolume) { p.Users = []ledger.User{{Pod: "q"}} }, false},
		"wanted, and a call is unanswered": {words(isCalling), nil, func(p *ledger.NodeVolume) { p.Users = []ledger.User{{Pod: "q"}} }, true},
		"a call is, and nothing is proved": {words(isCalling), nil, func(p *ledger.NodeVolume) { p.Proof = ledger.Proof{} }, true},
		"unanswered, and listed":           {words(isCalling), nil, func(p *ledger.NodeVolume) { p.Reported = true }, false},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		n, place := *p.snapshot.Node("well"), *p.at("well")
		proved(&place)
		test.change(&place)
		if test.node != nil {
			test.node(&n)
		}
		if got := p.orderable(&n, &place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A forgotten volume is confirmed to be unwanted, then ordered to be unstaged, with a pause after a failed
// order. An outdated order is withdrawn.
func TestRepair(t *testing.T) {
	unwanted := func(p *ledger.NodeVolume) { p.Proof.Stage = ledger.ProofUnwanted }
	same := func(*ledger.NodeVolume) {}
	stands := says(canUnstage, ordered, func(w *ledger.NodeWord) { w.Version = "2" })
	calls := says(canUnstage, isCalling, func(w *ledger.NodeWord) { w.Version = "2" })
	failedBefore := ledger.UnstageNotOrdered{Volume: disk, Node: "well"}
	for name, test := range map[string]struct {
		arbiter Arbiter
		facts   []ledger.Event
		change  func(*ledger.NodeVolume)
		want    Action
		recheck time.Duration
	}{
		"it is not confirmed":               {Arbiter{}, repairable(), same, ConfirmUnwanted, 0},
		"nobody wants it":                   {Arbiter{}, repairable(), unwanted, OrderUnstage, 0},
		"beside another controller":         {Arbiter{Cooperative: true}, repairable(), unwanted, 0, 0},
		"nobody says anything":              {Arbiter{}, []ledger.Event{again(), madeAt("well")}, unwanted, 0, 0},
		"an order stands":                   {Arbiter{}, repairable(stands), unwanted, 0, 0},
		"it stands, and somebody wants it":  {Arbiter{}, repairable(stands), func(p *ledger.NodeVolume) { p.Users = []ledger.User{{Pod: "q"}} }, WithdrawUnstage, 0},
		"a call is not answered":            {Arbiter{}, repairable(calls), same, OrderUnstage, 0},
		"an order led to nothing":           {Arbiter{}, repairable(failedBefore), unwanted, 0, 10 * time.Second},
		"so it did, and hurried":            {Arbiter{Hurried: true}, repairable(failedBefore), unwanted, OrderUnstage, 0},
		"it did, and it is not confirmed":   {Arbiter{}, repairable(failedBefore), same, 0, 10 * time.Second},
		"there is no attachment to confirm": {Arbiter{}, repairable(ledger.AttachmentGone{Name: ledger.AttachmentName(disk, "well")}, dataAt("q", "well", ledger.PodLive)), func(p *ledger.NodeVolume) { p.Users = nil }, 0, 0},
	} {
		p := plannerOf(t, test.arbiter, "", ledger.Hold{}, test.facts...)
		place := *p.at("well")
		proved(&place)
		test.change(&place)
		p.repair(&place)
		if got := only(p); got != test.want {
			t.Errorf("%s: %+v, want %s", name, p.plan.Steps, test.want)
		}
		if got := p.plan.Recheck; got.IsZero() != (test.recheck == 0) || test.recheck != 0 && !got.Equal(p.now.Add(test.recheck)) {
			t.Errorf("%s: looked at again in %s", name, got.Sub(p.now))
		}
	}
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, repairable()...)
	place := *p.at("well")
	place.Proof.Stage = ledger.ProofUnwanted
	p.volume = &ledger.Volume{ID: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}}
	if p.repair(&place); len(p.plan.Steps) > 0 {
		t.Errorf("what has no attachment is unstaged: %+v", p.plan.Steps)
	}
}

// An order is of one boot.
func TestOrderOfAnotherBoot(t *testing.T) {
	p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, repairable()...)
	place := *p.at("well")
	proved(&place)
	for boot, want := range map[string]bool{"b": true, "a": false, "": false} {
		if got := p.orderLasts(p.snapshot.Node("well"), &place, ledger.UnstageOrder{Volume: disk, Number: 1, BootID: boot, KubeletStarted: 1}); got != want {
			t.Errorf("an order of boot %q lasts: %t", boot, got)
		}
	}
}

// The message about a volume found at a node says that it will be unstaged, if that is so.
func TestUnstagedAt(t *testing.T) {
	for name, test := range map[string]struct {
		facts []ledger.Event
		want  string
	}{
		"it is":                        {repairable(), "moorage-node is to unstage it"},
		"the policy does not have it":  {repairable(ledger.PolicyGone{Name: "p"}), ""},
		"it may not":                   {repairable(says(func(w *ledger.NodeWord) { w.Version, w.Repairs = "2", false })), ""},
		"a record may be of it":        {repairable(says(func(w *ledger.NodeWord) { w.Version = "2"; w.Unread = []ledger.Unread{{PersistentVolume: "pv"}} })), ""},
		"the policy ends, and ordered": {repairable(ledger.PolicyGone{Name: "p"}, says(ordered, func(w *ledger.NodeWord) { w.Version = "2" })), "moorage-node is to unstage it"},
		"it could not":                 {repairable(ledger.UnstageNotOrdered{Volume: disk, Node: "well"}), "moorage-node is to unstage it, and could not yet: the API server refuses the order"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, test.facts...)
		if got := unstagedAt(p.snapshot, p.volume, p.snapshot.Node("well")); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
		if got := unstagedAt(p.snapshot, p.volume, nil); got != "" {
			t.Errorf("%s, of a node that nobody knows: %q", name, got)
		}
	}
}

// The message about an unanswered call says that no retry follows if moorage-node can't read everything
// about the volume.
func TestCallsAgain(t *testing.T) {
	const cant = "moorage-node there can't read everything that may be about the volume, which its NodeVolumes has, and calls nobody until it can"
	for name, test := range map[string]struct {
		word func(*ledger.NodeWord)
		want string
	}{
		"it calls":                   {func(*ledger.NodeWord) {}, "moorage-node goes on to call it"},
		"not everything is read":     {partly, cant},
		"no start of the kubelet is": {func(w *ledger.NodeWord) { w.KubeletStarted = 0 }, cant},
		"a record may be of it":      {func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "pv"}} }, cant},
		"it may not":                 {func(w *ledger.NodeWord) { w.Repairs = false }, "moorage-node there does not call it any more: it runs without --repair"},
	} {
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, machineSpeaks(test.word)...)
		if got := callsAgain(p.snapshot.Node("well"), disk, auditTime); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
