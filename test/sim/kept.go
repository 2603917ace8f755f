// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"
)

// keeper's offers stay the same until it acts, is answered, its time (due) comes, a fault or user acts, or
// the API server gets a write.
type keeper interface {
	process
	self() *caller
	draws() bool
}

func (c *controller) self() *caller { return &c.caller }
func (c *controller) draws() bool   { return !c.observer.synced() }

func (k *scheduler) self() *caller { return &k.caller }
func (k *scheduler) draws() bool   { return !k.observer.synced() }

func (k *kubelet) self() *caller { return &k.caller }
func (k *kubelet) draws() bool   { return false }

func (k *manager) self() *caller { return &k.caller }
func (k *manager) draws() bool   { return false }

func (a *attacher) draws() bool { return false }

func (a *ownAttacher) draws() bool { return false }

type kept struct {
	offers  []Action
	weights []int
	moves   moves
	until   time.Time // zero: time alone changes nothing
	known   bool
}

type moves struct {
	version int64 // of the API server
	all     int   // events that may touch all processes
	own     int   // actions of the process, and answers to it
}

func (s *Sim) movesOf(c *caller) moves { return moves{s.w.Version(), s.moved, c.moved} }

func (s *Sim) touch(a Action) {
	switch who := s.named(a.Who).(type) {
	case keeper:
		who.self().moved++
		if a.What == "acquire" || a.What == "notice" { // of a lease that others wait for
			s.moved++
		}
	case *network:
		if m := who.find(a.Arg); m != nil {
			m.caller.moved++
		}
	case *diskService:
		if c := who.called(a.Arg); c != nil {
			c.caller.moved++
		}
	default:
		s.moved++
	}
}

func (s *Sim) offerKept(p keeper, k *kept) {
	m, now := &s.menu, s.movesOf(p.self())
	if k.known && k.moves == now && (k.until.IsZero() || s.Now().Before(k.until)) {
		m.repeat(k)
		return
	}
	k.known = !p.draws()
	first, total := len(m.actions[work]), m.total
	p.offer(m)
	if k.known {
		k.offers = append(k.offers[:0], m.actions[work][first:]...)
		k.weights = append(k.weights[:0], m.weights[work][first:]...)
		k.moves, k.until = now, p.due()
		total[work] = m.total[work]
		if total != m.total {
			panic("a process that does not draw offers what is no work")
		}
	}
}

func (m *menu) repeat(k *kept) {
	m.actions[work] = append(m.actions[work], k.offers...)
	m.weights[work] = append(m.weights[work], k.weights...)
	for _, w := range k.weights {
		m.total[work] += w
	}
}

func (s *Sim) keeps() bool {
	for i, p := range s.all {
		k := &s.kept[i]
		who, keeps := p.(keeper)
		if !keeps || !k.known || k.moves != s.movesOf(who.self()) || !k.until.IsZero() && !s.Now().Before(k.until) {
			continue
		}
		var m menu
		p.offer(&m)
		if !slices.Equal(m.actions[work], k.offers) || !slices.Equal(m.weights[work], k.weights) {
			return false
		}
	}
	return true
}
