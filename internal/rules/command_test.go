// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

const namespace = "default"

type script struct {
	*cluster
	out   *strings.Builder
	delta *ledger.Delta // of try and untry
	allow bool          // violations are expected from here on
}

func newScript() *script {
	s := &script{cluster: newCluster(), out: &strings.Builder{}}
	s.trace = func(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }
	return s
}

type args struct {
	words []string
	keys  map[string]string
}

func parse(line string) args {
	a := args{keys: map[string]string{}}
	for _, word := range strings.Fields(line) {
		if key, value, ok := strings.Cut(word, "="); ok {
			a.keys[key] = value
		} else {
			a.words = append(a.words, word)
		}
	}
	return a
}

func (a args) word(i int) string {
	if i < len(a.words) {
		return a.words[i]
	}
	return ""
}

func (a args) get(key, otherwise string) string {
	if v, ok := a.keys[key]; ok {
		return v
	}
	return otherwise
}

func (a args) list(key string) []string {
	if a.keys[key] == "" {
		return nil
	}
	return strings.Split(a.keys[key], ",")
}

func (a args) flag(word string) bool { return slices.Contains(a.words, word) }

func (a args) number(key string, otherwise int) int {
	n, err := strconv.Atoi(a.get(key, strconv.Itoa(otherwise)))
	if err != nil {
		return -1
	}
	return n
}

func (a args) duration(key string) *time.Duration {
	d, err := time.ParseDuration(a.keys[key])
	if err != nil {
		return nil
	}
	return &d
}

func (s *script) command(line string) string {
	s.out.Reset()
	a := parse(line)
	commands := map[string]func(args){
		"node": s.node, "csinode": s.csinode, "pv": s.volume, "claim": s.claim, "class": s.class,
		"driver": s.driver, "policy": s.policy, "pod": s.pod, "ticket": s.ticket, "holder": s.holder, "satisfied": s.satisfied, "reserve": s.reserve, "forge-hold": s.forgeHold,
		"attachment": s.attachment, "bind": s.bind, "delete": s.delete, "kubelet": s.kubelet, "agent": s.agent, "fail": s.fail, "refuse": s.refuse, "cooperative": s.cooperative, "standalone": s.standalone, "stock": s.stockCommand, "stays": func(args) { s.arb.StayAttached = true }, "requires-report": func(a args) { s.arb.RequireNodeReport = !a.flag("not") }, "stock-attacher": func(args) { s.csi.stock = true }, "strict": func(args) { s.csi.strict = true }, "lists": func(args) { s.csi.lists = true }, "by-name": func(args) { s.csi.byName = true },
		"fit": s.fit, "nodes": s.nodesFor, "rank": s.rank, "try": s.try, "untry": s.untry, "explain": s.explain,
		"plan": s.plan, "do": s.doSteps, "grant": s.grantTicket, "keeps": s.keeps, "show": s.show,
		"run": s.run, "round": s.once, "advance": s.advance, "restart": func(a args) { s.cluster.restart(a.list("unseen")...) },
		"flight": s.flight, "report": s.reportNode, "untimed": s.untimedForce, "older-holds": func(args) { s.OlderHolds = true }, "violations": func(args) { s.allow = true },
	}
	run, ok := commands[a.word(0)]
	if !ok {
		return "no such command: " + a.word(0) + "\n"
	}
	run(a)
	return s.out.String()
}

func (s *script) podNamed(name string) (ledger.Pod, bool) {
	if p, ok := s.Pod(name); ok {
		return p, true
	}
	for n := s.uids[name]; n > 0; n-- {
		if p, ok := s.Pod(name + "." + strconv.Itoa(n)); ok {
			return p, true
		}
	}
	return ledger.Pod{}, false
}

func (s *script) fit(a args) {
	p, ok := s.podNamed(a.get("pod", ""))
	if !ok {
		s.trace("no such pod")
		return
	}
	snap := s.snapshot()
	if s.delta != nil {
		snap = snap.With(s.delta)
	}
	r := rules.PodRequest(snap, &p)
	nodes := a.list("node")
	if nodes == nil {
		nodes = s.Keys(world.Nodes)
	}
	if v := s.arb.Admissible(snap, r); !v.Allowed() {
		s.trace("anywhere: %s%s", v.Outcome, because(v))
		return
	}
	for _, n := range nodes {
		v := s.arb.Fit(snap, r, ledger.NodeName(n), s.Now)
		s.trace("%s: %s%s", n, v.Outcome, because(v))
	}
}

func (s *script) nodesFor(a args) {
	p, _ := s.podNamed(a.get("pod", ""))
	n, narrowed := s.arb.Nodes(s.snapshot(), rules.PodRequest(s.snapshot(), &p), s.Now)
	if !narrowed {
		s.trace("any")
		return
	}
	s.trace("%s", n)
}

func (s *script) rank(a args) {
	p, _ := s.podNamed(a.get("pod", ""))
	for _, n := range s.Keys(world.Nodes) {
		s.trace("%s: %d", n, s.arb.Rank(s.snapshot(), rules.PodRequest(s.snapshot(), &p), ledger.NodeName(n), rules.Weights{}))
	}
}

// untry ends the dry run.
func (s *script) try(a args) {
	if s.delta == nil {
		s.delta = &ledger.Delta{}
	}
	p, _ := s.podNamed(a.get("pod", ""))
	if a.flag("gone") {
		s.delta.Remove(p.UID)
	} else {
		s.delta.Add(p.UID, ledger.NodeName(a.get("node", "")))
	}
}

func (s *script) untry(args) { s.delta = nil }

func (s *script) explain(a args) {
	p, _ := s.podNamed(a.get("pod", ""))
	n := ledger.NodeName(a.get("node", string(p.Node)))
	for _, need := range rules.PodRequest(s.snapshot(), &p).Needs {
		v := s.arb.Explain(s.snapshot(), need, n, s.Now)
		s.trace("%s: %s%s", need.Name, v.Outcome, because(v))
	}
}

func (s *script) volumeNamed(name string) ledger.VolumeID {
	if pv := s.pv(name); pv.Name != "" {
		return pv.Volume
	}
	driver, handle, _ := strings.Cut(name, "^")
	return ledger.VolumeID{Driver: driver, Handle: handle}
}

func (s *script) plan(a args) {
	p := s.arb.Plan(s.snapshot(), s.volumeNamed(a.get("volume", "")), s.Now)
	for _, step := range p.Steps {
		s.trace("%s", s.stepText(step))
	}
	if !p.Recheck.IsZero() {
		s.trace("look again in %s", p.Recheck.Sub(s.Now))
	}
	if len(p.Steps) == 0 && p.Recheck.IsZero() {
		s.trace("nothing")
	}
}

func (s *script) doSteps(a args) {
	id := s.volumeNamed(a.get("volume", ""))
	for _, step := range s.arb.Plan(s.snapshot(), id, s.Now).Steps {
		s.trace("%s", s.stepText(step))
		if err := s.do(step); err != nil {
			s.trace("  %v", err)
		}
	}
}

func (s *script) ticketNamed(name string) (*ledger.Ticket, bool) {
	id := ledger.TicketID{Namespace: namespace, Name: name}
	if p, ok := s.podNamed(name); ok {
		id.Name = p.UID
	}
	t := s.snapshot().Ticket(id)
	return t, t != nil
}

func (s *script) grantTicket(a args) {
	t, ok := s.ticketNamed(a.get("ticket", ""))
	if !ok {
		s.trace("no such ticket")
		return
	}
	v := s.arb.Grant(s.snapshot(), t, s.Now)
	s.trace("%s%s", v.Outcome, because(v))
}

func (s *script) keeps(a args) {
	if t, ok := s.ticketNamed(a.get("ticket", "")); ok {
		v := s.arb.Keeps(s.snapshot(), t, s.Now)
		s.trace("%s%s", v.Outcome, because(v))
	}
}

func (s *script) run(args) {
	if !s.settle() {
		s.trace("NEVER SETTLES")
	}
	for _, v := range s.arb.AuditAtRest(s.snapshot(), s.Now) {
		s.trace("unsettled: %s", v.Message)
	}
}

func (s *script) once(args) { s.round() }

func (s *script) advance(a args) {
	d, err := time.ParseDuration(a.word(1))
	if err != nil {
		s.trace("%v", err)
		return
	}
	s.pass(d)
}

// Only a policy's time allows force by time.
func (s *script) untimedForce(args) {
	s.untimed = true
	s.ledger.Apply(s.Now, ledger.NoForceOnTimeout{})
}
