// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/test/world"
)

// woken decides on pending tickets only when protocol.Wake says so, in any order of nodes.
type woken struct {
	*script
	r        *rand.Rand
	said     []string
	changes  *ledger.Changes
	versions map[ledger.TicketID]string
	nodes    map[ledger.NodeName]bool // with pending tickets to decide on
}

// At rest each waiting ticket must have its present message: otherwise it is never checked again.
func TestNobodyWaitsForNothing(t *testing.T) {
	for seed := range 600 {
		w := &woken{script: newScript(), r: rand.New(rand.NewSource(int64(seed))), versions: map[ledger.TicketID]string{}, nodes: map[ledger.NodeName]bool{}}
		w.changes = w.ledger.Gather()
		if fault := w.play(); fault != "" {
			t.Fatalf("seed %d: %s\n%s", seed, fault, strings.Join(w.said, "\n"))
		}
	}
}

func (w *woken) say(format string, args ...any) {
	w.said = append(w.said, fmt.Sprintf(format, args...))
	w.command(w.said[len(w.said)-1])
}

func (w *woken) play() (fault string) {
	const nodes = 4
	limit, volumes := 2+w.r.Intn(8), 2+w.r.Intn(2)
	for n := range nodes {
		w.say("node n%d driver=disk limit=%d", n, limit)
	}
	for v := range volumes {
		w.say("pv v%d claim=v%d access=RWO", v, v)
	}
	claims := func(most int) string {
		var list []string
		for _, v := range w.r.Perm(volumes)[:1+w.r.Intn(min(most, volumes))] {
			list = append(list, fmt.Sprintf("v%d", v))
		}
		return strings.Join(list, ",")
	}
	types := []ledger.TicketType{ledger.TypeManual, ledger.TypeRestore, ledger.TypeEviction, ledger.TypeBackup}
	var pods []string
	for i := range 5 + w.r.Intn(8) {
		switch w.r.Intn(14) {
		case 0, 1, 2, 3, 4, 5, 6, 7, 8:
			w.say("ticket t%d type=%s node=n%d claims=%s", i, types[w.r.Intn(len(types))], w.r.Intn(nodes), claims(min(3, limit)))
		case 9:
			pods = append(pods, fmt.Sprintf("p%d", i))
			w.say("pod p%d claims=%s", i, claims(2))
			w.say("reserve p%d node=n%d", i, w.r.Intn(nodes))
		case 10:
			if len(pods) > 0 {
				gone := w.r.Intn(len(pods))
				w.say("delete pod=%s", pods[gone])
				pods = slices.Delete(pods, gone, gone+1)
			}
		case 11:
			if ids := w.ticketOrder(); len(ids) > 0 {
				if k := w.snapshot().Ticket(ids[w.r.Intn(len(ids))]); k != nil && k.Type != ledger.TypeManual {
					w.say("delete ticket=%s", k.ID.Name)
				}
			}
		case 12, 13:
			if fault := w.settle(); fault != "" {
				return fault
			}
		}
	}
	return w.settle()
}

func (w *woken) settle() (fault string) {
	w.said = append(w.said, "settled")
	for quiet, rounds := 0, 0; quiet < 2; rounds++ {
		if rounds == 150 {
			return "it never settles"
		}
		was := w.written()
		w.round()
		if quiet++; w.written() != was || len(w.nodes) > 0 {
			quiet = 0
		}
	}
	for _, n := range w.Keys(world.Nodes) {
		list := protocol.Round(w.arb.Queue(w.snapshot(), ledger.NodeName(n), w.Now), w.snapshot(), w.Now, nil, nil)
		for _, d := range list {
			if code := d.Verdict.First().Code; d.Ticket.Reason != string(code) {
				return fmt.Sprintf("%s at %s was told %q, and would be told %q now", d.Ticket.ID.Name, n, d.Ticket.Reason, code)
			}
		}
	}
	return ""
}

func (w *woken) written() string {
	var b strings.Builder
	for _, kind := range []world.Kind{world.Tickets, world.Holds, world.Attachments, world.Nodes, world.Pods} {
		for _, e := range w.List(kind) {
			_, key := world.Identify(e)
			fmt.Fprintf(&b, "%s=%d,", key, world.VersionOf(e))
		}
	}
	return b.String()
}

func (w *woken) round() {
	for _, id := range w.ticketOrder() {
		if k := w.snapshot().Ticket(id); k != nil {
			if task, due := protocol.Due(w.arb, w.snapshot(), k, w.arb.Keeps(w.snapshot(), k, w.Now), w.Now); due {
				w.carry(task)
			}
		}
	}
	w.wake()
	list := sortedKeys(w.nodes)
	if len(list) > 0 {
		w.decide(list[w.r.Intn(len(list))])
	}
	if w.r.Intn(2) == 0 || len(list) == 0 {
		for _, v := range w.volumes() {
			for _, step := range w.arb.Plan(w.snapshot(), v, w.Now).Steps {
				_ = w.do(step)
			}
		}
		for _, name := range slices.Clone(w.Keys(world.Attachments)) {
			w.attacher(name)
		}
		w.bindReserved()
		for _, id := range sortedKeys(w.Machines) {
			w.tick(w.Machines[id])
		}
	}
	w.wake()
}

// A volume that detachDelay keeps is checked when the node's last slot goes, not after its delay.
func TestDelayedVolumeHearsThatItsNodeIsFull(t *testing.T) {
	s, v := newScript(), ledger.VolumeID{Driver: "disk", Handle: "h-one"}
	play := func(lines ...string) {
		for _, line := range lines {
			s.command(line)
		}
	}
	play("policy p driver=disk detachDelay=1h", "node n driver=disk limit=2", "pv one claim=one access=RWX", "pv two claim=two access=RWX",
		"pod a claim=one", "bind pod=a node=n", "run", "delete pod=a", "run")
	changes := s.ledger.Gather()
	if plan := s.arb.Plan(s.snapshot(), v, s.Now); len(plan.Steps) > 0 {
		t.Fatalf("with a slot to spare: %v", plan.Steps)
	}
	play("pod b claim=two", "bind pod=b node=n")
	snapshot, volumes, nodes := changes.Take()
	if plan := s.arb.Plan(snapshot, v, s.Now); len(plan.Steps) == 0 {
		t.Fatal("it stays, and no slot is free")
	}
	look := protocol.Wake(ledger.Touched{Volumes: sorted(volumes), Nodes: sortedKeys(nodes)}, snapshot)
	if !slices.Contains(look.Volumes, v) {
		t.Errorf("nobody looks at the volume: %+v", look)
	}
}

func (w *woken) wake() {
	s, volumes, nodes := w.changes.Take()
	touched := ledger.Touched{Volumes: sorted(volumes), Nodes: sortedKeys(nodes)}
	for k := range s.Tickets() {
		if w.versions[k.ID] != k.Version {
			w.versions[k.ID] = k.Version
			touched.Tickets = append(touched.Tickets, k.ID)
		}
	}
	look := protocol.Wake(touched, s)
	for _, n := range look.Nodes {
		w.nodes[n] = true
	}
	for _, id := range look.Tickets {
		if k := s.Ticket(id); k != nil && k.Phase == ledger.TicketPending {
			w.nodes[k.Node] = true
		}
	}
}

func sorted(volumes map[ledger.VolumeID]bool) []ledger.VolumeID {
	var list []ledger.VolumeID
	for v := range volumes {
		list = append(list, v)
	}
	slices.SortFunc(list, ledger.VolumeID.Compare)
	return list
}

func (w *woken) decide(n ledger.NodeName) {
	delete(w.nodes, n)
	list := protocol.Round(w.arb.Queue(w.snapshot(), n, w.Now), w.snapshot(), w.Now, nil, nil)
	w.announce(list)
	for _, d := range list {
		if d.Ruling != protocol.Wait || d.Ticket.Reason != string(d.Verdict.First().Code) {
			w.carry(protocol.Decide(d))
		}
	}
}
