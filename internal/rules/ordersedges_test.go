// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// No order goes to a node that can't tell of the volume: a record may be of it, or the node owes an answer
// for the whole patience.
func TestOrderableWhereTheNodeSpeaks(t *testing.T) {
	unread := func(w *ledger.NodeWord) { w.Unread = []ledger.Unread{{PersistentVolume: "pv"}} }
	owes := func(w *ledger.NodeWord) { w.Look = 2 }
	same := func(*ledger.NodeWord) {}
	refused := []ledger.Event{ledger.LookRefused{Node: "well"}}
	for name, test := range map[string]struct {
		word  func(*ledger.NodeWord)
		facts []ledger.Event
		after time.Duration
		want  bool
	}{
		"it speaks":                  {same, nil, time.Hour, true},
		"a record may be of it":      {unread, nil, 0, false},
		"it owes an answer":          {owes, nil, LookPatience - 1, true},
		"it owes it for long":        {owes, nil, LookPatience, false},
		"it can't be asked":          {same, refused, LookPatience - 1, true},
		"it can't be asked for long": {same, refused, LookPatience, false},
		"its word is of before":      {ofBoot("a"), nil, 0, false},
	} {
		word := says(canUnstage, func(w *ledger.NodeWord) { w.Version = "2" }, test.word)
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, append(repairable(word), test.facts...)...)
		p.now = auditTime.Add(test.after)
		place := *p.at("well")
		proved(&place)
		if got := p.orderable(p.snapshot.Node("well"), &place); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Volumes without VolumeAttachments get no orders, and no withdrawals.
func TestNoOrderIsWithdrawnOfWhatHasNoAttachment(t *testing.T) {
	iscsi := ledger.VolumeID{Driver: "kubernetes.io/iscsi", Handle: "h"}
	for v, want := range map[ledger.VolumeID]Action{iscsi: 0, disk: WithdrawUnstage} {
		stands := func(w *ledger.NodeWord) {
			w.Orders = []ledger.UnstageOrder{{Volume: v, Number: 1, BootID: "b", KubeletStarted: 1, Seconds: 30}}
		}
		p := plannerOf(t, Arbiter{}, "", ledger.Hold{}, machineSpeaks(stands)...)
		p.volume = &ledger.Volume{ID: v}
		p.repair(&ledger.NodeVolume{Node: "well"})
		if got := only(p); got != want {
			t.Errorf("of %s: %+v, want %s", v, p.plan.Steps, want)
		}
	}
}

// The documented number of orders holds. A delete in Cooperative mode ends before the attach/detach
// controller looks, half a second after a bind.
func TestBoundsOfOrdersAndDeletes(t *testing.T) {
	page, err := os.ReadFile("../../docs/operate/policies.md")
	if err != nil {
		t.Fatal(err)
	}
	if says := fmt.Sprintf("up to %d volumes have orders at a time", MaxOrders); !strings.Contains(string(page), says) {
		t.Errorf("docs/operate/policies.md does not say %q", says)
	}
	if besideWindow >= 500*time.Millisecond {
		t.Errorf("a delete may take %s", besideWindow)
	}
}
