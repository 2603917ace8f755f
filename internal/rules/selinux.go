// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/moorage-dev/moorage/internal/ledger"

// For a driver with CSIDriver spec.seLinuxMount, a kubelet mounts a volume with the SELinux label of its
// first pod at the node, and refuses it to a pod with another label while that pod is there
// (pkg/kubelet/volumemanager/cache, AddPodToVolume). It reports this on the second pod only after the bind,
// so that the pod waits at a node where it can't run.

// labelledOtherwise lists the pods that keep the request's pod from a volume at its node: the kubelet has
// it mounted with another SELinux label, or will. A terminating pod counts: its containers run.
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
		for _, uid := range d.AddedPods() { // the pods of a dry run
			if len(reasons) < fewUsers && d.Added[uid] == w.node && uid != w.request.Pod && mountLabel(s, uid, need.Volume).Conflicts(need.SELinux) {
				conflicts(ledger.User{Pod: uid})
			}
		}
	}
	return reasons
}

// leavesIt says whether a user is another, ending pod that is still there. None is if unused volumes count
// as gone.
func (w evaluation) leavesIt(u ledger.User) bool {
	return !w.detached && !w.request.owns(u) && claimStateOf(w.snapshot, u) == terminating
}

// mountedFor is the label of a volume's mount for a user. Kubelets mount for pods only.
func mountedFor(s ledger.Snapshot, u ledger.User, v ledger.VolumeID) ledger.SELinux {
	if u.Pod == "" {
		return ledger.SELinuxUnknown
	}
	return mountLabel(s, u.Pod, v)
}

// mountLabel is the label with which a pod, by UID, has a volume mounted: of its first mention if the pod
// names the volume twice. It is unknown for an unknown pod.
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
