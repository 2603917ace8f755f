// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/test/world"
)

// randomWorld is a cluster where bytes decide the order of all events and faults.
type randomWorld struct {
	*cluster
	rest []byte
	log  []string
	pod  int

	more     []func()          // further possible events
	excused  func(string) bool // faults that others cause
	noRemake bool              // Node objects stay
}

const (
	worldNodes  = 3
	worldClaims = 5
	worldPods   = 6
)

func newWorld(data []byte) *randomWorld {
	w := &randomWorld{cluster: newCluster(), rest: data}
	w.trace = func(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }
	for i := range worldNodes {
		n := nodeName(i)
		m := w.addMachine(string(n), n)
		w.put(ledger.NodeState{Name: n, UID: w.uid(string(n)), Ready: ledger.ReadyTrue, Managed: true, Reporting: true, SystemUUID: m.SystemUUID(), BootID: m.BootID()})
		w.registerDriver(n, 2)
	}
	modes := []ledger.Access{ledger.AccessNode, ledger.AccessNode, ledger.AccessMany, ledger.AccessPod, ledger.AccessNode}
	w.put(ledger.StorageClass{Name: "wait", Driver: "disk", WaitForFirst: true})
	for i := range worldClaims {
		key := claimKey(i)
		k := ledger.Claim{Key: key, UID: w.uid(key.Name), Class: "wait", Access: modes[i]}
		if i < worldClaims-1 { // the last claim waits for its first consumer
			k.Bound, k.PersistentVolume = true, "pv-"+key.Name
			w.providePV(k)
		}
		w.put(k)
	}
	w.lag = true
	return w
}

func nodeName(i int) ledger.NodeName { return ledger.NodeName("n" + strconv.Itoa(i%worldNodes)) }

func claimKey(i int) ledger.ClaimKey {
	return ledger.ClaimKey{Namespace: namespace, Name: "c" + strconv.Itoa(i%worldClaims)}
}

func (w *randomWorld) registerDriver(n ledger.NodeName, limit int32) {
	w.put(ledger.NodeDrivers{Node: n, Drivers: []ledger.DriverOnNode{{Name: "disk", NodeID: string(n), Limit: limit}}})
}

func (w *randomWorld) providePV(k ledger.Claim) {
	name := "pv-" + k.Key.Name
	w.put(ledger.PersistentVolume{Name: name, UID: w.uid(name), Access: k.Access, Claim: k.Key, Volume: ledger.VolumeID{Driver: "disk", Handle: name}})
}

func (w *randomWorld) below(n int) int {
	if len(w.rest) == 0 {
		return 0
	}
	x := int(w.rest[0]) % n
	w.rest = w.rest[1:]
	return x
}

func (w *randomWorld) step() {
	actions := []func(){
		w.newPod, w.reservePod, w.reservePod, w.bindOne, w.bindOne, w.endPod,
		w.kubeletTurn, w.kubeletTurn, w.kubeletTurn, w.attacherTurn, w.attacherTurn, w.attacherTurn,
		w.decideOne, w.decideOne, w.planOne, w.planOne, w.planOne, w.planOne,
		w.deliverSome, w.deliverSome, w.deliverSome, w.rare,
	}
	actions = append(actions, w.more...)
	actions[w.below(len(actions))]()
}

func (w *randomWorld) rare() {
	actions := []func(){
		w.nodeFails, w.nodeReturns, w.taint, w.driverFaults, w.advanceTime, w.restartController, w.bypass,
		w.otherTicket, w.deleteTicketOfSomebody, w.changeLimit, w.remakeNode, w.provision,
	}
	actions[w.below(len(actions))]()
}

func (w *randomWorld) newPod() {
	if len(w.pods()) >= worldPods {
		return
	}
	w.pod++
	name := "p" + strconv.Itoa(w.pod)
	p := ledger.Pod{UID: name, Namespace: namespace, Name: name, Created: w.Now.Unix()}
	first := w.below(worldClaims)
	p.Volumes = []ledger.PodVolume{{Name: "a", Claim: claimKey(first).Name}}
	if w.below(3) == 0 {
		p.Volumes = append(p.Volumes, ledger.PodVolume{Name: "b", Claim: claimKey(first + 1).Name})
	}
	w.trace("pod %s wants %v", name, p.Volumes)
	w.put(p)
}

func (w *randomWorld) anyPod(want func(ledger.Pod) bool) (ledger.Pod, bool) {
	list := slices.DeleteFunc(w.pods(), func(p ledger.Pod) bool { return !want(p) })
	if len(list) == 0 {
		return ledger.Pod{}, false
	}
	return list[w.below(len(list))], true
}

func unbound(p ledger.Pod) bool { return p.Node == "" && p.Phase == ledger.PodLive }

func (w *randomWorld) reservePod() {
	p, ok := w.anyPod(unbound)
	if !ok {
		return
	}
	n := nodeName(w.below(worldNodes))
	if !w.arb.Fit(w.snapshot(), rules.PodRequest(w.snapshot(), &p), n, w.Now).Allowed() {
		if w.below(4) == 0 {
			w.bindPast(p, n)
		}
		return
	}
	w.trace("pod %s is reserved at %s", p.Name, n)
	w.ledger.Reserve(w.Now, p, n)
}

func (w *randomWorld) bindOne() {
	p, ok := w.anyPod(func(p ledger.Pod) bool {
		known := w.snapshot().Pod(p.UID)
		return unbound(p) && known != nil && known.Reserved
	})
	if ok {
		n := w.snapshot().Pod(p.UID).Node
		w.trace("bind %s to %s", p.Name, n)
		w.ask(world.Request{Do: world.BindPod, UID: p.UID, Node: n})
	}
}

func (w *randomWorld) bypass() {
	if p, ok := w.anyPod(unbound); ok {
		w.bindPast(p, nodeName(w.below(worldNodes)))
	}
}

func (w *randomWorld) bindPast(p ledger.Pod, n ledger.NodeName) {
	w.trace("bind %s to %s past all rules", p.Name, n)
	w.BindPast(p.UID, n)
	w.sync()
	w.flush()
}

func (w *randomWorld) endPod() {
	p, ok := w.anyPod(func(ledger.Pod) bool { return true })
	switch {
	case !ok:
	case p.Node == "" || w.below(4) == 0 && !w.kubeletOf(p.Node).Works():
		w.trace("pod %s is gone at once", p.Name)
		w.drop(world.Pods, p.UID)
	case w.below(5) == 0:
		p.Phase = ledger.PodFinished
		w.trace("pod %s finishes", p.Name)
		w.put(p)
	case p.Phase == ledger.PodLive:
		w.trace("pod %s terminates", p.Name)
		w.DeletePod(p.UID)
		w.sync()
	}
}

func (w *randomWorld) kubeletTurn() { w.tick(w.machine(nodeName(w.below(worldNodes)))) }

func (w *randomWorld) attacherTurn() {
	if names := w.Keys(world.Attachments); len(names) > 0 {
		w.attacher(names[w.below(len(names))])
	}
}

func (w *randomWorld) decideOne() {
	if ids := w.ticketOrder(); len(ids) > 0 {
		w.decide(ids[w.below(len(ids))])
	}
}

func (w *randomWorld) planOne() {
	ids := w.volumes()
	if len(ids) == 0 {
		return
	}
	id := ids[w.below(len(ids))]
	if w.flies(id) {
		return
	}
	steps := w.arb.Plan(w.snapshot(), id, w.Now).Steps
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

func (w *randomWorld) deliverSome() {
	for range 1 + w.below(4) {
		w.deliver(w.below(8))
	}
}

func (w *randomWorld) otherTicket() {
	id := ledger.TicketID{Namespace: namespace, Name: "t" + strconv.Itoa(w.below(2))}
	if _, exists := w.Ticket(id); exists {
		w.trace("ticket %s is deleted", id.Name)
		w.drop(world.Tickets, id.String())
		return
	}
	t := ledger.Ticket{
		ID: id, UID: w.uid(id.Name), Node: nodeName(w.below(worldNodes)), Created: w.Now.Unix(),
		Type:    []ledger.TicketType{ledger.TypeManual, ledger.TypeSnapshot}[w.below(2)],
		Volumes: []ledger.TicketVolume{{Claim: claimKey(w.below(worldClaims)).Name}},
	}
	w.trace("ticket %s (%s) at %s for %s", id.Name, t.Type, t.Node, t.Volumes[0].Claim)
	w.put(t)
}

func (w *randomWorld) deleteTicketOfSomebody() {
	if ids := w.ticketOrder(); len(ids) > 0 {
		id := ids[w.below(len(ids))]
		if _, exists := w.Ticket(id); exists {
			w.trace("ticket %s is deleted by somebody", id.Name)
			w.drop(world.Tickets, id.String())
		}
	}
}

func (w *randomWorld) provision() {
	key := claimKey(worldClaims - 1)
	k := w.claimOf(key)
	if !k.Bound {
		k.Bound, k.PersistentVolume = true, "pv-"+key.Name
		w.trace("claim %s is bound", key.Name)
		w.put(k)
		w.providePV(k)
	}
}

func (w *randomWorld) calm() {
	w.trace("all faults end")
	w.mutes = func() bool { return false }
	w.landAll()
	w.csi.failAttach, w.csi.failDetach = map[ledger.VolumeID]ledger.CallError{}, map[ledger.VolumeID]ledger.CallError{}
	w.flush()
	w.lag = false
	if w.stock != nil && w.stock.down {
		w.stockRestarts()
	}
	for i := range worldNodes {
		n := nodeName(i)
		w.returns(n)
		w.registerDriver(n, 2)
	}
	w.provision()
}

func (w *randomWorld) check(t failer, what string) {
	found := w.Judge.Faults
	for _, v := range w.arb.Audit(w.snapshot(), w.Now) {
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

func (w *randomWorld) fail(t failer, format string, args ...any) {
	t.Helper()
	for _, line := range w.log {
		t.Logf("%s", line)
	}
	t.Fatalf(format, args...)
}

func (w *randomWorld) play(t failer) {
	for len(w.rest) > 0 {
		w.step()
		w.check(t, "under way")
	}
	w.standstill(t)
	w.calm()
	w.rests(t, "after the faults")
	w.everybodyServed(t)
	for _, p := range w.pods() {
		w.DeletePod(p.UID)
	}
	for _, id := range w.ticketOrder() {
		w.drop(world.Tickets, id.String())
	}
	w.sync()
	w.rests(t, "at the end")
	if w.rebootDoubted() {
		w.rests(t, "after the machines in doubt have booted anew")
	}
	w.nothingLeft(t)
}

// Without new pods only a boot settles the doubt.
func (w *randomWorld) rebootDoubted() bool {
	did := false
	reboot := func(n ledger.NodeName) {
		w.machine(n).PowerOff()
		w.returns(n)
		did = true
	}
	for _, h := range list[ledger.HoldSeen](w.cluster, world.Holds) {
		if h.Hold.Reason == rules.InUseUnknown {
			reboot(h.Hold.Node)
		}
		for _, f := range h.Hold.Fences {
			if f.Rule == "" {
				reboot(f.Node)
			}
		}
	}
	return did
}

// While the faults last, waiting users must be told a fault, not work in progress.
func (w *randomWorld) standstill(t failer) {
	w.mutes = func() bool { return false }
	w.landAll()
	w.flush()
	w.lag = false
	if w.stock != nil || !w.settle() {
		return // in Cooperative mode Moorage also waits for the other controller's turns
	}
	w.check(t, "while the faults last")
	s := w.snapshot()
	for _, p := range w.pods() {
		if p.Node == "" || p.Phase != ledger.PodLive || w.running(p) {
			continue
		}
		for _, need := range rules.PodRequest(s, &p).Needs {
			if v := w.arb.Explain(s, need, p.Node, w.Now); !v.Allowed() && !slices.ContainsFunc(v.Reasons, w.lasts) {
				w.fail(t, "pod %s at %s is told %s, and nothing moves", p.Name, p.Node, because(v))
			}
		}
	}
}

func (w *randomWorld) rests(t failer, what string) {
	for range 3 {
		if !w.settle() {
			w.fail(t, "%s: never settles", what)
		}
		w.check(t, what)
		w.pass(7 * time.Minute)
	}
	for _, v := range w.arb.AuditAtRest(w.snapshot(), w.Now) {
		w.fail(t, "%s: %s", what, v)
	}
}

func (w *randomWorld) everybodyServed(t failer) {
	s := w.snapshot()
	for _, p := range w.pods() {
		if p.Node == "" || p.Phase != ledger.PodLive || w.running(p) {
			continue
		}
		waits := slices.ContainsFunc(rules.PodRequest(s, &p).Needs, func(need rules.Need) bool {
			v := w.arb.Explain(s, need, p.Node, w.Now)
			return !v.Allowed() && slices.ContainsFunc(v.Reasons, w.lasts)
		})
		if !waits {
			w.fail(t, "pod %s at %s neither runs nor waits for anything", p.Name, p.Node)
		}
	}
}

func (w *randomWorld) lasts(r rules.Reason) bool {
	switch r.Code {
	case rules.Attaching, rules.NotReported, rules.NotGranted, rules.Detaching:
		return w.stock != nil
	default:
		return true
	}
}

func (w *randomWorld) nothingLeft(t failer) {
	for _, name := range w.Keys(world.Attachments) {
		w.fail(t, "attachment %s is left over", name)
	}
	for _, h := range list[ledger.HoldSeen](w.cluster, world.Holds) {
		if h.Hold.Node != "" {
			w.fail(t, "hold of %s still names %s", h.Volume, h.Hold.Node)
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

func TestWorld(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		newWorld(proptest.Bytes(t, 900)).play(t)
	})
}

func FuzzWorld(f *testing.F) {
	f.Add([]byte{0, 0, 0, 18, 3, 1, 0, 12, 0, 15, 0, 0, 9, 0, 4, 6, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 2000 {
			data = data[:2000]
		}
		newWorld(data).play(t)
	})
}
