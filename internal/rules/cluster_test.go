// SPDX-License-Identifier: Apache-2.0

package rules_test

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/test/world"
)

// cluster is test/world with an attacher and one controller. It is deterministic.
type cluster struct {
	*world.World
	uids map[string]int
	arb  rules.Arbiter

	prompt  bool // moorage-node answers before the read
	untimed bool // see ledger.NoForceOnTimeout
	csi     driver
	refuses map[string]bool // refused writes: an action, or an action and a node
	stock   *stock          // the attach/detach controller; nil in Standalone mode

	ledger *ledger.Ledger
	memory *protocol.Memory
	term   int64
	watch  []world.Change   // not yet seen by the controller
	ahead  map[object]int64 // the newest versions in answers
	lag    bool             // events stay in watch until deliver
	behind []world.Kind     // kinds without event delivery for now
	mutes  func() bool      // whether the next creation gets no answer
	flying []unanswered     // creations in flight without an answer

	trace func(format string, args ...any)
}

type object struct {
	kind world.Kind
	key  string
}

func newCluster() *cluster {
	c := &cluster{
		World: world.New(), uids: map[string]int{}, csi: newDriver(), refuses: map[string]bool{},
		trace: func(string, ...any) {}, mutes: func() bool { return false },
	}
	c.Judge.Exact, c.Judge.Leases = true, true
	c.begin()
	return c
}

func (c *cluster) begin() {
	c.term++
	c.watch, c.ahead = nil, map[object]int64{}
	c.ledger, c.memory = ledger.New(), &protocol.Memory{Epoch: c.term}
}

func (c *cluster) pass(d time.Duration) {
	c.readLeases()
	c.Now = c.Now.Add(d)
	for id := range c.Machines {
		c.Kubelet(id).Renew()
	}
	c.readLeases()
	c.ledger.Apply(c.Now, rules.Lapse(c.Now))
}

func (c *cluster) readLeases() {
	for _, n := range list[ledger.NodeState](c, world.Nodes) {
		if n.Ready != ledger.ReadyTrue {
			for _, e := range c.Serve(world.Request{Do: world.GetObject, Kind: world.Leases, Key: string(n.Name)}).Facts {
				c.ledger.Apply(c.Now, e)
			}
		}
	}
}

func (c *cluster) uid(name string) string {
	c.uids[name]++
	return name + "." + strconv.Itoa(c.uids[name])
}

func (c *cluster) sync() {
	changes := c.Log
	c.Log = nil
	for _, change := range changes {
		c.csi.saw(change)
		c.watch = append(c.watch, change)
	}
	if !c.lag {
		c.flush()
	}
}

// Events of a kind stay in order. An event older than an answer is dropped.
func (c *cluster) deliver(kind int) bool {
	var kinds []world.Kind
	first := map[world.Kind]int{}
	for i, e := range c.watch {
		if _, ok := first[e.Kind]; !ok && !slices.Contains(c.behind, e.Kind) {
			kinds = append(kinds, e.Kind)
			first[e.Kind] = i
		}
	}
	if len(kinds) == 0 {
		return false
	}
	i := first[kinds[kind%len(kinds)]]
	e := c.watch[i]
	c.watch = slices.Delete(c.watch, i, i+1)
	switch {
	case c.ahead[object{e.Kind, e.Key}] > e.Version:
	case e.Fact == nil:
		c.ledger.Apply(c.Now, world.Gone(e.Old))
	default:
		c.ledger.Apply(c.Now, e.Fact)
	}
	return true
}

func (c *cluster) flush() {
	for c.deliver(0) {
	}
}

func (c *cluster) saw(facts []ledger.Event) {
	for _, e := range facts {
		k, key := world.Identify(e)
		c.ahead[object{k, key}] = max(c.ahead[object{k, key}], world.VersionOf(e))
		c.ledger.Apply(c.Now, e)
	}
}

func (c *cluster) snapshot() ledger.Snapshot { return c.ledger.Snapshot() }

func (c *cluster) put(e ledger.Event) {
	c.Put(e)
	c.sync()
}

// despite finalizers
func (c *cluster) drop(k world.Kind, key string) {
	c.Drop(k, key)
	c.sync()
}

func (c *cluster) ask(r world.Request) world.Answer {
	a := c.Serve(r)
	c.sync()
	return a
}

// The first list of PersistentVolumes lacks unseen.
func (c *cluster) restart(unseen ...string) {
	c.begin()
	if c.untimed {
		c.ledger.Apply(c.Now, ledger.NoForceOnTimeout{})
	}
	for _, k := range append(world.AllKinds(), world.NodeWords) {
		c.saw(slices.DeleteFunc(c.List(k), func(e ledger.Event) bool {
			_, key := world.Identify(e)
			return k == world.PersistentVolumes && slices.Contains(unseen, key)
		}))
	}
	c.ledger.Apply(c.Now, ledger.Complete{})
	c.readLeases()
	for tasks := c.memory.TakeOver(c.snapshot()); len(tasks) > 0; tasks = c.memory.TakeOver(c.snapshot()) {
		for _, t := range tasks {
			c.carry(t)
		}
	}
}

func one[T ledger.Event](c *cluster, k world.Kind, key string) T {
	e, _ := c.Get(k, key).(T)
	return e
}

func list[T ledger.Event](c *cluster, k world.Kind) []T {
	all := make([]T, 0, len(c.Keys(k)))
	for _, e := range c.List(k) {
		all = append(all, e.(T))
	}
	return all
}

func (c *cluster) pods() []ledger.Pod { return list[ledger.Pod](c, world.Pods) }

func (c *cluster) pv(name string) ledger.PersistentVolume {
	return one[ledger.PersistentVolume](c, world.PersistentVolumes, name)
}

func (c *cluster) claimOf(key ledger.ClaimKey) ledger.Claim {
	return one[ledger.Claim](c, world.Claims, key.String())
}

func sortedVolumes[V any](m map[ledger.VolumeID]V) []ledger.VolumeID {
	return world.SortVolumes(slices.Collect(maps.Keys(m)))
}

func sortedKeys[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func volumeName(c *cluster, v ledger.VolumeID) string {
	for _, pv := range list[ledger.PersistentVolume](c, world.PersistentVolumes) {
		if pv.Volume == v {
			return pv.Name
		}
	}
	return v.String()
}

func volumeNames(c *cluster, list []ledger.VolumeID) []string {
	names := make([]string, 0, len(list))
	for _, v := range list {
		names = append(names, volumeName(c, v))
	}
	return names
}
