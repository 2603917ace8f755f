// SPDX-License-Identifier: Apache-2.0

package rules

import "github.com/moorage-dev/moorage/internal/ledger"

// A kubelet mounts a volume of a driver that can (CSIDriver spec.seLinuxMount) with the SELinux label
// of the first pod that uses it at the node, and refuses it to a pod with another label for as long as
// that pod is there (pkg/kubelet/volumemanager/cache, AddPodToVolume). It says so on the second pod
// only after that is bound, so that the pod waits at a node where it can't run.

// labelledOtherwise says who keeps the request's pod from a volume at its node, as the kubelet has it
// mounted with another SELinux label, or will. A pod that is terminating counts: its containers run.
func (w view) labelledOtherwise(v *ledger.Volume, need Need) []Reason {
	s, n := w.snapshot, w.snapshot.Node(w.node)
	if w.request.Pod == "" || n == nil || !n.SELinuxMount || !s.SELinuxMount(need.Volume.Driver) {
		return nil
	}
	var reasons []Reason
	conflicts := func(u ledger.User) {
		reasons = append(reasons, Reason{Code: SELinuxConflict, Volume: need.Volume, Claim: need.Name, Node: w.node, Who: requester(s, u)})
	}
	if place := v.NodeVolume(w.node); place != nil {
		for _, u := range w.queue.blockers(place, w.request) {
			if len(reasons) < fewUsers && mountedFor(s, u, need.Volume).Conflicts(need.SELinux) && (w.blocks(v, place, u) || w.leavesIt(u)) {
				conflicts(u)
			}
		}
	}
	if d := s.Delta(); d != nil {
		for _, uid := range d.AddedPods() { // the pods that a dry run tries
			if len(reasons) < fewUsers && d.Added[uid] == w.node && uid != w.request.Pod && mountLabel(s, uid, need.Volume).Conflicts(need.SELinux) {
				conflicts(ledger.User{Pod: uid})
			}
		}
	}
	return reasons
}

// leavesIt says whether a user is another pod that is still there, and goes; none is where what nobody
// needs any more is taken for gone.
func (w view) leavesIt(u ledger.User) bool {
	return !w.detached && !w.request.owns(u) && claimStateOf(w.snapshot, u) == terminating
}

// mountedFor is the label with which a volume is mounted for a user. Kubelets mount for pods alone.
func mountedFor(s ledger.Snapshot, u ledger.User, v ledger.VolumeID) ledger.SELinux {
	if u.Pod == "" {
		return ledger.SELinuxUnknown
	}
	return mountLabel(s, u.Pod, v)
}

// mountLabel is the label with which a pod, by its UID, has a volume mounted: the first that it names,
// if it names the volume twice. It is unknown of a pod that is not known.
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
