// SPDX-License-Identifier: Apache-2.0

package arbiter_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/flow"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// cluster is the world that the tests of this package play in: the objects of
// an API server, the kubelets, an attacher with its disks, and one controller
// with its ledger. Everything is deterministic and happens when a method says
// so.
type cluster struct {
	now     time.Time
	version int
	uids    map[string]int
	arb     arbiter.Arbiter

	// The API's objects, at their newest versions.
	nodes       map[ledger.NodeName]ledger.NodeState
	csinodes    map[ledger.NodeName]ledger.NodeDrivers
	pvs         map[string]ledger.PersistentVolume
	claims      map[ledger.ClaimKey]ledger.Claim
	classes     map[string]ledger.StorageClass
	drivers     map[string]ledger.Driver
	pods        map[string]ledger.Pod // by UID
	tickets     map[ledger.TicketID]ledger.Ticket
	attachments map[string]ledger.Attachment
	holds       map[ledger.VolumeID]ledger.Hold
	policies    map[string]ledger.Policy
	untimed     bool // see ledger.NoForceOnTimeout

	kubelets map[ledger.NodeName]*kubelet
	leases   map[ledger.NodeName]int64 // when each kubelet last renewed its Lease
	disks    disks
	refuses  map[string]bool // writes that the API server refuses: an action, or an action and a node

	stock *stock // the attach/detach controller, nil in Standalone mode

	// The controller's side.
	ledger *ledger.Ledger
	memory *flow.Memory
	watch  []ledger.Event // seen by the API server, not yet by the controller
	lag    bool           // events wait in watch until they are delivered
	own    bool           // the controller writes, and takes in the answers
	mutes  func() bool    // whether the next creation is not answered
	flying []arbiter.Step // creations that were sent, and not answered

	trace func(format string, args ...any)
	judge *judge
}

func newCluster() *cluster {
	c := &cluster{
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), uids: map[string]int{},
		nodes: map[ledger.NodeName]ledger.NodeState{}, csinodes: map[ledger.NodeName]ledger.NodeDrivers{},
		pvs: map[string]ledger.PersistentVolume{}, claims: map[ledger.ClaimKey]ledger.Claim{},
		classes: map[string]ledger.StorageClass{}, drivers: map[string]ledger.Driver{},
		pods: map[string]ledger.Pod{}, tickets: map[ledger.TicketID]ledger.Ticket{},
		attachments: map[string]ledger.Attachment{}, holds: map[ledger.VolumeID]ledger.Hold{},
		policies: map[string]ledger.Policy{}, kubelets: map[ledger.NodeName]*kubelet{}, leases: map[ledger.NodeName]int64{},
		disks:   newDisks(),
		refuses: map[string]bool{},
		ledger:  ledger.New(),
		memory:  &flow.Memory{},
		trace:   func(string, ...any) {},
		mutes:   func() bool { return false },
	}
	c.judge = &judge{c: c}
	return c
}

// pass lets time pass, and has the controller hear of it.
func (c *cluster) pass(d time.Duration) {
	c.readLeases()
	c.now = c.now.Add(d)
	for n, k := range c.kubelets {
		if _, exists := c.nodes[n]; exists && !k.down {
			c.leases[n] = c.now.UnixMicro()
		}
	}
	c.readLeases()
	c.ledger.Apply(c.now, arbiter.Lapse(c.now))
}

// readLeases has the controller read the Leases of nodes that are not Ready.
func (c *cluster) readLeases() {
	for _, n := range sortedKeys(c.nodes) {
		if c.nodes[n].Ready != ledger.ReadyTrue {
			c.ledger.Apply(c.now, ledger.NodeLease{Node: n, Renewed: c.leases[n]})
		}
	}
}

// next is the next resource version: one counter for all, as etcd's.
func (c *cluster) next() string {
	c.version++
	return strconv.Itoa(c.version)
}

// uid makes a UID that tells of what it is: the n-th object of that name.
func (c *cluster) uid(name string) string {
	c.uids[name]++
	return name + "." + strconv.Itoa(c.uids[name])
}

// seen hands an event to the controller: at once or when it is delivered, and
// in any case at once what the controller has written itself.
func (c *cluster) seen(e ledger.Event) {
	if c.lag {
		c.watch = append(c.watch, e)
	}
	if !c.lag || c.own {
		c.ledger.Apply(c.now, e)
	}
}

// deliver hands the controller the oldest event of one kind of object that is
// on its way. Kinds overtake each other, objects of one kind do not.
func (c *cluster) deliver(kind int) bool {
	var kinds []string
	first := map[string]int{}
	for i, e := range c.watch {
		k := kindOf(e)
		if _, ok := first[k]; !ok {
			kinds = append(kinds, k)
			first[k] = i
		}
	}
	if len(kinds) == 0 {
		return false
	}
	i := first[kinds[kind%len(kinds)]]
	e := c.watch[i]
	c.watch = slices.Delete(c.watch, i, i+1)
	c.ledger.Apply(c.now, e)
	return true
}

func (c *cluster) flush() {
	for c.deliver(0) {
	}
}

func kindOf(e ledger.Event) string {
	switch e.(type) {
	case ledger.Pod, ledger.PodGone:
		return "pods"
	case ledger.Ticket, ledger.TicketGone:
		return "tickets"
	case ledger.Claim, ledger.ClaimGone:
		return "claims"
	case ledger.PersistentVolume, ledger.PersistentVolumeGone:
		return "volumes"
	case ledger.Attachment, ledger.AttachmentGone:
		return "attachments"
	case ledger.NodeState, ledger.NodeGone:
		return "nodes"
	case ledger.NodeDrivers, ledger.NodeDriversGone:
		return "csinodes"
	case ledger.HoldSeen, ledger.HoldGone:
		return "holds"
	}
	return "others"
}

// attachmentUID makes a UID in the form in which Kubernetes makes them.
func (c *cluster) attachmentUID() string {
	c.uids["attachments"]++
	return fmt.Sprintf("00000000-0000-0000-0000-%012x", c.uids["attachments"])
}

func (c *cluster) snapshot() ledger.Snapshot { return c.ledger.Snapshot() }

// The writers: an object as it is to be, at a new version.

func (c *cluster) putNode(n ledger.NodeState) {
	n.Version = c.next()
	n.InUse, n.Reported = slices.Clone(n.InUse), slices.Clone(n.Reported)
	c.nodes[n.Name] = n
	c.seen(n)
}

func (c *cluster) putDrivers(d ledger.NodeDrivers) {
	d.Version = c.next()
	c.csinodes[d.Node] = d
	c.seen(d)
}

func (c *cluster) putPV(p ledger.PersistentVolume) {
	p.Version = c.next()
	c.pvs[p.Name] = p
	c.seen(p)
}

func (c *cluster) putClaim(k ledger.Claim) {
	k.Version = c.next()
	c.claims[k.Key] = k
	c.seen(k)
}

func (c *cluster) putPod(p ledger.Pod) {
	p.Version = c.next()
	c.pods[p.UID] = p
	c.seen(p)
}

func (c *cluster) putTicket(t ledger.Ticket) {
	t.Version = c.next()
	c.tickets[t.ID] = t
	c.seen(t)
}

func (c *cluster) putAttachment(a ledger.Attachment) {
	a.Version = c.next()
	c.attachments[a.Name] = a
	c.seen(a)
}

func (c *cluster) putHold(v ledger.VolumeID, h ledger.Hold) {
	h.Version = c.next()
	c.holds[v] = h
	c.seen(ledger.HoldSeen{Volume: v, Hold: h})
}

func (c *cluster) putPolicy(p ledger.Policy) {
	p.Version = c.next()
	c.policies[p.Name] = p
	c.seen(p)
}

func (c *cluster) putClass(k ledger.StorageClass) {
	k.Version = c.next()
	c.classes[k.Name] = k
	c.seen(k)
}

func (c *cluster) putDriver(d ledger.Driver) {
	d.Version = c.next()
	c.drivers[d.Name] = d
	c.seen(d)
}

func (c *cluster) deletePod(uid string) {
	delete(c.pods, uid)
	c.seen(ledger.PodGone{UID: uid})
}

func (c *cluster) deleteTicket(id ledger.TicketID) {
	delete(c.tickets, id)
	c.seen(ledger.TicketGone{ID: id})
}

func (c *cluster) deleteAttachment(name string) {
	delete(c.disks.retry, name) // the attacher forgets it
	delete(c.attachments, name)
	c.seen(ledger.AttachmentGone{Name: name})
}

// restart replaces the controller by a new one, which lists everything anew.
func (c *cluster) restart() {
	c.watch = nil
	c.ledger, c.memory = ledger.New(), &flow.Memory{}
	for _, e := range c.list() {
		c.ledger.Apply(c.now, e)
	}
	c.ledger.Apply(c.now, ledger.Complete{})
	c.readLeases()
	for tasks := c.memory.TakeOver(c.snapshot()); len(tasks) > 0; tasks = c.memory.TakeOver(c.snapshot()) {
		for _, t := range tasks {
			c.carry(t)
		}
	}
}

// list is a consistent list of all objects, tickets before pods.
func (c *cluster) list() []ledger.Event {
	var all []ledger.Event
	if c.untimed {
		all = append(all, ledger.NoForceOnTimeout{})
	}
	all = appendSorted(all, c.tickets, func(t ledger.Ticket) string { return t.ID.String() })
	all = appendSorted(all, c.policies, func(p ledger.Policy) string { return p.Name })
	all = appendSorted(all, c.classes, func(k ledger.StorageClass) string { return k.Name })
	all = appendSorted(all, c.drivers, func(d ledger.Driver) string { return d.Name })
	all = appendSorted(all, c.csinodes, func(d ledger.NodeDrivers) string { return string(d.Node) })
	all = appendSorted(all, c.pvs, func(p ledger.PersistentVolume) string { return p.Name })
	all = appendSorted(all, c.claims, func(k ledger.Claim) string { return k.Key.String() })
	all = appendSorted(all, c.pods, func(p ledger.Pod) string { return p.UID })
	all = appendSorted(all, c.attachments, func(a ledger.Attachment) string { return a.Name })
	all = appendSorted(all, c.nodes, func(n ledger.NodeState) string { return string(n.Name) })
	for _, v := range sortedVolumes(c.holds) {
		all = append(all, ledger.HoldSeen{Volume: v, Hold: c.holds[v]})
	}
	return all
}

func appendSorted[K comparable, V ledger.Event](all []ledger.Event, objects map[K]V, name func(V) string) []ledger.Event {
	list := slices.SortedFunc(maps.Values(objects), func(a, b V) int {
		if name(a) < name(b) {
			return -1
		}
		return 1
	})
	for _, o := range list {
		all = append(all, o)
	}
	return all
}

func sortedVolumes[V any](m map[ledger.VolumeID]V) []ledger.VolumeID {
	return slices.SortedFunc(maps.Keys(m), compareVolumes)
}

func compareVolumes(a, b ledger.VolumeID) int {
	if a == b {
		return 0
	}
	if a.Less(b) {
		return -1
	}
	return 1
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// resolve follows a claim in the API's own objects, with no regard to what
// the controller knows.
func (c *cluster) resolve(key ledger.ClaimKey) (ledger.VolumeID, bool) {
	claim, ok := c.claims[key]
	if !ok || !claim.Bound {
		return ledger.VolumeID{}, false
	}
	pv, ok := c.pvs[claim.PersistentVolume]
	if pv.Claim != (ledger.ClaimKey{}) && pv.Claim != key {
		return ledger.VolumeID{}, false
	}
	return pv.Volume, ok && pv.Volume != ledger.VolumeID{}
}

// podVolumes are the volumes of a pod that need an attachment, as the API has
// them.
func (c *cluster) podVolumes(p ledger.Pod) []ledger.VolumeID {
	var list []ledger.VolumeID
	for _, v := range p.Volumes {
		id, ok := v.Inline, v.Claim == ""
		if !ok {
			id, ok = c.resolve(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim})
		}
		if d, known := c.drivers[id.Driver]; ok && (!known || d.AttachRequired) && !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// resolved says whether all claims of a pod lead to a PersistentVolume.
func (c *cluster) resolved(p ledger.Pod) bool {
	for _, v := range p.Volumes {
		claim := c.claims[ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim}]
		pv, ok := c.pvs[claim.PersistentVolume]
		if v.Claim != "" && !(claim.Bound && ok && (pv.Claim == ledger.ClaimKey{} || pv.Claim == claim.Key)) {
			return false
		}
	}
	return true
}

// isExclusive is the judge's own reading of access modes.
func (c *cluster) isExclusive(v ledger.VolumeID) bool {
	exclusive := false
	for _, pv := range c.pvs {
		if pv.Volume == v && pv.Access >= ledger.AccessNode {
			exclusive = true
		}
	}
	return exclusive
}
