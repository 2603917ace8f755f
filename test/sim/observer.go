// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// observer replaces internal/watch: one watch per kind, each at its own pace, and answers feed a ledger.
type observer struct {
	s       *Sim
	caller  *caller
	ledger  *ledger.Ledger
	kinds   []world.Kind
	at      [world.Kinds + 1]int // the delivered part of the kind's log; -1: before the list
	handled [world.Kinds + 1]int64
	store   [world.Kinds + 1]map[string]ledger.Event // by the watch
	ahead   [world.Kinds + 1]map[string]ledger.Event // by earlier answers
	touched func(ledger.Touched)
	changes int         // the number of the ledger's changes
	lapses  []time.Time // the ends of known driver refusals, in order
}

func newObserver(s *Sim, c *caller, l *ledger.Ledger, touched func(ledger.Touched)) *observer {
	o := &observer{
		s: s, caller: c, ledger: l, kinds: world.AllKinds(), touched: touched,
	}
	if s.config.Spoken {
		o.kinds = append(o.kinds, world.NodeWords)
	}
	for _, k := range o.kinds {
		o.at[k], o.store[k], o.ahead[k] = -1, map[string]ledger.Event{}, map[string]ledger.Event{}
	}
	return o
}

func (o *observer) apply(e ledger.Event) {
	if a, ok := e.(ledger.Attachment); ok && a.AttachError.Code == ledger.ResourceExhausted {
		o.lapses = append(o.lapses, o.s.Now().Add(rules.ExhaustedFor))
	}
	o.tell(o.ledger.Apply(o.s.Now(), e))
}

func (o *observer) tell(t ledger.Touched) {
	o.changes++
	o.touched(t)
}

func (o *observer) snapshot() ledger.Snapshot { return o.ledger.Snapshot() }

func (o *observer) synced() bool {
	for _, k := range o.kinds {
		if o.at[k] < 0 {
			return false
		}
	}
	return true
}

var firstOf = func() (names [world.Kinds + 1]string) {
	for _, k := range append(world.AllKinds(), world.NodeWords) {
		names[k] = k.String() + " 1"
	}
	return names
}()

func (o *observer) offer(m *menu) {
	for _, k := range o.kinds {
		pending := len(o.s.logs[k]) - o.at[k]
		switch {
		case o.at[k] < 0 && o.listable(k):
			m.add(10, o.caller.name, "list", k.String())
			if stale := o.oldest(k); stale < len(o.s.logs[k]) {
				m.add(5, o.caller.name, "list", k.String()+" "+strconv.Itoa(len(o.s.logs[k])-stale))
			}
		case o.at[k] < 0 || pending == 0:
		default:
			m.add(6, o.caller.name, "watch", k.String())
			if pending > 1 {
				m.add(4, o.caller.name, "watch", firstOf[k])
			}
			if pending > 1 && o.s.config.Gaps {
				m.add(4, o.caller.name, "relist", k.String())
			}
		}
		if o.s.config.Gaps && len(o.vanished(k)) > 0 {
			m.add(5, o.caller.name, "sweep", k.String())
		}
	}
	if o.lapsed() > 0 {
		m.add(5, o.caller.name, "lapse", "")
	}
}

func (o *observer) lapsed() int {
	n := slices.IndexFunc(o.lapses, o.s.Now().Before)
	if n < 0 {
		return len(o.lapses)
	}
	return n
}

func (o *observer) lapse() bool {
	n := o.lapsed()
	if n == 0 {
		return false
	}
	o.lapses = o.lapses[n:]
	o.apply(rules.Lapse(o.s.Now()))
	return true
}

func (o *observer) readLeases(down bool) {
	var names []ledger.NodeName
	for n := range o.snapshot().Nodes() {
		if n.Exists && n.Ready != ledger.ReadyTrue {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if down {
			o.apply(ledger.LeaseUnread{Node: name})
			continue
		}
		a := o.s.w.Serve(world.Request{Do: world.GetObject, Kind: world.Leases, Key: string(name)})
		if a.Code == world.OK {
			o.apply(a.Facts[0])
		} else {
			o.apply(ledger.NodeLease{Node: name})
		}
	}
}

func (o *observer) resume() {
	if o.synced() {
		o.readLeases(true)
	}
}

func (o *observer) due() time.Time {
	if len(o.lapses) > 0 {
		return o.lapses[0]
	}
	return time.Time{}
}

func (o *observer) listable(k world.Kind) bool { return k == world.Tickets || o.at[world.Tickets] >= 0 }

// Pods are read after the tickets. Others may come from a watch cache some events behind, but not behind
// the knowledge of all controllers.
func (o *observer) oldest(k world.Kind) int {
	n := len(o.s.logs[k])
	if k == world.Pods {
		return n
	}
	return max(o.s.knownAt[k], n-o.s.rng.IntN(4))
}

func (o *observer) does(what string) bool {
	switch what {
	case "list", "watch", "relist", "sweep", "lapse":
		return true
	}
	return false
}

func (o *observer) act(what, arg string) bool {
	if what == "lapse" {
		return o.lapse()
	}
	name, rest, _ := strings.Cut(arg, " ")
	k, known := world.KindOf(name)
	n, err := strconv.Atoi(rest)
	if !known || rest != "" && err != nil {
		return false
	}
	log := o.s.logs[k]
	switch {
	case what == "list" && o.at[k] < 0 && o.listable(k):
		if k == world.Pods {
			n = 0
		}
		o.list(k, max(0, len(log)-n))
	case what == "watch" && o.at[k] >= 0 && o.at[k] < len(log):
		end := len(log)
		if n > 0 {
			end = min(o.at[k]+n, end)
		}
		for o.at[k] < end {
			o.at[k]++
			o.deliver(log[o.at[k]-1])
		}
	case what == "relist" && o.at[k] >= 0 && o.at[k] < len(log):
		o.relist(k)
	case what == "sweep":
		return o.sweepVanished(k)
	default:
		return false
	}
	return true
}

func (o *observer) list(k world.Kind, n int) {
	o.at[k] = n
	if n > 0 {
		o.handled[k] = o.s.logs[k][n-1].Version
	}
	for _, c := range newest(o.s.logs[k][:n]) {
		if c.Fact != nil {
			o.store[k][c.Key] = c.Fact
			o.apply(c.Fact)
		}
	}
	if o.synced() {
		o.apply(ledger.Complete{})
	}
}

func newest(log []world.Change) []world.Change {
	var list []world.Change
	at := map[string]int{}
	for _, c := range log {
		i, seen := at[c.Key]
		if !seen {
			i = len(list)
			at[c.Key], list = i, append(list, c)
		}
		list[i] = c
	}
	return list
}

func (o *observer) deliver(c world.Change) {
	o.handled[c.Kind] = max(o.handled[c.Kind], c.Version)
	ahead := o.ahead[c.Kind][c.Key]
	if c.Fact == nil {
		delete(o.store[c.Kind], c.Key)
		if ahead != nil && c.Kind != world.Pods && world.UIDOf(ahead) != world.UIDOf(c.Old) {
			return // a newer one of that name is known
		}
		delete(o.ahead[c.Kind], c.Key)
		o.apply(world.Gone(c.Old))
		return
	}
	if ahead != nil && world.VersionOf(ahead) <= c.Version {
		delete(o.ahead[c.Kind], c.Key)
	}
	o.store[c.Kind][c.Key] = c.Fact
	o.apply(c.Fact)
}

func (o *observer) saw(facts ...ledger.Event) {
	for _, e := range facts {
		k, key := world.Identify(e)
		version := world.VersionOf(e)
		if o.at[k] < 0 || version <= o.handled[k] {
			continue
		}
		if a := o.ahead[k][key]; a != nil && version <= world.VersionOf(a) {
			continue
		}
		o.ahead[k][key] = e
		o.apply(e)
	}
}

func (o *observer) get(k world.Kind, key string) ledger.Event {
	stored, ahead := o.store[k][key], o.ahead[k][key]
	if stored == nil || ahead != nil && world.VersionOf(ahead) > world.VersionOf(stored) {
		return ahead
	}
	return stored
}
