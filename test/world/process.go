// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Process is a kubelet process's memory, lost at each start. Its maps and lists are replaced, never
// changed.
type Process struct {
	Up     bool // it runs
	Linked bool // it reaches the API server; that is the machine's, and outlives the process
	// Broken has a living kubelet report that it is not ready: the machine's network plugin or its
	// container runtime is broken, also for the next process.
	Broken bool
	// Leaving is a graceful shutdown: it reports not ready, and the power goes afterwards.
	Leaving bool
	// Registered: it registers its Node once in its life.
	Registered bool

	Node     ledger.NodeState // its own copy of its Node; without a UID: none
	Pods     []ledger.Pod     // of its node, by its watch, by UID
	SeenPods bool             // it has had a first look at them
	Ended    []string         // pods with ended containers, sorted

	// Synced: it knows for each mount found on its disk whether volumesAttached names it
	// (ReconcilerStatesHasBeenSynced). Before that it writes no volumesInUse, and unmounts nothing.
	Synced bool
	// Attached is its actual state of the world: volumes that it takes for attached, never checked again.
	// Uncounted are those among them that it found on its disk and that volumesAttached omitted then: they
	// are not in volumesInUse.
	Attached, Uncounted []ledger.VolumeID
	Told                []ledger.VolumeID // in its desired state, marked as reported in use
	// Asked are the volumes with a check of volumesAttached in flight, needed by a pod all the while. A
	// real process also takes a volume for attached if that pod has gone meanwhile, and mounts it for the
	// next one: without a VolumeAttachment nothing prevents that (Forgetful).
	Asked   []ledger.VolumeID
	Checked []ledger.VolumeID // VolumeAttachment read, mount begins
	// Unknown are mounts that failed reconstruction. They are unpublished, once, unless a pod needs
	// them, and never unstaged.
	Unknown []ledger.VolumeID

	pauses map[ledger.VolumeID]pause
}

// pause is a volume's rest after failures.
type pause struct {
	until  time.Time
	failed int
}

// Kubelet is a machine's kubelet. It is a view: its state is the machine's, and it is useless after its
// World was cloned. Its methods are serial, and do nothing if their work is impossible, which they return.
type Kubelet struct {
	*Process
	w *World
	m *Machine
}

// Kubelet is the kubelet of an existing machine.
func (w *World) Kubelet(machine string) Kubelet {
	return w.KubeletOf(w.Machines[machine])
}

func (w *World) KubeletOf(m *Machine) Kubelet { return Kubelet{&m.Process, w, m} }

// Machine is the kubelet's machine.
func (k Kubelet) Machine() *Machine { return k.m }

// Works says whether the process runs and reaches the API server.
func (k Kubelet) Works() bool { return k.Up && k.Linked }

// Kill ends the process; containers and mounts stay.
func (k Kubelet) Kill() { k.Up = false }

// Start begins a new process on a powered machine. It rebuilds its mounts from the folders of pods
// (reconstructVolumes); for the volumes in unknown that fails. Staged volumes without a folder are not
// found if World.Forgetful is set.
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

// SeePod takes in a pod of its node from its watch.
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

// LosePod takes in a pod's end.
func (k Kubelet) LosePod(uid string) {
	k.SeenPods = true
	if i, known := k.find(uid); known {
		k.Pods = slices.Delete(slices.Clone(k.Pods), i, i+1)
		k.Ended = exclude(k.Ended, uid)
	}
	k.tidy()
}

// SeePods takes in all present pods of its node.
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

// pod is a pod as known to the process.
func (k Kubelet) pod(uid string) (ledger.Pod, bool) {
	i, known := k.find(uid)
	if !known {
		return ledger.Pod{}, false
	}
	return k.Pods[i], true
}

// SeeNode takes in its present Node, or its absence. It says whether that is new.
func (k Kubelet) SeeNode() bool {
	n, _ := k.w.Node(k.m.Node)
	fresh := n.UID != k.Node.UID || n.Version != k.Node.Version
	k.Node = n
	return fresh
}
