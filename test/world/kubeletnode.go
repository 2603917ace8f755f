// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Register makes the missing Node and CSINode, once in the life of a process (registrationCompleted,
// kubelet_node_status.go).
func (k Kubelet) Register(drivers ...ledger.DriverOnNode) bool {
	if !k.Works() || k.Registered {
		return false
	}
	k.Registered = true
	if _, exists := k.w.Node(k.m.Node); !exists {
		k.w.Put(ledger.NodeState{Name: k.m.Node, UID: k.w.UID(), Managed: true, SystemUUID: k.m.SystemUUID(), BootID: k.m.BootID()})
	}
	old, _ := k.w.Drivers(k.m.Node)
	if len(drivers) > 0 && (len(old.Drivers) == 0 || old.Drivers[0].NodeID != drivers[0].NodeID) {
		k.w.Put(ledger.NodeDrivers{Node: k.m.Node, Drivers: drivers})
	}
	return true
}

// Renew also works if the kubelet is not ready. A Lease is deleted with its Node, and made only with a
// Node.
func (k Kubelet) Renew() bool {
	if _, exists := k.w.Node(k.m.Node); !exists || !k.Works() {
		return false
	}
	if k.w.Now.Sub(k.m.Renewed) > leaseDuration {
		k.m.Before, k.m.Streak = k.m.Renewed, k.w.Now
	}
	k.m.Renewed = k.w.Now
	return true
}

const leaseDuration = 40 * time.Second

func (w *World) renewed(n ledger.NodeName) time.Time {
	var t time.Time
	if _, exists := w.Node(n); !exists {
		return t
	}
	for _, m := range w.Machines {
		if m.Node == n {
			t = later(t, m.Renewed)
		}
	}
	return t
}

func (w *World) lease(n ledger.NodeName) Answer {
	if t := w.renewed(n); !t.IsZero() {
		return answer(ledger.NodeLease{Node: n, Renewed: t.UnixMicro()})
	}
	return Answer{Code: NotFound}
}

func (k Kubelet) ready() ledger.Readiness {
	if k.Broken || k.Leaving {
		return ledger.ReadyFalse
	}
	return ledger.ReadyTrue
}

func (k Kubelet) News() bool {
	n := k.Node
	if n.UID == "" {
		n, _ = k.w.Node(k.m.Node)
	}
	switch {
	case !k.Works() || !k.Registered || n.UID == "":
		return false
	case n.Ready != k.ready() || !n.Reporting || n.BootID != k.m.BootID():
		return true // also before it knows its mounts: a heartbeat without volumesInUse
	case !k.Synced:
		return false
	}
	desired := k.Desired()
	return !slices.Equal(k.usesWith(desired), n.InUse) || slices.ContainsFunc(desired, func(v ledger.VolumeID) bool { return lacks(k.Told, v) })
}

// Report has volumesInUse only if that differs from the process's copy of the Node.
func (k Kubelet) Report() (Request, bool) {
	if !k.News() {
		return Request{}, false
	}
	r := Request{Do: ReportUse, Node: k.m.Node, InUse: k.Uses(), NotReady: k.ready() != ledger.ReadyTrue, SystemUUID: k.m.SystemUUID(), BootID: k.m.BootID()}
	r.Same = !k.Synced || k.Node.UID != "" && slices.Equal(r.InUse, k.Node.InUse)
	return r, true
}

func (k Kubelet) Reported(a Answer) {
	n := a.node()
	if n.UID == "" {
		return
	}
	k.Node = n
	desired := k.Desired()
	for _, v := range n.InUse {
		if !lacks(desired, v) {
			k.Told = include(k.Told, v, ledger.VolumeID.Compare)
		}
	}
}

func (k Kubelet) CanResolve() bool { return k.Works() && !k.Synced }

// Resolve is that read (updateReconstructedFromNodeStatus).
func (k Kubelet) Resolve() (Request, bool) {
	return Request{Do: GetObject, Kind: Nodes, Key: string(k.m.Node)}, k.CanResolve()
}

// Volumes in volumesAttached count as in use; the rest never does, mounted or not. Without its Node it
// tries again.
func (k Kubelet) Resolved(a Answer) {
	n := a.node()
	if n.UID == "" {
		return
	}
	for _, v := range n.Reported {
		k.Uncounted = exclude(k.Uncounted, v)
	}
	k.Synced = true
}

func (a Answer) node() ledger.NodeState {
	if a.Code != OK || len(a.Facts) == 0 {
		return ledger.NodeState{}
	}
	n, _ := a.Facts[0].(ledger.NodeState)
	return n
}

func (a Answer) attachment() ledger.Attachment {
	if a.Code != OK || len(a.Facts) == 0 {
		return ledger.Attachment{}
	}
	va, _ := a.Facts[0].(ledger.Attachment)
	return va
}
