// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/test/world"
)

// slowFit is Fit in an obvious form: it lists all users from the API's objects, and counts.
type slowFit struct {
	w     *randomWorld
	pod   ledger.Pod
	n     ledger.NodeName
	delta *ledger.Delta
}

type slowUser struct {
	node     ledger.NodeName
	volumes  []ledger.VolumeID
	pod      string // the pod, or the ticket's pod
	id       ledger.TicketID
	ticket   bool
	asks     bool // a ticket that is not granted
	told     bool // a tool's ticket that was told to wait
	slotless bool // a ticket that keeps no slot meanwhile
	leaves   bool // a pod that is terminating, or runs nowhere
	reserved bool // a pod that is not bound yet
	yields   bool
	tryout   bool // a pod that a dry run tries here
	takenOut bool // a pod that a dry run takes away, or its ticket
}

func (f slowFit) users() []slowUser {
	var users []slowUser
	removed, added := map[string]bool{}, map[string]ledger.NodeName{}
	if f.delta != nil {
		removed, added = f.delta.Removed, f.delta.Added
	}
	for _, p := range f.w.pods() {
		known := f.w.snapshot().Pod(p.UID)
		reserved := known != nil && known.Reserved
		if reserved {
			p.Node = known.Node
		}
		if p.Node != "" && p.Phase != ledger.PodFinished {
			users = append(users, slowUser{
				node: p.Node, volumes: f.podVolumes(p), pod: p.UID, leaves: p.Phase == ledger.PodTerminating || f.nowhere(p.Node), reserved: reserved, takenOut: removed[p.UID],
			})
		}
		if n, ok := added[p.UID]; ok {
			users = append(users, slowUser{node: n, volumes: f.podVolumes(p), pod: p.UID, tryout: true})
		}
	}
	for t := range f.w.snapshot().Tickets() {
		u := slowUser{
			node: t.Node, ticket: true, id: t.ID, asks: t.Phase == ledger.TicketPending, yields: t.Type == ledger.TypeSnapshot,
		}
		u.volumes, u.slotless = f.w.TicketVolumes(*t), !t.KeepsSlots()
		u.told = !t.InDoubt && t.Reason != "" && t.Reason != string(rules.NotGranted)
		users = append(users, u)
	}
	return users
}

func (f slowFit) podVolumes(p ledger.Pod) []ledger.VolumeID { return f.w.PodVolumes(p) }

func (f slowFit) codes() map[ledger.Code]bool {
	codes := map[ledger.Code]bool{}
	users := f.users()
	for i, v := range f.podVolumes(f.pod) {
		for _, u := range users {
			if f.keepsAway(v, f.mode(i), u, users) {
				code := rules.HeldElsewhere
				if f.mode(i) == ledger.AccessPod {
					code = rules.UsedByOtherPod
				}
				codes[code] = true
			}
		}
		used := slices.ContainsFunc(users, func(u slowUser) bool { return !u.tryout && slices.Contains(u.volumes, v) })
		if f.mode(i) >= ledger.AccessNode && f.fenced(f.n) && (used || f.w.snapshot().Volume(v) != nil) {
			codes[rules.NodeFenced] = true
		}
	}
	if code := f.slots(users); code != "" {
		codes[code] = true
	}
	return codes
}

func (f slowFit) mode(i int) ledger.Access {
	return f.w.claimOf(ledger.ClaimKey{Namespace: namespace, Name: f.pod.Volumes[i].Claim}).Access
}

func (f slowFit) keepsAway(v ledger.VolumeID, mode ledger.Access, u slowUser, users []slowUser) bool {
	if mode < ledger.AccessNode || u.pod == f.pod.UID || u.takenOut || u.leaves || !slices.Contains(u.volumes, v) {
		return false
	}
	if u.node == f.n && mode != ledger.AccessPod {
		return false
	}
	if u.tryout {
		return true
	}
	if f.fenced(u.node) {
		return false
	}
	if u.asks {
		return !u.told && (mode == ledger.AccessPod || !f.lived(users, v, f.n))
	}
	if has := f.has(users, v); !u.ticket && !u.reserved && has != "" && has != u.node {
		return false // it waits for the holders
	}
	return !u.yields
}

func (f slowFit) nowhere(n ledger.NodeName) bool {
	_, exists := f.w.Node(n)
	at := slowFit{w: f.w, n: n}
	return !exists && len(at.remembered()) == 0 && !slices.ContainsFunc(list[ledger.Attachment](f.w.cluster, world.Attachments), func(a ledger.Attachment) bool { return a.Node == n })
}

func (f slowFit) fenced(n ledger.NodeName) bool {
	node, _ := f.w.Node(n)
	return node.OutOfService && node.Ready != ledger.ReadyTrue
}

func (f slowFit) lived(users []slowUser, v ledger.VolumeID, n ledger.NodeName) bool {
	return !f.fenced(n) && slices.ContainsFunc(users, func(o slowUser) bool {
		others := o.pod == "" || o.pod != f.pod.UID
		return o.node == n && !o.asks && !o.leaves && !o.takenOut && !o.tryout && !o.yields && others &&
			slices.Contains(o.volumes, v)
	})
}

func (f slowFit) has(users []slowUser, v ledger.VolumeID) ledger.NodeName {
	hold, _ := f.w.Hold(v)
	at := hold.Node
	for i := range worldNodes {
		n := nodeName(i)
		node, _ := f.w.Node(n)
		attached := slices.Contains(node.Reported, v)
		for _, a := range list[ledger.Attachment](f.w.cluster, world.Attachments) {
			id, ok := f.w.Source(a)
			attached = attached || ok && id == v && a.Node == n
		}
		if (n == at || at == "" && attached) && f.lived(users, v, n) {
			return n
		}
	}
	return ""
}

func (f slowFit) slots(users []slowUser) ledger.Code {
	bodily, attached := map[ledger.VolumeID]bool{}, map[ledger.VolumeID]bool{}
	node, _ := f.w.Node(f.n)
	for _, v := range node.Reported {
		attached[v] = true
	}
	for _, a := range list[ledger.Attachment](f.w.cluster, world.Attachments) {
		if v, ok := f.w.Source(a); ok && a.Node == f.n {
			attached[v] = true
		}
	}
	for _, v := range slices.Concat(node.InUse, f.remembered(), slices.Collect(maps.Keys(attached))) {
		bodily[v] = true
	}
	kept, stays, freed := map[ledger.VolumeID]bool{}, map[ledger.VolumeID]bool{}, map[ledger.VolumeID]bool{}
	for _, u := range users {
		if u.node != f.n {
			continue
		}
		for _, v := range u.volumes {
			switch {
			case u.takenOut:
				freed[v] = true
			case u.pod != f.pod.UID && !u.slotless:
				kept[v] = true
				stays[v] = stays[v] || !u.asks && !u.leaves && !u.tryout
			}
		}
	}
	all, fresh := maps.Clone(kept), 0
	for v := range bodily {
		if !freed[v] {
			all[v] = true
		}
	}
	for _, v := range f.podVolumes(f.pod) {
		all[v] = true
		if !attached[v] && !stays[v] {
			fresh++
		}
	}
	state := f.w.snapshot().Node(f.n).Driver("disk")
	switch {
	case !state.Registered && f.w.snapshot().NeedsNode("disk"):
		return rules.DriverNotRegistered
	case fresh == 0:
		return ""
	case state.Exhausted:
		return rules.NodeExhausted
	case state.Limit != ledger.NoLimit && int32(len(all)) > state.Limit:
		return rules.NoFreeSlot
	}
	return ""
}

func (f slowFit) remembered() []ledger.VolumeID {
	var list []ledger.VolumeID
	s := f.w.snapshot()
	for v := range s.Volumes() {
		if p := v.OnNode(f.n); p != nil && p.InUse {
			list = append(list, v.ID)
		}
	}
	return list
}

func TestFitTwin(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		w := newWorld(proptest.Bytes(t, 500))
		w.lag = false
		for len(w.rest) > 12 {
			w.step()
		}
		w.compareFit(t, nil)
		w.compareFit(t, w.dryRun())
	})
}

func (w *randomWorld) dryRun() *ledger.Delta {
	d := &ledger.Delta{}
	for _, p := range w.pods() {
		uid := p.UID
		switch {
		case p.Node == "" && w.below(2) == 0:
			d.Add(uid, nodeName(w.below(worldNodes)))
		case p.Node != "" && w.below(2) == 0:
			d.Remove(uid)
		}
	}
	return d
}

// A pod with a node is first taken from it, as in a drain's simulation.
func (w *randomWorld) compareFit(t *rapid.T, tried *ledger.Delta) {
	for _, p := range w.pods() {
		d := tried
		if p.Node != "" {
			d = moved(tried, p)
		}
		s := w.snapshot().With(d)
		r := rules.PodRequest(s, &p)
		for i := range worldNodes {
			want := slowFit{w, p, nodeName(i), d}.codes()
			got := map[ledger.Code]bool{}
			v := w.arb.Fit(s, r, nodeName(i), w.Now)
			for _, reason := range v.Reasons {
				got[reason.Code] = true
			}
			if !maps.Equal(want, got) || v.Allowed() != (len(want) == 0) {
				w.fail(t, "%s at %s (dry run %+v): %s, want %v", p.Name, nodeName(i), d, fmt.Sprint(v.Outcome, v.Reasons), want)
			}
		}
	}
}

func moved(tried *ledger.Delta, p ledger.Pod) *ledger.Delta {
	d := tried.Clone()
	if d == nil {
		d = &ledger.Delta{}
	}
	if !d.Removed[p.UID] {
		d.Remove(p.UID)
	}
	return d
}
