// SPDX-License-Identifier: Apache-2.0

package world

import (
	"cmp"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
)

func (k Kubelet) runs(p ledger.Pod) bool {
	return p.Phase == ledger.PodLive && !slices.Contains(k.Ended, p.UID)
}

func (k Kubelet) Desired() []ledger.VolumeID {
	var list []ledger.VolumeID
	for _, p := range k.Pods {
		if slices.Contains(k.Ended, p.UID) || p.Phase == ledger.PodFinished && !k.m.Containers[p.UID] {
			continue
		}
		volumes, _ := k.w.VolumesOf(p)
		for _, v := range volumes {
			list = include(list, v, ledger.VolumeID.Compare)
		}
	}
	return list
}

// tidy forgets the told state of unneeded volumes: the next pod starts over.
func (k Kubelet) tidy() {
	if len(k.Told)+len(k.Checked)+len(k.pauses)+len(k.Asked) == 0 {
		return
	}
	desired := k.Desired()
	unused := func(v ledger.VolumeID) bool { return lacks(desired, v) }
	if slices.ContainsFunc(k.Told, unused) {
		k.Told = slices.DeleteFunc(slices.Clone(k.Told), unused)
	}
	if slices.ContainsFunc(k.Asked, unused) {
		k.Asked = slices.DeleteFunc(slices.Clone(k.Asked), unused)
	}
	if slices.ContainsFunc(k.Checked, unused) {
		k.Checked = slices.DeleteFunc(slices.Clone(k.Checked), unused)
	}
	for v := range k.pauses {
		if unused(v) {
			k.pauses = without(k.pauses, v)
		}
	}
}

func (k Kubelet) CanStop(uid string) bool {
	p, known := k.pod(uid)
	return k.Up && k.m.Containers[uid] && k.SeenPods && (!known || p.Phase != ledger.PodLive || k.Leaving)
}

func (k Kubelet) Stop(uid string) bool {
	if !k.CanStop(uid) {
		return false
	}
	k.end(uid)
	return true
}

func (k Kubelet) end(uid string) {
	delete(k.m.Containers, uid)
	if _, known := k.pod(uid); known {
		k.Ended = include(k.Ended, uid, cmp.Compare[string])
	}
	k.tidy()
}

func (k Kubelet) Exit(uid string) bool {
	p, known := k.pod(uid)
	if !k.Up || !known || !k.m.Containers[uid] || !k.runs(p) {
		return false
	}
	k.end(uid)
	return true
}

func (k Kubelet) CanRun(uid string) bool {
	p, known := k.pod(uid)
	if !k.Up || !known || !k.runs(p) || k.m.Containers[uid] || k.Leaving {
		return false
	}
	volumes, complete := k.w.VolumesOf(p)
	return complete && !slices.ContainsFunc(volumes, func(v ledger.VolumeID) bool { return !slices.Contains(k.m.Mounts[v], uid) })
}

func (k Kubelet) Run(uid string) bool {
	if !k.CanRun(uid) {
		return false
	}
	k.m.Containers[uid] = true
	return true
}

func (k Kubelet) CanFinish(uid string) bool {
	p, known := k.pod(uid)
	due := p.Phase == ledger.PodTerminating || p.Phase == ledger.PodLive && slices.Contains(k.Ended, uid)
	return k.Works() && known && due && !k.m.Containers[uid] && k.SeenPods
}

func (k Kubelet) Finish(uid string) (Request, bool) {
	if !k.CanFinish(uid) {
		return Request{}, false
	}
	k.end(uid)
	return Request{Do: FinishPod, UID: uid}, true
}

func (k Kubelet) CanRemove(uid string) bool {
	p, known := k.pod(uid)
	if !k.Works() || !known || p.Phase == ledger.PodLive || !k.w.Deleting(uid) || k.m.Containers[uid] || !k.Synced {
		return false
	}
	for _, pods := range k.m.Mounts {
		if slices.Contains(pods, uid) {
			return false
		}
	}
	return true
}

func (k Kubelet) Remove(uid string) (Request, bool) {
	if !k.CanRemove(uid) {
		return Request{}, false
	}
	k.end(uid)
	return Request{Do: RemovePod, UID: uid}, true
}
