// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// agents are all moorage-nodes, and people who unmount volumes that kubelets have forgotten.
type agents struct{ s *Sim }

func (a *agents) begin() {
	for _, k := range a.s.kubelets {
		k.machine.Agent.Runs = true
	}
}

// Reads, findings and writes may be old.
func (a *agents) offer(m *menu) {
	for _, k := range a.s.kubelets {
		if a.s.w.CanLook(k.machine) {
			m.add(5, "agents", "look", k.name)
		}
		if k.machine.Agent.Found != nil {
			m.add(5, "agents", "write", k.name)
		}
		if k.machine.Agent.Runs {
			m.addTo(harm, 1, "agents", "end", k.name)
		} else {
			m.addTo(cure, 2, "agents", "begin", k.name)
		}
		for _, v := range k.machine.Staged {
			if k.forgotten(v) {
				m.add(1, "agents", "unmount", k.name+" "+volumeArg(v))
			}
		}
	}
}

func (k *kubelet) forgotten(v ledger.VolumeID) bool {
	p := k.process()
	runs := slices.ContainsFunc(k.machine.Mounts[v], func(pod string) bool { return k.machine.Containers[pod] })
	return k.working() && p.Synced && p.SeenPods && !runs && !slices.Contains(p.Attached, v) &&
		!slices.Contains(p.Desired(), v) && !slices.Contains(k.machine.Stuck, v)
}

func (a *agents) act(what, arg string) bool {
	name, volume, _ := strings.Cut(arg, " ")
	k := a.s.kubeletOf(ledger.NodeName(name))
	switch {
	case k == nil:
	case what == "look":
		return a.s.w.Look(k.machine)
	case what == "write":
		return a.s.w.Write(k.machine)
	case what == "end" && k.machine.Agent.Runs:
		k.machine.StopAgent()
		return true
	case what == "begin" && !k.machine.Agent.Runs:
		k.machine.Agent.Runs = true
		return true
	case what == "unmount" && k.forgotten(volumeOf(volume)):
		for _, pod := range slices.Clone(k.machine.Mounts[volumeOf(volume)]) {
			k.machine.Unpublish(volumeOf(volume), pod)
		}
		return k.machine.Unstage(volumeOf(volume))
	}
	return false
}

func (a *agents) due() time.Time { return time.Time{} }
