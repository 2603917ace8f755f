// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// The answers are as old as the API server permits.
func (s *state) agentMoves(list []move) []move {
	if !s.config.Agents {
		return list
	}
	for n := 1; n <= nodes; n++ {
		m, name := s.machine(n), string(node(n))
		if s.w.CanLook(m) {
			list = append(list, move{name + "'s moorage-node looks", true, func(s *state) { s.w.Look(s.machine(n)) }})
		}
		if m.Agent.Found != nil {
			list = append(list, move{name + "'s moorage-node writes", true, func(s *state) { s.w.Write(s.machine(n)) }})
		}
		if m.Agent.Runs && s.muted < s.config.Mute {
			list = append(list, move{name + "'s moorage-node ends", false, func(s *state) {
				s.muted++
				s.machine(n).StopAgent()
			}})
		}
		if m.Agent.Found != nil && s.anew < s.config.Anew { // else nothing is lost
			list = append(list, move{name + "'s moorage-node begins anew", false, func(s *state) {
				s.anew++
				s.machine(n).StopAgent()
				s.machine(n).Agent.Runs = true
			}})
		}
		if _, spoken := s.w.Word(node(n)); spoken && s.erased < s.config.Erased {
			list = append(list, move{"somebody deletes the NodeMountReport of " + name, false, func(s *state) {
				s.erased++
				s.w.Drop(world.NodeWords, name)
			}})
		}
		for _, v := range m.Left {
			if len(m.Mounts[v]) == 0 {
				list = append(list, move{"the record of " + v.Handle + " is removed by hand at " + name, true, func(s *state) { s.machine(n).RemoveRecord(v) }})
			}
		}
		for _, v := range m.Staged {
			if s.forgotten(n, v) {
				list = append(list, move{v.Handle + " is unmounted by hand at " + name, true, func(s *state) { s.machine(n).Unstage(v) }})
			}
		}
	}
	return list
}

func (s *state) forgotten(n int, v ledger.VolumeID) bool {
	k := s.kubelet(n)
	return k.Works() && k.Synced && len(k.Machine().Mounts[v]) == 0 && !slices.Contains(k.Attached, v) && !slices.Contains(k.Desired(), v)
}

// unheard: a moorage-node has ended. Its silence is never over, since time stands still: its node's volumes
// stay.
func (s *state) unheard() bool { return s.muted > 0 }
