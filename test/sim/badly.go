// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

func (f *faults) offerBadness(m *menu) {
	for _, k := range f.s.kubelets {
		f.offerBadNode(m, k)
	}
	if f.s.config.Vanishing {
		for _, name := range f.s.w.Keys(world.PersistentVolumes) {
			m.addTo(harm, 1, "fault", "vanish", name)
		}
		for _, name := range f.vanished {
			if !f.imported(name) {
				m.addTo(cure, 1, "fault", "import", name)
			}
		}
	}
	if f.s.config.Refusals {
		m.addTo(harm, 1, "fault", "deny", f.drawRefusal().String())
		for _, r := range f.s.w.Refusals {
			m.addTo(cure, 1, "fault", "admit", r.String())
		}
	}
}

func (f *faults) offerBadNode(m *menu, k *kubelet) {
	p, c := k.process(), f.s.config
	_, exists := f.s.w.Node(k.node)
	switch {
	case !c.Broken:
	case p.Broken:
		m.addTo(cure, 2, "fault", "mend", k.name)
	case k.working() && !p.Leaving:
		m.addTo(harm, 1, "fault", "break", k.name)
		m.addTo(harm, 1, "fault", "leave", k.name)
	case p.Leaving && k.machine.Powered:
		m.addTo(cure, 2, "fault", "crash", k.name)
	}
	for _, v := range k.machine.Staged {
		if c.Stuck && !slices.Contains(k.machine.Stuck, v) {
			m.addTo(harm, 1, "fault", "stick", k.name+" "+volumeArg(v))
		}
		if c.Forgetful && !k.up && k.machine.Powered {
			m.addTo(harm, 1, "fault", "start-without", k.name+" "+volumeArg(v))
		}
	}
	if c.Remade && exists {
		m.addTo(harm, 1, "fault", "lose-node", k.name)
	}
	if k.working() && !exists && p.Registered {
		m.addTo(cure, 2, "fault", "restart", k.name)
	}
	switch {
	case !c.Fenced:
	case k.machine.Cut && !k.machine.Powered:
		m.addTo(cure, 3, "fault", "unfence", k.name)
	case k.machine.Cut:
		m.addTo(cure, 1, "fault", "crash", k.name)
	case k.machine.Powered && !k.working():
		m.addTo(cure, 1, "fault", "fence", k.name)
	}
}

func (f *faults) drawRefusal() world.Refusal {
	rng := f.s.rng
	r := world.Refusal{What: world.AllRefused()[rng.IntN(len(world.AllRefused()))]}
	kind := world.Nodes
	switch r.What {
	case world.RefusedAttachments:
		kind = world.Attachments
	case world.RefusedTickets:
		kind = world.Tickets
	}
	if keys := f.s.w.Keys(kind); len(keys) > 0 && rng.IntN(3) > 0 {
		r.Key = keys[rng.IntN(len(keys))]
	}
	return r
}

func (f *faults) actBadly(what, arg string) bool {
	switch what {
	case "vanish":
		if !f.s.w.Vanish(arg) {
			return false
		}
		f.vanished = append(f.vanished, arg)
		return true
	case "import":
		return f.restore(arg)
	case "deny", "admit":
		r, ok := world.ParseRefusal(arg)
		if ok && what == "deny" {
			f.s.w.Refuse(r)
		} else if ok {
			f.s.w.Accept(r)
		}
		return ok
	}
	name, volume, _ := strings.Cut(arg, " ")
	k := f.s.kubeletOf(ledger.NodeName(name))
	return k != nil && f.actBadNode(k, what, volumeOf(volume))
}

func (f *faults) actBadNode(k *kubelet, what string, v ledger.VolumeID) bool {
	p := k.process()
	_, exists := f.s.w.Node(k.node)
	switch {
	case what == "break" && !p.Broken, what == "mend" && p.Broken:
		p.Broken = what == "break"
	case what == "leave" && k.working() && !p.Leaving:
		p.Leaving = true
	case what == "stick":
		return k.machine.Stick(v)
	case what == "start-without" && !k.up && k.machine.Powered:
		k.startWithout(v)
	case what == "lose-node" && exists:
		f.s.w.Drop(world.Nodes, string(k.node))
	case what == "restart" && k.working() && !exists:
		k.kill()
		k.restart()
	case what == "fence" && k.machine.Powered && !k.working(), what == "unfence" && k.machine.Cut && !k.machine.Powered:
		k.machine.Cut = what == "fence"
	default:
		return false
	}
	return true
}

func again(name string) (pv string, claim ledger.ClaimKey) {
	return name + "-again", ledger.ClaimKey{Namespace: namespace, Name: strings.Replace(name, "pv", "c", 1) + "-again"}
}

func (f *faults) imported(vanished string) bool {
	_, claim := again(vanished)
	return f.s.w.Get(world.Claims, claim.String()) != nil
}

func (f *faults) restore(vanished string) bool {
	pv, claim := again(vanished)
	return !f.imported(vanished) && f.s.w.Import(vanished, pv, claim)
}

func (f *faults) healBadness() {
	if !f.s.config.ForGood {
		f.s.w.Refusals = nil
	}
	for _, name := range f.vanished {
		f.restore(name)
	}
	f.deleteLostPods()
	if f.s.agents != nil {
		f.s.agents.begin()
	}
	for _, k := range f.s.kubelets {
		k.machine.Stuck = nil // by a person
		k.process().Broken = false
		if (k.machine.Cut || k.process().Leaving) && k.machine.Powered {
			k.crash()
		}
		k.machine.Cut = k.machine.Cut && k.machine.Powered
	}
}

// deleteLostPods deletes bound pods with a vanished PersistentVolume: if their disk is back under another
// name, a new process does not know their use. It returns whether there are any.
func (f *faults) deleteLostPods() bool {
	lost := func(v ledger.PodVolume) bool {
		claim, _ := f.s.w.Get(world.Claims, ledger.ClaimKey{Namespace: namespace, Name: v.Claim}.String()).(ledger.Claim)
		return slices.Contains(f.vanished, claim.PersistentVolume)
	}
	any := false
	for _, key := range f.s.w.Keys(world.Pods) {
		p, _ := f.s.w.Pod(key)
		if p.Node != "" && !f.s.w.Deleting(key) && slices.ContainsFunc(p.Volumes, lost) {
			f.s.w.DeletePod(key)
			any = true
		}
	}
	return any
}

// stranded: no attacher can attach or detach a volume that is attached under a vanished PersistentVolume's
// name.
func (s *Sim) stranded(v ledger.VolumeID) bool {
	for _, key := range s.w.Keys(world.Attachments) {
		a, _ := s.w.Attachment(key)
		if _, known := s.w.Source(a); known && a.Attached {
			continue
		}
		if gone, vanished := s.w.Vanished(a.PersistentVolume); vanished && gone == v {
			return true
		}
	}
	return false
}
