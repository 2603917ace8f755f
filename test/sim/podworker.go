// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/sim/world"
)

// stoppable: the containers of a pod that is being deleted, finished, or gone.
func (k *kubelet) stoppable(uid string) bool {
	p, known := k.pods[uid]
	return k.machine.Containers[uid] && k.seenAll() && (!known || p.Phase != ledger.PodLive)
}

// seenAll says whether the process has had a first look at its pods.
func (k *kubelet) seenAll() bool { return k.podsAt > 0 }

// runnable: the containers of a pod all of whose volumes are mounted.
func (k *kubelet) runnable(uid string) bool {
	p := k.pods[uid]
	if !k.wants(p) || k.machine.Containers[uid] {
		return false
	}
	volumes, complete := k.s.w.VolumesOf(p)
	for _, v := range volumes {
		if !slices.Contains(k.machine.Mounts[v], uid) {
			return false
		}
	}
	return complete
}

// mountable: volumes of a pod that are attached and checked.
func (k *kubelet) mountable(uid string) []ledger.VolumeID {
	p, known := k.pods[uid]
	if !known || !k.wants(p) || !k.synced {
		return nil
	}
	var list []ledger.VolumeID
	volumes, _ := k.s.w.VolumesOf(p)
	for _, v := range volumes {
		if k.attached[v] && k.checked[v] && !slices.Contains(k.machine.Mounts[v], uid) {
			list = append(list, v)
		}
	}
	return list
}

// unmountable: the mounts of pods that don't run and are not to. Before the
// process knows its pods and its node, it unmounts nothing.
func (k *kubelet) unmountable(uid string) bool {
	p, known := k.pods[uid]
	return k.synced && k.seenAll() && !k.machine.Containers[uid] && (!known || !k.wants(p))
}

// leavable: what is held for attached, mounted nowhere and wanted by no pod.
func (k *kubelet) leavable(v ledger.VolumeID) bool {
	return k.synced && k.seenAll() && !k.machine.Uses(v) && !k.desired()[v]
}

// finishable: the status of a pod that is being deleted and whose containers
// have ended.
func (k *kubelet) finishable(uid string) bool {
	p, known := k.pods[uid]
	due := p.Phase == ledger.PodTerminating || p.Phase == ledger.PodLive && k.ended[uid]
	return known && due && !k.machine.Containers[uid] && k.seenAll() && !k.busyPod(uid)
}

// removable: the object of a pod that is being deleted, ended and unmounted.
func (k *kubelet) removable(uid string) bool {
	p, known := k.pods[uid]
	if !known || p.Phase == ledger.PodLive || !k.deleted(uid) || k.machine.Containers[uid] || !k.synced || k.busyPod(uid) {
		return false
	}
	for _, v := range k.machine.Mounted() {
		if slices.Contains(k.machine.Mounts[v], uid) {
			return false
		}
	}
	return true
}

// deleted says whether a pod is being deleted: one that has only completed
// stays.
func (k *kubelet) deleted(uid string) bool { return k.s.deleting[uid] }

func (k *kubelet) busyPod(uid string) bool {
	return k.s.net.find(k.opID("finish "+uid)) != nil || k.s.net.find(k.opID("remove "+uid)) != nil
}

func (k *kubelet) finish(uid string) bool {
	k.ended[uid] = true
	k.send("finish "+uid, world.Request{Do: world.FinishPod, UID: uid}, func(world.Answer, error) {})
	return true
}

func (k *kubelet) remove(uid string) bool {
	k.ended[uid] = true
	k.send("remove "+uid, world.Request{Do: world.RemovePod, UID: uid}, func(world.Answer, error) {})
	return true
}

// kubeletTimeout is how long a kubelet waits for an answer.
const kubeletTimeout = 10 * time.Second

func (k *kubelet) send(op string, r world.Request, then func(world.Answer, error)) {
	k.s.net.send(&k.caller, op, k.s.Now().Add(kubeletTimeout), r, then)
}

func (k *kubelet) opID(op string) string { return messageID(&k.caller, op) }

// exit is a pod's containers ending by themselves.
func (k *kubelet) exit(uid string) bool {
	if !k.machine.Containers[uid] || k.pods[uid].Phase != ledger.PodLive || !k.wants(k.pods[uid]) {
		return false
	}
	delete(k.machine.Containers, uid)
	k.ended[uid] = true
	return true
}

// news says whether the next tick of the status would tell or mark anything.
func (k *kubelet) news() bool {
	n, exists := k.s.w.Node(k.node)
	if k.posting || !exists {
		return false
	}
	if n.Ready != ledger.ReadyTrue || !n.Reporting {
		return true
	}
	if !k.synced {
		return false
	}
	uses := k.uses()
	if !slices.Equal(uses, n.InUse) {
		return true
	}
	for _, v := range uses {
		if !k.told[v] {
			return true
		}
	}
	return false
}

// report is one tick of the node's status. volumesInUse goes into the patch
// only where it differs from the kubelet's own copy of the Node.
func (k *kubelet) report() bool {
	if !k.news() {
		return false
	}
	r := world.Request{Do: world.ReportUse, Node: k.node, InUse: k.uses()}
	r.Same = !k.synced || k.copy.UID != "" && slices.Equal(r.InUse, k.copy.InUse)
	k.posting = true
	k.send("report", r, func(a world.Answer, err error) {
		k.posting = false
		if err != nil || a.Code != world.OK {
			return
		}
		k.copy, _ = a.Facts[0].(ledger.NodeState)
		desired := k.desired()
		for _, v := range k.copy.InUse {
			if desired[v] {
				k.told[v] = true
			}
		}
	})
	return true
}

// resolve ends the start of a process that found mounts on its disk: what
// volumesAttached names of them is held for attached.
func (k *kubelet) resolve() bool {
	if k.synced || k.posting {
		return false
	}
	k.posting = true
	k.send("resolve", world.Request{Do: world.GetObject, Kind: world.Nodes, Key: string(k.node)}, func(a world.Answer, err error) {
		k.posting = false
		if err != nil || a.Code != world.OK {
			return
		}
		n, _ := a.Facts[0].(ledger.NodeState)
		for _, v := range k.machine.Mounted() {
			if slices.Contains(n.Reported, v) {
				k.attached[v] = true
			}
		}
		k.synced = true
	})
	return true
}

// rested says whether a volume's pause after a failure is over.
func (k *kubelet) rested(v ledger.VolumeID) bool {
	return !k.busy[v] && !k.s.Now().Before(k.pauses[v])
}

// verifiable: a volume that the kubelet has told to use, that its own copy of
// the Node names, and that it does not hold for attached.
func (k *kubelet) verifiable(v ledger.VolumeID) bool {
	return k.synced && k.told[v] && !k.attached[v] && k.rested(v) && k.desired()[v] && slices.Contains(k.copy.Reported, v)
}

func (k *kubelet) verify(v ledger.VolumeID) bool {
	if !k.verifiable(v) {
		return false
	}
	k.busy[v] = true
	k.send("verify "+volumeArg(v), world.Request{Do: world.GetObject, Kind: world.Nodes, Key: string(k.node)}, func(a world.Answer, err error) {
		delete(k.busy, v)
		n := ledger.NodeState{}
		if err == nil && a.Code == world.OK {
			n, _ = a.Facts[0].(ledger.NodeState)
		}
		if !slices.Contains(n.Reported, v) {
			k.rest(v)
			return
		}
		k.attached[v], k.failed[v] = true, 0
	})
	return true
}

// checkable: an attached volume of which a pod still lacks the mount.
func (k *kubelet) checkable(v ledger.VolumeID) bool {
	return k.synced && k.attached[v] && !k.checked[v] && k.rested(v) && k.lacking(v)
}

// lacking says whether a pod to run has not got its mount of a volume.
func (k *kubelet) lacking(v ledger.VolumeID) bool {
	for uid, p := range k.pods {
		if volumes, _ := k.s.w.VolumesOf(p); k.wants(p) && slices.Contains(volumes, v) && !slices.Contains(k.machine.Mounts[v], uid) {
			return true
		}
	}
	return false
}

func (k *kubelet) check(v ledger.VolumeID) bool {
	if !k.checkable(v) {
		return false
	}
	if v.NoAttach() {
		k.checked[v] = true
		return true
	}
	k.busy[v] = true
	name := ledger.AttachmentName(v, k.node)
	k.send("check "+volumeArg(v), world.Request{Do: world.GetObject, Kind: world.Attachments, Key: name}, func(a world.Answer, err error) {
		delete(k.busy, v)
		va := ledger.Attachment{}
		if err == nil && a.Code == world.OK {
			va, _ = a.Facts[0].(ledger.Attachment)
		}
		if !va.Attached || va.Deleting {
			k.rest(v)
			return
		}
		k.checked[v] = true
	})
	return true
}

// rest pauses after a failure: half a second, doubled each time, up to about
// two minutes.
func (k *kubelet) rest(v ledger.VolumeID) {
	k.pauses[v] = k.s.Now().Add(min(500*time.Millisecond<<min(k.failed[v], 10), 122*time.Second))
	k.failed[v]++
}

// nextDue is when the next pause is over.
func (k *kubelet) nextDue() time.Time {
	var t time.Time
	for v := range k.told {
		if k.awake() && !k.busy[v] && k.s.Now().Before(k.pauses[v]) && k.desired()[v] {
			t = earlier(t, k.pauses[v])
		}
	}
	return t
}
