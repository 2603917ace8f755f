// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Machine is a computer that runs, or once ran, as a node: its true state.
type Machine struct {
	ID      string
	Node    ledger.NodeName
	Powered bool
	// Cut: its access to all disks is taken away, as by a NetworkFence. Its mounts can do no harm.
	Cut bool
	// Replaced: another machine has its node's name. Its attachments are out of reach.
	Replaced bool
	// Boots counts its power-ons: each has another bootID.
	Boots int
	// NoBoot and NoUUID have its kubelet never report a bootID, or a systemUUID.
	NoBoot, NoUUID bool
	// Containers of pods, by UID, and the volumes published for pods: from these folders a starting kubelet
	// rebuilds its mounts. Both survive the kubelet, and end with the power.
	Containers map[string]bool
	Mounts     map[ledger.VolumeID][]string // the pods that have it, sorted
	// Staged are the staged volumes, sorted: all published ones, and those between their last NodeUnpublish
	// and NodeUnstage.
	Staged []ledger.VolumeID
	// Left are the volumes with a record of an earlier boot on its disk, and nothing staged; sorted. Empty
	// without LeavesRecords.
	Left         []ledger.VolumeID
	LeaveRecords bool
	// Stuck are staged volumes that can't be unpublished or unstaged, until the
	// power goes.
	Stuck []ledger.VolumeID
	// Renewed is its kubelet's last Lease renewal; zero: never. Streak is the first renewal of its gapless
	// series, and Before the last one before that series.
	Renewed, Streak, Before time.Time
	// Process is the kubelet's memory.
	Process Process
	// Agent is its moorage-node.
	Agent Agent
}

// AddMachine adds a powered machine with a started kubelet that has found nothing.
func (w *World) AddMachine(id string, n ledger.NodeName) *Machine {
	m := &Machine{ID: id, Node: n, Powered: true, Boots: 1}
	m.wipe()
	m.Process = Process{Up: true, Linked: true, Synced: true}
	w.Machines[id] = m
	return m
}

func (m *Machine) wipe() {
	m.Containers, m.Mounts, m.Staged, m.Stuck = map[string]bool{}, map[ledger.VolumeID][]string{}, nil, nil
}

func (m *Machine) clone() *Machine {
	c := *m // its lists and Mounts are replaced, never changed
	c.Containers = maps.Clone(m.Containers)
	return &c
}

// SystemUUID is the machine's systemUUID, at any node.
func (m *Machine) SystemUUID() string {
	if m.NoUUID {
		return ""
	}
	return m.ID
}

// BootID is the bootID of the machine's present boot.
func (m *Machine) BootID() string {
	if m.NoBoot {
		return ""
	}
	return bootID(m.ID, m.Boots)
}

func bootID(machine string, boots int) string { return machine + "." + strconv.Itoa(boots) }

// PowerOff ends all that runs.
func (m *Machine) PowerOff() {
	for _, v := range m.Staged {
		if m.LeaveRecords {
			m.Left = include(m.Left, v, ledger.VolumeID.Compare)
		}
	}
	m.Powered = false
	m.Process.Up = false
	m.Agent = Agent{Runs: m.Agent.Runs, Blind: m.Agent.Blind, Unread: m.Agent.Unread, Torn: m.Agent.Torn}
	m.wipe()
}

// PowerOn boots a machine; its kubelet has to be started.
func (m *Machine) PowerOn() {
	if !m.Powered {
		m.Powered = true
		m.Boots++
	}
}

// Dead says whether nothing on the machine can reach a disk.
func (m *Machine) Dead() bool { return !m.Powered || m.Cut }

// Uses says whether a volume is staged or published.
func (m *Machine) Uses(v ledger.VolumeID) bool { return m.Powered && slices.Contains(m.Staged, v) }

// Mounted lists the published volumes, sorted.
func (m *Machine) Mounted() []ledger.VolumeID {
	return SortVolumes(slices.Collect(maps.Keys(m.Mounts)))
}

// Mount stages a volume, and publishes it for a pod. It fails, as NodeStage does, if the volume was taken
// away by force, or the storage has cut the machine off.
func (w *World) Mount(m *Machine, v ledger.VolumeID, pod string) bool {
	if slices.Contains(m.Mounts[v], pod) {
		return true
	}
	if m.Cut || !w.Judge.mounts(w, m, v) {
		return false
	}
	if len(m.Mounts[v]) == 0 { // the kubelet stages it, or stages it again
		m.Left = exclude(m.Left, v)
	}
	m.Staged = include(m.Staged, v, ledger.VolumeID.Compare)
	m.Mounts = withList(m.Mounts, v, include(m.Mounts[v], pod, cmp.Compare[string]))
	return true
}

// Unpublish ends a pod's mount: its folder is gone. It is false if that is impossible.
func (m *Machine) Unpublish(v ledger.VolumeID, pod string) bool {
	if slices.Contains(m.Stuck, v) || !slices.Contains(m.Mounts[v], pod) {
		return false
	}
	list := exclude(m.Mounts[v], pod)
	m.Mounts = withList(m.Mounts, v, list)
	if len(list) == 0 {
		delete(m.Mounts, v)
	}
	return true
}

// Unstage ends the use of a volume that is published for no pod. It is false if that is impossible.
func (m *Machine) Unstage(v ledger.VolumeID) bool {
	if slices.Contains(m.Stuck, v) || len(m.Mounts[v]) > 0 {
		return false
	}
	m.Staged, m.Left = exclude(m.Staged, v), exclude(m.Left, v)
	return true
}

// RemoveRecord has a person remove an earlier boot's record of a volume.
func (m *Machine) RemoveRecord(v ledger.VolumeID) { m.Left = exclude(m.Left, v) }

// Stick has a staged volume stay: no unmount of it succeeds.
func (m *Machine) Stick(v ledger.VolumeID) bool {
	if !m.Uses(v) || slices.Contains(m.Stuck, v) {
		return false
	}
	m.Stuck = include(m.Stuck, v, ledger.VolumeID.Compare)
	return true
}
