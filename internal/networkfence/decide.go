// SPDX-License-Identifier: Apache-2.0

package networkfence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// State is everything that is decided on.
type State struct {
	Snapshot ledger.Snapshot
	Now      time.Time
	Fences   []Fence
	// Clients are those of the CSIAddonsNodes, and those of a node that is not Ready whose
	// CSIAddonsNode has been deleted: csi-addons deletes what it can't reach for long.
	Clients []Clients
	// Classes are the drivers of the NetworkFenceClasses.
	Classes map[string]string
	// Addresses are those that the Nodes name.
	Addresses map[ledger.NodeName][]netip.Addr
}

// Verb is what an Action does.
type Verb uint8

const (
	// Make creates a NetworkFence.
	Make Verb = iota
	// Confirm notes in it that the storage has confirmed it.
	Confirm
	// Mark sets the condition of the Node that its machine is cut off.
	Mark
	// Unmark takes that condition away.
	Unmark
	// NoteLook notes in the NetworkFence by which number the node's moorage-node is asked.
	NoteLook
	// AskLook asks it.
	AskLook
	// Unfence has the NetworkFence ask the storage to let the machine in again.
	Unfence
	// Delete deletes a NetworkFence that has nothing to do any more.
	Delete
)

func (v Verb) String() string {
	return [...]string{"make", "confirm", "mark", "unmark", "note look", "ask to look", "unfence", "delete"}[v]
}

// Action is one write.
type Action struct {
	Do     Verb
	Node   ledger.NodeName
	Driver string
	// Of the NetworkFence: its name; and its UID and version, at which it is changed.
	Name, UID, Version string
	// Of Make.
	Class   string
	CIDRs   []netip.Prefix
	Machine arbiter.CutMachine
	// Of NoteLook and AskLook.
	Look int64
}

// ConditionType is the type of the condition by which the Node says that the driver's storage
// has cut its machine off.
func (a Action) ConditionType() string { return v1alpha1.NetworkFencePrefix + a.Driver }

// Trouble is why a fence that is due is not made, or does not count.
type Trouble struct {
	Node    ledger.NodeName
	Driver  string
	Message string
}

// Decide returns the writes that are due, what stands in the way of a fence, and after how
// long to decide again though nothing changes; 0: not before.
func (s State) Decide() (actions []Action, troubles []Trouble, again time.Duration) {
	d := decider{State: s}
	for _, p := range d.places() {
		d.decide(p)
	}
	return d.actions, d.troubles, d.again
}

// decider is a decision under way.
type decider struct {
	State
	actions  []Action
	troubles []Trouble
	again    time.Duration
}

// place is a node and a driver.
type place struct {
	node   ledger.NodeName
	driver string
}

// places lists where anything may be to be done: where a fence is due, or ours, or where the
// Node or somebody's NetworkFence says that the machine is cut off; sorted.
func (d *decider) places() []place {
	set := map[place]bool{}
	drivers := d.drivers()
	for _, f := range d.Fences {
		if f.Ours {
			set[place{f.Machine.Node, f.Machine.Driver}] = true
		} else if driver := d.driverOf(f); drivers[driver] {
			for _, c := range d.Clients {
				if n := d.NodeOf(c); c.Driver == driver && n != "" {
					set[place{n, driver}] = true
				}
			}
		}
	}
	for n := range d.Snapshot.Nodes() {
		for _, driver := range n.CutOff {
			set[place{n.Name, driver}] = true
		}
		if len(drivers) > 0 {
			for _, due := range arbiter.NetworkFencesDue(d.Snapshot, n, d.Now) {
				set[place{n.Name, due.Driver}] = true
			}
		}
	}
	list := make([]place, 0, len(set))
	for p := range set {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b place) int {
		return strings.Compare(string(a.node)+"/"+a.driver, string(b.node)+"/"+b.driver)
	})
	return list
}

// drivers are those whose policy has a NetworkFenceClass.
func (d *decider) drivers() map[string]bool {
	set := map[string]bool{}
	for p := range d.Snapshot.Policies() {
		if arbiter.PolicyFor(d.Snapshot, p.Driver, "").NetworkFence.Class != "" {
			set[p.Driver] = true
		}
	}
	return set
}

// driverOf is the driver of a fence: that of its class, which comes before the one that it
// names itself; empty where the class is not known.
func (d *decider) driverOf(f Fence) string {
	if f.Class != "" {
		return d.Classes[f.Class]
	}
	return f.Driver
}

// NodeOf is the node at which clients are: of its name, or the one that the driver has
// registered by that ID; empty: none.
func (s State) NodeOf(c Clients) ledger.NodeName {
	if s.Snapshot.Node(ledger.NodeName(c.NodeID)) != nil {
		return ledger.NodeName(c.NodeID)
	}
	for n := range s.Snapshot.Nodes() {
		if is := n.Driver(c.Driver); is.Registered && is.NodeID == c.NodeID {
			return n.Name
		}
	}
	return ""
}

// decide decides on one place: one write at a time of each object.
func (d *decider) decide(p place) {
	n := d.Snapshot.Node(p.node)
	class := arbiter.PolicyFor(d.Snapshot, p.driver, "").NetworkFence.Class
	marked := n.IsCutOff(p.driver)
	leaving := d.leaving(p, marked)
	by, cut := d.cutBy(n, p, class, leaving)
	switch {
	case cut && !marked && class != "":
		d.add(p, Action{Do: Mark, Name: by.Name})
	case marked && (!cut || class == ""):
		d.add(p, Action{Do: Unmark})
	}
	if n == nil || cut {
		return
	}
	for _, due := range arbiter.NetworkFencesDue(d.Snapshot, n, d.Now) {
		if due.Driver == p.driver {
			d.makeDue(n, p, due)
		}
	}
}

// leaving decides on the fences of a place that Moorage has made, and lists those that are to
// end.
func (d *decider) leaving(p place, marked bool) (names []string) {
	for _, f := range d.Fences {
		if !f.Ours || f.Deleting || f.Machine.Node != p.node || f.Machine.Driver != p.driver {
			continue
		}
		act := func(a Action) {
			a.Name, a.UID, a.Version = f.Name, f.UID, f.Version
			d.add(p, a)
		}
		switch {
		case !f.Fenced && f.Unfenced:
			act(Action{Do: Delete})
		case !f.Fenced:
			names = append(names, f.Name)
			d.say(p, "NetworkFence %s waits for the storage to let the machine in again: %s", f.Name, orSilent(f.Message))
		case !f.Confirmed && f.Succeeded && !f.Changed && !f.Unfenced:
			act(Action{Do: Confirm})
		case d.ends(f, act):
			names = append(names, f.Name)
			switch {
			case marked:
			case d.fencedByOther(f):
				act(Action{Do: Delete}) // who deletes a NetworkFence does not unfence
			default:
				act(Action{Do: Unfence})
			}
		case !f.Confirmed && f.Changed:
			d.say(p, "the spec of NetworkFence %s was changed since it was made: nothing tells which spec its status is about, and it never counts", f.Name)
		case !f.Confirmed:
			d.say(p, "NetworkFence %s is not confirmed by the storage: %s", f.Name, orSilent(f.Message))
		}
	}
	return names
}

func orSilent(message string) string {
	if message == "" {
		return "its status says nothing yet; does the controller of csi-addons run, and a sidecar of the driver with the capability NETWORK_FENCE?"
	}
	return message
}

// ends says whether a fence of ours has done its work: the machine may reach the storage, or
// the node was Ready again before the storage confirmed anything, or what it confirmed can't be
// told from what was asked before.
func (d *decider) ends(f Fence, act func(Action)) bool {
	n := d.Snapshot.Node(f.Machine.Node)
	if !f.Confirmed {
		return (!f.Succeeded || f.Changed) && n != nil && n.Exists && n.Ready == ledger.ReadyTrue
	}
	switch arbiter.MayUnfenceMachine(d.Snapshot, f.Machine, d.Now) {
	case arbiter.MayUnfence:
		other := d.sharesStorage(f)
		if other != "" {
			d.say(place{f.Machine.Node, f.Machine.Driver}, "NetworkFence %s waits for %s, of another driver, which cuts the same client off: they may be of one storage", f.Name, other)
		}
		return other == ""
	case arbiter.AskBeforeUnfencing:
		act(Action{Do: NoteLook, Look: n.NextNumber()})
	case arbiter.StaysFenced:
		if n == nil || !n.Exists || n.UID != f.Machine.NodeUID {
			d.say(place{f.Machine.Node, f.Machine.Driver}, "NetworkFence %s is of a machine whose Node is gone: once that machine is gone or has booted, set spec.fenceState to Unfenced", f.Name)
		}
		if n != nil && n.Answers() && f.Machine.Look > n.Word.Look && n.UID == f.Machine.NodeUID && n.BootID == f.Machine.BootID {
			act(Action{Do: AskLook, Look: f.Machine.Look})
		}
	}
	return false
}

// sharesStorage is the name of a fence of another driver that has the same client cut off, and
// may not end yet; empty: there is none. Two drivers may have one storage, which lets the client
// in for both.
func (d *decider) sharesStorage(f Fence) string {
	for _, other := range d.Fences {
		if other.Name == f.Name || !other.Fenced || other.Deleting || d.driverOf(other) == f.Machine.Driver || !overlap(other.CIDRs, f.CIDRs) {
			continue
		}
		if !other.Ours || arbiter.MayUnfenceMachine(d.Snapshot, other.Machine, d.Now) != arbiter.MayUnfence {
			return other.Name
		}
	}
	return ""
}

// fencedByOther says whether another NetworkFence has the storage cut off any of what one has:
// then that is not to be let in.
func (d *decider) fencedByOther(f Fence) bool {
	return slices.ContainsFunc(d.Fences, func(other Fence) bool {
		return other.Name != f.Name && other.Fenced && !other.Deleting && d.driverOf(other) == f.Machine.Driver && overlap(other.CIDRs, f.CIDRs)
	})
}

func overlap(a, b []netip.Prefix) bool {
	return slices.ContainsFunc(a, func(p netip.Prefix) bool { return slices.ContainsFunc(b, p.Overlaps) })
}

// counts says whether the storage has confirmed a NetworkFence, and nothing has been asked of
// it since. What was confirmed once stays so though a later try fails, for it unfences nothing.
func (f Fence) counts() bool {
	asked := f.Fenced && !f.Changed && !f.Deleting && !f.Unreadable
	if f.Ours {
		return asked && f.Confirmed
	}
	return asked && f.Succeeded && !f.Unfenced
}

// cutBy says whether the storage of a driver has cut off all clients that a node has of it,
// and by which fence.
func (d *decider) cutBy(n *ledger.Node, p place, class string, leaving []string) (by Fence, cut bool) {
	if n == nil || !n.Exists {
		return Fence{}, false
	}
	var cidrs []netip.Prefix
	var ours bool
	listed, known := d.listed(p, class)
	for _, f := range d.Fences {
		if !f.counts() || slices.Contains(leaving, f.Name) || d.driverOf(f) != p.driver {
			continue
		}
		mine := f.Ours && f.Machine.Node == p.node && f.Machine.NodeUID == n.UID
		if mine || overlap(f.CIDRs, listed) {
			cidrs, ours = append(cidrs, f.CIDRs...), ours || mine
			by = f
		}
	}
	// What Moorage fenced was all that there was; of another's fence only the list tells.
	if len(cidrs) == 0 || !known && !ours || !covers(cidrs, listed) {
		return Fence{}, false
	}
	if letIn := d.letIn(cidrs); letIn != "" {
		d.say(p, "NetworkFence %s does not count, since %s asks to let the same client in", by.Name, letIn)
		return Fence{}, false
	}
	return by, true
}

// letIn is the name of a NetworkFence that asks to let any of these clients in, whatever its
// driver, since two may have one storage: csi-addons asks again whenever it starts. Empty:
// there is none.
func (d *decider) letIn(cidrs []netip.Prefix) string {
	for _, f := range d.Fences {
		if !f.Fenced && !f.Deleting && overlap(f.CIDRs, cidrs) {
			return f.Name
		}
	}
	return ""
}

// covers says whether each of a list lies within one of cidrs.
func covers(cidrs, list []netip.Prefix) bool {
	for _, p := range list {
		if !slices.ContainsFunc(cidrs, func(c netip.Prefix) bool { return c.Bits() <= p.Bits() && c.Contains(p.Addr()) }) {
			return false
		}
	}
	return true
}

// listed are the CIDRs of a driver's clients at a node, as its CSIAddonsNodes say for a class;
// known says whether there is any, and each could be read.
func (d *decider) listed(p place, class string) (list []netip.Prefix, known bool) {
	for _, c := range d.Clients {
		if c.Driver != p.driver || d.NodeOf(c) != p.node {
			continue
		}
		if c.Unreadable[class] {
			return nil, false
		}
		list = append(list, c.OfClass[class]...)
	}
	slices.SortFunc(list, comparePrefixes)
	return slices.Compact(list), len(list) > 0
}

func comparePrefixes(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// makeDue makes the fence that is due at a node, unless one is there already, or something
// stands in the way.
func (d *decider) makeDue(n *ledger.Node, p place, due arbiter.FenceDue) {
	if slices.ContainsFunc(d.Fences, func(f Fence) bool { return f.Ours && f.Machine.Node == p.node && f.Machine.Driver == p.driver }) {
		return
	}
	listed, known := d.listed(p, due.Class)
	switch driver, exists := d.Classes[due.Class]; {
	case !due.Brake.IsZero():
		d.say(p, "no NetworkFence is made while %s can't be reached", due.Brake)
	case !exists:
		d.say(p, "there is no NetworkFenceClass %s, which the AttachPolicy names", due.Class)
	case driver != p.driver:
		d.say(p, "NetworkFenceClass %s is for driver %s", due.Class, driver)
	case !known:
		d.say(p, "no CSIAddonsNode lists, for NetworkFenceClass %s, what %s is to be cut off by: does the driver have the capability GET_CLIENTS_TO_FENCE?", due.Class, p.node)
	case d.overlapped(p, listed) != "":
		d.say(p, "a fence of %v would cut %s off, too", listed, d.overlapped(p, listed))
	case due.Left > 0:
		d.later(due.Left)
	default:
		machine := arbiter.CutMachine{Driver: p.driver, Node: n.Name, NodeUID: n.UID, SystemUUID: n.SystemUUID, BootID: n.BootID}
		d.add(p, Action{Do: Make, Name: fenceName(machine), Class: due.Class, CIDRs: listed, Machine: machine})
	}
}

// overlapped is another node whose address, or whose client of the driver, lies within what is
// to be cut off; empty: none.
func (d *decider) overlapped(p place, cidrs []netip.Prefix) ledger.NodeName {
	var found []string
	for name, addresses := range d.Addresses {
		if name != p.node && slices.ContainsFunc(addresses, func(a netip.Addr) bool {
			return slices.ContainsFunc(cidrs, func(c netip.Prefix) bool { return c.Contains(a.Unmap()) })
		}) {
			found = append(found, string(name))
		}
	}
	for _, c := range d.Clients {
		n := d.NodeOf(c)
		if c.Driver != p.driver || n == p.node || n == "" {
			continue
		}
		for _, list := range c.OfClass {
			if overlap(list, cidrs) {
				found = append(found, string(n))
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return ledger.NodeName(slices.Min(found))
}

// fenceName is the name of a machine's NetworkFence: one for each boot.
func fenceName(m arbiter.CutMachine) string {
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
