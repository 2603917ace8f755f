// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// At the driver's limit attaches and detaches wait, except begun or otherwise blocked work.
func TestNoFreeWorker(t *testing.T) {
	another := ledger.VolumeID{Driver: "d", Handle: "another"}
	busy := []ledger.Event{
		ledger.PersistentVolume{Name: "another", Version: "1", Volume: another, Access: ledger.AccessNode},
		ledger.Attachment{Name: ledger.AttachmentName(another, "third"), UID: "a", Version: "1", Driver: "d", Node: "third", PersistentVolume: "another"},
	}
	few := ledger.Policy{Name: "few", Version: "1", Driver: "d", Workers: 1}
	two := ledger.Policy{Name: "few", Version: "1", Driver: "d", Workers: 2}
	here := dataAt("q", "well", ledger.PodLive)
	ownAt := func(n ledger.NodeName, change func(*ledger.Attachment)) ledger.Attachment {
		a := ledger.Attachment{Name: ledger.AttachmentName(disk, n), UID: "own", Version: "1", Driver: "d", Node: n, PersistentVolume: "pv", Ours: true}
		if change != nil {
			change(&a)
		}
		return a
	}
	attached := func(a *ledger.Attachment) { a.Attached = true }
	leaves := func(a *ledger.Attachment) { a.Attached, a.Deleting = true, true }
	third := nodeAs("third", func(n *ledger.NodeState) { n.Reporting = true })
	for name, test := range map[string]struct {
		arbiter Arbiter
		heldAt  ledger.NodeName
		facts   []ledger.Event
		want    ledger.Code
		says    string
	}{
		"nothing limits it":                     {Arbiter{}, "well", []ledger.Event{alive, here}, Attaching, ""},
		"a worker is free":                      {Arbiter{}, "well", []ledger.Event{alive, here, two}, Attaching, ""},
		"none is":                               {Arbiter{}, "well", []ledger.Event{alive, here, few}, NoFreeWorker, "attached to well: as many attaches and detaches of driver d are under way as its AttachPolicy few allows at a time (workers: 1)"},
		"it has begun":                          {Arbiter{}, "well", []ledger.Event{alive, here, few, ownAt("well", nil)}, Attaching, ""},
		"kube-controller-manager attaches":      {Arbiter{Cooperative: true}, "well", []ledger.Event{alive, here, few}, Attaching, ""},
		"it is to leave another node":           {Arbiter{}, "third", []ledger.Event{alive, third, here, few, ownAt("third", attached)}, NoFreeWorker, "detached from third"},
		"it leaves another node":                {Arbiter{}, "third", []ledger.Event{alive, third, here, few, ownAt("third", leaves)}, Detaching, ""},
		"its node does not have the driver yet": {Arbiter{}, "well", []ledger.Event{alive, here, few, ledger.NodeDrivers{Node: "well", Version: "2"}}, DriverNotRegistered, ""},
	} {
		p := plannerOf(t, test.arbiter, test.heldAt, ledger.Hold{}, append(test.facts, busy...)...)
		got := test.arbiter.Explain(p.snapshot, Need{Name: "data", Volume: disk, Link: ledger.LinkVolume}, "well", auditTime).First()
		if got.Code != test.want || !strings.Contains(got.Message(), test.says) {
			t.Errorf("%s: %s (%s)", name, got.Code, got.Message())
		}
	}
}

// A detach without an answer for an hour occupies no worker.
func TestNoFreeWorkerOfAHungDetach(t *testing.T) {
	another := ledger.VolumeID{Driver: "d", Handle: "another"}
	p := plannerOf(t, Arbiter{}, "well", ledger.Hold{}, alive, dataAt("q", "well", ledger.PodLive),
		ledger.Policy{Name: "few", Version: "1", Driver: "d", Workers: 1},
		ledger.PersistentVolume{Name: "another", Version: "1", Volume: another, Access: ledger.AccessNode},
		ledger.Attachment{Name: ledger.AttachmentName(another, "third"), UID: "a", Version: "1", Driver: "d", Node: "third", PersistentVolume: "another", Attached: true, Deleting: true})
	for after, want := range map[time.Duration]ledger.Code{0: NoFreeWorker, time.Hour: Attaching} {
		got := (Arbiter{}).Explain(p.snapshot, Need{Name: "data", Volume: disk, Link: ledger.LinkVolume}, "well", auditTime.Add(after)).First()
		if got.Code != want {
			t.Errorf("after %s: %s, want %s", after, got.Code, want)
		}
	}
}
