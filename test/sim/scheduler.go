// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// scheduler reserves in its own memory only, with the real core's verdicts.
type scheduler struct {
	caller
	s            *Sim
	arbiter      rules.Arbiter
	observer     *observer
	reservations map[string]*reservation // by pod UID: until the outcome of the bind is known
	order        []string                // their order

	begun bool      // no Binding of the last process can be in flight, and it has read the present objects
	ready time.Time // when no earlier Binding can be in flight

	looked  int      // observer.changes when options were computed
	options []string // pods and nodes, as in actions
}

const (
	bindTimeout  = 10 * time.Minute // of kube-scheduler, for claims to be bound
	resendAfter  = time.Second
	maxConflicts = 5 // how often the pod may change under a Binding (plugins/internal/binding)
)

type stage uint8

const (
	reserved  stage = iota
	following       // in PreBind, for unbound claims
	binding         // the Binding, or a read of the pod, is in flight
	unsettled       // the outcome of the Binding is unknown: it is sent again
)

type reservation struct {
	pod, version string // the Binding names both
	node         ledger.NodeName
	stage        stage
	until        time.Time // of stage following: its end; of unsettled: the next try
	conflicts    int
	seen         int64             // the version of the tickets at the last judgement of the node
	counted      []ledger.VolumeID // the pod's volumes that counted at the node before
}

func newScheduler(s *Sim, name string) *scheduler {
	k := &scheduler{s: s, caller: caller{name: name, up: true}}
	k.forget()
	k.begun = true // there was no earlier process
	return k
}

func (k *scheduler) forget() {
	k.observer = newObserver(k.s, &k.caller, ledger.NewReader(), func(ledger.Touched) {})
	k.reservations, k.order, k.options, k.looked = map[string]*reservation{}, nil, nil, -1
}

func (k *scheduler) kill() {
	k.incarnation++
	k.up, k.paused = false, false
}

// An earlier Binding has a deadline within the lease, and the API server gives it up a write timeout later.
func (k *scheduler) restart() {
	k.incarnation++
	k.up, k.paused, k.begun = true, false, false
	k.ready = k.s.Now().Add(2 * k.s.config.WriteTimeout)
	k.forget()
}

func (k *scheduler) offer(m *menu) {
	if !k.awake() {
		return
	}
	k.observer.offer(m)
	switch {
	case k.mayBegin():
		m.add(10, k.name, "begin", "")
		return
	case !k.begun || !k.observer.synced():
		return
	}
	for _, p := range k.places() {
		m.add(3, k.name, "place", p)
	}
	for _, uid := range k.order {
		if what := k.next(k.reservations[uid]); what != "" {
			m.add(8, k.name, what, uid)
		}
	}
}

func (k *scheduler) act(what, arg string) bool {
	switch {
	case !k.awake():
		return false
	case k.observer.does(what):
		return k.observer.act(what, arg)
	case what == "begin":
		return k.begin()
	case !k.begun || !k.observer.synced():
		return false
	case what == "place":
		uid, node, _ := strings.Cut(arg, " ")
		return k.place(uid, ledger.NodeName(node))
	}
	r := k.reservations[arg]
	if r == nil || k.next(r) != what {
		return false
	}
	switch what {
	case "bind":
		k.bind(r)
	case "send":
		k.send(r)
	case "follow":
		r.stage, r.until = following, k.s.Now().Add(bindTimeout)
		k.s.provision(r.pod, r.node)
	case "release":
		k.release(r)
	}
	return true
}

func (k *scheduler) mayBegin() bool {
	return !k.begun && k.observer.synced() && !k.s.Now().Before(k.ready)
}

func (k *scheduler) begin() bool {
	if !k.mayBegin() {
		return false
	}
	for _, kind := range []world.Kind{world.Pods, world.Attachments, world.Tickets} {
		k.observer.saw(k.s.w.List(kind)...)
	}
	k.begun = true
	return true
}

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

func (k *scheduler) schedulable(p *ledger.Pod) bool {
	return p.Node == "" && p.Phase == ledger.PodLive && k.s.scheduler[p.UID] == k.name
}

func (k *scheduler) fitting(s ledger.Snapshot, p *ledger.Pod, nodes ...ledger.NodeName) (list []ledger.NodeName) {
	r, now := rules.PodRequest(s, p), k.s.Now()
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

func (k *scheduler) place(uid string, n ledger.NodeName) bool {
	s := k.observer.snapshot()
	p := s.Pod(uid)
	if p == nil || !k.schedulable(p) || len(k.fitting(s, p, n)) == 0 {
		return false
	}
	r := &reservation{pod: uid, version: p.Version, node: n}
	for _, need := range rules.PodRequest(s, p).Needs {
		if s.Volume(need.Volume).OnNode(n).TakesSlot() || !s.Node(n).Driver(need.Volume.Driver).Registered { // it knows no limit yet
			r.counted = append(r.counted, need.Volume)
		}
	}
	k.reservations[uid] = r
	k.order = append(k.order, uid)
	k.observer.tell(k.observer.ledger.Reserve(k.s.Now(), *p, n))
	return true
}

func (k *scheduler) next(r *reservation) string {
	s, now := k.observer.snapshot(), k.s.Now()
	pod := s.Pod(r.pod)
	switch {
	case r.stage == binding, r.stage == unsettled && now.Before(r.until):
		return ""
	case r.stage == unsettled:
		return "send"
	case pod == nil || pod.Phase != ledger.PodLive || !pod.Reserved: // the latter: another actor has bound it
		return "release"
	}
	unbound := slices.ContainsFunc(rules.PodRequest(s, pod).Needs, func(n rules.Need) bool { return n.Link == ledger.LinkUnbound })
	switch {
	case !unbound:
		return "bind"
	case r.stage == reserved:
		return "follow"
	case !now.Before(r.until):
		return "release"
	}
	return ""
}

func (k *scheduler) bind(r *reservation) {
	without := &ledger.Delta{}
	without.Remove(r.pod)
	seen := k.observer.snapshot().With(without)
	pod := *k.observer.snapshot().Pod(r.pod)
	pod.Node, pod.Reserved = "", false
	if !k.arbiter.Fit(seen, rules.PodRequest(seen, &pod), r.node, k.s.Now()).Allowed() {
		k.release(r)
		return
	}
	r.seen = k.observer.handled[world.Tickets]
	k.send(r)
}

// A Binding fails if the pod has another version. Success, the pod's end, or a read with a node or another
// version settles it.
func (k *scheduler) send(r *reservation) {
	r.stage = binding
	request := world.Request{Do: world.BindPod, UID: r.pod, Node: r.node, Version: r.version, Since: r.seen, InUse: r.counted}
	k.ask("bind "+r.pod, request, func(a world.Answer, err error) {
		switch {
		case err == nil && a.Code == world.OK:
			k.observer.saw(a.Facts...)
			k.close(r)
		case err == nil && a.Code == world.NotFound:
			k.release(r)
		default:
			k.read(r)
		}
	})
}

func (k *scheduler) read(r *reservation) {
	k.ask("read "+r.pod, world.Request{Do: world.GetObject, Kind: world.Pods, Key: r.pod}, func(a world.Answer, err error) {
		pod, _ := firstFact(a).(ledger.Pod)
		if err == nil {
			k.observer.saw(a.Facts...)
		}
		switch {
		case err != nil:
			k.resend(r)
		case a.Code == world.NotFound, pod.Node == "" && pod.Phase != ledger.PodLive, pod.Node != "" && pod.Node != r.node:
			k.release(r)
		case pod.Node == r.node:
			k.close(r)
		case pod.Version == r.version: // it may still be in flight
			k.resend(r)
		case r.conflicts >= maxConflicts:
			k.release(r)
		default:
			r.conflicts++
			r.version = pod.Version
			k.send(r)
		}
	})
}

func (k *scheduler) resend(r *reservation) {
	r.stage, r.until = unsettled, k.s.Now().Add(resendAfter)
}

func (k *scheduler) ask(op string, r world.Request, then func(world.Answer, error)) {
	k.s.net.send(&k.caller, op, k.s.Now().Add(k.s.config.WriteTimeout), r, then)
}

// The ledger keeps its count if it has seen the pod at the node.
func (k *scheduler) release(r *reservation) {
	k.close(r)
	k.observer.tell(k.observer.ledger.Unreserve(k.s.Now(), r.pod))
}

// A bound pod's reservation counts in the ledger until the watch shows the pod at its node.
func (k *scheduler) close(r *reservation) {
	delete(k.reservations, r.pod)
	k.order = slices.DeleteFunc(k.order, func(uid string) bool { return uid == r.pod })
}

func (k *scheduler) due() time.Time {
	if !k.awake() {
		return time.Time{}
	}
	t := k.observer.due()
	if !k.begun {
		t = earlier(t, k.ready)
	}
	for _, r := range k.reservations {
		if r.stage == following || r.stage == unsettled {
			t = earlier(t, r.until)
		}
	}
	return t
}
