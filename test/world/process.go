// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Process is a kubelet's memory, lost at each start. Its maps and lists are replaced, never changed.
type Process struct {
	Up     bool // it runs
	Linked bool // it reaches the API server; that is the machine's, and outlives the process
	// Broken: a living kubelet reports not ready, also in the next process.
	Broken     bool
	Leaving    bool
	Registered bool

	Node     ledger.NodeState // its own copy of its Node; without a UID: none
	Pods     []ledger.Pod     // of its node, by its watch, by UID
	SeenPods bool             // it has had a first look at them
	Ended    []string         // pods with ended containers, sorted

	// Synced: it knows for each found mount whether volumesAttached names it
	// (ReconcilerStatesHasBeenSynced). Before that it writes no volumesInUse, and unmounts nothing.
	Synced bool
	// Attached volumes are taken for attached, and never checked again. Uncounted are those found on disk
	// that volumesAttached omitted: they are not in volumesInUse.
	Attached, Uncounted []ledger.VolumeID
	Told                []ledger.VolumeID // in its desired state, marked as reported in use
	// Asked volumes have a check of volumesAttached in flight, and a pod all the while. A real process also
	// accepts them if that pod has gone (Forgetful).
	Asked   []ledger.VolumeID
	Checked []ledger.VolumeID // VolumeAttachment read, mount begins
	// Unknown mounts failed reconstruction. They are unpublished, once, unless a pod needs them, and never
	// unstaged.
	Unknown []ledger.VolumeID

	pauses map[ledger.VolumeID]pause
}

type pause struct {
	until  time.Time
	failed int
}

// Kubelet is a view of a machine's kubelet, and useless after its World was cloned. Its methods are serial,
// and return whether they could work.
type Kubelet struct {
	*Process
	w *World
	m *Machine
}

func (w *World) Kubelet(machine string) Kubelet {
	return w.KubeletOf(w.Machines[machine])
}

func (w *World) KubeletOf(m *Machine) Kubelet { return Kubelet{&m.Process, w, m} }

func (k Kubelet) Machine() *Machine { return k.m }

func (k Kubelet) Works() bool { return k.Up && k.Linked }

func (k Kubelet) Kill() { k.Up = false }

// Start rebuilds mounts from pods' folders (reconstructVolumes), except unknown. Staged volumes without a
// folder are missed if World.Forgetful is set.
func (k Kubelet) Start(unknown ...ledger.VolumeID) {
	k.m.PowerOn()
	old := *k.Process
	*k.Process = Process{Up: true, Linked: old.Linked, Broken: old.Broken}
	for _, v := range k.m.Staged {
		switch {
		case len(k.m.Mounts[v]) == 0 && k.w.Forgetful:
		case slices.Contains(unknown, v):
			k.Unknown = include(k.Unknown, v, ledger.VolumeID.Compare)
		default:
			k.Attached, k.Uncounted = include(k.Attached, v, ledger.VolumeID.Compare), include(k.Uncounted, v, ledger.VolumeID.Compare)
		}
	}
	k.Synced = len(k.Uncounted) == 0
}

func (k Kubelet) SeePod(p ledger.Pod) {
	k.SeenPods = true
	i, known := k.find(p.UID)
	list := slices.Clone(k.Pods)
	if known {
		list[i] = p
	} else {
		list = slices.Insert(list, i, p)
	}
	k.Pods = list
	k.tidy()
}

func (k Kubelet) LosePod(uid string) {
	k.SeenPods = true
	if i, known := k.find(uid); known {
		k.Pods = slices.Delete(slices.Clone(k.Pods), i, i+1)
		k.Ended = exclude(k.Ended, uid)
	}
	k.tidy()
}

func (k Kubelet) SeePods() {
	k.SeenPods, k.Pods = true, k.w.PodsAt(k.m.Node)
	for _, uid := range k.Ended {
		if _, known := k.find(uid); !known {
			k.Ended = exclude(k.Ended, uid)
		}
	}
	k.tidy()
}

func (k Kubelet) find(uid string) (int, bool) {
	return slices.BinarySearchFunc(k.Pods, uid, func(p ledger.Pod, uid string) int { return strings.Compare(p.UID, uid) })
}

func (k Kubelet) pod(uid string) (ledger.Pod, bool) {
	i, known := k.find(uid)
	if !known {
		return ledger.Pod{}, false
	}
	return k.Pods[i], true
}

func (k Kubelet) SeeNode() bool {
	n, _ := k.w.Node(k.m.Node)
	fresh := n.UID != k.Node.UID || n.Version != k.Node.Version
	k.Node = n
	return fresh
}
