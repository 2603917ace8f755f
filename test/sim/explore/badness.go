// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (s *state) badMoves(list []move, n int) []move {
	k, m, name := s.kubelet(n), s.machine(n), string(node(n))
	now, exists := s.w.Node(node(n))
	for _, v := range m.Staged {
		if s.stuck < s.config.Stuck && !slices.Contains(m.Stuck, v) {
			list = append(list, move{v.Handle + " can't be unmounted at " + name, false, func(s *state) {
				s.stuck++
				s.machine(n).Stick(v)
			}})
		}
	}
	for _, p := range s.w.PodsAt(node(n)) {
		switch {
		case s.config.Stuck > 0 && p.Phase == ledger.PodTerminating:
			list = append(list, move{p.UID + " is removed by force", false, func(s *state) { s.w.Drop(world.Pods, p.UID) }})
		case !exists && s.config.Remade > 0:
			list = append(list, move{p.UID + " is collected", true, func(s *state) { s.w.Drop(world.Pods, p.UID) }})
		}
	}
	if m.Powered && s.reboots < s.config.Reboots {
		list = append(list, move{name + " is rebooted", false, func(s *state) {
			s.reboots++
			s.machine(n).PowerOff()
			s.startAnew(n)
		}})
	}
	if k.Works() && s.silences < s.config.Silences {
		list = append(list, move{name + "'s kubelet ends", false, func(s *state) {
			s.silences++
			s.kubelet(n).Kill()
		}})
	}
	if m.Powered && !k.Up || k.Works() && !exists {
		list = append(list, move{name + "'s kubelet starts", true, func(s *state) { s.startAnew(n) }})
	}
	if exists && k.Works() && s.remade < s.config.Remade {
		list = append(list, move{name + " is deleted", false, func(s *state) {
			s.remade++
			s.w.Drop(world.Nodes, string(now.Name))
		}})
	}
	if s.config.Leases && exists && k.Works() && now.Ready != ledger.ReadyTrue && s.renewals < s.config.Renewals {
		list = append(list, move{name + " renews its Lease", false, func(s *state) {
			s.renewals++
			s.renew(n)
		}})
	}
	return s.brokenMoves(list, n)
}

func (s *state) brokenMoves(list []move, n int) []move {
	k, name := s.kubelet(n), string(node(n))
	switch {
	case k.Broken:
		list = append(list, move{name + "'s network plugin is mended", true, func(s *state) { s.machine(n).Process.Broken = false }})
	case k.Works() && s.unready < s.config.Broken:
		list = append(list, move{name + "'s network plugin is broken", false, func(s *state) {
			s.unready++
			s.machine(n).Process.Broken = true
		}})
	}
	return list
}

func (s *state) volumeMoves(list []move) []move {
	if s.config.Vanished == 0 {
		return list
	}
	for i := range s.config.Access {
		old, fresh := pvName(i+1, false), pvName(i+1, true)
		_, vanished := s.w.Vanished(old)
		switch {
		case !vanished && s.vanished < s.config.Vanished:
			list = append(list, move{old + " vanishes", false, func(s *state) {
				s.vanished++
				s.w.Vanish(old)
			}})
		case vanished && s.w.Get(world.PersistentVolumes, fresh) == nil:
			list = append(list, move{"the disk of " + old + " comes back", true, func(s *state) {
				s.w.Import(old, fresh, ledger.ClaimKey{Namespace: namespace, Name: claimName(i+1, true)})
			}})
		}
	}
	return list
}

func (s *state) startAnew(n int) {
	s.kubelet(n).Kill()
	s.kubelet(n).Start()
	s.kubelet(n).Register()
}

func (s *state) stuckAt(v ledger.VolumeID) bool {
	for n := 1; n <= nodes; n++ {
		if slices.Contains(s.machine(n).Stuck, v) {
			return true
		}
	}
	return false
}

func (e *encoder) badness(s *state) {
	c := s.config
	e.byte(byte(c.Mute-s.muted), byte(c.Anew-s.anew), byte(c.Erased-s.erased), byte(c.Reboots-s.reboots))
	e.byte(byte(c.Stuck-s.stuck), byte(c.Silences-s.silences), byte(c.Broken-s.unready), byte(c.Remade-s.remade), byte(c.Vanished-s.vanished), byte(c.Renewals-s.renewals))
	for n := 1; n <= nodes; n++ {
		m := s.machine(n)
		e.byte(volumeSet(m.Stuck), volumeSet(m.Left))
		e.bool(m.Process.Broken, m.Process.Registered)
		if c.Leases {
			e.lease(m.Node, m.Renewed.UnixMicro())
		}
	}
	if c.Vanished == 0 {
		return
	}
	e.bool(s.leader != nil && s.behind(world.Claims), s.leader != nil && s.behind(world.PersistentVolumes))
	for i := range c.Access {
		for _, again := range []bool{false, true} {
			e.bool(s.w.Get(world.PersistentVolumes, pvName(i+1, again)) != nil)
		}
	}
	for i := range c.Pods {
		e.bool(s.w.Judge.Led(pod(i + 1)))
	}
}
