// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *state) kubelet(n int) world.Kubelet { return s.w.Kubelet(machineID(node(n))) }

// The lag of kubelets' copies is not searched.
func (s *state) look() {
	for n := 1; n <= nodes; n++ {
		if k := s.kubelet(n); k.Works() {
			k.SeeNode()
			if s.podsSeen != s.w.Changed(world.Pods) || !k.SeenPods {
				k.SeePods()
			}
		}
	}
	s.podsSeen = s.w.Changed(world.Pods)
}

func (s *state) kubeletMoves(list []move) []move {
	for n := 1; n <= nodes; n++ {
		k := s.kubelet(n)
		if !k.Up {
			continue
		}
		list = s.reportMoves(list, n, k)
		for i := range s.config.Access {
			v := volume(i + 1)
			named := func(does string) string { return fmt.Sprintf("%s %s %s", node(n), does, v.Handle) }
			if k.CanVerify(v) {
				list = append(list, move{named("finds in volumesAttached"), true, func(s *state) { s.verify(n, v) }})
			}
			if k.CanUnstage(v) {
				list = append(list, move{named("unstages"), true, func(s *state) {
					s.kubelet(n).Unstage(v)
					s.release(n)
				}})
			}
			if k.CanLeave(v) {
				list = append(list, move{named("lets go of"), true, func(s *state) { s.release(n) }})
			}
		}
		for i := range s.config.Pods {
			list = s.podMoves(list, n, i+1)
		}
	}
	return list
}

func (s *state) reportMoves(list []move, n int, k world.Kubelet) []move {
	name := string(node(n))
	if k.CanResolve() {
		list = append(list, move{name + " looks for its mounts in volumesAttached", true, func(s *state) { s.resolve(n) }})
	}
	if k.News() {
		list = append(list, move{name + " reports its volumes in use", true, func(s *state) { s.report(n) }})
	}
	return list
}

func (s *state) resolve(n int) {
	if r, possible := s.kubelet(n).Resolve(); possible {
		s.kubelet(n).Resolved(s.w.Serve(r))
	}
}

func (s *state) report(n int) {
	if r, possible := s.kubelet(n).Report(); possible {
		if now, _ := s.w.Node(node(n)); now.Ready != ledger.ReadyTrue {
			s.renew(n)
		}
		s.kubelet(n).Reported(s.w.Serve(r))
	}
}

func (s *state) verify(n int, v ledger.VolumeID) {
	if r, possible := s.kubelet(n).Verify(v); possible {
		s.kubelet(n).Verified(v, s.w.Serve(r))
	}
}

func (s *state) podMoves(list []move, n, i int) []move {
	name, uid, k := string(node(n)), pod(i), s.kubelet(n)
	for _, claim := range s.config.Pods[i-1] {
		if s.mountable(n, claim, uid) {
			list = append(list, move{fmt.Sprintf("%s mounts v%d for %s", name, claim, uid), true, func(s *state) { s.mount(n, volume(claim), uid) }})
		}
	}
	if s.ends(k, uid) {
		list = append(list, move{name + " ends " + uid, true, func(s *state) { s.end(n, uid) }})
	}
	if p, _ := s.w.Pod(uid); p.Node == node(n) && slices.Contains(k.Ended, uid) && k.CanRemove(uid) {
		list = append(list, move{name + " removes " + uid, true, func(s *state) { s.remove(n, uid) }})
	}
	return list
}

func (s *state) mountable(n, claim int, uid string) bool {
	k, v := s.kubelet(n), volume(claim)
	p, _ := s.w.Pod(uid)
	if p.Node != node(n) || p.Phase != ledger.PodLive || !k.CanCheck(v) || slices.Contains(k.Machine().Mounts[v], uid) {
		return false
	}
	a, _ := s.w.Attachment(attachmentName(claim, n))
	return v.NoAttach() || a.Attached && !a.Deleting
}

func (s *state) mount(n int, v ledger.VolumeID, uid string) {
	k := s.kubelet(n)
	if r, possible := k.Check(v); possible && r.Do != 0 {
		k.CheckedBy(v, s.w.Serve(r))
	}
	k.Mount(v, uid)
	k.Run(uid)
	k.Rested() // no time passes here
}

func (s *state) ends(k world.Kubelet, uid string) bool {
	if k.CanStop(uid) {
		return true
	}
	if p, _ := s.w.Pod(uid); !slices.Contains(k.Ended, uid) && p.Node == k.Machine().Node && k.CanFinish(uid) {
		return true
	}
	return slices.ContainsFunc(k.Machine().Staged, func(v ledger.VolumeID) bool { return k.CanUnmount(v, uid) })
}

func (s *state) end(n int, uid string) {
	k := s.kubelet(n)
	k.Stop(uid)
	k.Finish(uid)
	for _, v := range k.Machine().Staged {
		if s.config.Forgetful {
			k.Unpublish(v, uid) // it may be killed before it unstages
		} else {
			k.Unmount(v, uid)
		}
	}
	s.release(n)
}

func (s *state) remove(n int, uid string) {
	if r, possible := s.kubelet(n).Remove(uid); possible {
		s.w.Serve(r)
	}
}

func (s *state) release(n int) {
	for _, v := range s.kubelet(n).Attached {
		s.kubelet(n).Leave(v)
	}
}
