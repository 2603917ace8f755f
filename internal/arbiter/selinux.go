// SPDX-License-Identifier: Apache-2.0

package arbiter

import "github.com/moorage-dev/moorage/internal/ledger"

// A kubelet mounts a volume of a driver that can (CSIDriver spec.seLinuxMount) with the SELinux label
// of the first pod that uses it at the node, and refuses it to a pod with another label for as long as
// that pod is there (pkg/kubelet/volumemanager/cache, AddPodToVolume). It says so on the second pod
// only after that is bound, so that the pod waits at a node where it can't run.

// labelledOtherwise says who keeps the request's pod from a volume at its node, as the kubelet has it
// mounted with another SELinux label, or will.
func (w view) labelledOtherwise(need Need) []Reason {
	s, v := w.snapshot, w.snapshot.Volume(need.Volume)
	n, place := s.Node(w.node), v.NodeVolume(w.node)
	if w.request.Pod == "" || place == nil || n == nil || !n.SELinuxMount || !s.SELinuxMount(need.Volume.Driver) {
		return nil
	}
	var reasons []Reason
	for _, u := range w.queue.blockers(place, w.request) {
		if len(reasons) == fewUsers {
			break
		}
		if mountedByPod(s, v.ID, u).Conflicts(need.SELinux) && (w.blocks(v, place, u) || u.Pod != w.request.Pod && standingOf(s, u) == leaving) { //mutant:share-selinux
			reasons = append(reasons, Reason{Code: SELinuxConflict, Volume: v.ID, Claim: need.Name, Node: place.Node, Who: requester(s, u)})
		}
	}
	return reasons
}

// mountedByPod is the label with which a user's pod has a volume mounted. Kubelets mount nothing for
// anybody else.
func mountedByPod(s ledger.Snapshot, v ledger.VolumeID, u ledger.User) ledger.SELinux {
	if u.Pod != "" {
		return labelOf(s, u.Pod, v)
	}
	if t := s.Ticket(u.Ticket); t != nil {
		return labelOf(s, t.Pod, v)
	}
	return ledger.SELinux{Unknown: true}
}

// labelOf is the label with which a pod, by its UID, has a volume mounted. It is unknown of a pod that
// is not known, and where the pod names the volume twice and differs.
func labelOf(s ledger.Snapshot, pod string, v ledger.VolumeID) ledger.SELinux {
	label, found := ledger.SELinux{Unknown: true}, false
	p := s.Pod(pod)
	if p == nil {
		return label
	}
	for _, named := range p.Volumes {
		switch id, _ := s.ResolvePod(p, named); {
		case id != v:
		case found && named.SELinux != label:
			return ledger.SELinux{Unknown: true}
		default:
			label, found = named.SELinux, true
		}
	}
	return label
}
