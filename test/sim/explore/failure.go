// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *state) successionMoves(list []move) []move {
	if s.leader != nil && s.led < s.config.Leaders {
		list = append(list, move{"leader is gone", false, func(s *state) { s.depose() }})
	}
	for i, r := range s.orphans {
		list = append(list, move{"late: " + requestName(r), false, func(s *state) { s.w.Serve(*s.orphan(i)) }})
		if r.Adds() || s.awaited(r) { // others that never come are like others that have not come yet
			list = append(list, move{"lost: " + requestName(r), true, func(s *state) { s.orphan(i) }})
		}
	}
	if s.leader == nil && !slices.ContainsFunc(s.orphans, (*world.Request).Adds) {
		list = append(list, move{"another one leads", true, func(s *state) { s.lead() }})
	}
	return list
}

func (s *state) awaited(r *world.Request) bool {
	return s.leader != nil && slices.ContainsFunc(s.leader.waiting, func(o op) bool { return o.late == r })
}

func (s *state) depose() {
	for i := range s.leader.wires {
		s.abandon(&s.leader.wires[i].request)
	}
	s.leader = nil
}

func (s *state) abandon(r *world.Request) {
	switch r.Do {
	case world.GetObject, world.ListObjects, world.ListPods:
	default:
		s.orphans = append(slices.Clip(s.orphans), r)
	}
}

// bury forgets requests without a possible effect: neither versions nor UIDs come back.
func (s *state) bury() {
	for i := range s.config.Pods {
		if _, exists := s.w.Pod(pod(i + 1)); !exists {
			s.sent[i] = 0
		}
	}
	if slices.ContainsFunc(s.orphans, s.late) {
		s.orphans = slices.DeleteFunc(slices.Clone(s.orphans), s.late)
	}
}

func (s *state) late(r *world.Request) bool {
	switch r.Do {
	case world.PutHold, world.DropHold:
		h, _ := s.w.Hold(r.Volume)
		return h.Version != r.Version
	case world.ConfirmAttachment:
		a, exists := s.w.Attachment(r.Key)
		return !exists || a.UID != r.UID
	case world.DropAttachment:
		a, exists := s.w.Attachment(r.Key)
		return !exists || a.Deleting || a.UID != r.UID || r.Version != "" && a.Version != r.Version
	case world.DecideTicket, world.DropTicket:
		t, exists := s.w.Ticket(world.TicketKey(r.Key))
		return !exists || t.UID != r.UID || t.Version != r.Version
	case world.AskNode:
		word, _ := s.w.Word(r.Node)
		return word.Version != r.Version
	case world.RemovePod:
		_, exists := s.w.Pod(r.UID)
		return !exists
	}
	return false
}

func (s *state) orphan(i int) *world.Request {
	r := s.orphans[i]
	s.orphans = slices.Delete(slices.Clone(s.orphans), i, i+1)
	return r
}

func requestName(r *world.Request) string {
	switch r.Do {
	case world.PatchNode:
		c := r.Patch.Changes[0]
		if c.Add {
			return "report " + c.Volume.Handle
		}
		return "unreport " + c.Volume.Handle
	case world.PutHold:
		return "hold of " + r.Volume.Handle
	case world.CreateAttachment:
		a, _ := r.Fact.(ledger.Attachment)
		return fmt.Sprintf("attachment of %s at %s", a.PersistentVolume, a.Node)
	case world.DropAttachment:
		return "deletion of attachment " + r.Key[:8]
	case world.DecideTicket:
		return "ticket " + r.Key + " " + r.Phase.String()
	}
	return fmt.Sprintf("request %d of %s", r.Do, r.Key)
}

type budget struct{ leaders, lost, failed, restarts, dead int }

func (s *state) budget() budget {
	c := s.config
	b := budget{c.Leaders - s.led, c.LostAnswers - s.lost, c.FailedCalls - s.failed, c.Restarts - s.restarts, c.DeadNodes - s.dead}
	if c.Failures > 0 {
		left := c.Failures - s.lost - s.failed
		b.lost, b.failed = min(b.lost, left), min(b.failed, left)
	}
	if c.Crashes > 0 {
		left := c.Crashes - s.restarts - s.dead
		b.restarts, b.dead = min(b.restarts, left), min(b.dead, left)
	}
	return b
}

func (s *state) failureMoves(list []move) []move {
	may := s.budget()
	for n := 1; n <= nodes; n++ {
		list = s.nodeMoves(list, n, may)
	}
	if s.leader != nil && may.lost > 0 {
		for i, w := range s.leader.wires {
			list = append(list, move{"no answer: " + w.name(), false, func(s *state) { s.mute(i) }})
		}
	}
	if may.failed == 0 {
		return list
	}
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		if a.Deleting || !a.Attached {
			list = append(list, move{"attacher fails at " + string(a.Node), false, func(s *state) { s.fail(key) }})
		}
	}
	return list
}

func (s *state) mute(i int) {
	s.lost++
	w := s.leader.take(i)
	r := w.request
	s.abandon(&r)
	w.ops = slices.Clone(w.ops) // other states share it
	for i := range w.ops {
		w.ops[i].late = &r
	}
	s.answer(w, protocol.Answer{Result: protocol.Unknown})
}

func (s *state) fail(key string) {
	s.failed++
	a, _ := s.w.Attachment(key)
	r := world.Request{Do: world.MarkAttached, Key: key, UID: a.UID, Error: ledger.CallError{Code: 13, Message: "internal error"}}
	if a.Deleting {
		r.Do = world.MarkDetached
	}
	s.w.Serve(r)
}

func (s *state) nodeMoves(list []move, n int, may budget) []move {
	k, m := s.kubelet(n), s.machine(n)
	now, _ := s.w.Node(node(n))
	name := string(node(n))
	if m.Powered && may.restarts > 0 {
		list = append(list, move{name + "'s kubelet starts anew", false, func(s *state) { s.restart(n) }})
	}
	if m.Powered && k.Up && may.dead > 0 {
		list = append(list, move{name + " dies", false, func(s *state) {
			s.dead++
			s.machine(n).PowerOff()
		}})
	}
	list = s.badMoves(list, n)
	if !k.Works() && now.UID != "" && now.Ready != ledger.ReadyUnknown {
		list = append(list, move{name + " is found not to be ready", true, func(s *state) { s.mark(n, false) }})
	}
	list = s.cutMoves(list, n)
	if m.Powered {
		return list
	}
	if s.config.Fences {
		return s.fenceMoves(list, n)
	}
	if s.config.CutsOff {
		return list
	}
	if now.UID != "" && now.Ready == ledger.ReadyUnknown && !now.OutOfService {
		list = append(list, move{name + " is declared out of service", true, func(s *state) { s.mark(n, true) }})
	}
	if now.OutOfService && s.config.Returns {
		list = append(list, move{name + " is back", false, func(s *state) { s.back(n) }})
	}
	for _, p := range s.w.PodsAt(node(n)) {
		switch {
		case now.OutOfService && p.Phase == ledger.PodLive:
			list = append(list, move{p.UID + " is evicted", true, func(s *state) { s.w.DeletePod(p.UID) }})
		case now.OutOfService && p.Phase == ledger.PodTerminating:
			list = append(list, move{p.UID + " is collected", true, func(s *state) { s.w.Drop(world.Pods, p.UID) }})
		}
	}
	return list
}

func (s *state) fenceMoves(list []move, n int) []move {
	now, _ := s.w.Node(node(n))
	name := string(node(n))
	if now.Ready == ledger.ReadyUnknown && len(now.Fenced) == 0 {
		list = append(list, move{name + " is declared fenced", true, func(s *state) { s.fence(n) }})
	}
	if len(now.Fenced) > 0 && s.config.Returns {
		list = append(list, move{name + " is on again", false, func(s *state) {
			s.renew(n) // the condition is left behind
			s.kubelet(n).Start()
			s.kubelet(n).Register()
		}})
	}
	for _, p := range s.w.PodsAt(node(n)) {
		switch {
		case now.Ready != ledger.ReadyUnknown:
		case p.Phase == ledger.PodLive:
			list = append(list, move{p.UID + " is evicted", true, func(s *state) { s.w.DeletePod(p.UID) }})
		case p.Phase == ledger.PodTerminating:
			list = append(list, move{p.UID + " is removed by force", true, func(s *state) { s.w.Drop(world.Pods, p.UID) }})
		}
	}
	return list
}

// The storage lets a machine in again when the leader's facts permit to ask for that.
func (s *state) cutMoves(list []move, n int) []move {
	now, exists := s.w.Node(node(n))
	m, name := s.machine(n), string(node(n))
	switch {
	case !s.config.CutsOff || !exists:
	case !m.Cut && now.Ready == ledger.ReadyUnknown:
		list = append(list, move{name + " is cut off by the storage", true, func(s *state) {
			s.cut[n] = rules.CutMachine{Driver: driver, Node: node(n), NodeUID: now.UID, SystemUUID: now.SystemUUID, BootID: now.BootID}
			s.w.CutOff(node(n), driver)
		}})
	case m.Cut && s.leader != nil:
		list = s.unfencingMoves(list, n)
	}
	if m.Powered || !m.Cut {
		return list
	}
	if s.config.Returns {
		list = append(list, move{name + " is on again", false, func(s *state) {
			s.kubelet(n).Start()
			s.kubelet(n).Register()
		}})
	}
	for _, p := range s.w.PodsAt(node(n)) {
		switch {
		case now.Ready != ledger.ReadyUnknown:
		case p.Phase == ledger.PodLive:
			list = append(list, move{p.UID + " is evicted", true, func(s *state) { s.w.DeletePod(p.UID) }})
		case p.Phase == ledger.PodTerminating:
			list = append(list, move{p.UID + " is removed by force", true, func(s *state) { s.w.Drop(world.Pods, p.UID) }})
		}
	}
	return list
}

func (s *state) unfencingMoves(list []move, n int) []move {
	known, name := s.leader.ledger.Snapshot(), string(node(n))
	switch rules.MayUnfenceMachine(known, s.cut[n], s.w.Now) {
	case rules.MayUnfence:
		list = append(list, move{name + " is let in by the storage", true, func(s *state) {
			s.cut[n] = rules.CutMachine{}
			s.w.LetIn(node(n))
		}})
	case rules.AskBeforeUnfencing:
		word, look, since := *known.Node(node(n)).Word, known.Node(node(n)).NextNumber(), known.Node(node(n)).ReadySince
		if now, _ := s.w.Word(node(n)); now.UID == word.UID && now.Version == word.Version {
			list = append(list, move{"leader asks " + name + " to look", true, func(s *state) {
				s.cut[n].Look, s.cut[n].LookSince, s.cut[n].LookWord = look, since, word.UID
				s.w.Serve(world.Request{Do: world.AskNode, Key: name, Node: node(n), UID: word.UID, Version: word.Version, Look: look})
			}})
		}
	case rules.StaysFenced:
	}
	return list
}

func (s *state) fence(n int) {
	now, _ := s.w.Node(node(n))
	now.Fenced = []ledger.FencedCondition{{Type: fenced, Since: s.machine(n).Renewed.Unix() + 1}}
	s.w.Put(now)
}

func (s *state) mark(n int, outOfService bool) {
	now, _ := s.w.Node(node(n))
	now.Ready, now.OutOfService = ledger.ReadyUnknown, outOfService
	s.w.Put(now)
	for _, p := range s.w.PodsAt(node(n)) {
		if outOfService && p.Phase == ledger.PodLive {
			s.w.DeletePod(p.UID)
		}
	}
}

func (s *state) back(n int) {
	s.kubelet(n).Start()
	s.kubelet(n).Register()
	now, _ := s.w.Node(node(n))
	now.Ready, now.OutOfService = ledger.ReadyTrue, false
	s.w.Put(now)
}

func (s *state) restart(n int) {
	s.restarts++
	s.startAnew(n)
}
