// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

type users struct {
	s       *Sim
	pods    int // the number created
	tickets int
}

func newUsers(s *Sim) *users { return &users{s: s} }

func (u *users) offer(m *menu) {
	if !u.s.faulty {
		return
	}
	if u.pods < u.s.config.Pods {
		m.addTo(churn, 10, "user", "create", u.draw())
	}
	if keys := u.s.w.Keys(world.Pods); len(keys) > 0 {
		u.offerEnd(m, keys[u.s.rng.IntN(len(keys))])
	}
	u.offerTickets(m)
	if k := u.s.kubelets[u.s.rng.IntN(len(u.s.kubelets))]; u.s.config.NodeFaults {
		m.addTo(churn, 1, "fault", "cordon", k.name)
		if u.s.config.Limit != ledger.NoLimit {
			m.addTo(churn, 1, "fault", "limit", k.name+" "+strconv.Itoa(u.s.rng.IntN(3)))
		}
	}
}

func (u *users) offerEnd(m *menu, key string) {
	p, _ := u.s.w.Pod(key)
	if !u.s.w.Deleting(key) {
		m.addTo(churn, 6, "user", "delete", key)
		if p.Node != "" {
			m.addTo(churn, 2, "user", "exit", key)
		} else {
			m.addTo(churn, 8, "user", "touch", key)
		}
	}
	if u.s.config.Meddling {
		m.addTo(churn, 1, "user", "remove", key)
	}
}

func (u *users) offerTickets(m *menu) {
	if (u.s.config.Manual || u.s.config.Asked) && u.tickets < 6 {
		claims := u.s.claims()
		node := u.drawNode()
		m.addTo(churn, 2, "user", "ticket", fmt.Sprintf("t%d %s %s %s %d", u.tickets+1, u.drawType(), node, u.drawClaims(claims), u.drawLife()))
	}
	for _, key := range u.s.w.Keys(world.Tickets) {
		m.addTo(churn, 1, "user", "drop-ticket", key)
		if t, _ := u.s.w.Get(world.Tickets, key).(ledger.Ticket); t.YieldingSince != 0 && !t.LetsGo {
			m.addTo(churn, 2, "user", "lets-go", key)
		}
	}
}

// As a ticket's node, wherever leaves the node to the controller.
const wherever = "wherever"

const apart = "!"

func (u *users) drawNode() string {
	if u.s.config.Wherever && u.s.rng.IntN(2) == 0 {
		return wherever
	}
	node := string(u.s.nodeNames()[u.s.rng.IntN(len(u.s.kubelets))])
	if !u.s.config.Detached {
		return node
	}
	switch u.s.rng.IntN(4) {
	case 0, 1:
		return string(ledger.Detached)
	case 2:
		return node + apart + "x"
	}
	return node
}

func (u *users) drawType() ledger.TicketType {
	kinds := []ledger.TicketType{
		ledger.TypeManual, ledger.TypeManual, ledger.TypeSnapshot, ledger.TypeBackup, ledger.TypeRestore, ledger.TypeUpgrade, ledger.TypeEviction,
	}
	if u.s.config.Migration && u.s.rng.IntN(2) == 0 {
		return ledger.TypeLiveMigration
	}
	return kinds[u.s.rng.IntN(len(kinds))]
}

// 0: until the ticket is deleted.
func (u *users) drawLife() int {
	life := 30 + u.s.rng.IntN(300)
	if u.s.config.Endless && life%4 == 0 {
		return 0
	}
	return life
}

func (u *users) drawClaims(claims []string) string {
	first := claims[u.s.rng.IntN(len(claims))]
	if other := claims[u.s.rng.IntN(len(claims))]; u.s.rng.IntN(3) == 0 && other != first {
		return first + "," + other
	}
	return first
}

const (
	foreign   = "foreign"
	bystander = "bystander"
)

func past(who string) bool { return who == foreign || who == bystander }

func (u *users) draw() string {
	rng := u.s.rng
	who := u.s.schedulers[rng.IntN(len(u.s.schedulers))].name
	if u.s.config.Foreign && rng.IntN(2) == 0 {
		who = foreign
		if rng.IntN(2) == 0 {
			who = bystander
		}
	}
	return "p" + strconv.Itoa(u.pods+1) + " " + who + " " + u.drawClaims(u.s.claims())
}

func (u *users) act(what, arg string) bool {
	fields := strings.Fields(arg)
	p, exists := u.s.w.Pod(arg)
	switch {
	case what == "create" && len(fields) == 3:
		return u.create(fields[0], fields[1], strings.Split(fields[2], ","))
	case what == "ticket" && len(fields) == 5:
		return u.ticket(fields)
	case what == "delete" && exists && !u.s.w.Deleting(arg):
		u.s.w.DeletePod(arg)
	case what == "exit" && exists && p.Node != "":
		return u.exit(p)
	case what == "touch" && exists && p.Node == "":
		u.s.w.Touch(arg)
	case what == "remove" && exists:
		u.s.w.Drop(world.Pods, arg)
	case what == "drop-ticket" && u.s.w.Get(world.Tickets, arg) != nil:
		u.s.w.Drop(world.Tickets, arg)
	case what == "lets-go":
		return u.letsGo(arg)
	default:
		return false
	}
	return true
}

func (u *users) create(name, who string, claims []string) bool {
	if _, exists := u.s.w.Pod(name); exists || u.s.scheduler[name] != "" {
		return false
	}
	u.pods++
	if n, err := strconv.Atoi(strings.TrimPrefix(name, "p")); err == nil {
		u.pods = max(u.pods, n)
	}
	u.s.scheduler[name] = who
	u.s.provide(claims...)
	p := ledger.Pod{UID: name, Namespace: namespace, Name: name, Created: u.s.Now().Unix(), OptedOut: who == bystander}
	for i, claim := range claims {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: "vol" + strconv.Itoa(i), Claim: claim})
	}
	u.s.w.Put(p)
	return true
}

func (u *users) exit(p ledger.Pod) bool {
	i := slices.IndexFunc(u.s.kubelets, func(k *kubelet) bool { return k.node == p.Node })
	return i >= 0 && u.s.kubelets[i].up && u.s.kubelets[i].process().Exit(p.UID)
}

func (u *users) ticket(fields []string) bool {
	id := ledger.TicketID{Namespace: namespace, Name: fields[0]}
	ttl, err := strconv.ParseInt(fields[4], 10, 64)
	if _, exists := u.s.w.Ticket(id); exists || err != nil {
		return false
	}
	node, parameters, _ := strings.Cut(fields[2], apart)
	if (node == wherever || node == string(ledger.Detached)) && fields[1] == string(ledger.TypeLiveMigration) {
		return false // the API server refuses it
	}
	u.tickets++
	u.s.provide(strings.Split(fields[3], ",")...)
	t := ledger.Ticket{
		ID: id, UID: u.s.w.UID(), Type: ledger.TicketType(fields[1]), Node: ledger.NodeName(node), Wherever: node == wherever,
		Created: u.s.Now().Unix(), TTLSeconds: ttl, Parameters: parameters,
	}
	if t.Wherever {
		t.Node = ""
	}
	for _, claim := range strings.Split(fields[3], ",") {
		t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: claim, ClaimUID: claim})
	}
	u.s.w.Put(t)
	return true
}

func (u *users) letsGo(key string) bool {
	t, exists := u.s.w.Get(world.Tickets, key).(ledger.Ticket)
	if !exists || t.YieldingSince == 0 || t.LetsGo {
		return false
	}
	t.LetsGo = true
	u.s.w.Put(t)
	return true
}

func (u *users) due() time.Time { return time.Time{} }
