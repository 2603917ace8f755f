// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

func TestFreesSlots(t *testing.T) {
	old := ledger.VolumeID{Driver: "disk", Handle: "old"}
	left := ledger.Attachment{Name: ledger.AttachmentName(old, "n1"), UID: "va", Version: "1", Driver: "disk", Node: "n1", PersistentVolume: "pv-old", Ours: true, Attached: true}
	user := func(phase ledger.PodPhase) ledger.Pod {
		return ledger.Pod{UID: "user", Version: "1", Namespace: namespace, Name: "user", Node: "n1", Phase: phase, Volumes: []ledger.PodVolume{{Name: "v", Claim: "old"}}}
	}
	labelled := func(phase ledger.PodPhase) []ledger.Event {
		p := user(phase)
		p.Volumes = []ledger.PodVolume{{Name: "v", Claim: "new", SELinux: ledger.SELinuxLabel("", "s0:c1")}}
		return []ledger.Event{p, ledger.Driver{Name: "disk", Version: "1", AttachRequired: true, SELinuxMount: true},
			ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, SELinuxMount: true}}
	}
	for name, test := range map[string]struct {
		events []ledger.Event
		want   bool
	}{
		"who mounts it with another label goes":  {labelled(ledger.PodTerminating), true},
		"who mounts it with another label stays": {labelled(ledger.PodLive), false},
		"the node has room":                      {nil, false},
		"nobody uses what is there":              {[]ledger.Event{left}, true},
		"its detach is under way":                {[]ledger.Event{left, ledger.NodeState{Name: "n1", UID: "n1", Version: "2", Ready: ledger.ReadyTrue, Managed: true, Reporting: true, InUse: []ledger.VolumeID{old}}}, true},
		"its user is about to go":                {[]ledger.Event{left, user(ledger.PodTerminating)}, true},
		"its user has ended":                     {[]ledger.Event{left, user(ledger.PodFinished)}, true},
		"its user stays":                         {[]ledger.Event{left, user(ledger.PodLive)}, false},
		"no volume may be there":                 {[]ledger.Event{left, ledger.NodeDrivers{Node: "n1", Version: "2", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n1", Limit: 0}}}}, false},
		"the driver is not there":                {[]ledger.Event{left, ledger.NodeDrivers{Node: "n1", Version: "2"}}, true},
		"the driver is not there, and has to be": {[]ledger.Event{left, ledger.NodeDrivers{Node: "n1", Version: "2"}, ledger.Driver{Name: "disk", Version: "1", AttachRequired: true, NeedsNode: true}}, false},
		"the node is not there":                  {[]ledger.Event{left, ledger.NodeDriversGone{Node: "n1"}, ledger.NodeGone{Name: "n1"}}, false},
		"a ticket keeps what is here":            {[]ledger.Event{left, ledger.Ticket{ID: ledger.TicketID{Namespace: namespace, Name: "m"}, UID: "m", Version: "1", Type: ledger.TypeManual, Node: "n1", Phase: ledger.TicketGranted, Volumes: []ledger.TicketVolume{{Claim: "old"}}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			apply := func(events ...ledger.Event) {
				for _, e := range events {
					c.ledger.Apply(c.Now, e)
				}
			}
			apply(ledger.NodeState{Name: "n1", UID: "n1", Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true},
				ledger.NodeDrivers{Node: "n1", Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: "n1", Limit: 1}}})
			for _, claim := range []string{"old", "new"} {
				key := ledger.ClaimKey{Namespace: namespace, Name: claim}
				apply(ledger.PersistentVolume{Name: "pv-" + claim, UID: "pv-" + claim, Version: "1", Volume: ledger.VolumeID{Driver: "disk", Handle: claim}, Access: ledger.AccessNode, Claim: key},
					ledger.Claim{Key: key, UID: "claim-" + claim, Version: "1", Bound: true, PersistentVolume: "pv-" + claim, Access: ledger.AccessNode})
			}
			pod := ledger.Pod{UID: "p", Version: "1", Namespace: namespace, Name: "p", Phase: ledger.PodLive, Volumes: []ledger.PodVolume{{Name: "v", Claim: "new"}}}
			apply(pod)
			apply(test.events...)
			s := c.ledger.Snapshot()
			if got := (rules.Arbiter{}).FreesSlots(s, rules.PodRequest(s, &pod), "n1", c.Now); got != test.want {
				t.Errorf("FreesSlots is %t, want %t", got, test.want)
			}
		})
	}
}
