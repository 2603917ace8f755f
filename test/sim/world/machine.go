// SPDX-License-Identifier: Apache-2.0

package world

import (
	"maps"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Machine is a computer that runs, or once ran, as a node: what is true of it,
// whatever anybody knows.
type Machine struct {
	ID      string
	Node    ledger.NodeName
	Powered bool
	// Replaced: another machine has its node's name. What is attached to this
	// one is out of everybody's reach.
	Replaced bool
	// Containers of pods, by UID, and the mounts that they use. Both survive
	// the kubelet, and end with the power.
	Containers map[string]bool
	Mounts     map[ledger.VolumeID][]string // for which pods, sorted
}

// AddMachine adds a machine that is switched on.
func (w *World) AddMachine(id string, n ledger.NodeName) *Machine {
	m := &Machine{ID: id, Node: n, Powered: true}
	m.wipe()
	w.Machines[id] = m
	return m
}

func (m *Machine) wipe() {
	m.Containers, m.Mounts = map[string]bool{}, map[ledger.VolumeID][]string{}
}

func (m *Machine) clone() *Machine {
	c := *m
	c.Containers = maps.Clone(m.Containers)
	return &c // Mounts is replaced, never changed
}

// PowerOff ends everything that runs.
func (m *Machine) PowerOff() {
	m.Powered = false
	m.wipe()
}

// Uses says whether a volume is mounted.
func (m *Machine) Uses(v ledger.VolumeID) bool { return m.Powered && len(m.Mounts[v]) > 0 }

// Mounted lists what is mounted, sorted.
func (m *Machine) Mounted() []ledger.VolumeID {
	return SortVolumes(slices.Collect(maps.Keys(m.Mounts)))
}

// Mount stages a volume, and publishes it for a pod. It fails, as NodeStage
// does, when the volume has been taken away by force.
func (w *World) Mount(m *Machine, v ledger.VolumeID, pod string) bool {
	if slices.Contains(m.Mounts[v], pod) {
		return true
	}
	if !w.Judge.mounts(w, m, v) {
		return false
	}
	list := append(slices.Clone(m.Mounts[v]), pod)
	slices.Sort(list)
	m.Mounts = maps.Clone(m.Mounts)
	m.Mounts[v] = list
	return true
}

// Unmount ends a pod's mount, and unstages the volume with the last.
func (m *Machine) Unmount(v ledger.VolumeID, pod string) {
	list := slices.DeleteFunc(slices.Clone(m.Mounts[v]), func(uid string) bool { return uid == pod })
	m.Mounts = maps.Clone(m.Mounts)
	if len(list) == 0 {
		delete(m.Mounts, v)
		return
	}
	m.Mounts[v] = list
}

// Disks is the disk service: which machine each volume is attached to, and
// what it has lied about.
type Disks struct {
	At   map[ledger.VolumeID][]string // machine IDs, sorted
	Lied map[ledger.VolumeID]bool     // said something that was not so: nobody can keep this one safe
}

func newDisks() Disks {
	return Disks{At: map[ledger.VolumeID][]string{}, Lied: map[ledger.VolumeID]bool{}}
}

func (d *Disks) clone() Disks { return Disks{d.At, maps.Clone(d.Lied)} } // At is replaced, never changed

// Publish attaches a volume to a machine.
func (w *World) Publish(v ledger.VolumeID, machine string) {
	if slices.Contains(w.Disks.At[v], machine) {
		return
	}
	w.Judge.publishes(w, v, machine)
	list := append(slices.Clone(w.Disks.At[v]), machine)
	slices.Sort(list)
	w.Disks.At = maps.Clone(w.Disks.At)
	w.Disks.At[v] = list
}

// Unpublish detaches a volume from a machine.
func (w *World) Unpublish(v ledger.VolumeID, machine string) {
	if !slices.Contains(w.Disks.At[v], machine) {
		return
	}
	w.Judge.unpublishes(w, v, machine)
	list := slices.DeleteFunc(slices.Clone(w.Disks.At[v]), func(id string) bool { return id == machine })
	w.Disks.At = maps.Clone(w.Disks.At)
	if len(list) == 0 {
		delete(w.Disks.At, v)
		return
	}
	w.Disks.At[v] = list
}
