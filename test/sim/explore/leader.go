// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

func watched() []world.Kind {
	return []world.Kind{world.Claims, world.PersistentVolumes, world.Tickets, world.Pods, world.Nodes, world.Attachments, world.Holds, world.NodeWords}
}

// Each ticket that is not granted is written: an older leader's grant of it fails.
func (s *state) lead() {
	s.led++
	if s.config.losesShared() {
		s.w.Judge.Begins(s.w)
	}
	l := &leader{ledger: ledger.New(), tickets: map[ledger.TicketID]string{}, memory: &protocol.Memory{Epoch: int64(s.led)}}
	s.leader = l
	for _, k := range append(world.AllKinds(), world.NodeWords) {
		for _, e := range s.w.List(k) {
			l.see(s.w, e)
		}
		l.upTo[k] = s.w.Changed(k)
	}
	l.apply(s.w.Now, ledger.Complete{})
	l.queue = queue{0xff, 0xff, 0xff}
	s.takeOver()
	s.settle(&scratch{})
}

func (s *state) arbiter() rules.Arbiter {
	return rules.Arbiter{Hurried: true, RequireNodeReport: s.config.RequireWord}
}

// Its lists are answered at once: it has nothing else in flight.
func (s *state) takeOver() {
	l := s.leader
	for tasks := l.memory.TakeOver(l.ledger.Snapshot()); len(tasks) > 0; tasks = l.memory.TakeOver(l.ledger.Snapshot()) {
		for _, t := range tasks {
			s.begin("take over", t)
			for len(l.wires) > 0 {
				s.serve(0)
			}
		}
	}
	for _, e := range protocol.Doubts(l.ledger.Snapshot()) {
		l.apply(s.w.Now, e)
	}
}

func (l *leader) see(w *world.World, e ledger.Event) {
	switch e := e.(type) {
	case ledger.Ticket:
		if l.tickets[e.ID] != e.UID {
			l.tickets = maps.Clone(l.tickets)
			l.tickets[e.ID] = e.UID
		}
	case ledger.NodeState:
		l.node(e)
	}
	l.apply(w.Now, e)
}

func (l *leader) saw(w *world.World, facts ...ledger.Event) {
	for _, e := range facts {
		if n, ok := e.(ledger.NodeState); ok {
			l.node(n)
		}
		l.apply(w.Now, e)
	}
}

func (l *leader) node(n ledger.NodeState) {
	for i := range l.nodes {
		if n.Name == node(i+1) && ledger.Newer(n.Version, l.nodes[i].Version) {
			l.nodes[i], l.code = n, nil
		}
	}
}

func (l *leader) lose(e ledger.Event) {
	for i := range l.nodes {
		if n, ok := e.(ledger.NodeState); ok && l.nodes[i].UID == n.UID {
			l.nodes[i], l.code = ledger.NodeState{}, nil
		}
	}
}

func (l *leader) known(k world.Kind) map[string]ledger.Event {
	s, all := l.ledger.Snapshot(), map[string]ledger.Event{}
	add := func(e ledger.Event) {
		_, key := world.Identify(e)
		all[key] = e
	}
	switch k {
	case world.Tickets:
		for t := range s.Tickets() {
			add(*t)
		}
		for id, uid := range l.tickets {
			if s.Ticket(id) == nil {
				add(ledger.Ticket{ID: id, UID: uid}) // deleted by this process, but not shown to be gone
			}
		}
	case world.Pods:
		for p := range s.Pods() {
			add(*p)
		}
	case world.Nodes:
		for i := range l.nodes {
			if l.nodes[i].Name != "" {
				add(l.nodes[i])
			}
		}
	case world.NodeWords:
		for n := range s.Nodes() {
			if n.Word != nil {
				add(*n.Word)
			}
		}
	case world.Attachments:
		for v := range s.Volumes() {
			for i := range v.OnNodes {
				if a := v.OnNodes[i].Own(); a != nil {
					add(*a)
				}
			}
		}
	case world.Holds:
		for v := range s.Volumes() {
			if v.Hold != nil {
				add(ledger.HoldSeen{Volume: v.ID, Hold: *v.Hold})
			}
		}
	}
	return all
}

func (s *state) behind(k world.Kind) bool {
	l, newest := s.leader, s.w.Changed(k)
	if l.upTo[k] == newest {
		return false
	}
	if k == world.Claims || k == world.PersistentVolumes {
		return true
	}
	known := l.known(k)
	now := s.w.List(k)
	if len(now) != len(known) {
		return true
	}
	for _, e := range now {
		_, key := world.Identify(e)
		old, ok := known[key]
		if !ok || world.UIDOf(old) != world.UIDOf(e) || world.VersionOf(old) < world.VersionOf(e) {
			return true
		}
	}
	l.upTo[k] = newest // by answers
	return false
}

// A failed task is retried after a pause: the search does not rely on endless retries before watches have
// caught up.
func (s *state) lags() bool {
	return s.leader != nil && slices.ContainsFunc(watched(), s.behind)
}

func (s *state) watch(k world.Kind) {
	l, known := s.leader, s.leader.known(k)
	if k == world.PersistentVolumes {
		for i := range s.config.Access {
			if name := pvName(i+1, false); s.w.Get(k, name) == nil {
				l.apply(s.w.Now, ledger.PersistentVolumeGone{Name: name})
			}
		}
	}
	for _, key := range s.sorted(known) {
		now := s.w.Get(k, key)
		if now != nil && world.UIDOf(now) == world.UIDOf(known[key]) {
			continue
		}
		if t, ok := known[key].(ledger.Ticket); ok {
			l.tickets = maps.Clone(l.tickets)
			delete(l.tickets, t.ID)
		}
		l.lose(known[key])
		l.apply(s.w.Now, world.Gone(known[key]))
	}
	for _, e := range s.w.List(k) {
		l.see(s.w, e)
	}
	l.upTo[k] = s.w.Changed(k)
}

func (s *state) sorted(m map[string]ledger.Event) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (s *state) leaderMoves(list []move) []move {
	l := s.leader
	for i := range l.wires {
		list = append(list, move{l.wires[i].name(), true, func(s *state) { s.serve(i) }})
	}
	for _, i := range s.outlasted() {
		name := "leader has waited for the watch"
		if late := l.waiting[i].late; late != nil {
			name = "leader has outlasted " + requestName(late)
		}
		list = append(list, move{name, true, func(s *state) { s.outlast(i) }})
	}
	behind := s.lags()
	for _, k := range watched() {
		if s.behind(k) {
			list = append(list, move{"leader watches " + k.String(), true, func(s *state) { s.watch(k) }})
		}
	}
	list = s.leaseMoves(list)
	for i := range s.config.Access {
		if v := volume(i + 1); l.queue.volumes&bit(i+1) != 0 && !l.busy("plan "+v.Handle) {
			list = append(list, move{"leader plans " + v.Handle, !behind || l.retry.volumes&bit(i+1) == 0, func(s *state) { s.plan(v) }})
		}
	}
	for _, n := range s.config.nodesWithTickets() {
		if i := nodeIndex(n); l.queue.nodes&bit(i) != 0 && !l.busy("grant "+string(n)) {
			list = append(list, move{"leader decides on tickets at " + string(n), !behind || l.retry.nodes&bit(i) == 0, func(s *state) { s.grant(n) }})
		}
	}
	for _, id := range s.config.tickets() {
		if i := podIndex(id.Name); l.queue.tickets&bit(i) != 0 && !l.busy("tend "+id.Name) {
			list = append(list, move{"leader tends ticket " + id.Name, !behind || l.retry.tickets&bit(i) == 0, func(s *state) { s.tend(id) }})
		}
	}
	return list
}

func (s *state) rest() {
	l := s.leader
	snapshot, others := l.ledger.Snapshot(), world.WithoutSentGrants(l.ledger, s.w.Now)
	known := queue{volumes: 1<<len(s.config.Access) - 1}
	for _, n := range s.config.nodesWithTickets() {
		i := nodeIndex(n)
		known.nodes |= bit(i)
		if l.queue.nodes&bit(i) != 0 && !l.busy("grant "+string(n)) && len(s.round(snapshot, n)) == 0 {
			l.queue.nodes &^= bit(i)
		}
	}
	for i := range s.config.Access {
		v := volume(i + 1)
		if l.queue.volumes&bit(i+1) != 0 && !l.busy("plan "+v.Handle) && len(s.arbiter().Plan(others, v, s.w.Now).Steps) == 0 {
			l.queue.volumes &^= bit(i + 1)
		}
	}
	for _, id := range s.config.tickets() {
		i := podIndex(id.Name)
		known.tickets |= bit(i)
		if l.queue.tickets&bit(i) != 0 && !l.busy("tend "+id.Name) && !s.due(snapshot, id) {
			l.queue.tickets &^= bit(i)
		}
	}
	l.queue.keep(known)
	l.retry.keep(l.queue)
}

func (l *leader) apply(now time.Time, e ledger.Event) {
	l.code = nil
	t := l.ledger.Apply(now, e)
	if len(t.Volumes)+len(t.Nodes)+len(t.Tickets) == 0 {
		return
	}
	s := l.ledger.Snapshot()
	look := protocol.Wake(t, s)
	for _, v := range look.Volumes {
		if v.IsReal() {
			l.queue.volumes |= bit(podIndex(v.Handle))
			l.retry.volumes &^= bit(podIndex(v.Handle))
		}
	}
	for _, n := range look.Nodes {
		l.wakeNode(n)
	}
	for _, id := range look.Tickets {
		l.wakeTicket(s, id)
	}
}

func (l *leader) wakeTicket(s ledger.Snapshot, id ledger.TicketID) {
	l.queue.tickets |= bit(podIndex(id.Name))
	l.retry.tickets &^= bit(podIndex(id.Name))
	if t := s.Ticket(id); t != nil && t.Phase == ledger.TicketPending {
		l.wakeNode(t.Node)
	}
}

func (l *leader) wakeNode(n ledger.NodeName) {
	l.queue.nodes |= bit(nodeIndex(n))
	l.retry.nodes &^= bit(nodeIndex(n))
}

func (l *leader) again(key string) {
	l.code = nil
	var again queue
	what := key[strings.LastIndexByte(key, ' ')+1:]
	switch i := nodeIndex(ledger.NodeName(what)); key[0] {
	case 'p':
		again.volumes = bit(i)
	case 'g':
		again.nodes = bit(i)
	case 't':
		again.tickets = bit(i)
	}
	l.queue.add(again)
	l.retry.add(again)
}

func (q *queue) add(o queue) {
	q.volumes |= o.volumes
	q.nodes |= o.nodes
	q.tickets |= o.tickets
}

func (q *queue) keep(o queue) {
	q.volumes &= o.volumes
	q.nodes &= o.nodes
	q.tickets &= o.tickets
}

func (s *state) plan(v ledger.VolumeID) {
	s.leader.queue.volumes &^= bit(podIndex(v.Handle))
	s.leader.code = nil
	for _, step := range s.arbiter().Plan(world.WithoutSentGrants(s.leader.ledger, s.w.Now), v, s.w.Now).Steps {
		s.begin("plan "+v.Handle, protocol.Do(step))
	}
}

func (s *state) round(snapshot ledger.Snapshot, n ledger.NodeName) []protocol.Decided {
	decided := protocol.Round(rules.Arbiter{}.Queue(snapshot, n, s.w.Now), snapshot, s.w.Now, nil, nil)
	return slices.DeleteFunc(decided, func(d protocol.Decided) bool {
		return d.Ticket.UID == "" || protocol.Decide(d).Commit.Phase == d.Ticket.Phase && string(d.Verdict.First().Code) == d.Ticket.Reason
	})
}

func (s *state) grant(n ledger.NodeName) {
	s.leader.queue.nodes &^= bit(nodeIndex(n))
	s.leader.code = nil
	decided := s.round(s.leader.ledger.Snapshot(), n)
	for _, e := range protocol.Announce(decided) {
		s.leader.apply(s.w.Now, e)
	}
	for _, d := range decided {
		s.begin("grant "+string(n), protocol.Decide(d))
	}
}

func (s *state) tending(snapshot ledger.Snapshot, id ledger.TicketID) (op, bool) {
	o := op{key: "tend " + id.Name}
	t := snapshot.Ticket(id)
	if t == nil {
		return o, false
	}
	task, due := protocol.Due(rules.Arbiter{}, snapshot, t, rules.Arbiter{}.Keeps(snapshot, t, s.w.Now), s.w.Now)
	if !due {
		task, due = s.satisfied(snapshot, t)
	}
	o.task = task
	return o, due
}

func (s *state) due(snapshot ledger.Snapshot, id ledger.TicketID) bool {
	_, due := s.tending(snapshot, id)
	return due
}

func (s *state) tend(id ledger.TicketID) {
	l := s.leader
	l.queue.tickets &^= bit(podIndex(id.Name))
	l.code = nil
	if o, due := s.tending(l.ledger.Snapshot(), id); due {
		s.goOn(o)
	}
}

func (l *leader) audit(now time.Time) string {
	for _, v := range (rules.Arbiter{}).Audit(l.ledger.Snapshot(), now) {
		return "audit: " + v.String()
	}
	return ""
}
