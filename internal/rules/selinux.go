// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/moorage-dev/moorage/internal/ledger"

// For CSIDriver spec.seLinuxMount, a kubelet mounts a volume with the SELinux label of its first pod, and
// refuses it to a pod with another label meanwhile (pkg/kubelet/volumemanager/cache, AddPodToVolume). It
// reports this only after the second pod's bind: the pod waits where it can't run.

// labelledOtherwise lists the pods for which the kubelet mounts the volume with another label. A
// terminating pod counts: its containers run.
func (w evaluation) labelledOtherwise(v *ledger.Volume, need Need) []Reason {
	s, n := w.snapshot, w.snapshot.Node(w.node)
	if w.request.Pod == "" || n == nil || !n.SELinuxMount || !s.SELinuxMount(need.Volume.Driver) {
		return nil
	}
	var reasons []Reason
	conflicts := func(u ledger.User) {
		reasons = append(reasons, Reason{Code: SELinuxConflict, Volume: need.Volume, Claim: need.Name, Node: w.node, Who: requester(s, u)})
	}
	if place := v.OnNode(w.node); place != nil {
		for _, u := range w.queue.blockers(place, w.request) {
			if len(reasons) < fewUsers && mountedFor(s, u, need.Volume).Conflicts(need.SELinux) && (w.blocks(v, place, u) || w.leavesIt(u)) {
				conflicts(u)
			}
		}
	}
	if d := s.Delta(); d != nil {
		for _, uid := range d.AddedPods() { // of a dry run
			if len(reasons) < fewUsers && d.Added[uid] == w.node && uid != w.request.Pod && mountLabel(s, uid, need.Volume).Conflicts(need.SELinux) {
				conflicts(ledger.User{Pod: uid})
			}
		}
	}
	return reasons
}

// leavesIt finds another, ending pod that is still there. If unused volumes count as gone, it is false.
func (w evaluation) leavesIt(u ledger.User) bool {
	return !w.detached && !w.request.owns(u) && claimStateOf(w.snapshot, u) == terminating
}

// mountedFor is unknown for a ticket: kubelets mount for pods only.
func mountedFor(s ledger.Snapshot, u ledger.User, v ledger.VolumeID) ledger.SELinux {
	if u.Pod == "" {
		return ledger.SELinuxUnknown
	}
	return mountLabel(s, u.Pod, v)
}

// mountLabel is the label of a pod's first mention of a volume; unknown for an unknown pod.
func mountLabel(s ledger.Snapshot, pod string, v ledger.VolumeID) ledger.SELinux {
	if p := s.Pod(pod); p != nil {
		for _, named := range p.Volumes {
			if id, _ := s.ResolvePod(p, named); id == v {
				return named.SELinux
			}
		}
	}
	return ledger.SELinuxUnknown
}
