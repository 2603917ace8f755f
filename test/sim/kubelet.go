// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// kubelet is one node's, with the handshake of real ones: a volume
// is told in volumesInUse before volumesAttached is looked at, that in the
// kubelet's own copy and then live, and then the VolumeAttachment.
type kubelet struct {
	caller
	s       *Sim
	node    ledger.NodeName
	machine *world.Machine
	linked  bool // reaches the API server
	silent  time.Time

	// What the process remembers.
	podsAt int                   // how much of the pods' log has been seen
	pods   map[string]ledger.Pod // of this node, as seen last
	ended  map[string]bool       // pods whose containers it has ended
	copy   ledger.NodeState      // of its Node
	synced bool                  // after a start: volumesInUse may be written
	// registered: it registers its node once in its life.
	registered bool
	told       map[ledger.VolumeID]bool
	// attached is what it holds for attached; never looked at again.
	attached map[ledger.VolumeID]bool
	checked  map[ledger.VolumeID]bool // VolumeAttachment read, mount begins
	busy     map[ledger.VolumeID]bool // a check is under way
	pauses   map[ledger.VolumeID]time.Time
	failed   map[ledger.VolumeID]int
	posting  bool
}

func newKubelet(s *Sim, n ledger.NodeName, m *world.Machine) *kubelet {
	k := &kubelet{s: s, caller: caller{name: string(n), up: true}, node: n, machine: m, linked: true}
	k.forget()
	k.synced = true // nothing to find on a new machine
	return k
}

func (k *kubelet) forget() {
	k.podsAt, k.pods, k.ended = 0, map[string]ledger.Pod{}, map[string]bool{}
	k.copy, k.synced, k.posting, k.registered = ledger.NodeState{}, false, false, false
	k.told, k.attached, k.checked = map[ledger.VolumeID]bool{}, map[ledger.VolumeID]bool{}, map[ledger.VolumeID]bool{}
	k.busy, k.pauses, k.failed = map[ledger.VolumeID]bool{}, map[ledger.VolumeID]time.Time{}, map[ledger.VolumeID]int{}
}

// kill ends the process; containers and mounts stay.
func (k *kubelet) kill() {
	k.incarnation++
	k.up = false
	k.quiet()
}

// crash ends the machine.
func (k *kubelet) crash() {
	k.kill()
	k.machine.PowerOff()
}

// cut takes the network away, join gives it back.
func (k *kubelet) cut() {
	k.linked = false
	k.quiet()
}

func (k *kubelet) join() {
	k.linked = true
	k.heard()
}

func (k *kubelet) quiet() {
	if k.silent.IsZero() {
		k.silent = k.s.Now()
	}
}

func (k *kubelet) heard() {
	if k.up && k.linked {
		k.silent = time.Time{}
	}
}

// restart begins anew: mounts are found on disk, containers run on.
func (k *kubelet) restart() {
	k.incarnation++
	k.up = true
	k.heard()
	k.machine.Powered = true
	k.forget()
	k.synced = len(k.machine.Mounts) == 0
}

// working says whether the process runs and reaches the API server.
func (k *kubelet) working() bool { return k.up && k.linked }

// wants lists the pods that the process is to run.
func (k *kubelet) wants(p ledger.Pod) bool {
	return p.Phase == ledger.PodLive && !k.ended[p.UID]
}

// uses are the volumes that belong into volumesInUse: those of pods to run,
// and what the process holds for attached.
func (k *kubelet) uses() []ledger.VolumeID {
	set := maps.Clone(k.attached)
	for v := range k.desired() {
		set[v] = true
	}
	return world.SortVolumes(slices.Collect(maps.Keys(set)))
}

// desired are the volumes of pods to run, and of those that have not ended.
func (k *kubelet) desired() map[ledger.VolumeID]bool {
	set := map[ledger.VolumeID]bool{}
	for uid, p := range k.pods {
		if !k.ended[uid] && (p.Phase != ledger.PodFinished || k.machine.Containers[uid]) {
			list, _ := k.s.w.VolumesOf(p)
			for _, v := range list {
				set[v] = true
			}
		}
	}
	return set
}

// offer implements process.
func (k *kubelet) offer(m *menu) {
	if !k.awake() {
		return
	}
	k.offerLocal(m)
	if !k.linked {
		return
	}
	if !k.registered {
		m.add(8, k.name, "register", "")
		return
	}
	if k.podsAt < len(k.s.logs[world.Pods]) {
		m.add(6, k.name, "watch-pods", "")
	}
	if n, exists := k.s.w.Node(k.node); exists && n.Version != k.copy.Version {
		m.add(3, k.name, "watch-node", "")
	}
	if k.news() {
		m.add(4, k.name, "report", "")
	}
	if !k.synced && !k.posting {
		m.add(6, k.name, "resolve", "")
	}
	for _, v := range world.SortVolumes(slices.Collect(maps.Keys(k.told))) {
		if k.verifiable(v) {
			m.add(6, k.name, "verify", volumeArg(v))
		}
		if k.checkable(v) {
			m.add(6, k.name, "check", volumeArg(v))
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(k.pods)) {
		if k.finishable(uid) {
			m.add(4, k.name, "finish", uid)
		}
		if k.removable(uid) {
			m.add(6, k.name, "remove", uid)
		}
	}
}

// offerLocal offers what needs no API server.
func (k *kubelet) offerLocal(m *menu) {
	for _, uid := range slices.Sorted(maps.Keys(k.machine.Containers)) {
		if k.stoppable(uid) {
			m.add(6, k.name, "stop", uid)
		}
	}
	for _, uid := range slices.Sorted(maps.Keys(k.pods)) {
		if k.runnable(uid) {
			m.add(6, k.name, "run", uid)
		}
		for _, v := range k.mountable(uid) {
			m.add(6, k.name, "mount", volumeArg(v)+" "+uid)
		}
	}
	for _, v := range k.machine.Mounted() {
		for _, uid := range k.machine.Mounts[v] {
			if k.unmountable(uid) {
				m.add(6, k.name, "unmount", volumeArg(v)+" "+uid)
			}
		}
	}
	for _, v := range world.SortVolumes(slices.Collect(maps.Keys(k.attached))) {
		if k.leavable(v) {
			m.add(6, k.name, "leave", volumeArg(v))
		}
	}
}

// act implements process.
func (k *kubelet) act(what, arg string) bool {
	if !k.awake() {
		return false
	}
	switch what {
	case "stop", "run", "mount", "unmount", "leave":
		return k.actLocal(what, arg)
	}
	if !k.linked {
		return false
	}
	if !k.registered {
		return what == "register" && k.register()
	}
	switch what {
	case "watch-pods":
		return k.watchPods()
	case "watch-node":
		n, exists := k.s.w.Node(k.node)
		k.copy = n
		return exists
	case "report":
		return k.report()
	case "resolve":
		return k.resolve()
	case "verify":
		return k.verify(volumeOf(arg))
	case "check":
		return k.check(volumeOf(arg))
	case "finish":
		return k.finishable(arg) && k.finish(arg)
	case "remove":
		return k.removable(arg) && k.remove(arg)
	}
	return false
}

// register makes the Node and the CSINode where there are none.
func (k *kubelet) register() bool {
	k.registered = true
	if _, exists := k.s.w.Node(k.node); !exists {
		k.s.w.Put(ledger.NodeState{Name: k.node, UID: k.s.w.UID(), Managed: true})
	}
	drivers, _ := k.s.w.Drivers(k.node)
	if len(drivers.Drivers) == 0 || drivers.Drivers[0].NodeID != k.machine.ID {
		k.s.w.Put(ledger.NodeDrivers{Node: k.node, Drivers: []ledger.DriverOnNode{
			{Name: driver, NodeID: k.machine.ID, Limit: k.s.config.Limit},
		}})
	}
	return true
}

// watchPods takes in all that happened to the node's pods.
func (k *kubelet) watchPods() bool {
	log := k.s.logs[world.Pods]
	if k.podsAt >= len(log) {
		return false
	}
	for ; k.podsAt < len(log); k.podsAt++ {
		c := log[k.podsAt]
		p, exists := c.Fact.(ledger.Pod)
		switch {
		case exists && p.Node == k.node:
			k.pods[c.Key] = p
		case !exists:
			delete(k.pods, c.Key)
			delete(k.ended, c.Key)
		}
	}
	k.tidy()
	return true
}

// tidy forgets what it told of volumes that no pod is to use any more: for the
// next pod it starts over.
func (k *kubelet) tidy() {
	desired := k.desired()
	for v := range k.told {
		if !desired[v] {
			delete(k.told, v)
			delete(k.checked, v)
			delete(k.pauses, v)
			delete(k.failed, v)
		}
	}
}

// due implements process.
func (k *kubelet) due() time.Time { return k.nextDue() }

func (k *kubelet) actLocal(what, arg string) bool {
	first, uid, _ := strings.Cut(arg, " ")
	v := volumeOf(first)
	switch {
	case what == "stop" && k.stoppable(arg):
		delete(k.machine.Containers, arg)
		if _, known := k.pods[arg]; known {
			k.ended[arg] = true
		}
		k.tidy()
	case what == "run" && k.runnable(arg):
		k.machine.Containers[arg] = true
	case what == "mount" && slices.Contains(k.mountable(uid), v):
		delete(k.checked, v) // the next mount looks again
		if k.s.w.Mount(k.machine, v, uid) {
			k.failed[v] = 0
		} else {
			k.rest(v)
		}
	case what == "unmount" && slices.Contains(k.machine.Mounts[v], uid) && k.unmountable(uid):
		k.machine.Unmount(v, uid)
	case what == "leave" && k.leavable(v):
		delete(k.attached, v)
	default:
		return false
	}
	return true
}
