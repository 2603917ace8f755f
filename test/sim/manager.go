// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// Only pods and nodes wake kube-controller-manager: it finds a foreign attachment when it looks for its
// name, or when it starts. It alone writes volumesAttached, whole, without a precondition.
type manager struct {
	caller
	s       *Sim
	begun   bool
	logs    [world.Kinds + 1]int // the seen part of each log; -1: not listed
	pods    map[string]ledger.Pod
	nodes   map[ledger.NodeName]ledger.NodeState
	vas     map[string]ledger.Attachment
	actual  map[world.At]*attached
	dirty   map[ledger.NodeName]bool
	busy    map[string]*operation // by a key that no two of them may share
	checked time.Time
}

type attached struct {
	confirmed bool // false: uncertain, after a failure or a start
	reported  bool
	mounted   bool // assumed until the node's next event
	since     time.Time
	unwanted  time.Time
}

type operation struct {
	at      world.At
	attach  bool
	running bool
	polls   bool      // it checks the VolumeAttachment now and then
	next    time.Time // the next check, or the end of the pause
	end     time.Time
	pause   time.Duration
	failed  int
}

const (
	firstPoll   = 500 * time.Millisecond
	longestPoll = 7 * time.Second
	pollTimeout = 2 * time.Minute
	forceAfter  = 6 * time.Minute
	checkEvery  = time.Minute
	heartbeat   = 5 * time.Minute // of nodes without other changes
)

func newManager(s *Sim) *manager {
	k := &manager{s: s, caller: caller{name: "manager", up: true}}
	k.forget()
	return k
}

func (k *manager) forget() {
	k.begun, k.pods, k.nodes, k.vas = false, map[string]ledger.Pod{}, map[ledger.NodeName]ledger.NodeState{}, map[string]ledger.Attachment{}
	for _, kind := range k.kinds() {
		k.logs[kind] = -1
	}
	k.actual, k.dirty, k.busy = map[world.At]*attached{}, map[ledger.NodeName]bool{}, map[string]*operation{}
}

func (k *manager) kinds() []world.Kind {
	return []world.Kind{world.Pods, world.Nodes, world.Attachments}
}

func (k *manager) kill() {
	k.incarnation++
	k.up = false
}

func (k *manager) restart() {
	k.incarnation++
	k.up, k.paused = true, false
	k.forget()
}

func (k *manager) offer(m *menu) {
	if !k.awake() {
		return
	}
	listed := true
	for _, kind := range k.kinds() {
		switch {
		case k.logs[kind] < 0:
			m.add(8, k.name, "list", kind.String())
			listed = false
		case k.logs[kind] < len(k.s.logs[kind]):
			m.add(8, k.name, "watch", kind.String())
		}
	}
	switch {
	case !listed:
		return
	case !k.begun:
		m.add(8, k.name, "begin", "")
		return
	}
	for _, at := range k.detachable() {
		m.add(8, k.name, "detach", atArg(at))
	}
	for _, at := range k.attachable() {
		m.add(8, k.name, "attach", atArg(at))
	}
	for _, key := range slices.Sorted(maps.Keys(k.busy)) {
		if o := k.busy[key]; o.polls && !k.s.Now().Before(o.next) {
			m.add(8, k.name, "look", key)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(k.dirty)) {
		if !k.writing(n) {
			m.add(8, k.name, "status", string(n))
		}
	}
	if k.checkable() {
		m.add(4, k.name, "check", "")
	}
	for _, at := range k.sorted() {
		if due := k.beat(at); !due.IsZero() && !k.s.Now().Before(due) {
			m.add(4, k.name, "heartbeat", string(at.Node))
		}
	}
}

func (k *manager) beat(at world.At) time.Time {
	a, n := k.actual[at], k.nodes[at.Node]
	if kubelet := k.s.kubeletOf(at.Node); !a.mounted || slices.Contains(n.InUse, at.Volume) || n.Name == "" || kubelet == nil || !kubelet.working() {
		return time.Time{}
	}
	return a.since.Add(heartbeat)
}

func atArg(at world.At) string { return volumeArg(at.Volume) + " " + string(at.Node) }

func atOf(arg string) world.At {
	v, n, _ := strings.Cut(arg, " ")
	return world.At{Volume: volumeOf(v), Node: ledger.NodeName(n)}
}

// No time passes while it has work: it acts ten times a second, and Moorage relies on that when it deletes
// objects that this controller may know (docs/decisions/0008).
func (k *manager) pressed() bool {
	var m menu
	k.offer(&m)
	waits := func(msg *message) bool { return msg.caller == &k.caller && (k.s.net.servable(msg) || msg.answerable()) }
	return m.total[work] > 0 || slices.ContainsFunc(k.s.net.messages, waits)
}

func (k *manager) act(what, arg string) bool {
	kind, isKind := world.KindOf(arg)
	switch {
	case !k.awake():
		return false
	case what == "list" && isKind && slices.Contains(k.kinds(), kind) && k.logs[kind] < 0,
		what == "watch" && isKind && slices.Contains(k.kinds(), kind) && k.logs[kind] >= 0 && k.logs[kind] < len(k.s.logs[kind]):
		k.watch(kind)
		return true
	case what == "begin" && !k.begun:
		if slices.ContainsFunc(k.kinds(), func(kind world.Kind) bool { return k.logs[kind] < 0 }) {
			return false
		}
		k.begin()
		return true
	case !k.begun:
		return false
	}
	switch what {
	case "detach":
		return slices.Contains(k.detachable(), atOf(arg)) && k.detach(atOf(arg))
	case "attach":
		return slices.Contains(k.attachable(), atOf(arg)) && k.attach(atOf(arg))
	case "look":
		o := k.busy[arg]
		return o != nil && o.polls && !k.s.Now().Before(o.next) && k.look(arg, o)
	case "status":
		return k.dirty[ledger.NodeName(arg)] && !k.writing(ledger.NodeName(arg)) && k.status(ledger.NodeName(arg), func(error) {})
	case "check":
		return k.checkable() && k.check()
	case "heartbeat":
		n, known := k.nodes[ledger.NodeName(arg)]
		k.mounts(n)
		return known
	}
	return false
}

func (k *manager) watch(kind world.Kind) {
	log := k.s.logs[kind]
	for i := max(0, k.logs[kind]); i < len(log); i++ {
		c := log[i]
		switch e := c.Fact.(type) {
		case ledger.Pod:
			k.pods[c.Key] = e
		case ledger.NodeState:
			k.nodes[e.Name] = e
			k.mounts(e)
		case ledger.Attachment:
			k.vas[c.Key] = e
		case nil:
			delete(k.pods, c.Key)
			delete(k.nodes, ledger.NodeName(c.Key))
			delete(k.vas, c.Key)
		}
	}
	k.logs[kind] = len(log)
}

func (k *manager) mounts(n ledger.NodeState) {
	for at, a := range k.actual {
		if at.Node == n.Name {
			a.mounted = slices.Contains(n.InUse, at.Volume)
		}
	}
}

func (k *manager) begin() {
	k.begun, k.checked = true, k.s.Now()
	for name, n := range k.nodes {
		for _, v := range n.Reported {
			k.actual[world.At{Volume: v, Node: name}] = &attached{confirmed: true, reported: true, mounted: slices.Contains(n.InUse, v), since: k.s.Now()}
		}
	}
	for _, va := range k.vas {
		if v, ok := k.s.w.Source(va); ok && k.actual[world.At{Volume: v, Node: va.Node}] == nil {
			k.actual[world.At{Volume: v, Node: va.Node}] = &attached{mounted: true, since: k.s.Now()}
		}
	}
}

func (k *manager) desired() map[world.At]bool {
	set := map[world.At]bool{}
	for _, p := range k.pods {
		if _, exists := k.nodes[p.Node]; !exists || p.Phase == ledger.PodFinished {
			continue
		}
		list, _ := k.s.w.VolumesOf(p)
		for _, v := range list {
			set[world.At{Volume: v, Node: p.Node}] = true
		}
	}
	return set
}

func (k *manager) key(at world.At) string {
	if k.s.w.Exclusive(at.Volume) {
		return volumeArg(at.Volume)
	}
	return strings.ReplaceAll(atArg(at), " ", "@")
}

// An operation of the other kind drops the pause after a failure. An attach to another node waits for it
// (nestedpendingoperations, Run: the operation's name counts, and an exclusive volume's key has no node).
func (k *manager) idle(at world.At, attach bool) bool {
	o := k.busy[k.key(at)]
	return o == nil || !o.running && (o.attach != attach || !k.s.Now().Before(o.next))
}

func (k *manager) detachable() []world.At {
	var list []world.At
	desired := k.desired()
	for _, at := range k.sorted() {
		a := k.actual[at]
		if desired[at] {
			a.unwanted = time.Time{}
			continue
		}
		if a.unwanted.IsZero() {
			a.unwanted = k.s.Now()
		}
		if k.idle(at, false) && !k.writing(at.Node) && (!a.mounted || k.forced(at, a)) {
			list = append(list, at)
		}
	}
	return list
}

func (k *manager) forced(at world.At, a *attached) bool {
	n, exists := k.nodes[at.Node]
	ready := exists && n.Ready == ledger.ReadyTrue
	return n.OutOfService || !ready && k.s.Now().Sub(a.unwanted) >= forceAfter
}

func (k *manager) sorted() []world.At { return sortedAt(maps.Keys(k.actual)) }

func sortedAt(seq func(func(world.At) bool)) []world.At {
	return slices.SortedFunc(seq, func(a, b world.At) int {
		return cmp.Or(cmp.Compare(a.Volume.Handle, b.Volume.Handle), cmp.Compare(a.Node, b.Node))
	})
}

func (k *manager) attachable() []world.At {
	var list []world.At
	for _, at := range sortedAt(maps.Keys(k.desired())) {
		if a := k.actual[at]; a != nil && a.confirmed || !k.idle(at, true) {
			continue
		}
		elsewhere := false
		for other, a := range k.actual {
			elsewhere = elsewhere || other.Volume == at.Volume && other.Node != at.Node && a.confirmed && k.s.w.Exclusive(at.Volume)
		}
		if !elsewhere {
			list = append(list, at)
		}
	}
	return list
}

func (k *manager) due() time.Time {
	var t time.Time
	if !k.awake() || !k.begun {
		return t
	}
	for _, o := range k.busy {
		if k.s.Now().Before(o.next) && (o.polls || !o.running) {
			t = earlier(t, o.next)
		}
	}
	for _, a := range k.actual {
		if due := a.unwanted.Add(forceAfter); !a.unwanted.IsZero() && k.s.Now().Before(due) {
			t = earlier(t, due)
		}
	}
	for at := range k.actual {
		if due := k.beat(at); k.s.Now().Before(due) {
			t = earlier(t, due)
		}
	}
	if due := k.checked.Add(checkEvery); k.stale() && k.s.Now().Before(due) {
		t = earlier(t, due)
	}
	return t
}
