// SPDX-License-Identifier: Apache-2.0

package tickets

import (
	"context"
	"fmt"
	"slices"
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

var (
	historyNodes = []ledger.NodeName{"n1", "n2"}
	historySlots = map[ledger.NodeName]int{"n1": 2, "n2": 1}
)

// TestFirstInRankGoesFirst plays random histories: whoever ranks first never waits while somebody who ranks after gets what
// both could use, be they tickets or pods.
func TestFirstInRankGoesFirst(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		h := &history{at: now, waiting: map[string]ledger.Pod{}, w: &ticketwriter.Writer{Ledger: facts(
			ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 1}}}, ledger.Complete{})}}
		k, err := New(Config{Cache: h.w, Write: h.w, Now: func() time.Time { return h.at }, Order: &sync.Mutex{}, Waits: &Waits{}})
		if err != nil {
			t.Fatal(err)
		}
		h.Keeper = k
		ctx := context.Background()
		k.term.Store(&ctx)
		for range rapid.IntRange(5, 20).Draw(t, "steps") {
			h.step(t)
		}
	})
}

// step lets some things happen, and then everybody decide.
func (h *history) step(t *rapid.T) {
	h.at = h.at.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "seconds")) * time.Second)
	for range rapid.IntRange(1, 3).Draw(t, "events") {
		h.happens(t)
	}
	for _, uid := range h.order() {
		if rapid.Bool().Draw(t, "it is tried") {
			h.place(t, h.waiting[uid])
		}
	}
	for _, n := range rapid.Permutation(historyNodes).Draw(t, "nodes") {
		h.judged(t, func() {
			if _, err := h.grantAt(context.Background(), n); err != nil {
				t.Fatal(err)
			}
		}, nil)
	}
}

// happens has a ticket or a pod come, or somebody go.
func (h *history) happens(t *rapid.T) {
	h.count++
	claims := []string{"a", "b", "c"}
	var of []string
	first := rapid.IntRange(0, 2).Draw(t, "claim")
	of = append(of, claims[first])
	if rapid.IntRange(0, 3).Draw(t, "two claims") == 0 {
		of = append(of, claims[(first+1)%3])
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

// fair fails if a waiter that ranks before had all that it needs until somebody got it. It goes by users and slots alone, and
// not by the rules that decided.
func (h *history) fair(t *rapid.T, before *ledger.Ledger, after ledger.Snapshot, got arbiter.Request, pods []arbiter.Waiter) {
	s := before.Snapshot()
	missed := func(r arbiter.Request, n ledger.NodeName) bool {
		return arbiter.CompareRequests(r, got) < 0 && room(s, r, n) && !room(after, r, n)
	}
	for k := range s.Tickets() {
		waits := k.Phase == ledger.TicketPending && after.Ticket(k.ID).Phase == ledger.TicketPending
		if waits && arbiter.PauseLeft(s, k, h.at) == 0 && missed(arbiter.TicketRequest(s, k), k.Node) {
			t.Fatalf("%s %s waits, and could have been granted when %s %s got its volumes", k.Type, k.ID.Name, got.Type, got.Who.Name)
		}
	}
	for _, p := range pods {
		for _, n := range historyNodes {
			if missed(p.Request, n) {
				t.Fatalf("pod %s waits, and has fitted %s until %s %s got its volumes", p.Who.Name, n, got.Type, got.Who.Name)
			}
		}
	}
}

// room says whether nobody who is placed or granted keeps the volumes or slots of a node from a request.
func room(s ledger.Snapshot, r arbiter.Request, n ledger.NodeName) bool {
	has := func(u ledger.User) bool {
		if pod := s.Pod(u.Pod); pod != nil {
			return pod.Node != ""
		}
		k := s.Ticket(u.Ticket)
		return k != nil && (k.Phase == ledger.TicketGranted || k.Granting)
	}
	here := map[ledger.VolumeID]bool{}
	for v := range s.Volumes() {
		for i := range v.NodeVolumes {
			place := &v.NodeVolumes[i]
			if !slices.ContainsFunc(place.Users, has) {
				continue
			}
			if place.Node == n {
				here[v.ID] = true
			} else if slices.ContainsFunc(r.Needs, func(need arbiter.Need) bool { return need.Volume == v.ID }) {
				return false
			}
		}
	}
	for _, need := range r.Needs {
		here[need.Volume] = true
	}
	return len(here) <= historySlots[n]
}
