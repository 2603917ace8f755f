// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

// agents are the moorage-nodes of all machines, and people who unmount by hand the volumes that kubelets
// have forgotten.
type agents struct{ s *Sim }

// begin starts a moorage-node on each machine.
func (a *agents) begin() {
	for _, k := range a.s.kubelets {
		k.machine.Agent.Runs, k.machine.Agent.Repairs = true, a.s.config.Repairs
	}
}

// offer implements process. Reads, findings and writes may be old.
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
			switch {
			case !k.forgotten(v):
			case !a.s.config.Repairs:
				m.add(1, "agents", "unmount", k.name+" "+volumeArg(v))
			case len(k.machine.Mounts[v]) > 0: // a volume mounted for a pod is not unstaged by order
				m.add(1, "agents", "unpublish", k.name+" "+volumeArg(v))
			}
		}
		a.offerRepair(m, k)
	}
}

// offerRepair offers the outcomes of orders to unstage volumes: calls outlive their caller. A person may
// delete a node's NodeVolumes with the orders.
func (a *agents) offerRepair(m *menu, k *kubelet) {
	if !a.s.config.Repairs {
		return
	}
	if k.machine.Agent.Written && !k.machine.Agent.Called {
		m.add(5, "agents", "call", k.name)
	}
	if k.machine.Agent.Called {
		m.addTo(harm, 1, "agents", "give-up", k.name)
	}
	for _, v := range k.machine.Calls {
		m.add(2, "agents", "unstage", k.name+" "+volumeArg(v))
	}
	if _, spoken := a.s.w.Word(k.node); spoken {
		m.addTo(harm, 1, "agents", "delete", k.name)
	}
}

// forgotten says whether a staged volume is unknown to the kubelet, and unwanted.
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
	case what == "call":
		return a.s.w.Call(k.machine)
	case what == "give-up":
		return a.s.w.GiveUp(k.machine)
	case what == "unstage":
		v := volumeOf(volume)
		return a.s.w.Unstages(k.machine, v) || a.s.w.FailsToUnstage(k.machine, v)
	case what == "delete":
		a.s.w.Drop(world.NodeWords, name)
		return true
	case (what == "unmount" || what == "unpublish") && k.forgotten(volumeOf(volume)):
		for _, pod := range slices.Clone(k.machine.Mounts[volumeOf(volume)]) {
			k.machine.Unpublish(volumeOf(volume), pod)
		}
		return what == "unpublish" || k.machine.Unstage(volumeOf(volume))
	}
	return false
}

func (a *agents) due() time.Time { return time.Time{} }
