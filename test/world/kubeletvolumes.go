// SPDX-License-Identifier: Apache-2.0

package world

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Uses are the volumes for volumesInUse: volumes of pods to run, and attached ones by the process's
// state, except those that volumesAttached did not name when the process found them on its disk.
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

// CanVerify: a volume that the process has told to use, that its own copy of the Node names, and that
// it does not take for attached.
func (k Kubelet) CanVerify(v ledger.VolumeID) bool {
	return k.Works() && k.Synced && !lacks(k.Told, v) && lacks(k.Attached, v) && k.rested(v) && !lacks(k.Node.Reported, v) && !lacks(k.Desired(), v)
}

// Verify is the read of its Node that proves it.
func (k Kubelet) Verify(v ledger.VolumeID) (Request, bool) {
	if !k.CanVerify(v) {
		return Request{}, false
	}
	k.Asked = include(k.Asked, v, ledger.VolumeID.Compare)
	return Request{Do: GetObject, Kind: Nodes, Key: string(k.m.Node)}, true
}

// Verified takes the answer in: a volume that volumesAttached names is held for
// attached.
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

// CanCheck: a volume taken for attached that a pod lacks a mount of. A volume found on the disk is not
// verified first.
func (k Kubelet) CanCheck(v ledger.VolumeID) bool {
	return k.Works() && !lacks(k.Attached, v) && lacks(k.Checked, v) && k.rested(v) && k.lacking(v)
}

// lacking says whether a pod to run has not got its mount of a volume.
func (k Kubelet) lacking(v ledger.VolumeID) bool {
	return slices.ContainsFunc(k.Pods, func(p ledger.Pod) bool {
		volumes, _ := k.w.VolumesOf(p)
		return k.runs(p) && !lacks(volumes, v) && !slices.Contains(k.m.Mounts[v], p.UID)
	})
}

// Check is the read of the VolumeAttachment before a mount; there is none for a volume that needs no
// attachment.
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

// CheckedBy takes the answer in.
func (k Kubelet) CheckedBy(v ledger.VolumeID, a Answer) {
	if va := a.attachment(); va.Attached && !va.Deleting {
		k.Checked = include(k.Checked, v, ledger.VolumeID.Compare)
		return
	}
	k.rest(v)
}

// Mountable are the volumes of a pod that are attached and checked.
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

// Mount stages a volume and publishes it for a pod. The next mount checks anew.
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

// CanUnmount: volumes published for pods that neither run nor will run. Before the process knows its
// pods and its Node, it unmounts nothing.
func (k Kubelet) CanUnmount(v ledger.VolumeID, uid string) bool {
	p, known := k.pod(uid)
	known = known && k.runs(p)
	here := !lacks(k.Attached, v) || !lacks(k.Unknown, v)
	return k.Up && k.Synced && k.SeenPods && here && !k.m.Containers[uid] && !known && lacks(k.m.Stuck, v) && slices.Contains(k.m.Mounts[v], uid)
}

// Unpublish ends a pod's mount: its folder is gone.
func (k Kubelet) Unpublish(v ledger.VolumeID, uid string) bool {
	if !k.CanUnmount(v, uid) {
		return false
	}
	k.Unknown = exclude(k.Unknown, v)
	return k.m.Unpublish(v, uid)
}

// Unmount is Unpublish, and Unstage after it where that is possible.
func (k Kubelet) Unmount(v ledger.VolumeID, uid string) bool {
	if !k.Unpublish(v, uid) {
		return false
	}
	k.Unstage(v)
	return true
}

// CanUnstage: a volume taken for attached, published for no pod, and needed by no pod.
func (k Kubelet) CanUnstage(v ledger.VolumeID) bool {
	return k.Up && k.Synced && k.SeenPods && !lacks(k.Attached, v) && k.m.Uses(v) && len(k.m.Mounts[v]) == 0 &&
		lacks(k.m.Stuck, v) && lacks(k.Desired(), v)
}

// Unstage ends the machine's use of a volume.
func (k Kubelet) Unstage(v ledger.VolumeID) bool { return k.CanUnstage(v) && k.m.Unstage(v) }

// CanLeave: a volume taken for attached, no longer staged and wanted by no pod.
func (k Kubelet) CanLeave(v ledger.VolumeID) bool {
	return k.Up && k.Synced && k.SeenPods && !lacks(k.Attached, v) && !k.m.Uses(v) && lacks(k.Desired(), v)
}

// Leave has the process no longer hold a volume for attached.
func (k Kubelet) Leave(v ledger.VolumeID) bool {
	if !k.CanLeave(v) {
		return false
	}
	k.Attached, k.Uncounted = exclude(k.Attached, v), exclude(k.Uncounted, v)
	return true
}

// rested says whether a volume's pause after a failure is over.
func (k Kubelet) rested(v ledger.VolumeID) bool { return !k.w.Now.Before(k.pauses[v].until) }

// rest pauses after a failure: half a second, doubled each time, up to about two
// minutes.
func (k Kubelet) rest(v ledger.VolumeID) {
	failed := k.pauses[v].failed
	long := min(500*time.Millisecond<<min(failed, 10), 122*time.Second)
	k.pauses = with(k.pauses, v, pause{k.w.Now.Add(long), failed + 1})
}

// Rested ends all pauses, for drivers without time.
func (k Kubelet) Rested() { k.pauses = nil }

// Pause is the end of a volume's pause; zero: it is over.
func (k Kubelet) Pause(v ledger.VolumeID) time.Time {
	if k.rested(v) {
		return time.Time{}
	}
	return k.pauses[v].until
}
