// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// scheduler is one process of moorage-scheduler: the plugin's flow from
// Filter over Reserve and Permit to the bind, with the real core's verdicts.
type scheduler struct {
	caller
	s        *Sim
	arbiter  arbiter.Arbiter
	observer *observer
	book     map[string]*reservation // by pod UID
	order    []string                // of the book
	keeping  *queue[ledger.TicketID]

	looked  int                  // observer.changes when options were computed
	options []string             // pods and nodes, as in actions
	refused map[string]time.Time // options that the controller has refused, until when they are left out
}

// refusalLasts is how long a node is left out for a pod that the controller has refused
// there, as in the product (plugins/internal/requeuer). While faults go on, schedulers
// try again at once: nothing may depend on the pause but that a run comes to its end.
const refusalLasts = 5 * time.Second

// stage is how far a reservation has come.
type stage uint8

const (
	writing     stage = iota // the ticket is on its way
	waits                    // in Permit
	following                // in PreBind, for what unbound claims become
	binding                  // the bind is on its way
	bound                    // waits for the watch to show it
	withdrawing              // the ticket is being deleted
)

type reservation struct {
	ticket ledger.Ticket
	uid    string // of the ticket's object
	stage  stage
	until  time.Time // grantTimeout
}

func newScheduler(s *Sim, name string) *scheduler {
	k := &scheduler{s: s, caller: caller{name: name, up: true}}
	k.forget()
	return k
}

func (k *scheduler) forget() {
	k.observer = newObserver(k.s, &k.caller, func(t ledger.Touched) {
		for _, id := range t.Tickets {
			k.keeping.add(id)
		}
	})
	k.book, k.order, k.options, k.looked = map[string]*reservation{}, nil, nil, -1
	k.refused = map[string]time.Time{}
	k.keeping = newQueue(k.s.Now, ledger.TicketID.String)
}

func (k *scheduler) kill() {
	k.incarnation++
	k.up, k.paused = false, false
}

func (k *scheduler) restart() {
	k.incarnation++
	k.up, k.paused = true, false
	k.forget()
}

// offer implements process.
func (k *scheduler) offer(m *menu) {
	if !k.awake() {
		return
	}
	k.observer.offer(m)
	if !k.observer.synced() {
		return
	}
	for _, p := range k.places() {
		if uid, _, _ := strings.Cut(p, " "); !k.leftOut(p) && !k.reserved(uid) {
			m.add(3, k.name, "place", p)
		}
	}
	for _, uid := range k.order {
		if what := k.next(k.book[uid]); what != "" {
			m.add(8, k.name, what, uid)
		}
	}
	k.keeping.offer(m, 8, k.name, "keep")
}

// act implements process.
func (k *scheduler) act(what, arg string) bool {
	switch {
	case !k.awake():
		return false
	case k.observer.does(what):
		return k.observer.act(what, arg)
	case !k.observer.synced():
		return false
	}
	switch what {
	case "place":
		uid, node, _ := strings.Cut(arg, " ")
		return k.place(uid, ledger.NodeName(node))
	case "keep":
		return k.keep(world.TicketKey(arg))
	}
	r := k.book[arg]
	if r == nil || k.next(r) != what {
		return false
	}
	switch what {
	case "bind":
		k.bind(r)
	case "follow":
		r.stage = following
		k.s.provision(r.ticket.Pod, r.ticket.Node)
	case "withdraw":
		if t := k.observer.snapshot().Ticket(r.ticket.ID); t != nil && t.UID == r.uid && t.Phase == ledger.TicketRefused {
			k.refused[r.ticket.Pod+" "+string(r.ticket.Node)] = k.s.Now().Add(refusalLasts)
		}
		k.withdraw(r)
	case "forget":
		k.close(r)
	}
	return true
}

// places lists where pending pods may go by what is known: it is worked out anew when
// that has changed.
func (k *scheduler) places() []string {
	if k.looked == k.observer.changes {
		return k.options
	}
	k.looked, k.options = k.observer.changes, nil
	s := k.observer.snapshot()
	for _, key := range k.s.keys(k.observer, world.Pods) {
		p := s.Pod(key)
		if p == nil || !k.schedulable(p) {
			continue
		}
		for _, n := range k.fitting(s, p, k.s.nodeNames()...) {
			k.options = append(k.options, key+" "+string(n))
		}
	}
	return k.options
}

// leftOut says whether the controller has just refused an option.
func (k *scheduler) leftOut(option string) bool {
	return !k.s.faulty && k.s.Now().Before(k.refused[option])
}

func (k *scheduler) schedulable(p *ledger.Pod) bool {
	return p.Node == "" && p.Phase == ledger.PodLive && k.s.scheduler[p.UID] == k.name
}

// reserved says whether a pod has a reservation, or its last ticket is still on its way
// out.
func (k *scheduler) reserved(uid string) bool {
	return k.book[uid] != nil || k.s.net.find(messageID(&k.caller, "withdraw "+uid)) != nil
}

// fitting are those of some nodes where a pod may go: PreFilter and Filter.
func (k *scheduler) fitting(s ledger.Snapshot, p *ledger.Pod, nodes ...ledger.NodeName) (list []ledger.NodeName) {
	r, now := arbiter.PodRequest(s, p), k.s.Now()
	if !k.arbiter.Admissible(s, r).Allowed() || !r.Attachable(s) { // it knows no driver yet, as its first lists are old
		return nil
	}
	at, held := k.arbiter.Nodes(s, r, now)
	for _, n := range nodes {
		node := s.Node(n)
		if node == nil || !node.Exists || node.Ready != ledger.ReadyTrue || node.Draining || node.OutOfService {
			continue // NodeUnschedulable and TaintToleration
		}
		if (!held || at == n) && k.arbiter.Fit(s, r, n, now).Allowed() {
			list = append(list, n)
		}
	}
	return list
}

// place is Filter, Reserve and Permit: the slot is reserved in memory, and the
// ticket is on its way.
func (k *scheduler) place(uid string, n ledger.NodeName) bool {
	s := k.observer.snapshot()
	p := s.Pod(uid)
	if p == nil || !k.schedulable(p) || k.reserved(uid) || len(k.fitting(s, p, n)) == 0 {
		return false
	}
	now := k.s.Now()
	tickets, verdict := k.arbiter.Reserve(s, p, n, k.name, now)
	if !verdict.Allowed() || len(tickets) == 0 {
		return false
	}
	r := &reservation{ticket: tickets[0], until: now.Add(k.s.config.GrantTimeout)}
	if !k.arbiter.AttachedOtherwise(s, arbiter.PodRequest(s, p), n).Allowed() {
		r.until = r.until.Add(arbiter.DefaultYieldNotice + time.Second) // a ticket has to let go first
	}
	k.assume(r)
	k.book[uid] = r
	k.order = append(k.order, uid)
	k.create(r)
	return true
}

// assume has the ledger count a reservation; a ticket of an earlier attempt
// gives way, unless it counts for the same node.
func (k *scheduler) assume(r *reservation) {
	now, l := k.s.Now(), k.observer.ledger
	if known := l.Snapshot().Ticket(r.ticket.ID); known != nil && (known.Node != r.ticket.Node || known.Phase == ledger.TicketRefused) {
		l.Forget(now, r.ticket.ID)
	}
	if err := l.Assume(now, r.ticket); err != nil {
		panic(err) // whatever stood in its way has just been forgotten
	}
	k.observer.changes++
}

// reassert has the ledger count a reservation again, over what came of an
// earlier attempt: events of its ticket may be late.
func (k *scheduler) reassert(r *reservation) {
	known := k.observer.snapshot().Ticket(r.ticket.ID)
	own := known != nil && known.UID != "" && known.UID == r.uid
	if r.stage == writing || r.stage == waits && !own {
		k.assume(r)
	}
}

func (k *scheduler) send(op string, r world.Request, then func(world.Answer, error)) {
	k.s.net.send(&k.caller, op, k.s.Now().Add(k.s.config.WriteTimeout), r, then)
}

// create writes the ticket. One of the name that is there is taken over, or
// replaced.
func (k *scheduler) create(r *reservation) {
	r.stage = writing
	fact := ledger.Ticket{
		ID: r.ticket.ID, Type: r.ticket.Type, Node: r.ticket.Node, Scheduler: r.ticket.Scheduler, Pod: r.ticket.Pod,
		PodName: r.ticket.PodName, Created: k.s.Now().Unix(), Volumes: r.ticket.Volumes,
	}
	k.send("create "+r.ticket.Pod, world.Request{Do: world.CreateTicket, Fact: fact}, func(a world.Answer, err error) {
		switch {
		case err != nil:
			k.retire(r)
		case a.Code == world.OK:
			k.written(r, a)
		default:
			k.meet(r)
		}
	})
}

func (k *scheduler) written(r *reservation, a world.Answer) {
	r.uid, r.stage = world.UIDOf(a.Facts[0]), waits
	k.observer.saw(a.Facts...)
}

// meet deals with a ticket that has the name already.
func (k *scheduler) meet(r *reservation) {
	key := r.ticket.ID.String()
	k.send("get ticket "+r.ticket.Pod, world.Request{Do: world.GetObject, Kind: world.Tickets, Key: key}, func(a world.Answer, err error) {
		if err != nil {
			k.retire(r)
			return
		}
		if a.Code == world.NotFound {
			k.create(r)
			return
		}
		old, _ := a.Facts[0].(ledger.Ticket)
		if old.Node == r.ticket.Node && old.Scheduler == r.ticket.Scheduler && slices.Equal(old.Volumes, r.ticket.Volumes) {
			k.written(r, a)
			return
		}
		drop := world.Request{Do: world.DropTicket, Key: key, UID: old.UID}
		k.send("replace "+r.ticket.Pod, drop, func(_ world.Answer, err error) {
			if err != nil {
				k.retire(r)
				return
			}
			k.create(r)
		})
	})
}

// next is what a reservation needs now; empty while it waits.
func (k *scheduler) next(r *reservation) string {
	s := k.observer.snapshot()
	pod, t := s.Pod(r.ticket.Pod), s.Ticket(r.ticket.ID)
	if pod != nil && pod.Node != "" && r.stage != writing {
		return "forget"
	}
	switch r.stage {
	case waits, following:
		return k.nextWaiting(s, r, pod, t)
	case bound:
		if pod == nil {
			return "forget"
		}
	}
	return ""
}

func (k *scheduler) nextWaiting(s ledger.Snapshot, r *reservation, pod *ledger.Pod, t *ledger.Ticket) string {
	own := t != nil && t.UID == r.uid && !t.Ghost
	switch {
	case pod == nil || pod.Phase != ledger.PodLive, !k.s.Now().Before(r.until):
		return "withdraw"
	case own && t.Phase == ledger.TicketRefused:
		return "withdraw"
	case !own && k.observer.get(world.Tickets, r.ticket.ID.String()) == nil:
		return "withdraw" // deleted by somebody
	case !own || t.Phase != ledger.TicketGranted:
		return ""
	}
	unbound, request := false, arbiter.PodRequest(s, pod)
	if !k.arbiter.AttachedOtherwise(s, request, t.Node).Allowed() {
		return ""
	}
	for _, need := range request.Needs {
		if need.Link == ledger.LinkUnbound {
			unbound = true
		} else if !k.arbiter.VolumeGranted(s, need, t.Node).Allowed() {
			return ""
		}
	}
	switch {
	case unbound && r.stage == waits:
		return "follow"
	case unbound:
		return ""
	}
	return "bind"
}

func (k *scheduler) bind(r *reservation) {
	r.stage = binding
	k.send("bind "+r.ticket.Pod, world.Request{Do: world.BindPod, UID: r.ticket.Pod, Node: r.ticket.Node}, func(a world.Answer, err error) {
		if err != nil || a.Code != world.OK {
			k.withdraw(r)
			return
		}
		r.stage = bound
	})
}

// retire ends a reservation whose ticket could not be written: it may have
// been, all the same.
func (k *scheduler) retire(r *reservation) { k.withdraw(r) }

// withdraw deletes the ticket, and only then stops to count it.
func (k *scheduler) withdraw(r *reservation) {
	r.stage = withdrawing
	key := r.ticket.ID.String()
	if r.uid == "" {
		k.send("find "+r.ticket.Pod, world.Request{Do: world.GetObject, Kind: world.Tickets, Key: key}, func(a world.Answer, err error) {
			switch {
			case err != nil:
				k.withdraw(r)
			case a.Code == world.NotFound:
				k.close(r)
			default:
				r.uid = world.UIDOf(a.Facts[0])
				k.withdraw(r)
			}
		})
		return
	}
	k.send("withdraw "+r.ticket.Pod, world.Request{Do: world.DropTicket, Key: key, UID: r.uid}, func(_ world.Answer, err error) {
		if err != nil {
			k.withdraw(r)
			return
		}
		k.close(r)
	})
}

// close ends a reservation in the book. What is still known of the ticket ends
// with it unless the pod is bound by it; without an object no event ever ends it.
func (k *scheduler) close(r *reservation) {
	delete(k.book, r.ticket.Pod)
	k.order = slices.DeleteFunc(k.order, func(uid string) bool { return uid == r.ticket.Pod })
	known := k.observer.snapshot().Ticket(r.ticket.ID)
	if r.stage == withdrawing || r.uid == "" || known != nil && known.UID == "" {
		k.observer.changes++
		k.observer.touched(k.observer.ledger.Forget(k.s.Now(), r.ticket.ID))
	}
	k.keeping.add(r.ticket.ID)
}

// keep withdraws a ticket of this scheduler that nobody stands behind.
func (k *scheduler) keep(id ledger.TicketID) bool {
	if !k.keeping.start(id) {
		return false
	}
	if r := k.book[id.Name]; r != nil {
		k.reassert(r)
		k.keeping.done(id, 0, flow.Finished)
		return true
	}
	s := k.observer.snapshot()
	t, pod := s.Ticket(id), s.Pod(id.Name)
	if t == nil || t.Ghost || t.UID == "" || t.Type != ledger.TypePod || t.Scheduler != k.name ||
		pod != nil && pod.Node != "" {
		k.keeping.done(id, 0, flow.Finished)
		return true
	}
	k.observer.confirmPod(t.Pod, func(p *ledger.Pod, err error) {
		if err != nil || p == nil || p.Node != "" || k.book[id.Name] != nil {
			k.keeping.done(id, 0, ended(err))
			return
		}
		k.send("clear "+id.Name, world.Request{Do: world.DropTicket, Key: id.String(), UID: t.UID}, func(_ world.Answer, err error) {
			if err == nil && k.book[id.Name] == nil {
				k.observer.touched(k.observer.ledger.Forget(k.s.Now(), id))
				k.observer.changes++
			}
			k.keeping.done(id, 0, ended(err))
		})
	})
	return true
}

// due implements process.
func (k *scheduler) due() time.Time {
	if !k.awake() {
		return time.Time{}
	}
	t := earlier(k.keeping.next(), k.observer.due())
	for _, r := range k.book {
		if r.stage == waits || r.stage == following {
			t = earlier(t, r.until)
		}
	}
	for _, option := range k.options {
		if k.leftOut(option) {
			t = earlier(t, k.refused[option])
		}
	}
	return t
}
