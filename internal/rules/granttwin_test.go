// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
)

// anyone draws ledgers with any user of any volume anywhere, also past all rules.
type anyone struct {
	t   *rapid.T
	l   *ledger.Ledger
	now time.Time

	fenced  ledger.NodeName // an out-of-service node, or none
	users   map[ledger.VolumeID]map[ledger.NodeName][]ledger.Requester
	asking  map[ledger.VolumeID][]ledger.Promise // pending tickets
	granted map[ledger.VolumeID][]ledger.Promise
}

const anyoneVolumes = 3

func newAnyone(t *rapid.T) *anyone {
	g := &anyone{
		t: t, l: ledger.New(), now: time.Unix(1_700_000_000, 0),
		users:  map[ledger.VolumeID]map[ledger.NodeName][]ledger.Requester{},
		asking: map[ledger.VolumeID][]ledger.Promise{}, granted: map[ledger.VolumeID][]ledger.Promise{},
	}
	g.apply(ledger.Policy{Name: "p", Version: "1", Driver: "disk", LiveMigration: g.below(3, "liveMigration") > 0})
	if i := g.below(2*worldNodes, "fenced"); i < worldNodes {
		g.fenced = nodeName(i)
	}
	limit := []int32{ledger.NoLimit, ledger.NoLimit, 2, 3}[g.below(4, "limit")]
	for i := range worldNodes {
		n := nodeName(i)
		node := ledger.NodeState{Name: n, UID: string(n), Version: "1", Ready: ledger.ReadyTrue, Managed: true, Reporting: true}
		if n == g.fenced {
			node.Ready, node.OutOfService = ledger.ReadyUnknown, true
		}
		g.apply(node)
		g.apply(ledger.NodeDrivers{Node: n, Version: "1", Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: limit}}})
	}
	for i := range anyoneVolumes {
		access := []ledger.Access{ledger.AccessNode, ledger.AccessNode, ledger.AccessNode, ledger.AccessPod, ledger.AccessMany}[g.below(5, "access")]
		name, key := "pv-"+claimKey(i).Name, claimKey(i)
		g.apply(ledger.PersistentVolume{Name: name, UID: name, Version: "1", Volume: g.volume(i), Access: access, Claim: key})
		g.apply(ledger.Claim{Key: key, UID: key.Name, Version: "1", PersistentVolume: name, Bound: true, Access: access})
	}
	for i := range g.below(6, "users") {
		g.user(i)
	}
	for i := range anyoneVolumes {
		g.attachments(g.volume(i))
		g.hold(i)
	}
	return g
}

func (g *anyone) below(n int, what string) int { return rapid.IntRange(0, n-1).Draw(g.t, what) }

func (g *anyone) apply(e ledger.Event) { g.l.Apply(g.now, e) }

func (g *anyone) volume(i int) ledger.VolumeID {
	return ledger.VolumeID{Driver: "disk", Handle: claimKey(i).Name}
}

func (g *anyone) claims() []int {
	first, more := g.below(anyoneVolumes, "claim"), g.below(anyoneVolumes, "more claims")
	list := []int{first}
	for i := 1; i <= more; i++ {
		list = append(list, (first+i)%anyoneVolumes)
	}
	return list
}

func (g *anyone) user(i int) {
	name, n, claims := "u"+strconv.Itoa(i), nodeName(g.below(worldNodes, "node")), g.claims()
	kinds := []ledger.TicketType{"", "", ledger.TypeRestore, ledger.TypeManual, ledger.TypeBackup, ledger.TypeLiveMigration, ledger.TypeLiveMigration}
	kind := kinds[g.below(len(kinds), "kind")]
	phase := ledger.PodPhase(g.below(2, "pod phase"))
	p := g.pod(name, claims)
	p.Node, p.Phase = n, phase
	if kind == "" {
		g.apply(p)
		for _, c := range claims {
			g.uses(g.volume(c), n, ledger.Requester{Namespace: namespace, Name: name, UID: name})
		}
		return
	}
	t := ledger.Ticket{
		ID: ledger.TicketID{Namespace: namespace, Name: name}, UID: "t-" + name, Version: "1", Type: kind, Node: n,
		Created: g.now.Unix() - int64(g.below(3, "age")), Phase: ledger.TicketPhase(g.below(2, "ticket phase")),
	}
	who := ledger.Requester{Ticket: true, Namespace: namespace, Name: name, UID: t.UID}
	for _, c := range claims {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: claimKey(c).Name})
		v := g.volume(c)
		g.uses(v, n, who)
		if t.Phase == ledger.TicketGranted {
			g.granted[v] = append(g.granted[v], ledger.Promise{Node: n, To: who})
		} else {
			g.asking[v] = append(g.asking[v], ledger.Promise{Node: n, To: who})
		}
	}
	g.apply(t)
}

func (g *anyone) uses(v ledger.VolumeID, n ledger.NodeName, who ledger.Requester) {
	if g.users[v] == nil {
		g.users[v] = map[ledger.NodeName][]ledger.Requester{}
	}
	g.users[v][n] = append(g.users[v][n], who)
}

func (g *anyone) pod(name string, claims []int) ledger.Pod {
	p := ledger.Pod{UID: name, Version: "1", Namespace: namespace, Name: name, Created: g.now.Unix()}
	for i, c := range claims {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: "v" + strconv.Itoa(i), Claim: claimKey(c).Name})
	}
	return p
}

func (g *anyone) attachments(v ledger.VolumeID) {
	for i := range worldNodes {
		n := nodeName(i)
		if g.below(3, "attached") > 0 {
			continue
		}
		g.apply(ledger.Attachment{
			Name: ledger.AttachmentName(v, n), UID: "a-" + v.Handle + string(n), Version: "1", Driver: "disk", Node: n, PersistentVolume: "pv-" + v.Handle,
			Ours: true, NodeID: string(n), Attached: true, Deleting: g.below(2, "deleting") == 0,
		})
	}
}

func (g *anyone) hold(i int) {
	v, at := g.volume(i), g.below(worldNodes+1, "holder")
	if at == worldNodes {
		return
	}
	h := ledger.Hold{
		Version: "1", Node: nodeName(at), NodeUID: string(nodeName(at)), Transitions: 1, State: ledger.HoldHeld, PVs: []string{"pv-" + v.Handle},
		Requesters: g.users[v][nodeName(at)],
	}
	tickets := append(append([]ledger.Promise{}, g.asking[v]...), g.granted[v]...)
	if next := g.below(len(tickets)+1, "next"); next < len(tickets) && tickets[next].Node != h.Node {
		h.Next = tickets[next]
	}
	g.apply(ledger.HoldSeen{Volume: v, Hold: h})
}

// If Fit places a ticket of a pod's priority, Grant agrees: otherwise the ticket could wait forever.
func TestWhoFitsIsGranted(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		for range 30 {
			newAnyone(t).compare()
		}
	})
}

func (g *anyone) compare() {
	a := rules.Arbiter{}
	t := ledger.Ticket{ID: ledger.TicketID{Namespace: namespace, Name: "asks"}, UID: "just-written", Version: "2", Type: ledger.TypeRestore, Created: g.now.Unix() + 1}
	for _, c := range g.claims() {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: claimKey(c).Name})
	}
	s := g.l.Snapshot()
	r := rules.TicketRequest(s, &t)
	only, narrowed := a.Nodes(s, r, g.now)
	for i := range worldNodes {
		n := nodeName(i)
		if n == g.fenced || narrowed && n != only {
			continue // no scheduler tries it
		}
		if !a.Fit(s, r, n, g.now).Allowed() {
			continue
		}
		t.Node = n
		if v := g.grant(a, t); !v.Allowed() && !g.awaitsFenced(v) {
			g.t.Fatalf("a ticket of %v fits %s, and is not granted: %s%s", t.Volumes, n, v.Outcome, because(v))
		}
	}
}

func (g *anyone) grant(a rules.Arbiter, t ledger.Ticket) rules.Verdict {
	l := g.l.Fork()
	l.Apply(g.now, t)
	s := l.Snapshot()
	v := a.Grant(s, s.Ticket(t.ID), g.now)
	if !v.Allowed() {
		return v
	}
	t.Version, t.Phase = "3", ledger.TicketGranted
	l.Apply(g.now, t)
	s = l.Snapshot()
	if v := a.Keeps(s, s.Ticket(t.ID), g.now); !v.Allowed() && !g.besideAMigration(t, v) {
		g.t.Fatalf("%v is granted at %s, and to be taken back: %s", t.Volumes, t.Node, because(v))
	}
	return v
}

// The ticket is granted beside a live migration's target and yields at its source: known and open
// (docs/internals/simulation.md).
func (g *anyone) besideAMigration(t ledger.Ticket, v rules.Verdict) bool {
	return v.First().Code == rules.Outranked && slices.ContainsFunc(slices.Collect(g.l.Snapshot().Tickets()), func(o *ledger.Ticket) bool {
		return o.Type == ledger.TypeLiveMigration && o.Phase == ledger.TicketGranted && o.Node == t.Node
	})
}

func (g *anyone) awaitsFenced(v rules.Verdict) bool {
	return g.fenced != "" && len(v.Reasons) == 1 && v.First().Code == rules.NotGranted
}
