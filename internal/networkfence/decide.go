// SPDX-License-Identifier: Apache-2.0

package networkfence

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// State has the facts for a decision.
type State struct {
	Snapshot ledger.Snapshot
	Now      time.Time
	Fences   []Fence
	// Clients are those of the CSIAddonsNodes, kept for a node that is not Ready: csi-addons deletes
	// objects that it can't reach for long.
	Clients []Clients
	// Classes are the drivers by NetworkFenceClass.
	Classes map[string]string
	// Addresses are those in the Nodes.
	Addresses map[ledger.NodeName][]netip.Addr
}

// Verb is the kind of an Action.
type Verb uint8

const (
	// Make creates a NetworkFence.
	Make Verb = iota
	// Confirm notes in it the storage's confirmation and the machine's boot.
	Confirm
	// Doubt notes in it that it no longer counts: the same client may have been let in.
	Doubt
	// Mark sets the Node's condition that its machine is cut off.
	Mark
	// Unmark takes that condition away.
	Unmark
	// NoteLook notes in the NetworkFence the number of the question to the node's moorage-node.
	NoteLook
	// AskLook asks that question.
	AskLook
	// End notes in the NetworkFence that nothing follows from it any more.
	End
	// Unfence asks the storage to let the machine in again.
	Unfence
	// Delete deletes a finished NetworkFence.
	Delete
)

func (v Verb) String() string {
	return [...]string{"make", "confirm", "doubt", "mark", "unmark", "note look", "ask to look", "end", "unfence", "delete"}[v]
}

// Action is one write.
type Action struct {
	Do     Verb
	Node   ledger.NodeName
	Driver string
	// Name is the NetworkFence's. UID and Version are the written object's: the Node for Mark and Unmark,
	// the NodeMountReport for AskLook, else the NetworkFence.
	Name, UID, Version string
	// For Make.
	Class string
	CIDRs []netip.Prefix
	// For Make, Confirm and Doubt; for NoteLook and AskLook with the look.
	Machine rules.CutMachine
}

// ConditionType is the type of the Node's condition that the driver's storage has cut its machine off.
func (a Action) ConditionType() string { return v1alpha1.NetworkFencePrefix + a.Driver }

// Trouble is why a due fence is not made, or does not count.
type Trouble struct {
	Node    ledger.NodeName
	Driver  string
	Message string
}

// Decide returns the due writes, the obstacles of a fence, and the time until the next decision; 0: none.
func (s State) Decide() (actions []Action, troubles []Trouble, again time.Duration) {
	d := decider{State: s}
	d.locate()
	for _, p := range d.places() {
		d.decide(p)
	}
	return d.actions, d.troubles, d.again
}

type decider struct {
	State
	at       map[place][]Clients // of a node and a driver
	nowhere  []Clients           // clients with an unknown node
	actions  []Action
	troubles []Trouble
	again    time.Duration
}

type place struct {
	node   ledger.NodeName
	driver string
}

type nodeID struct{ driver, id string }

// locate finds a client's node by the driver's registered ID or by name. An ID of several nodes counts for
// none.
func (d *decider) locate() {
	ids := map[nodeID][]ledger.NodeName{}
	for n := range d.Snapshot.Nodes() {
		for i := range n.Drivers {
			if is := &n.Drivers[i]; is.Registered {
				ids[nodeID{is.Name, is.NodeID}] = append(ids[nodeID{is.Name, is.NodeID}], n.Name)
			}
		}
	}
	d.at = map[place][]Clients{}
	for _, c := range d.Clients {
		names := ids[nodeID{c.Driver, c.NodeID}]
		if n := ledger.NodeName(c.NodeID); d.Snapshot.Node(n) != nil && !slices.Contains(names, n) {
			names = append(slices.Clip(names), n)
		}
		if len(names) != 1 {
			d.nowhere = append(d.nowhere, c)
			continue
		}
		p := place{names[0], c.Driver}
		d.at[p] = append(d.at[p], c)
	}
}

// places lists all places that may need work, sorted.
func (d *decider) places() []place {
	set := map[place]bool{}
	drivers := d.drivers()
	for _, f := range d.Fences {
		if f.Ours {
			set[place{f.Machine.Node, f.Machine.Driver}] = true
		}
		for p, clients := range d.at {
			if drivers[p.driver] && !set[p] && slices.ContainsFunc(clients, func(c Clients) bool { return c.overlaps(f.CIDRs) }) {
				set[p] = true
			}
		}
	}
	for n := range d.Snapshot.Nodes() {
		for _, driver := range n.CutOff {
			set[place{n.Name, driver}] = true
		}
		if len(drivers) > 0 {
			for _, due := range rules.NetworkFencesDue(d.Snapshot, n, d.Now) {
				set[place{n.Name, due.Driver}] = true
			}
		}
	}
	list := make([]place, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.driver, b.driver))
	})
	return list
}

func (c *Clients) overlaps(cidrs []netip.Prefix) bool {
	for _, list := range c.OfClass {
		if overlap(list, cidrs) {
			return true
		}
	}
	return false
}

func (d *decider) drivers() map[string]bool {
	set := map[string]bool{}
	for p := range d.Snapshot.Policies() {
		if rules.PolicyFor(d.Snapshot, p.Driver, "").NetworkFence.Class != "" {
			set[p.Driver] = true
		}
	}
	return set
}

// driverOf is empty if the class is unknown.
func (d *decider) driverOf(f Fence) string {
	if f.Class != "" {
		return d.Classes[f.Class]
	}
	return f.Driver
}

// decide decides on a place, with one write of each object at a time.
func (d *decider) decide(p place) {
	n := d.Snapshot.Node(p.node)
	class := rules.PolicyFor(d.Snapshot, p.driver, "").NetworkFence.Class
	marked := n.IsCutOff(p.driver)
	leaving := d.leaving(p, marked)
	by, cut := d.cutBy(n, p, class, leaving)
	mark := func(v Verb) {
		d.add(p, Action{Do: v, Name: by.Name, UID: n.UID, Version: n.Version})
	}
	switch {
	case cut && !marked:
		mark(Mark)
	case marked && !cut:
		mark(Unmark)
	}
	if cut && !by.Ours && n.Ready == ledger.ReadyTrue {
		d.say(p, "node %s is Ready, and NetworkFence %s, which is not Moorage's or has lost its annotations, cuts its machine off: once nothing of before is mounted there, whoever made it has to set spec.fenceState to Unfenced", p.node, by.Name)
	}
	if n == nil || cut {
		return
	}
	for _, due := range rules.NetworkFencesDue(d.Snapshot, n, d.Now) {
		if due.Driver == p.driver {
			d.makeDue(n, p, due)
		}
	}
}

// leaving also lists the fences without further effect.
func (d *decider) leaving(p place, marked bool) (names []string) {
	for _, f := range d.Fences {
		if !f.Ours || f.Machine.Node != p.node || f.Machine.Driver != p.driver {
			continue
		}
		act := func(a Action) {
			a.Name = f.Name
			if a.UID == "" {
				a.UID, a.Version = f.UID, f.Version
			}
			d.add(p, a)
		}
		switch {
		case f.Deleting:
			d.say(p, "NetworkFence %s is being deleted: whoever deletes one does not have the storage let the machine in", f.Name)
		case !f.Fenced && f.Unfenced:
			act(Action{Do: Delete})
		case !f.Fenced:
			d.say(p, "NetworkFence %s waits for the storage to let the machine in again: %s", f.Name, orSilent(f.Message))
		case f.Over || d.ends(f, act):
			names = append(names, f.Name)
			d.end(p, f, marked, act)
		case f.Void:
			d.say(p, "NetworkFence %s does not count, since the same client was let in after it was made: delete it, which lets nobody in, and another one is made while the node can't be reached", f.Name)
		case d.letIn(f.CIDRs) != "" && (f.Confirmed || f.Succeeded):
			act(Action{Do: Doubt, Machine: f.Machine})
		case f.Confirmed:
		case f.Changed:
			d.say(p, "the spec of NetworkFence %s was changed since it was made: nothing tells which spec its status is about, and it never counts", f.Name)
		case f.Succeeded && !f.Unfenced:
			act(Action{Do: Confirm, Machine: f.Machine})
		default:
			d.say(p, "NetworkFence %s is not confirmed by the storage: %s", f.Name, orSilent(f.Message))
		}
	}
	return names
}

// end is the next step of a fence without further effect: the Node's condition goes, then End is noted,
// then the storage is asked.
func (d *decider) end(p place, f Fence, marked bool, act func(Action)) {
	switch {
	case marked && !f.Over:
	case !f.Over:
		act(Action{Do: End})
	case d.keptOut(f):
		act(Action{Do: Delete}) // this does not unfence
	case marked: // by a fence of others that has some of the clients
	default:
		if other := d.sharesStorage(f); other != "" {
			d.say(p, "NetworkFence %s waits for %s, which cuts the same client off: they may be of one storage", f.Name, other)
			return
		}
		act(Action{Do: Unfence})
	}
}

func orSilent(message string) string {
	if message == "" {
		return "its status says nothing yet; does the controller of csi-addons run, and a sidecar of the driver with the capability NETWORK_FENCE?"
	}
	return message
}

// ends says whether a fence of ours has done its work, or its confirmation can't be told from an earlier
// one.
func (d *decider) ends(f Fence, act func(Action)) bool {
	n, m := d.Snapshot.Node(f.Machine.Node), f.Machine
	if !f.Confirmed && !f.Void {
		return (!f.Succeeded || f.Changed) && n != nil && n.Exists && n.Ready == ledger.ReadyTrue
	}
	switch rules.MayUnfenceMachine(d.Snapshot, m, d.Now) {
	case rules.MayUnfence:
		return true
	case rules.AskBeforeUnfencing:
		m.Look, m.LookSince, m.LookWord = n.NextNumber(), n.ReadySince, n.Word.UID
		act(Action{Do: NoteLook, Machine: m})
	case rules.StaysFenced:
		p := place{m.Node, m.Driver}
		switch {
		case n == nil || !n.Exists || n.UID != m.NodeUID:
			d.say(p, "NetworkFence %s is of a machine whose Node is gone: once that machine is gone or has booted, set spec.fenceState to Unfenced", f.Name)
		case m.IsAnother(n):
			d.say(p, "NetworkFence %s is of a machine that node %s had before: once that machine is gone or has booted, set spec.fenceState to Unfenced", f.Name, m.Node)
		case n.Ready != ledger.ReadyTrue:
		case m.SystemUUID == "" || m.BootID == "":
			d.say(p, "node %s is Ready, and NetworkFence %s goes on: nobody has said in which boot the machine was cut off. Once it has booted since, set spec.fenceState to Unfenced", m.Node, f.Name)
		case n.Answers() && m.LookWord == n.Word.UID && m.LookSince == n.ReadySince && m.Look > n.Word.Look && n.BootID == m.BootID:
			act(Action{Do: AskLook, Machine: m, UID: n.Word.UID, Version: n.Word.Version})
		default:
			d.say(p, "node %s is Ready, and NetworkFence %s goes on: reboot the machine, or delete its pods with volumes of the driver where moorage-node runs, which has to find nothing of them", m.Node, f.Name)
		}
	}
	return false
}

// sharesStorage names a fence of any driver that still cuts off the same client; empty: none. Two drivers
// may have one storage.
func (d *decider) sharesStorage(f Fence) string {
	for _, other := range d.Fences {
		if other.Name == f.Name || !other.Fenced || other.Deleting || !overlap(other.CIDRs, f.CIDRs) {
			continue
		}
		marked := d.Snapshot.Node(other.Machine.Node).IsCutOff(other.Machine.Driver)
		sameDriver := d.driverOf(other) == f.Machine.Driver
		if other.Ours && (!other.Over || marked) || !other.Ours && (!sameDriver || other.counts()) {
			return other.Name
		}
	}
	return ""
}

// keptOut says whether others' confirmed NetworkFences cut off all of a fence's clients: then don't let
// them in.
func (d *decider) keptOut(f Fence) bool {
	var cidrs []netip.Prefix
	for _, other := range d.Fences {
		if !other.Ours && other.counts() && d.driverOf(other) == f.Machine.Driver {
			cidrs = append(cidrs, other.CIDRs...)
		}
	}
	return len(f.CIDRs) > 0 && covers(cidrs, f.CIDRs)
}

func overlap(a, b []netip.Prefix) bool {
	return slices.ContainsFunc(a, func(p netip.Prefix) bool { return slices.ContainsFunc(b, p.Overlaps) })
}

// counts says whether the storage has confirmed a NetworkFence without a later request. A later failed try
// unfences nothing.
func (f Fence) counts() bool {
	asked := f.Fenced && !f.Changed && !f.Deleting && !f.Unreadable
	if f.Ours {
		return asked && f.Confirmed
	}
	return asked && f.Succeeded && !f.Unfenced
}

// cutBy says whether a driver's storage has cut off all of a node's clients, and by which fence. With
// several classes none counts: no fact says whose storage has a volume.
func (d *decider) cutBy(n *ledger.Node, p place, class string, leaving []string) (by Fence, cut bool) {
	if n == nil || !n.Exists || class == "" || d.severalClasses(p) != "" {
		return Fence{}, false
	}
	listed, read := d.listed(p, class)
	if !read {
		return Fence{}, false
	}
	var cidrs []netip.Prefix
	var ours bool
	for _, f := range d.Fences {
		if !f.counts() || slices.Contains(leaving, f.Name) || f.Class != class || d.driverOf(f) != p.driver {
			continue
		}
		mine := f.Ours && f.Machine.Node == p.node && f.Machine.NodeUID == n.UID && !f.Machine.IsAnother(n)
		if mine || overlap(f.CIDRs, listed) {
			cidrs, ours = append(cidrs, f.CIDRs...), ours || mine
			by = f
		}
	}
	switch letIn := d.letIn(cidrs); {
	case len(cidrs) == 0 || len(listed) == 0 && !ours: // Moorage's fence covered all
		return Fence{}, false
	case !covers(cidrs, listed):
		d.say(p, "NetworkFence %s does not count: the driver lists clients of the node now that it does not cut off", by.Name)
		return Fence{}, false
	case letIn != "":
		d.say(p, "NetworkFence %s does not count, since %s asks to let the same client in", by.Name, letIn)
		return Fence{}, false
	}
	return by, true
}

// severalClasses names another NetworkFenceClass of the driver, or with clients of the node; empty: none.
func (d *decider) severalClasses(p place) string {
	class := rules.PolicyFor(d.Snapshot, p.driver, "").NetworkFence.Class
	var others []string
	for name, driver := range d.Classes {
		if driver == p.driver && name != class {
			others = append(others, name)
		}
	}
	for _, c := range d.at[p] {
		for name := range c.OfClass {
			if name != class {
				others = append(others, name)
			}
		}
	}
	if len(others) == 0 {
		return ""
	}
	return slices.Min(others)
}

// letIn names a NetworkFence of any driver that asks to let any of these clients in; empty: none. Two
// drivers may have one storage, and csi-addons asks at each start.
func (d *decider) letIn(cidrs []netip.Prefix) string {
	for _, f := range d.Fences {
		if !f.Fenced && !f.Deleting && overlap(f.CIDRs, cidrs) {
			return f.Name
		}
	}
	return ""
}

func covers(cidrs, list []netip.Prefix) bool {
	for _, p := range list {
		if !slices.ContainsFunc(cidrs, func(c netip.Prefix) bool { return c.Bits() <= p.Bits() && c.Contains(p.Addr()) }) {
			return false
		}
	}
	return true
}

// listed is false if a CIDR is unreadable.
func (d *decider) listed(p place, class string) (list []netip.Prefix, read bool) {
	for _, c := range d.at[p] {
		if c.Unreadable[class] {
			return nil, false
		}
		list = append(list, c.OfClass[class]...)
	}
	slices.SortFunc(list, comparePrefixes)
	return slices.Compact(list), true
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

func (d *decider) makeDue(n *ledger.Node, p place, due rules.FenceDue) {
	if slices.ContainsFunc(d.Fences, func(f Fence) bool { return f.Ours && f.Machine.Node == p.node && f.Machine.Driver == p.driver }) {
		return
	}
	machine := rules.CutMachine{Driver: p.driver, Node: n.Name, NodeUID: n.UID, SystemUUID: n.SystemUUID, BootID: n.BootID}
	name := fenceName(machine)
	listed, read := d.listed(p, due.Class)
	switch driver, exists := d.Classes[due.Class]; {
	case due.Brake.On:
		d.say(p, "no NetworkFence is made while %s can't be reached", due.Brake)
	case !exists:
		d.say(p, "there is no NetworkFenceClass %s, which the AttachPolicy names", due.Class)
	case driver != p.driver:
		d.say(p, "NetworkFenceClass %s is for driver %s", due.Class, driver)
	case d.severalClasses(p) != "":
		d.say(p, "driver %s has another NetworkFenceClass, %s: it may have another storage, and nobody can say which volumes are whose", p.driver, d.severalClasses(p))
	case !read:
		d.say(p, "a CSIAddonsNode lists what is no CIDR, or more than %d, for node %s", maxCIDRs, p.node)
	case len(listed) == 0:
		d.say(p, "no CSIAddonsNode lists, for NetworkFenceClass %s, what %s is to be cut off by: does the driver have the capability GET_CLIENTS_TO_FENCE?", due.Class, p.node)
	case d.letIn(listed) != "":
		d.say(p, "no NetworkFence is made before the storage has carried out %s, which asks to let the same client in, and that is deleted", d.letIn(listed))
	case d.overlapped(p, listed) != "":
		d.say(p, "a fence of %v would cut %s off, too", listed, d.overlapped(p, listed))
	case slices.ContainsFunc(d.Fences, func(f Fence) bool { return f.Name == name }):
		d.say(p, "NetworkFence %s has lost the annotations by which Moorage knows it for its own: delete it, which lets nobody in, and it is made anew", name)
	case due.Left > 0:
		d.later(due.Left)
	default:
		d.add(p, Action{Do: Make, Name: name, Class: due.Class, CIDRs: listed, Machine: machine})
	}
}

// overlapped names another owner of an address or client within the range, of any driver; empty: none.
func (d *decider) overlapped(p place, cidrs []netip.Prefix) string {
	var found []string
	for name, addresses := range d.Addresses {
		if name != p.node && slices.ContainsFunc(addresses, func(a netip.Addr) bool {
			return slices.ContainsFunc(cidrs, func(c netip.Prefix) bool { return c.Contains(a.Unmap()) })
		}) {
			found = append(found, string(name))
		}
	}
	for other, clients := range d.at {
		if other.node != p.node && slices.ContainsFunc(clients, func(c Clients) bool { return c.overlaps(cidrs) }) {
			found = append(found, string(other.node))
		}
	}
	for _, c := range d.nowhere {
		if c.overlaps(cidrs) {
			found = append(found, "node ID "+c.NodeID)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.Min(found)
}

func fenceName(m rules.CutMachine) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{m.Driver, m.NodeUID, m.SystemUUID, m.BootID}, "\x00")))
	return "moorage-" + hex.EncodeToString(sum[:10])
}

func (d *decider) add(p place, a Action) {
	a.Node, a.Driver = p.node, p.driver
	d.actions = append(d.actions, a)
}

func (d *decider) say(p place, format string, args ...any) {
	d.troubles = append(d.troubles, Trouble{p.node, p.driver, fmt.Sprintf(format, args...)})
}

func (d *decider) later(left time.Duration) {
	if d.again == 0 || left < d.again {
		d.again = left
	}
}
