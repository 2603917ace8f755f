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

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/test/ticketwriter"
)

type history struct {
	*Keeper
	w       *ticketwriter.Writer
	at      time.Time
	waiting map[string]ledger.Pod // pods without a node, by UID
	noted   map[string]time.Time  // since when they wait
	full    map[string][]ledger.NodeName
	placed  map[string]bool // the claims of the pod that is placed
	count   int
}

var (
	historyNodes = []ledger.NodeName{"n1", "n2"}
	historySlots = map[ledger.NodeName]int{"n1": 2, "n2": 1}
	decidedOn    = append([]ledger.NodeName{ledger.Detached}, historyNodes...)
)

// The first in rank never waits while a later waiter gets what both could use.
func TestFirstInRankGoesFirst(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		h := &history{at: now, waiting: map[string]ledger.Pod{}, noted: map[string]time.Time{}, full: map[string][]ledger.NodeName{}, w: &ticketwriter.Writer{Ledger: facts(
			ledger.NodeDrivers{Node: "n2", Version: "1", Drivers: []ledger.DriverOnNode{{Name: driver, Limit: 1}}}, ledger.Complete{})}}
		k, err := New(Config{Cache: h.w, Write: h.w, Now: func() time.Time { return h.at }, Order: &sync.Mutex{}, Waits: &Waits{}})
		if err != nil {
			t.Fatal(err)
		}
		h.Keeper = k
		ctx := context.Background()
		k.term.Store(&ctx)
		for range rapid.IntRange(10, 30).Draw(t, "steps") {
			h.step(t)
		}
	})
}

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
	for _, n := range rapid.Permutation(decidedOn).Draw(t, "nodes") {
		h.judged(t, func() {
			if _, err := h.grantAt(context.Background(), n); err != nil {
				t.Fatal(err)
			}
		}, nil)
	}
}

func (h *history) happens(t *rapid.T) {
	h.count++
	claims := []string{"a", "b", "c"}
	var of []string
	first := rapid.IntRange(0, 2).Draw(t, "claim")
	of = append(of, claims[first])
	if rapid.IntRange(0, 3).Draw(t, "two claims") == 0 {
		of = append(of, claims[(first+1)%3])
	}
	name, node := fmt.Sprint(h.count), rapid.SampledFrom(decidedOn).Draw(t, "node")
	switch rapid.SampledFrom([]int{0, 1, 2, 3, 4, 4, 4, 5}).Draw(t, "what") {
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
	case 5: // only time passes
	}
}

// order is the scheduler's order, not Moorage's.
func (h *history) order() []string {
	var list []string
	for i := 1; i <= h.count; i++ {
		if uid := "uid-" + fmt.Sprint(i); h.waiting[uid].UID != "" {
			list = append(list, uid)
		}
	}
	return list
}

func (h *history) endOne(t *rapid.T) {
	var there []int
	s := h.w.Snapshot()
	waiters := rapid.IntRange(0, 3).Draw(t, "a waiter may go") == 0
	for i := 1; i < h.count; i++ {
		p, k := s.Pod(fmt.Sprint("uid-", i)), s.Ticket(ledger.TicketID{Namespace: "s", Name: fmt.Sprint("uid-", i)})
		if p != nil && (p.Node != "" || waiters) || k != nil && (k.Phase == ledger.TicketGranted || waiters) {
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

func (h *history) place(t *rapid.T, p ledger.Pod) {
	var full []ledger.NodeName
	var asks []Ask
	for _, n := range historyNodes {
		placed := false
		h.judged(t, func() { placed = reserve(h.Keeper, h.w, p, n, h.at) }, &p)
		if placed {
			delete(h.waiting, p.UID)
			return
		}
		s := h.w.Snapshot()
		r := rules.PodRequest(s, &p)
		for _, reason := range h.config.Arbiter.Fit(s, r, n, h.at).Reasons {
			if reason.Code == rules.NoFreeSlot {
				full = append(full, n)
			}
		}
		asks = append(asks, Asks(h.config.Arbiter, s, r, n, h.at)...)
	}
	h.config.Waits.Note(h.at, p, full, asks)
	h.full[p.UID] = full
	if _, again := h.noted[p.UID]; !again {
		h.noted[p.UID] = h.at
	}
}

func reserve(k *Keeper, w *ticketwriter.Writer, p ledger.Pod, n ledger.NodeName, at time.Time) bool {
	fits := func() bool {
		s := w.Snapshot()
		return k.config.Arbiter.Fit(s, rules.PodRequest(s, &p), n, at).Allowed()
	}
	if !fits() {
		return false
	}
	kept, write := k.Before(&p, n)
	placed := fits() && len(kept) == 0
	if placed {
		w.Ledger.Reserve(at, p, n)
	}
	if write != nil {
		write()
	}
	k.writing.Wait()
	return placed
}

// A placed pod is compared with tickets only.
func (h *history) judged(t *rapid.T, decide func(), placed *ledger.Pod) {
	s := h.w.Ledger.Fork().Snapshot()
	pods := h.config.Waits.line(s, h.at)
	h.placed = map[string]bool{}
	if placed != nil {
		for _, v := range placed.Volumes {
			h.placed[v.Claim] = true
		}
	}
	decide()
	h.writing.Wait()
	after := h.w.Snapshot()
	waits, got := map[ledger.TicketID]rules.Request{}, map[ledger.User]rules.Request{}
	for k := range s.Tickets() {
		switch is := after.Ticket(k.ID); {
		case k.Phase != ledger.TicketPending:
		case is.Phase == ledger.TicketGranted:
			got[ledger.User{Ticket: k.ID}] = rules.TicketRequest(s, k)
		case rules.PauseLeft(s, k, h.at) == 0:
			waits[k.ID] = rules.TicketRequest(s, k)
		}
	}
	if placed != nil && after.Pod(placed.UID).Node != "" {
		got[ledger.User{Pod: placed.UID}] = rules.PodRequest(s, placed)
	}
	for id, r := range waits {
		h.fair(t, after, r, s.Ticket(id).Node, true, got, pods)
	}
	for uid, p := range h.waiting {
		since, waits := h.noted[uid]
		for _, n := range historyNodes {
			if waits && placed == nil && h.at.Sub(since) < keepFor {
				h.fair(t, after, rules.PodRequest(s, &p), n, slices.Contains(h.full[uid], n), got, pods)
			}
		}
	}
}

// It uses users and slots alone, not the rules that decided.
func (h *history) fair(t *rapid.T, s ledger.Snapshot, r rules.Request, n ledger.NodeName, slots bool, got map[ledger.User]rules.Request, pods []rules.Waiter) {
	isAfter := func(u ledger.User) bool {
		g, is := got[u]
		return is && rules.CompareRequests(r, g) < 0
	}
	if h.room(s, r, n, slots, pods, func(ledger.User) bool { return true }) || !h.room(s, r, n, slots, pods, func(u ledger.User) bool { return !isAfter(u) }) {
		return
	}
	for u, g := range got {
		if isAfter(u) {
			t.Errorf("%s %s, which ranks after, has got its volumes", g.Type, g.Who.Name)
		}
	}
	t.Fatalf("%s %s waits for %s", r.Type, r.Who.Name, n)
}

// A placed pod's claims were kept for none of these waiters.
func (h *history) room(s ledger.Snapshot, r rules.Request, n ledger.NodeName, slots bool, pods []rules.Waiter, counts func(ledger.User) bool) bool {
	has := func(u ledger.User) bool {
		if pod := s.Pod(u.Pod); pod != nil {
			return pod.Node != "" && counts(u)
		}
		k := s.Ticket(u.Ticket)
		return k != nil && k.Phase == ledger.TicketGranted && counts(u)
	}
	wants := func(id ledger.VolumeID) bool {
		return slices.ContainsFunc(r.Needs, func(need rules.Need) bool { return need.Volume == id })
	}
	here := map[ledger.VolumeID]bool{}
	for v := range s.Volumes() {
		for i := range v.OnNodes {
			place := &v.OnNodes[i]
			if !slices.ContainsFunc(place.Users, has) {
				continue
			}
			if place.Node == n {
				here[v.ID] = true
			} else if wants(v.ID) {
				return false
			}
		}
	}
	for _, p := range pods {
		if rules.CompareRequests(p.Request, r) < 0 {
			for _, need := range p.Needs {
				if wants(need.Volume) && !h.placed[need.Name] {
					return false
				}
				here[need.Volume] = here[need.Volume] || p.Nodes[n]
			}
		}
	}
	for k := range s.Tickets() {
		before := rules.TicketRequest(s, k)
		switch {
		case k.Phase != ledger.TicketPending || rules.CompareRequests(before, r) >= 0:
		case k.Node != n: // it gets its best volumes and slots
			if slices.ContainsFunc(before.Needs, func(need rules.Need) bool { return wants(need.Volume) }) && h.room(s, before, k.Node, true, pods, counts) {
				return false
			}
		case !k.Type.Yields() || h.room(s, before, n, true, pods, counts): // slots are kept for it, or it gets them
			for _, need := range before.Needs {
				here[need.Volume] = true
			}
		}
	}
	for _, need := range r.Needs {
		here[need.Volume] = true
	}
	taken := 0
	for _, used := range here {
		if used {
			taken++
		}
	}
	return !slots || n == ledger.Detached || taken <= historySlots[n]
}
