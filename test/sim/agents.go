// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// agents are the moorage-nodes of all machines, and the people who unmount by hand what
// kubelets have forgotten.
type agents struct{ s *Sim }

// begin starts one on every machine.
func (a *agents) begin() {
	for _, k := range a.s.kubelets {
		k.machine.Agent.Runs = true
	}
}

// offer implements process. What is read, found and written may be old by then.
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

// forgotten says whether a volume is staged that the kubelet does not know, and is not to
// use.
func (k *kubelet) forgotten(v ledger.VolumeID) bool {
	p := k.process()
	return k.working() && p.Synced && p.SeenPods && len(k.machine.Mounts[v]) == 0 && !slices.Contains(p.Attached, v) &&
		!slices.Contains(p.Desired(), v) && !slices.Contains(k.machine.Stuck, v)
}

// act implements process.
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
		return k.machine.Unstage(volumeOf(volume))
	}
	return false
}

// due implements process.
func (a *agents) due() time.Time { return time.Time{} }
