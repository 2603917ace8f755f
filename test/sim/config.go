// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// Config is one run's mix. The zero value is no cluster; ConfigFor draws a mix.
type Config struct {
	Seed    uint64
	Steps   int          // actions until the faults end
	Rates   [classes]int // actions of each class in a thousand; the rest is work
	Warm    int          // steps before the first fault
	Nodes   int
	Volumes int
	Pods    int   // the number that users may create
	Limit   int32 // slots on each node, or ledger.NoLimit
	Access  []ledger.Access
	Late    int // claims that are bound when their first pod is placed
	// Fresh has a claim and its volume made together with their first user: a watch may show any of them
	// first.
	Fresh bool

	Controllers int
	Schedulers  int

	LeaseDuration time.Duration
	WriteTimeout  time.Duration

	DetachDelay      time.Duration
	AfterUnreachable time.Duration // 0: never
	Fences           bool          // an actor sets a condition on the nodes of dead machines
	CutsOff          bool          // the storage cuts off silent nodes, and lets them in after a boot or without mounts
	UnpublishFences  bool          // unpublishing takes access away, and a cloud names the machines that are off
	Stamps           bool          // attachments are created with the attacher's finalizer

	Foreign    bool // schedulers without Moorage bind some pods
	Manual     bool // users write tickets
	Endless    bool // some of them last until they are deleted
	Meddling   bool // users delete tickets, and pods with force
	Losses     bool
	Kills      bool
	Pauses     bool
	DiskFaults bool
	Lies       bool
	NodeFaults bool
	Replace    bool // nodes are deleted, and machines replaced

	Own       bool // moorage-attacher, else a sidecar like external-attacher
	Looks     bool // the driver reports a volume's node
	Stay      bool // --stay-attached, which needs moorage-attacher
	Migration bool // the driver's policy allows live migration

	// NoAttach makes the first volume an in-tree plugin's, attached without a VolumeAttachment.
	NoAttach bool

	// Conflicts has the API server carry out a Binding, but answer with a conflict.
	Conflicts bool

	Cooperative bool // kube-controller-manager also attaches and detaches

	Badness
}

// ConfigFor draws only some of the faults, so that the rest does not drown the effects of each.
func ConfigFor(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 0x636f6e666967))
	often := func() bool { return rng.IntN(2) == 0 }
	seldom := func() bool { return rng.IntN(5) == 0 }
	c := Config{
		Seed: seed, Steps: 400 + rng.IntN(1600), Nodes: 2 + rng.IntN(2), Volumes: 1 + rng.IntN(3), Pods: 3 + rng.IntN(30),
		Limit: ledger.NoLimit, Controllers: 1 + rng.IntN(2), Schedulers: 1 + rng.IntN(2),
		LeaseDuration: 15 * time.Second, WriteTimeout: 5 * time.Second,
		Stamps: !seldom(), Foreign: often(), Manual: seldom(), Meddling: seldom(), Losses: often(), Kills: often(), Pauses: seldom(),
		DiskFaults: seldom(), NodeFaults: often(),
	}
	c.Rates = [classes]int{churn: 10 + rng.IntN(50), harm: 2 + rng.IntN(30), cure: 10 + rng.IntN(60), clock: 2 + rng.IntN(40)}
	if often() {
		c.Warm = 250
	}
	c.Lies = c.DiskFaults && seldom()
	c.Replace = c.NodeFaults && seldom()
	if often() {
		c.Limit = int32(1 + rng.IntN(2))
	}
	if seldom() {
		c.Late = 1
	}
	if seldom() {
		c.DetachDelay = time.Duration(1+rng.IntN(60)) * time.Second
	}
	if seldom() {
		c.AfterUnreachable = time.Duration(1+rng.IntN(5)) * time.Minute
	}
	for range c.Volumes {
		a := ledger.AccessNode
		if seldom() {
			a = ledger.AccessPod
		} else if seldom() {
			a = ledger.AccessMany
		}
		c.Access = append(c.Access, a)
	}
	c.Own = often()
	c.Looks = c.Own && often()
	if c.Stay = c.Own && often(); c.Stay {
		c.DiskFaults = true // it is for failing detaches
	}
	if c.Migration = seldom() && c.Volumes == 1; c.Migration {
		c.Manual = true
	}
	if c.Cooperative = seldom(); c.Cooperative {
		// After a Node is made again, kube-controller-manager detaches mounted volumes.
		c.Stay, c.Migration, c.Replace = false, false, false
	}
	if seed%8 == 6 {
		c.extend(often)
	}
	if seed%4 == 3 {
		c.worsen(often)
	}
	if seed%16 == 15 && !c.Cooperative {
		c.Forgetful, c.Spoken = true, true
	}
	if seed%32 == 19 && !c.Cooperative && !c.Vanishing {
		c.Asked, c.Wherever = true, true
	}
	if seed%32 == 27 && !c.Cooperative && !c.Vanishing {
		c.Asked, c.Detached = true, true
	}
	c.NoAttach = !c.Cooperative && (seed%8 == 4 || seed%32 == 5 || seed%32 == 7 || seed%64 == 22)
	c.Conflicts = !c.Cooperative && (seed%32 == 11 || seed%32 == 13)
	c.Gaps = !c.Cooperative && (seed%32 == 7 || seed%64 == 35 || seed%16 == 2)
	return c
}

// extend draws additions for one run in eight. The other runs, and the noted seeds, do not depend on it.
func (c *Config) extend(often func() bool) {
	c.Fresh, c.Endless = often(), often()
	if c.Volumes > 1 && !c.Cooperative && often() {
		c.Migration, c.Manual = true, true
	}
	if c.Fences = c.Seed%32 == 22 && !c.Cooperative; c.Fences {
		c.NodeFaults = true
	}
	if c.CutsOff = c.Seed%32 == 6 && !c.Cooperative; c.CutsOff {
		c.NodeFaults = true
	}
	if c.UnpublishFences = c.Seed%16 == 14 && !c.Cooperative; c.UnpublishFences {
		c.NodeFaults = true
		if often() {
			c.AfterUnreachable = 2 * time.Minute
		}
	}
}

func (c Config) volume(i int) ledger.VolumeID {
	v := volumeOf("v" + strconv.Itoa(i+1))
	if c.NoAttach && i == 0 {
		v.Driver = inTree
	}
	return v
}

const fencedCondition = "fenced.moorage.dev/sim"

func (s *Sim) furnish() {
	s.w.Put(ledger.Driver{Name: driver, AttachRequired: true})
	s.w.Put(ledger.StorageClass{Name: "late", Driver: driver, WaitForFirst: true})
	policy := ledger.Policy{Name: "sim", Driver: driver, DetachDelay: s.config.DetachDelay, LiveMigration: s.config.Migration, UnpublishFences: s.config.UnpublishFences}
	if s.config.Fences {
		policy.FencedCondition = fencedCondition
	}
	if s.w.Mapped = s.config.CutsOff; s.config.CutsOff {
		policy.NetworkFence.Class = "sim"
	}
	if s.config.AfterUnreachable > 0 {
		policy.AfterUnreachable = &s.config.AfterUnreachable
	}
	s.w.Put(policy)
	if s.config.NoAttach {
		policy.Name, policy.Driver = "in-tree", inTree
		s.w.Put(policy)
	}
	if !s.config.Fresh {
		s.provide(s.claims()...)
	}
	for i := range s.config.Nodes {
		name := ledger.NodeName(fmt.Sprintf("w%d", i+1))
		m := s.w.AddMachine(firstMachine(name), name)
		k := newKubelet(s, name, m)
		s.kubelets = append(s.kubelets, k)
		k.act("register", "")
		n, _ := s.w.Node(name)
		n.Ready, n.Reporting = ledger.ReadyTrue, true
		s.w.Put(n)
	}
	for i := range s.config.Controllers {
		s.controllers = append(s.controllers, newController(s, fmt.Sprintf("ctl-%d", i+1)))
	}
	for i := range s.config.Schedulers {
		s.schedulers = append(s.schedulers, newScheduler(s, fmt.Sprintf("sched-%d", i+1)))
	}
	if s.config.Cooperative {
		s.manager = newManager(s)
	}
	if s.config.Own {
		s.attacher = newOwnAttacher(s)
	} else {
		s.attacher = newAttacher(s)
	}
}

func firstMachine(n ledger.NodeName) string { return string(n) + "#1" }

func (s *Sim) claims() []string {
	if len(s.faults.vanished) == 0 && s.firstClaims != nil {
		return s.firstClaims
	}
	var list []string
	for i := range s.config.Volumes {
		list = append(list, "c"+strconv.Itoa(i+1))
	}
	for _, name := range s.faults.vanished {
		if pv, claim := again(name); s.w.Get(world.PersistentVolumes, pv) != nil {
			list = append(list, claim.Name)
		}
	}
	for i := range s.config.Late {
		list = append(list, "late"+strconv.Itoa(i+1))
	}
	if len(s.faults.vanished) == 0 {
		s.firstClaims = list
	}
	return list
}

func (s *Sim) provide(claims ...string) {
	for _, name := range claims {
		key := ledger.ClaimKey{Namespace: namespace, Name: name}
		if s.w.Get(world.Claims, key.String()) != nil {
			continue
		}
		i := slices.Index(s.claims(), name) // imported claims exist
		switch {
		case i < 0: // of a run that was recorded with another mix
		case i >= s.config.Volumes:
			s.w.Put(ledger.Claim{Key: key, UID: name, Class: "late", Access: ledger.AccessNode})
		default:
			n, access := strconv.Itoa(i+1), s.config.Access[i]
			s.w.Put(ledger.PersistentVolume{Name: "pv" + n, UID: "pv" + n, Volume: s.config.volume(i), Access: access, Claim: key})
			s.w.Put(ledger.Claim{Key: key, UID: name, PersistentVolume: "pv" + n, Bound: true, Access: access})
		}
	}
}
