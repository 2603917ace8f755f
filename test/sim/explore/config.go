// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

const (
	driver    = "csi.sim"
	inTree    = "kubernetes.io/iscsi"
	namespace = "ns"
	fenced    = "fenced.moorage.dev/x"
)

type Config struct {
	// Placed is a pod's first node, by index from 1, or 0.
	Pods   [][]int
	Placed []int
	// Foreign pods are bound without a check.
	Foreign   []bool
	Deletable []bool
	Access    []ledger.Access // of each volume
	Limit     int32           // slots at each node
	OneNode   bool            // the second node has no slots

	Asks []Ask

	// Wild schedulers place pods anywhere.
	Wild bool

	// Neither scheduler of Rivals knows the other's Bindings. Successors is how often the first may end
	// with Bindings in flight.
	Rivals     []bool
	Successors int

	Leaders     int
	LostAnswers int // of the leader's requests
	FailedCalls int // of the attacher's to the driver
	Restarts    int // kubelets that crash and restart
	DeadNodes   int
	Returns     bool
	Stuck       int // volumes that can't be unmounted any more; pods may be force-deleted then
	Silences    int // kubelets that end for a while, with mounts in place
	Broken      int // kubelets that live and report not ready for a while
	Remade      int // deleted Nodes that their kubelets make again
	Vanished    int // PersistentVolumes that vanish; their disks come back under other names
	Leases      bool
	Renewals    int
	// Again are pods that use a vanished disk by its other name.
	Again   []bool
	Fences  bool
	CutsOff bool
	// Impatient takes each node that is not Ready for dead.
	Impatient bool
	// Unpublishes: unpublishing takes access away, so time alone may force no living machine.
	Unpublishes bool
	// Forgetful kubelets don't find staged volumes without a pod: no rule can be kept then.
	Forgetful bool
	// Mute is how many moorage-nodes may end. A person unmounts forgotten volumes.
	Agents, RequireWord bool
	Mute                int
	Anew, Erased        int
	// moorage-node takes the records that Reboots leave for staged volumes until they are removed.
	Reboots int
	// Strict: see Judge.ByTime and Judge.Overtaken.
	Strict Listed
	// Failures, if set, is the total of lost answers and failed calls, and Crashes of crashed kubelets and
	// nodes.
	Failures, Crashes int
}

type Listed uint8

const (
	ByTime Listed = iota + 1
	Overtaken
)

func Handover() Config {
	return Config{
		Pods: [][]int{{1}, {1}}, Placed: []int{1, 0}, Foreign: []bool{false, false}, Deletable: []bool{true, false},
		Access: []ledger.Access{ledger.AccessNode}, Limit: 1, Leaders: 2,
	}
}

// Two volumes and three pods with one slot a node: a pod that waits for a volume also waits for a slot.
func Slots() Config {
	return Config{
		Pods: [][]int{{1}, {1}, {2}}, Placed: []int{1, 0, 2}, Foreign: []bool{false, false, false}, Deletable: []bool{true, false, true},
		Access: []ledger.Access{ledger.AccessNode, ledger.AccessNode}, Limit: 1, Leaders: 1,
	}
}

func Newcomers() Config {
	return Config{
		Pods: [][]int{{1}, {2}}, Placed: []int{0, 0}, Foreign: []bool{false, false}, Deletable: []bool{true, false},
		Access: []ledger.Access{ledger.AccessNode, ledger.AccessNode}, Limit: 1, OneNode: true, Leaders: 1,
	}
}

func Rivals() Config {
	return Config{
		Pods: [][]int{{1}, {1}}, Placed: []int{0, 0}, Foreign: []bool{false, false}, Deletable: []bool{true, false},
		Access: []ledger.Access{ledger.AccessNode}, Limit: 1, Leaders: 1, Rivals: []bool{false, true},
	}
}

func (c *Config) rival(i int) bool { return i < len(c.Rivals) && c.Rivals[i] }

func (c *Config) again(i int) bool { return i < len(c.Again) && c.Again[i] }

func claimName(i int, again bool) string { return named("c", i, again) }

func pvName(i int, again bool) string { return named("pv", i, again) }

func named(what string, i int, again bool) string {
	if again {
		return fmt.Sprintf("%s%d-again", what, i)
	}
	return fmt.Sprintf("%s%d", what, i)
}

// No hold names the boot of a shared volume's mount; the judge lists mounts unknown to the leader
// (Judge.SameBoot).
func (c *Config) losesShared() bool {
	return c.Remade > 0 && slices.Contains(c.Access, ledger.AccessMany)
}

func (c *Config) slots(n int) int32 {
	if c.OneNode && n > 1 {
		return 0
	}
	return c.Limit
}

type World struct {
	Name string
	Config
}

func Small() []World {
	restart := Handover()
	restart.Restarts = 1
	successor := Newcomers()
	successor.Successors = 1
	return []World{
		{"rivals", Rivals()}, {"newcomers, another scheduler", successor},
		{"handover", Handover()}, {"handover, a restart", restart}, {"slots", Slots()}, {"newcomers", Newcomers()},
		{"a pod that goes, and a volume to stay detached", asking(1, false, Ask{Type: ledger.TypeExpansion, Volume: 1})},
		{"handover without VolumeAttachments, one leader", noAttach(func(c *Config) { c.Leaders = 1 })},
		{"a ticket without VolumeAttachments, a lost answer", asksAsItLeaves(1)},
		{"handover, a stuck unmount and a restart", bad(func(c *Config) { c.Stuck, c.Restarts = 1, 1 })},
		{"a Node made again, a shared volume", shared(func(c *Config) { c.Remade = 1 })},
		{"a Node made again, a shared volume, a stuck unmount", shared(func(c *Config) { c.Remade, c.Stuck = 1, 1 })},
		{"a Node made again, a shared volume, forced by time", shared(func(c *Config) { c.Remade, c.Impatient = 1, true })},
		{"handover, a forgotten mount, the node's word required", spoken(func(*Config) {})},
		{"one node, a forgotten mount, NodeMountReport deleted", spoken(func(c *Config) { c.OneNode, c.Erased = true, 1 })},
	}
}

func Large() []World {
	var list []World
	add := func(name string, c Config, change func(*Config)) {
		change(&c)
		list = append(list, World{name, c})
	}
	failure := func(c *Config) { c.LostAnswers, c.FailedCalls, c.Failures = 1, 1, 1 }
	add("handover, three leaders and any failure but a dead node", Handover(), func(c *Config) {
		c.Leaders, c.Restarts, c.LostAnswers, c.FailedCalls = 3, 1, 1, 1
	})
	add("a pod that comes, and a volume to stay detached", comes(1, false, Ask{Type: ledger.TypeExpansion, Volume: 1}), func(*Config) {})
	add("a pod bound by others, and a volume to stay detached", comes(1, true, Ask{Type: ledger.TypeExpansion, Volume: 1}), func(*Config) {})
	add("handover, a forgotten mount, the node's word required, and no more heard", spoken(func(c *Config) { c.Mute = 1 }), func(*Config) {})
	add("handover without VolumeAttachments", noAttach(func(*Config) {}), func(*Config) {})
	add("handover without VolumeAttachments, a lost answer", noAttach(func(*Config) {}), func(c *Config) { c.LostAnswers = 1 })
	add("a ticket without VolumeAttachments, two lost answers", asksAsItLeaves(2), func(*Config) {})
	add("handover without VolumeAttachments, a restart", noAttach(func(*Config) {}), func(c *Config) { c.Restarts = 1 })
	add("handover without VolumeAttachments, a dead node", noAttach(func(*Config) {}), func(c *Config) { c.DeadNodes = 1 })
	add("handover, a dead node", Handover(), func(c *Config) { c.Leaders, c.DeadNodes = 1, 1 })
	add("handover, a restart and a dead node", Handover(), func(c *Config) { c.Leaders, c.Restarts, c.DeadNodes = 1, 1, 1 })
	add("handover, a failure and a dead node", Handover(), func(c *Config) { c.Leaders, c.DeadNodes = 1, 1; failure(c) })
	add("handover, a dead node that is back", Handover(), func(c *Config) { c.Leaders, c.DeadNodes, c.Returns = 1, 1, true })
	add("handover, two leaders and a dead node", Handover(), func(c *Config) { c.DeadNodes = 1 })
	add("slots, a restart", Slots(), func(c *Config) { c.Restarts = 1 })
	add("slots, a failure", Slots(), failure)
	add("slots, two leaders", Slots(), func(c *Config) { c.Leaders = 2 })
	add("slots, a failure and a restart", Slots(), func(c *Config) { c.Restarts = 1; failure(c) })
	add("slots, two leaders and a restart", Slots(), func(c *Config) { c.Leaders, c.Restarts = 2, 1 })
	add("slots, two leaders and a failure", Slots(), func(c *Config) { c.Leaders = 2; failure(c) })
	add("rivals, two leaders", Rivals(), func(c *Config) { c.Leaders = 2 })
	add("rivals, a lost answer", Rivals(), func(c *Config) { c.LostAnswers = 1 })
	add("rivals, three leaders", Rivals(), func(c *Config) { c.Leaders = 3 })
	add("rivals for two volumes", Rivals(), func(c *Config) {
		c.Pods, c.Access, c.Limit = [][]int{{1, 2}, {1, 2}}, []ledger.Access{ledger.AccessNode, ledger.AccessNode}, 2
	})
	add("rivals for one slot", Newcomers(), func(c *Config) { c.Rivals = []bool{false, true} })
	add("newcomers, two leaders, a lost answer", Newcomers(), func(c *Config) { c.Leaders, c.LostAnswers = 2, 1 })
	add("slots, another scheduler, two leaders", Slots(), func(c *Config) { c.Successors, c.Leaders = 1, 2 })
	add("a pod that comes, and a volume to stay detached, two leaders", comes(2, false, Ask{Type: ledger.TypeExpansion, Volume: 1}), func(*Config) {})
	add("a pod that comes, and a backup that yields, two leaders", comes(2, false, Ask{Type: ledger.TypeBackup, Volume: 1, Node: 2}), func(*Config) {})
	add("a handover, and a volume to stay detached for a backup that yields", handed(1, Ask{Type: ledger.TypeBackup, Volume: 1}), func(*Config) {})
	add("slots, a dead node", Slots(), func(c *Config) { c.DeadNodes = 1 })
	add("slots, two leaders, a failure and a crash", Slots(), func(c *Config) { c.Leaders, c.Restarts = 2, 1; failure(c) })
	return list
}

func noAttach(change func(*Config)) Config {
	c := Handover()
	c.Pods, c.Access = [][]int{{inTreeVolume}, {inTreeVolume}}, []ledger.Access{ledger.AccessNode, ledger.AccessNode, ledger.AccessNode}
	change(&c)
	return c
}

func asksAsItLeaves(lost int) Config {
	c := asking(1, false, Ask{Type: ledger.TypeManual, Volume: inTreeVolume, Node: 1})
	c.Pods, c.Access, c.LostAnswers = [][]int{{inTreeVolume}}, []ledger.Access{ledger.AccessNode, ledger.AccessNode, ledger.AccessMany}, lost
	return c
}

const inTreeVolume = 3

// Names are cached, since they are made often.
var (
	volumes = [...]ledger.VolumeID{{}, {Driver: driver, Handle: "v1"}, {Driver: driver, Handle: "v2"}, {Driver: inTree, Handle: "v3"}}
	names   = [...]ledger.NodeName{"", "w1", "w2"}
	uids    = [...]string{"", "p1", "p2", "p3"}
)

func volume(i int) ledger.VolumeID { return volumes[i] }

func node(i int) ledger.NodeName { return names[i] }

func pod(i int) string { return uids[i] }

func nodeIndex(n ledger.NodeName) int {
	if n == ledger.Detached {
		return detachedNode
	}
	return podIndex(string(n))
}

func machineID(n ledger.NodeName) string { return string(n) + "#1" }

func attachmentName(v, n int) string { return attachmentNames()[v][n] }

var attachmentNames = sync.OnceValue(func() (table [len(volumes)][len(names)]string) {
	for v := range volumes {
		for n := range names {
			table[v][n] = ledger.AttachmentName(volume(v), node(n))
		}
	}
	return table
})

const nodes = 2

func begin(c Config) *state {
	w := world.New()
	w.Forgetful = c.Forgetful
	w.Judge.Alone = !slices.Contains(c.Foreign, true) && !slices.Contains(c.Rivals, true)
	if c.Impatient {
		w.Put(ledger.Policy{Name: driver, Driver: driver, AfterUnreachable: new(time.Duration), UnpublishFences: c.Unpublishes})
	}
	if c.Fences {
		w.Put(ledger.Policy{Name: driver, Driver: driver, FencedCondition: fenced})
	}
	if w.Mapped = c.CutsOff; c.CutsOff {
		w.Put(ledger.Policy{Name: driver, Driver: driver, NetworkFence: ledger.NetworkFence{Class: "fence"}})
	}
	w.Put(ledger.Driver{Name: driver, AttachRequired: true})
	for i, access := range c.Access {
		key := ledger.ClaimKey{Namespace: namespace, Name: fmt.Sprintf("c%d", i+1)}
		name := fmt.Sprintf("pv%d", i+1)
		w.Put(ledger.PersistentVolume{Name: name, UID: name, Volume: volume(i + 1), Access: access, Claim: key})
		w.Put(ledger.Claim{Key: key, UID: key.Name, PersistentVolume: name, Bound: true, Access: access})
	}
	s := &state{config: &c, w: w}
	for n := 1; n <= nodes; n++ {
		id := machineID(node(n))
		w.AddMachine(id, node(n)).LeaveRecords = c.Reboots > 0
		w.Kubelet(id).Register(ledger.DriverOnNode{Name: driver, NodeID: id, Limit: c.slots(n)})
		now, _ := w.Node(node(n))
		now.Ready, now.Reporting = ledger.ReadyTrue, true
		w.Put(now)
		if c.Leases {
			w.Machines[id].Renewed = w.Now
		}
	}
	for i, claims := range c.Pods {
		p := ledger.Pod{UID: pod(i + 1), Namespace: namespace, Name: pod(i + 1)}
		for k, claim := range claims {
			p.Volumes = append(p.Volumes, ledger.PodVolume{Name: fmt.Sprintf("vol%d", k), Claim: claimName(claim, c.again(i))})
		}
		if n := c.Placed[i]; n > 0 {
			p.Node = node(n)
		}
		w.Put(p)
		if n := c.Placed[i]; n > 0 {
			s.run(i, n)
		}
	}
	for n := 1; n <= nodes && c.Agents && (n == 1 || !c.OneNode); n++ {
		s.machine(n).Agent.Runs = true
		s.w.Speak(s.machine(n))
	}
	s.look()
	s.lead()
	s.w.Log = nil
	return s
}

func (s *state) run(p, n int) {
	w := s.w
	for _, claim := range s.config.Pods[p] {
		v := volume(claim)
		place, _ := w.Node(node(n))
		place.InUse, place.Reported = append(place.InUse, v), append(place.Reported, v)
		a := ledger.Attachment{
			Name: attachmentName(claim, n), UID: w.UID(), Driver: driver, Node: node(n), PersistentVolume: fmt.Sprintf("pv%d", claim),
			Attached: true, Ours: true, NodeID: machineID(node(n)),
		}
		if w.Exclusive(v) {
			a.Transitions = 1
		}
		if !v.NoAttach() {
			a.Stamped = true
			w.Put(a)
			w.Publish(v, machineID(node(n)))
		}
		w.Put(place)
		if w.Exclusive(v) {
			w.Put(ledger.HoldSeen{Volume: v, Hold: ledger.Hold{
				Node: node(n), NodeUID: place.UID, BootID: place.BootID, SystemUUID: place.SystemUUID, Transitions: 1, PVs: []string{a.PersistentVolume}, State: ledger.HoldHeld,
				Requesters: []ledger.Requester{{Namespace: namespace, Name: pod(p + 1), UID: pod(p + 1)}},
			}})
		}
		w.Mount(s.machine(n), v, pod(p+1))
		k := &s.machine(n).Process
		k.Told, k.Attached = append(k.Told, v), append(k.Attached, v)
	}
	s.machine(n).Containers[pod(p+1)] = true
}

func bit(i int) uint8 { return 1 << (i - 1) }
