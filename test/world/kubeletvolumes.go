// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Uses are the volumes for volumesInUse: pods' volumes and attached volumes, except those found on disk
// that volumesAttached did not name.
func (k Kubelet) Uses() []ledger.VolumeID { return k.usesWith(k.Desired()) }

func (k Kubelet) usesWith(desired []ledger.VolumeID) []ledger.VolumeID {
	list := desired
	for _, v := range k.Attached {
		if lacks(k.Uncounted, v) {
			list = include(list, v, ledger.VolumeID.Compare)
		}
	}
	return list
}

// CanVerify: the process has told its use, its copy of the Node names the volume, and it has not taken it
// for attached.
func (k Kubelet) CanVerify(v ledger.VolumeID) bool {
	return k.Works() && k.Synced && !lacks(k.Told, v) && lacks(k.Attached, v) && k.rested(v) && !lacks(k.Node.Reported, v) && !lacks(k.Desired(), v)
}

func (k Kubelet) Verify(v ledger.VolumeID) (Request, bool) {
	if !k.CanVerify(v) {
		return Request{}, false
	}
	k.Asked = include(k.Asked, v, ledger.VolumeID.Compare)
	return Request{Do: GetObject, Kind: Nodes, Key: string(k.m.Node)}, true
}

func (k Kubelet) Verified(v ledger.VolumeID, a Answer) {
	asked := !lacks(k.Asked, v)
	k.Asked = exclude(k.Asked, v)
	if lacks(a.node().Reported, v) || v.NoAttach() && !asked && !k.w.Forgetful {
		k.rest(v)
		return
	}
	k.Attached = include(k.Attached, v, ledger.VolumeID.Compare)
	k.pauses = without(k.pauses, v)
}

// CanCheck: a pod lacks a mount of a volume taken for attached. A volume found on the disk is not verified
// first.
func (k Kubelet) CanCheck(v ledger.VolumeID) bool {
	return k.Works() && !lacks(k.Attached, v) && lacks(k.Checked, v) && k.rested(v) && k.lacking(v)
}

func (k Kubelet) lacking(v ledger.VolumeID) bool {
	return slices.ContainsFunc(k.Pods, func(p ledger.Pod) bool {
		volumes, _ := k.w.VolumesOf(p)
		return k.runs(p) && !lacks(volumes, v) && !slices.Contains(k.m.Mounts[v], p.UID)
	})
}

func (k Kubelet) Check(v ledger.VolumeID) (r Request, possible bool) {
	if !k.CanCheck(v) {
		return Request{}, false
	}
	if v.NoAttach() {
		k.Checked = include(k.Checked, v, ledger.VolumeID.Compare)
		return Request{}, true
	}
	return Request{Do: GetObject, Kind: Attachments, Key: ledger.AttachmentName(v, k.m.Node)}, true
}

func (k Kubelet) CheckedBy(v ledger.VolumeID, a Answer) {
	if va := a.attachment(); va.Attached && !va.Deleting {
		k.Checked = include(k.Checked, v, ledger.VolumeID.Compare)
		return
	}
	k.rest(v)
}

func (k Kubelet) Mountable(uid string) []ledger.VolumeID {
	p, known := k.pod(uid)
	if !k.Up || !known || !k.runs(p) || len(k.Checked) == 0 || k.Leaving {
		return nil
	}
	var list []ledger.VolumeID
	volumes, _ := k.w.VolumesOf(p)
	for _, v := range volumes {
		if !lacks(k.Attached, v) && !lacks(k.Checked, v) && !slices.Contains(k.m.Mounts[v], uid) {
			list = append(list, v)
		}
	}
	return list
}

func (k Kubelet) Mount(v ledger.VolumeID, uid string) bool {
	if lacks(k.Mountable(uid), v) {
		return false
	}
	k.Checked = exclude(k.Checked, v)
	if k.w.Mount(k.m, v, uid) {
		k.pauses = without(k.pauses, v)
	} else {
		k.rest(v)
	}
	return true
}

// CanUnmount: the pods neither run nor will run. Before the process knows its pods and its Node, it
// unmounts nothing.
func (k Kubelet) CanUnmount(v ledger.VolumeID, uid string) bool {
	p, known := k.pod(uid)
	known = known && k.runs(p)
	here := !lacks(k.Attached, v) || !lacks(k.Unknown, v)
	return k.Up && k.Synced && k.SeenPods && here && !k.m.Containers[uid] && !known && lacks(k.m.Stuck, v) && slices.Contains(k.m.Mounts[v], uid)
}

func (k Kubelet) Unpublish(v ledger.VolumeID, uid string) bool {
	if !k.CanUnmount(v, uid) {
		return false
	}
	k.Unknown = exclude(k.Unknown, v)
	return k.m.Unpublish(v, uid)
}

func (k Kubelet) Unmount(v ledger.VolumeID, uid string) bool {
	if !k.Unpublish(v, uid) {
		return false
	}
	k.Unstage(v)
	return true
}

// CanUnstage: a volume taken for attached, which no pod has or needs.
func (k Kubelet) CanUnstage(v ledger.VolumeID) bool {
	return k.Up && k.Synced && k.SeenPods && !lacks(k.Attached, v) && k.m.Uses(v) && len(k.m.Mounts[v]) == 0 &&
		lacks(k.m.Stuck, v) && lacks(k.Desired(), v)
}

func (k Kubelet) Unstage(v ledger.VolumeID) bool { return k.CanUnstage(v) && k.m.Unstage(v) }

func (k Kubelet) CanLeave(v ledger.VolumeID) bool {
	return k.Up && k.Synced && k.SeenPods && !lacks(k.Attached, v) && !k.m.Uses(v) && lacks(k.Desired(), v)
}

func (k Kubelet) Leave(v ledger.VolumeID) bool {
	if !k.CanLeave(v) {
		return false
	}
	k.Attached, k.Uncounted = exclude(k.Attached, v), exclude(k.Uncounted, v)
	return true
}

func (k Kubelet) rested(v ledger.VolumeID) bool { return !k.w.Now.Before(k.pauses[v].until) }

// rest pauses for half a second, doubled after each failure, up to about two minutes.
func (k Kubelet) rest(v ledger.VolumeID) {
	failed := k.pauses[v].failed
	long := min(500*time.Millisecond<<min(failed, 10), 122*time.Second)
	k.pauses = with(k.pauses, v, pause{k.w.Now.Add(long), failed + 1})
}

func (k Kubelet) Rested() { k.pauses = nil }

func (k Kubelet) Pause(v ledger.VolumeID) time.Time {
	if k.rested(v) {
		return time.Time{}
	}
	return k.pauses[v].until
}
