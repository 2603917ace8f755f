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

type Machine struct {
	ID      string
	Node    ledger.NodeName
	Powered bool
	// Cut: it reaches no disk, as after a NetworkFence. Its mounts can do no harm.
	Cut      bool
	Replaced bool
	// Boots counts its power-ons: each has another bootID.
	Boots int
	// With NoBoot and NoUUID its kubelet reports no bootID and no systemUUID.
	NoBoot, NoUUID bool
	// A starting kubelet rebuilds its mounts from the published volumes' folders. Both survive the kubelet,
	// and end with the power.
	Containers map[string]bool
	Mounts     map[ledger.VolumeID][]string // the pods that have it, sorted
	// Staged includes volumes between their last NodeUnpublish and NodeUnstage; sorted.
	Staged []ledger.VolumeID
	// Left are volumes with only an earlier boot's record. Empty without LeavesRecords.
	Left         []ledger.VolumeID
	LeaveRecords bool
	// Stuck are volumes that can't be unpublished or unstaged until the power goes.
	Stuck []ledger.VolumeID
	// Zero: never renewed. Streak is the first renewal of its gapless series, and Before the last renewal
	// before that.
	Renewed, Streak, Before time.Time
	Process                 Process
	Agent                   Agent
}

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

func (m *Machine) SystemUUID() string {
	if m.NoUUID {
		return ""
	}
	return m.ID
}

func (m *Machine) BootID() string {
	if m.NoBoot {
		return ""
	}
	return bootID(m.ID, m.Boots)
}

func bootID(machine string, boots int) string { return machine + "." + strconv.Itoa(boots) }

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

func (m *Machine) PowerOn() {
	if !m.Powered {
		m.Powered = true
		m.Boots++
	}
}

func (m *Machine) Dead() bool { return !m.Powered || m.Cut }

func (m *Machine) Uses(v ledger.VolumeID) bool { return m.Powered && slices.Contains(m.Staged, v) }

func (m *Machine) Mounted() []ledger.VolumeID {
	return SortVolumes(slices.Collect(maps.Keys(m.Mounts)))
}

// Mount fails, as NodeStage does, if the volume was taken by force, or the machine is cut off.
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

func (m *Machine) Unstage(v ledger.VolumeID) bool {
	if slices.Contains(m.Stuck, v) || len(m.Mounts[v]) > 0 {
		return false
	}
	m.Staged, m.Left = exclude(m.Staged, v), exclude(m.Left, v)
	return true
}

func (m *Machine) RemoveRecord(v ledger.VolumeID) { m.Left = exclude(m.Left, v) }

func (m *Machine) Stick(v ledger.VolumeID) bool {
	if !m.Uses(v) || slices.Contains(m.Stuck, v) {
		return false
	}
	m.Stuck = include(m.Stuck, v, ledger.VolumeID.Compare)
	return true
}
