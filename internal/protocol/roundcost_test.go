// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/alloctest"
)

func flood(n, volumes, namespaces int, access ledger.Access) ledger.Snapshot {
	l := facts()
	for i := range volumes {
		name := fmt.Sprint("pv", i)
		l.Apply(now, ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: ledger.VolumeID{Driver: driver, Handle: name}, Access: access})
		l.Apply(now, ledger.Pod{UID: "user-" + name, Version: "1", Namespace: "s", Name: "user-" + name, Node: "n2",
			Volumes: []ledger.PodVolume{{Name: name, Inline: ledger.VolumeID{Driver: driver, Handle: name}}}})
	}
	for i := range n {
		name := fmt.Sprintf("t%05d", n-i) // the last ticket ranks first
		k := ledger.Ticket{ID: ledger.TicketID{Namespace: fmt.Sprint("ns", i%namespaces), Name: name}, UID: name, Version: "1", Type: ledger.TypeManual, Node: "n1"}
		k.Volumes = []ledger.TicketVolume{{Claim: "nothing"}}
		if volumes > 0 {
			k.Volumes = []ledger.TicketVolume{{PersistentVolume: fmt.Sprint("pv", i%volumes)}}
		}
		l.Apply(now, k)
	}
	return l.Snapshot()
}

// Each change decides all waiting tickets: linear cost.
func TestRoundCostsInProportion(t *testing.T) {
	const few, times, most = 200, 8, 14
	for name, ask := range map[string]func(n int) ledger.Snapshot{
		"claims without a volume":            func(n int) ledger.Snapshot { return flood(n, 0, n/100, 0) },
		"volumes of their own":               func(n int) ledger.Snapshot { return flood(n, n, n/100, ledger.AccessNode) },
		"one volume":                         func(n int) ledger.Snapshot { return flood(n, 1, n/100, ledger.AccessNode) },
		"one volume of one pod":              func(n int) ledger.Snapshot { return flood(n, 1, n/100, ledger.AccessPod) },
		"volumes, all of them of one tenant": func(n int) ledger.Snapshot { return flood(n, n, 1, ledger.AccessNode) },
	} {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) float64 {
				s := ask(n)
				return float64(alloctest.Bytes(func() {
					if list := round(s, "n1", nil); len(list) != n {
						t.Errorf("of %d tickets %d are answered", n, len(list))
					}
				}))
			}
			small, large := cost(few), cost(times*few)
			if large > most*small {
				t.Errorf("a round of %d tickets takes %.0f KiB, one of %d %.1f times as much; want %d times at most", few, small/1024, times*few, large/small, most)
			}
		})
	}
}

func TestTooManyAreToldOnce(t *testing.T) {
	s := flood(rules.MaxWaiting+1, 0, 1, 0)
	list := round(s, "n1", nil)
	d := list[len(list)-1]
	if len(list) != rules.MaxWaiting+1 || d.Ruling != Wait || d.Verdict.First().Code != rules.TooManyTickets {
		t.Fatalf("of %d the last is told %s", len(list), d.Verdict.First().Code)
	}
	l := ledger.New()
	for k := range s.Tickets() {
		told := *k
		if told.ID == d.Ticket.ID {
			told.Reason = string(rules.TooManyTickets)
		}
		l.Apply(now, told)
	}
	if list := round(l.Snapshot(), "n1", nil); len(list) != rules.MaxWaiting {
		t.Errorf("%d are answered once it is told, want %d", len(list), rules.MaxWaiting)
	}
}
