// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/proptest"
)

// world is a cluster in which everything happens in an order that bytes
// decide: users, schedulers, kubelets, the attacher, the controller with a
// view that lags, and faults.
type world struct {
	*cluster
	rest []byte
	log  []string
	pod  int

	more     []func()          // that can happen besides
	excused  func(string) bool // what is broken without our doing
	noRemake bool              // Node objects stay
}

const (
	worldNodes  = 3
	worldClaims = 5
	worldPods   = 6
)

func newWorld(data []byte) *world {
	w := &world{cluster: newCluster(), rest: data}
	w.trace = func(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }
	for i := range worldNodes {
		n := nodeName(i)
		w.kubelets[n] = newKubelet()
		w.putNode(ledger.NodeState{Name: n, UID: w.uid(string(n)), Ready: ledger.ReadyTrue, Managed: true, Reporting: true})
		w.registerDriver(n, 2)
	}
	modes := []ledger.Access{ledger.AccessNode, ledger.AccessNode, ledger.AccessMany, ledger.AccessPod, ledger.AccessNode}
	w.putClass(ledger.StorageClass{Name: "wait", Driver: "disk", WaitForFirst: true})
	for i := range worldClaims {
		key := claimKey(i)
		k := ledger.Claim{Key: key, UID: w.uid(key.Name), Class: "wait", Access: modes[i]}
		if i < worldClaims-1 { // the last one waits for its first consumer
			k.Bound, k.PersistentVolume = true, "pv-"+key.Name
			w.providePV(k)
		}
		w.putClaim(k)
	}
	w.lag = true
	return w
}

func nodeName(i int) ledger.NodeName { return ledger.NodeName("n" + strconv.Itoa(i%worldNodes)) }

func claimKey(i int) ledger.ClaimKey {
	return ledger.ClaimKey{Namespace: namespace, Name: "c" + strconv.Itoa(i%worldClaims)}
}

func (w *world) registerDriver(n ledger.NodeName, limit int32) {
	w.putDrivers(ledger.NodeDrivers{Node: n, Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: limit}}})
}

func (w *world) providePV(k ledger.Claim) {
	name := "pv-" + k.Key.Name
	w.putPV(ledger.PersistentVolume{Name: name, UID: w.uid(name), Access: k.Access, Claim: k.Key, Volume: ledger.VolumeID{Driver: "disk", Handle: name}})
}

// below draws a number from 0 to n-1.
func (w *world) below(n int) int {
	if len(w.rest) == 0 {
		return 0
	}
	x := int(w.rest[0]) % n
	w.rest = w.rest[1:]
	return x
}

// step lets one thing happen.
func (w *world) step() {
	actions := []func(){
		w.newPod, w.reservePod, w.reservePod, w.bindOne, w.bindOne, w.endPod,
		w.kubeletTurn, w.kubeletTurn, w.kubeletTurn, w.attacherTurn, w.attacherTurn, w.attacherTurn,
		w.decideOne, w.decideOne, w.planOne, w.planOne, w.planOne, w.planOne,
		w.deliverSome, w.deliverSome, w.deliverSome, w.rare,
	}
	actions = append(actions, w.more...)
	actions[w.below(len(actions))]()
}

func (w *world) rare() {
	actions := []func(){
		w.nodeFails, w.nodeReturns, w.taint, w.driverFaults, w.advanceTime, w.restartController, w.bypass,
		w.otherTicket, w.deleteTicketOfSomebody, w.changeLimit, w.remakeNode, w.provision,
	}
	actions[w.below(len(actions))]()
}

func (w *world) newPod() {
	if len(w.pods) >= worldPods {
		return
	}
	w.pod++
	name := "p" + strconv.Itoa(w.pod)
	p := ledger.Pod{UID: name, Namespace: namespace, Name: name, Created: w.now.Unix()}
	first := w.below(worldClaims)
	p.Volumes = []ledger.PodVolume{{Name: "a", Claim: claimKey(first).Name}}
	if w.below(3) == 0 {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: "b", Claim: claimKey(first + 1).Name})
	}
	w.trace("pod %s wants %v", name, p.Volumes)
	w.putPod(p)
}

func (w *world) anyPod(want func(ledger.Pod) bool) (ledger.Pod, bool) {
	var list []ledger.Pod
	for _, uid := range sortedKeys(w.pods) {
		if want(w.pods[uid]) {
			list = append(list, w.pods[uid])
		}
	}
	if len(list) == 0 {
		return ledger.Pod{}, false
	}
	return list[w.below(len(list))], true
}

func unbound(p ledger.Pod) bool { return p.Node == "" && p.Phase == ledger.PodLive }

// reservePod lets a scheduler try a node, with a view as old as the
// controller's, or without asking anybody.
func (w *world) reservePod() {
	p, ok := w.anyPod(unbound)
	if !ok {
		return
	}
	n := nodeName(w.below(worldNodes))
	id := ledger.TicketID{Namespace: namespace, Name: p.UID}
	if old, exists := w.tickets[id]; exists {
		if old.Phase == ledger.TicketRefused {
			w.deleteTicket(id)
		}
		return
	}
	tickets, v := w.arb.Reserve(w.snapshot(), &p, n, "scheduler", w.now)
	if !v.Allowed() && w.below(4) > 0 {
		return
	}
	if !v.Allowed() {
		t := ledger.Ticket{ID: id, Type: ledger.TypePod, Node: n, Pod: p.UID, PodName: p.Name, Created: p.Created}
		for _, pv := range p.Volumes {
			t.Volumes = append(t.Volumes, ledger.TicketVolume{Claim: pv.Claim})
		}
		tickets = []ledger.Ticket{t}
	}
	for _, t := range tickets {
		t.UID = w.uid("ticket-" + t.ID.Name)
		w.trace("ticket %s at %s", t.ID.Name, t.Node)
		w.putTicket(t)
	}
}

// bindOne lets the scheduler bind a pod whose ticket is granted.
func (w *world) bindOne() {
	p, ok := w.anyPod(func(p ledger.Pod) bool {
		t, ok := w.tickets[ledger.TicketID{Namespace: namespace, Name: p.UID}]
		return unbound(p) && ok && t.Phase == ledger.TicketGranted
	})
	if ok {
		p.Node = w.tickets[ledger.TicketID{Namespace: namespace, Name: p.UID}].Node
		w.trace("bind %s to %s", p.Name, p.Node)
		w.putPod(p)
	}
}

// bypass binds a pod past all rules, and is seen at once.
func (w *world) bypass() {
	if p, ok := w.anyPod(unbound); ok {
		p.Node = nodeName(w.below(worldNodes))
		w.trace("bind %s to %s past all rules", p.Name, p.Node)
		w.putPod(p)
		w.flush()
	}
}

func (w *world) endPod() {
	p, ok := w.anyPod(func(ledger.Pod) bool { return true })
	switch {
	case !ok:
	case p.Node == "" || w.below(4) == 0 && w.kubelets[p.Node].down:
		w.trace("pod %s is gone at once", p.Name)
		w.deletePod(p.UID)
	case w.below(5) == 0:
		p.Phase = ledger.PodFinished
		w.trace("pod %s finishes", p.Name)
		w.putPod(p)
	case p.Phase == ledger.PodLive:
		p.Phase = ledger.PodTerminating
		w.trace("pod %s terminates", p.Name)
		w.putPod(p)
	}
}

func (w *world) kubeletTurn() { w.tick(nodeName(w.below(worldNodes))) }

func (w *world) attacherTurn() {
	if names := sortedKeys(w.attachments); len(names) > 0 {
		w.attacher(names[w.below(len(names))])
	}
}

func (w *world) decideOne() {
	if ids := w.ticketOrder(); len(ids) > 0 {
		w.decide(ids[w.below(len(ids))])
	}
}

// planOne does the steps of one volume's plan, in any order and not all of
// them; some answers are lost.
func (w *world) planOne() {
	ids := w.volumes()
	if len(ids) == 0 {
		return
	}
	id := ids[w.below(len(ids))]
	if w.flies(id) {
		return
	}
	steps := w.arb.Plan(w.snapshot(), id, w.now).Steps
	for len(steps) > 0 {
		i := w.below(len(steps))
		if w.below(6) > 0 {
			w.trace("%s", w.stepText(steps[i]))
			if err := w.do(steps[i]); err != nil {
				w.trace("  %v", err)
			}
		}
		steps = slices.Delete(steps, i, i+1)
	}
}

func (w *world) deliverSome() {
	for range 1 + w.below(4) {
		w.deliver(w.below(8))
	}
}

// otherTicket makes or deletes a ticket that is not a pod's.
func (w *world) otherTicket() {
	id := ledger.TicketID{Namespace: namespace, Name: "t" + strconv.Itoa(w.below(2))}
	if _, exists := w.tickets[id]; exists {
		w.trace("ticket %s is deleted", id.Name)
		w.deleteTicket(id)
		return
	}
	t := ledger.Ticket{
		ID: id, UID: w.uid(id.Name), Node: nodeName(w.below(worldNodes)), Created: w.now.Unix(),
		Type:    []ledger.TicketType{ledger.TypeManual, ledger.TypeSnapshot}[w.below(2)],
		Volumes: []ledger.TicketVolume{{Claim: claimKey(w.below(worldClaims)).Name}},
	}
	w.trace("ticket %s (%s) at %s for %s", id.Name, t.Type, t.Node, t.Volumes[0].Claim)
	w.putTicket(t)
}

func (w *world) deleteTicketOfSomebody() {
	if ids := w.ticketOrder(); len(ids) > 0 {
		id := ids[w.below(len(ids))]
		if _, exists := w.tickets[id]; exists {
			w.trace("ticket %s is deleted by somebody", id.Name)
			w.deleteTicket(id)
		}
	}
}

// provision binds the claim that waits, once somebody is to use it.
func (w *world) provision() {
	key := claimKey(worldClaims - 1)
	k := w.claims[key]
	if !k.Bound {
		k.Bound, k.PersistentVolume = true, "pv-"+key.Name
		w.trace("claim %s is bound", key.Name)
		w.putClaim(k)
		w.providePV(k)
	}
}

// calm ends all faults.
func (w *world) calm() {
	w.trace("all faults end")
	w.mutes = func() bool { return false }
	w.landAll()
	w.disks.failAttach, w.disks.failDetach = map[ledger.VolumeID]ledger.CallError{}, map[ledger.VolumeID]ledger.CallError{}
	w.flush()
	w.lag = false
	if w.stock != nil && w.stock.down {
		w.stockRestarts()
	}
	for i := range worldNodes {
		n := nodeName(i)
		if _, exists := w.nodes[n]; !exists {
			w.makeNode(n)
		}
		w.returns(n)
		w.registerDriver(n, 2)
	}
	w.provision()
}

// check fails when anything is wrong now.
func (w *world) check(t failer, what string) {
	found := w.judge.faults
	for _, v := range w.arb.Audit(w.snapshot(), w.now) {
		found = append(found, v.String())
	}
	for _, f := range found {
		if w.excused == nil || !w.excused(f) {
			w.fail(t, "%s: %s", what, f)
		}
	}
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

func (w *world) fail(t failer, format string, args ...any) {
	t.Helper()
	for _, line := range w.log {
		t.Logf("%s", line)
	}
	t.Fatalf(format, args...)
}

// play lets data decide what happens, then ends all faults and sees whether
// everything comes to rest, as it should.
func (w *world) play(t failer) {
	for len(w.rest) > 0 {
		w.step()
		w.check(t, "under way")
	}
	w.standstill(t)
	w.calm()
	w.rests(t, "after the faults")
	w.everybodyServed(t)
	for _, uid := range sortedKeys(w.pods) {
		p := w.pods[uid]
		p.Phase = ledger.PodTerminating
		if p.Node == "" {
			w.deletePod(uid)
		} else {
			w.putPod(p)
		}
	}
	for _, id := range w.ticketOrder() {
		w.deleteTicket(id)
	}
	w.rests(t, "at the end")
	w.nothingLeft(t)
}

// standstill lets everything happen that can while the faults last, and asks what
// those are told who have to wait for their end: not that things are under way.
func (w *world) standstill(t failer) {
	w.mutes = func() bool { return false }
	w.landAll()
	w.flush()
	w.lag = false
	if w.stock != nil || !w.settle() {
		return // who works beside another controller also waits for its turns
	}
	w.check(t, "while the faults last")
	s := w.snapshot()
	for _, uid := range sortedKeys(w.pods) {
		p := w.pods[uid]
		if p.Node == "" || p.Phase != ledger.PodLive || w.kubelets[p.Node].running[uid] {
			continue
		}
		for _, need := range arbiter.PodRequest(s, &p).Needs {
			if v := w.arb.Explain(s, need, p.Node, w.now); !v.Allowed() && !slices.ContainsFunc(v.Reasons, w.lasts) {
				w.fail(t, "pod %s at %s is told %s, and nothing moves", p.Name, p.Node, because(v))
			}
		}
	}
}

func (w *world) rests(t failer, what string) {
	for range 3 {
		if !w.settle() {
			w.fail(t, "%s: never settles", what)
		}
		w.check(t, what)
		w.pass(7 * time.Minute)
	}
	for _, v := range w.arb.AuditAtRest(w.snapshot(), w.now) {
		w.fail(t, "%s: %s", what, v)
	}
}

// everybodyServed: each bound pod runs, or there is a reason why not.
func (w *world) everybodyServed(t failer) {
	s := w.snapshot()
	for _, uid := range sortedKeys(w.pods) {
		p := w.pods[uid]
		if p.Node == "" || p.Phase != ledger.PodLive || w.kubelets[p.Node].running[uid] {
			continue
		}
		waits := slices.ContainsFunc(arbiter.PodRequest(s, &p).Needs, func(need arbiter.Need) bool {
			v := w.arb.Explain(s, need, p.Node, w.now)
			return !v.Allowed() && slices.ContainsFunc(v.Reasons, w.lasts)
		})
		if !waits {
			w.fail(t, "pod %s at %s neither runs nor waits for anything", p.Name, p.Node)
		}
	}
}

// lasts says whether a reason is one for which a pod may wait when nothing moves any
// more: not one that says that things are under way. Beside another controller they
// may be, for what that one knows.
func (w *world) lasts(r arbiter.Reason) bool {
	switch r.Code {
	case arbiter.Attaching, arbiter.NotReported, arbiter.NotGranted, arbiter.Detaching:
		return w.stock != nil
	}
	return true
}

func (w *world) nothingLeft(t failer) {
	for name := range w.attachments {
		w.fail(t, "attachment %s is left over", name)
	}
	for v, h := range w.holds {
		if h.Node != "" {
			w.fail(t, "hold of %s still names %s", v, h.Node)
		}
	}
	for n := range w.snapshot().Nodes() {
		for _, d := range n.Drivers {
			if d.Used != 0 {
				w.fail(t, "%d slots of %s are still used at %s: %v", d.Used, d.Name, n.Name, n.At())
			}
		}
	}
}

// TestWorld plays random worlds. Audit and judge look on after every step.
func TestWorld(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 900).Draw(t, "length")
		newWorld(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")).play(t)
	})
}

// FuzzWorld is TestWorld with a fuzzer's bytes.
func FuzzWorld(f *testing.F) {
	f.Add([]byte{0, 0, 0, 18, 3, 1, 0, 12, 0, 15, 0, 0, 9, 0, 4, 6, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			data = data[:2000]
		}
		newWorld(data).play(t)
	})
}
