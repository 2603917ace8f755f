// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/test/ticketwriter"
)

// history is a small cluster in which pods and tickets come and go.
type history struct {
	*Keeper
	w       *ticketwriter.Writer
	at      time.Time
	waiting map[string]ledger.Pod // pods without a node, by UID
	count   int
}

var historyNodes = []ledger.NodeName{"n1", "n2"}

// TestFirstInRankGoesFirst plays random histories: whoever ranks first never waits while somebody who ranks after gets what
// both could use, be they tickets or pods.
func TestFirstInRankGoesFirst(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		h := &history{at: now, waiting: map[string]ledger.Pod{}, w: &ticketwriter.Writer{Ledger: facts(
			ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 1}}}, ledger.Complete{})}}
		h.w.Put("d")
		k, err := New(Config{Cache: h.w, Write: h.w, Now: func() time.Time { return h.at }, Order: &sync.Mutex{}, Waits: &Waits{}})
		if err != nil {
			t.Fatal(err)
		}
		h.Keeper = k
		ctx := context.Background()
		k.term.Store(&ctx)
		for range rapid.IntRange(10, 40).Draw(t, "steps") {
			h.step(t)
		}
	})
}

// step lets something happen, and everybody decide.
func (h *history) step(t *rapid.T) {
	h.count++
	h.at = h.at.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
	claims := []string{"a", "b", "c", "d"}
	var of []string
	first := rapid.IntRange(0, 3).Draw(t, "claim")
	of = append(of, claims[first])
	if rapid.IntRange(0, 3).Draw(t, "two claims") == 0 {
		of = append(of, claims[(first+1)%4])
	}
	name, node := fmt.Sprint(h.count), historyNodes[rapid.IntRange(0, 1).Draw(t, "node")]
	switch rapid.SampledFrom([]int{0, 1, 2, 3, 4, 4, 4, 4, 5}).Draw(t, "what") {
	case 0, 1:
		types := []ledger.TicketType{ledger.TypeBackup, ledger.TypeManual, ledger.TypeRestore, ledger.TypeClone}
		h.w.Apply(aged(ticket(name, string(node), types[rapid.IntRange(0, 3).Draw(t, "type")], of...), int64(rapid.IntRange(0, 9).Draw(t, "age"))))
	case 2, 3:
		p := pod(name, "", of...)
		p.Created = int64(rapid.IntRange(0, 9).Draw(t, "age"))
		h.w.Apply(p)
		h.waiting[p.UID] = p
	case 4:
		h.endOne(t)
	case 5: // nothing but time
	}
	for _, uid := range h.order() {
		if rapid.Bool().Draw(t, "it is tried") {
			h.place(t, h.waiting[uid])
		}
	}
	for _, n := range historyNodes {
		h.judged(t, func() {
			if _, err := h.grantAt(context.Background(), n); err != nil {
				t.Fatal(err)
			}
		}, nil)
	}
}

// order is that of the scheduler, which is none of Moorage's.
func (h *history) order() []string {
	var list []string
	for i := 1; i <= h.count; i++ {
		if uid := "uid-" + fmt.Sprint(i); h.waiting[uid].UID != "" {
			list = append(list, uid)
		}
	}
	return list
}

// endOne ends a ticket, or a pod, wherever it is.
func (h *history) endOne(t *rapid.T) {
	var there []int
	s := h.w.Snapshot()
	for i := 1; i < h.count; i++ {
		if s.Pod(fmt.Sprint("uid-", i)) != nil || s.Ticket(ledger.TicketID{Namespace: "s", Name: fmt.Sprint("uid-", i)}) != nil {
			there = append(there, i)
		}
	}
	if len(there) == 0 {
		return
	}
	which := rapid.SampledFrom(there).Draw(t, "which")
	uid, id := fmt.Sprint("uid-", which), ledger.TicketID{Namespace: "s", Name: fmt.Sprint("uid-", which)}
	h.w.Apply(ledger.PodGone{UID: uid})
	h.w.Apply(ledger.TicketGone{ID: id})
	delete(h.waiting, uid)
	h.podsTouched(h.w.Snapshot(), []string{uid})
}

// place tries a pod at each node, as the plugin does.
func (h *history) place(t *rapid.T, p ledger.Pod) {
	var full []ledger.NodeName
	var asks []Ask
	for _, n := range historyNodes {
		fits := func() bool {
			s := h.w.Snapshot()
			return h.config.Arbiter.Fit(s, arbiter.PodRequest(s, &p), n, h.at).Allowed()
		}
		if fits() {
			h.judged(t, func() {
				if h.Before(&p, n); fits() {
					h.w.Ledger.Reserve(h.at, p, n)
				}
			}, &p)
			if h.w.Snapshot().Pod(p.UID).Node != "" {
				delete(h.waiting, p.UID)
				return
			}
		}
		s := h.w.Snapshot()
		r := arbiter.PodRequest(s, &p)
		for _, reason := range h.config.Arbiter.Fit(s, r, n, h.at).Reasons {
			if reason.Code == arbiter.NoFreeSlot {
				full = append(full, n)
			}
		}
		asks = append(asks, Asks(h.config.Arbiter, s, r, n, h.at)...)
	}
	h.config.Waits.Note(h.at, p, full, asks)
}

// judged lets something be decided, and fails if somebody has got what another waiter could use who ranks before. A pod that
// is placed is compared with tickets only.
func (h *history) judged(t *rapid.T, decide func(), placed *ledger.Pod) {
	before := h.w.Ledger.Fork()
	s := before.Snapshot()
	pods := h.config.Waits.line(s, h.at)
	decide()
	h.writing.Wait()
	after := h.w.Snapshot()
	for k := range s.Tickets() {
		if is := after.Ticket(k.ID); k.Phase == ledger.TicketPending && is.Phase == ledger.TicketGranted {
			h.fair(t, before, after, arbiter.TicketRequest(s, k), pods)
		}
	}
	if placed != nil && after.Pod(placed.UID).Node != "" {
		h.fair(t, before, after, arbiter.PodRequest(s, placed), nil)
	}
}

// fair compares who has got something with those who wait still and rank before.
func (h *history) fair(t *rapid.T, before *ledger.Ledger, after ledger.Snapshot, got arbiter.Request, pods []arbiter.Waiter) {
	s := before.Snapshot()
	then, is := h.config.Arbiter.Line(s, pods, h.at), h.config.Arbiter.Line(after, pods, h.at)
	for k := range s.Tickets() {
		r := arbiter.TicketRequest(s, k)
		if k.Phase != ledger.TicketPending || after.Ticket(k.ID).Phase != ledger.TicketPending || arbiter.CompareRequests(r, got) >= 0 {
			continue
		}
		if then.At(k.Node).Grant(k).Allowed() && arbiter.PauseLeft(s, k, h.at) == 0 && !is.At(k.Node).Grant(after.Ticket(k.ID)).Allowed() {
			t.Fatalf("%s %s waits, and could have been granted when %s %s got its volumes", k.Type, k.ID.Name, got.Type, got.Who.Name)
		}
	}
	for _, p := range pods {
		if arbiter.CompareRequests(p.Request, got) >= 0 {
			continue
		}
		for _, n := range historyNodes {
			then, is := h.config.Arbiter.Fit(s, p.Request, n, h.at), h.config.Arbiter.Fit(after, p.Request, n, h.at)
			if then.Allowed() && !is.Allowed() {
				t.Fatalf("pod %s waits, and has fitted %s until %s %s got its volumes: %s", p.Who.Name, n, got.Type, got.Who.Name, is.First().Message())
			}
		}
	}
}
