// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Taint and time prove something only if a policy says that unpublishing cuts the machine off.
func TestUnpublishFences(t *testing.T) {
	off := func(n *ledger.NodeState) { n.Ready, n.Shutdown = ledger.ReadyUnknown, true }
	minute := time.Minute
	policy := func(change func(*ledger.Policy)) ledger.Event {
		p := ledger.Policy{Name: "p", Version: "1", Driver: "d"}
		change(&p)
		return p
	}
	cuts := func(p *ledger.Policy) { p.UnpublishFences = true }
	timed := func(p *ledger.Policy) { p.AfterUnreachable = &minute }
	both := func(p *ledger.Policy) { cuts(p); timed(p) }
	user := dataAt("q", "dead", ledger.PodLive)
	theirs := ledger.Attachment{Name: "theirs", UID: "f", Version: "1", Driver: "d", Node: "dead", PersistentVolume: "pv", Attached: true}
	taken := func(rule string) ledger.Hold {
		return ledger.Hold{Fences: []ledger.Fence{{Node: "dead", NodeUID: "x", Rule: rule, Since: 40, Renewed: 7}}}
	}
	left := func(h ledger.Hold) ledger.Hold { h.Stays = true; return h }
	outage := func(n *ledger.NodeState) { silent(n); n.ReadySince = 40 }
	for name, test := range map[string]struct {
		hold  ledger.Hold
		facts []ledger.Event
		want  string // the rule that holds a minute later; empty: none
	}{
		"no policy":                        {ledger.Hold{}, []ledger.Event{nodeAs("dead", off), madeAt("dead"), user}, ""},
		"the taint":                        {ledger.Hold{}, []ledger.Event{policy(cuts), nodeAs("dead", off), madeAt("dead"), user}, NodeShutdown},
		"the taint, a time does not prove": {ledger.Hold{}, []ledger.Event{policy(timed), nodeAs("dead", off), madeAt("dead"), user}, AfterUnreachable},
		"no taint, no time":                {ledger.Hold{}, []ledger.Event{policy(cuts), nodeAs("dead", silent), madeAt("dead"), user}, ""},
		"a time":                           {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", silent), madeAt("dead"), user}, UnpublishFences},
		"out of service, too":              {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", outOfOrder), madeAt("dead"), user}, OutOfService},
		"the Node is gone":                 {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", off), madeAt("dead"), user, ledger.NodeGone{Name: "dead"}}, UnpublishFences},
		"Ready":                            {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", off), nodeAs("dead", func(n *ledger.NodeState) { n.Shutdown, n.Version = true, "7" }), madeAt("dead"), user}, ""},
		"nothing there but a pod":          {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", silent), user}, UnpublishFences},
		"in use without an attachment":     {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", silent, using), user}, AfterUnreachable},
		"reported without an attachment":   {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", off, reporting), user}, AfterUnreachable},
		"another's attachment":             {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", off), theirs, user}, AfterUnreachable},
		"a creation in flight":             {ledger.Hold{}, []ledger.Event{policy(both), nodeAs("dead", off), user, ledger.AttachSent{Volume: disk, Node: "dead"}}, AfterUnreachable},
		"left there without an attachment": {left(ledger.Hold{}), []ledger.Event{policy(both), nodeAs("dead", off), user}, AfterUnreachable},
		"in use, taken by it":              {taken(UnpublishFences), []ledger.Event{policy(both), nodeAs("dead", outage, using), user}, UnpublishFences},
		"in use, taken by time":            {taken(AfterUnreachable), []ledger.Event{policy(both), nodeAs("dead", outage, using), user}, AfterUnreachable},
		"in use, taken in another outage":  {taken(UnpublishFences), []ledger.Event{policy(both), nodeAs("dead", silent, using), user}, AfterUnreachable},
		"taken by it in this outage":       {taken(UnpublishFences), []ledger.Event{nodeAs("dead", outage, using), ledger.NodeLease{Node: "dead", Renewed: 7}, user}, UnpublishFences},
		"taken by it, and left there":      {left(taken(UnpublishFences)), []ledger.Event{nodeAs("dead", outage, using), ledger.NodeLease{Node: "dead", Renewed: 7}, user}, ""},
		"taken by time, and left there":    {left(taken(AfterUnreachable)), []ledger.Event{nodeAs("dead", outage, using), ledger.NodeLease{Node: "dead", Renewed: 7}, user}, AfterUnreachable},
	} {
		p := plannerOf(t, Arbiter{}, "dead", test.hold, test.facts...)
		got := fence(p.snapshot, p.volume, "dead", p.now.Add(minute))
		if !got.over() {
			got.Rule = ""
		}
		if got.Rule != test.want {
			t.Errorf("%s: by %q, want %q", name, got.Rule, test.want)
		}
	}
}

func TestUnpublishOfWhatNeedsNoAttachment(t *testing.T) {
	v := &ledger.Volume{ID: ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}}
	if unpublishCuts(ledger.Snapshot{}, v, nil, nil) || unpublishCuts(ledger.Snapshot{}, v, &ledger.VolumeOnNode{}, nil) {
		t.Error("the unpublish of an iSCSI volume takes no access away")
	}
}

// Time alone proves nothing.
func TestProves(t *testing.T) {
	for rule, want := range map[string]bool{OutOfService: true, FencedCondition: true, NetworkFence: true, NodeShutdown: true, UnpublishFences: true, AfterPodGone: false, AfterUnreachable: false, "": false} {
		if Proves(rule) != want {
			t.Errorf("%q proves: %t", rule, !want)
		}
	}
}
