// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

type faults struct {
	s        *Sim
	machines int                     // the number of replaced ones
	vanished []string                // PersistentVolumes
	cutIn    map[ledger.NodeName]int // the boot in which a machine was cut off
}

type victim interface {
	kill()
	restart()
}

func (f *faults) victims() map[string]victim {
	all := map[string]victim{"attacher": f.s.attacher}
	if f.s.manager != nil {
		all[f.s.manager.name] = f.s.manager
	}
	for _, c := range f.s.controllers {
		all[c.name] = c
	}
	for _, k := range f.s.schedulers {
		all[k.name] = k
	}
	for _, k := range f.s.kubelets {
		all[k.name] = k
	}
	return all
}

func (f *faults) caller(name string) *caller {
	switch v := f.victims()[name].(type) {
	case sidecar:
		return v.self()
	case *manager:
		return &v.caller
	case *controller:
		return &v.caller
	case *scheduler:
		return &v.caller
	case *kubelet:
		return &v.caller
	}
	return nil
}

func (f *faults) offer(m *menu) {
	if !f.s.faulty {
		return
	}
	for _, c := range f.s.controllers {
		f.offerProcess(m, &c.caller)
	}
	for _, k := range f.s.schedulers {
		f.offerProcess(m, &k.caller)
	}
	f.offerProcess(m, f.s.attacher.self())
	if f.s.manager != nil {
		f.offerKill(m, &f.s.manager.caller) // a pause of seconds is tolerated (docs/decisions/0008)
	}
	for _, k := range f.s.kubelets {
		f.offerProcess(m, &k.caller)
		if f.s.config.NodeFaults {
			f.offerNode(m, k)
		}
	}
	f.offerBadness(m)
	if f.s.net.down {
		m.addTo(cure, 3, "fault", "api-up", "")
	} else if f.s.config.Losses {
		m.addTo(harm, 1, "fault", "api-down", "")
	}
	for _, d := range []string{"100ms", "1s", "10s"} {
		m.addTo(clock, 2, "clock", "advance", d)
	}
	if f.s.config.NodeFaults || f.s.config.Pauses {
		m.addTo(clock, 1, "clock", "advance", "1m0s")
		m.addTo(clock, 1, "clock", "advance", "7m0s")
	}
}

func (f *faults) offerKill(m *menu, c *caller) {
	switch {
	case !c.up:
		m.addTo(cure, 3, "fault", "start", c.name)
	case f.s.config.Kills && !f.vouched(c.name):
		m.addTo(harm, 1, "fault", "kill", c.name)
	}
}

// The taint of a returned machine's Node still vouches (the residual risk of a stale taint).
func (f *faults) vouched(name string) bool {
	n, exists := f.s.w.Node(ledger.NodeName(name))
	return exists && n.OutOfService
}

func (f *faults) offerProcess(m *menu, c *caller) {
	f.offerKill(m, c)
	switch {
	case c.paused:
		m.addTo(cure, 2, "fault", "resume", c.name)
	case c.up && f.s.config.Pauses && !f.vouched(c.name):
		m.addTo(harm, 1, "fault", "pause", c.name)
	}
}

func (f *faults) offerNode(m *menu, k *kubelet) {
	n, exists := f.s.w.Node(k.node)
	switch {
	case !k.process().Linked:
		m.addTo(cure, 2, "fault", "join", k.name)
	case !exists || !n.OutOfService: // the taint of a returned machine still vouches
		m.addTo(harm, 1, "fault", "cut", k.name)
	}
	if k.machine.Powered {
		m.addTo(harm, 1, "fault", "crash", k.name)
	}
	switch {
	case exists && n.OutOfService && k.working():
		m.addTo(cure, 3, "fault", "untaint", k.name)
	case exists && !n.OutOfService && k.machine.Dead():
		m.addTo(cure, 2, "fault", "taint", k.name) // by a person who has looked
	}
	if f.s.config.Fences && exists {
		switch {
		case len(n.Fenced) > 0 && k.working():
			m.addTo(cure, 1, "fault", "unfence", k.name) // until then it is left behind
		case len(n.Fenced) == 0 && k.machine.Dead():
			m.addTo(cure, 3, "fault", "fence", k.name)
		}
	}
	if f.s.config.CutsOff && exists {
		switch {
		case !k.machine.Cut && n.Ready == ledger.ReadyUnknown:
			m.addTo(cure, 3, "fault", "cut-off", k.name)
		case k.machine.Cut && f.mayBeLetIn(k):
			m.addTo(cure, 3, "fault", "let-in", k.name)
		case !k.machine.Cut && len(n.CutOff) > 0:
			m.addTo(cure, 3, "fault", "uncut", k.name)
		}
	}
	if f.s.config.UnpublishFences && exists {
		switch {
		case n.Shutdown && k.working():
			m.addTo(cure, 3, "fault", "cloud-on", k.name)
		case !n.Shutdown && !k.machine.Powered:
			m.addTo(cure, 3, "fault", "cloud-off", k.name) // it stays when the machine is on again
		}
	}
	if !f.s.config.Replace {
		return
	}
	if exists && n.Ready != ledger.ReadyTrue {
		m.addTo(harm, 1, "fault", "delete-node", k.name)
	}
	if !k.machine.Powered {
		m.addTo(cure, 1, "fault", "replace", k.name)
	}
}

func (f *faults) act(what, arg string) bool {
	name, rest, _ := strings.Cut(arg, " ")
	c := f.caller(name)
	switch {
	case what == "api-up" || what == "api-down":
		f.s.net.down = what == "api-down"
		return true
	case f.actBadly(what, arg):
		return true
	case c == nil:
		return false
	case what == "kill" && c.up:
		f.victims()[name].kill()
	case what == "start" && !c.up:
		f.victims()[name].restart()
	case what == "pause" && c.up && !c.paused:
		f.pause(name, c)
	case what == "resume" && c.paused:
		f.resume(name, c)
	default:
		return f.actNode(what, ledger.NodeName(name), rest)
	}
	return true
}

func (f *faults) mayBeLetIn(k *kubelet) bool {
	n, _ := f.s.w.Node(k.node)
	return n.Ready == ledger.ReadyTrue && k.working() && f.nothingLeft(k)
}

func (f *faults) nothingLeft(k *kubelet) bool {
	return k.machine.Boots != f.cutIn[k.node] || len(k.machine.Staged) == 0
}

func (f *faults) pause(name string, c *caller) {
	switch v := f.victims()[name].(type) {
	case *controller:
		v.pause()
	case *kubelet:
		v.paused = true
		v.quiet()
	default:
		c.paused = true
	}
}

func (f *faults) resume(name string, c *caller) {
	switch v := f.victims()[name].(type) {
	case *controller:
		v.resume()
	case *kubelet:
		v.paused = false
		v.heard()
	case *scheduler:
		v.paused = false
		v.observer.resume()
	default:
		c.paused = false
	}
}

func (f *faults) actNode(what string, name ledger.NodeName, arg string) bool {
	var k *kubelet
	for _, other := range f.s.kubelets {
		if other.node == name {
			k = other
		}
	}
	n, exists := f.s.w.Node(name)
	switch {
	case k == nil:
		return false
	case what == "cut" && k.process().Linked:
		k.cut()
	case what == "join" && !k.process().Linked:
		k.join()
	case what == "crash" && k.machine.Powered:
		k.crash()
	case what == "replace" && !k.machine.Powered:
		f.machines++
		k.machine.Replaced = true
		k.machine = f.s.w.AddMachine(string(name)+"#"+strconv.Itoa(f.machines+1), name)
		k.restart()
	case what == "limit":
		return f.limit(name, arg)
	case !exists:
		return false
	case what == "taint" && k.machine.Dead(), what == "untaint":
		n.OutOfService = what == "taint"
		f.s.w.Put(n)
	case what == "fence" && k.machine.Dead():
		f.s.w.Fence(name, fencedCondition)
	case what == "unfence":
		f.s.w.Fence(name, "")
	case what == "cut-off":
		f.cutIn[name] = k.machine.Boots
		f.s.w.CutOff(name, driver)
	case what == "let-in" && f.mayBeLetIn(k):
		f.s.w.LetIn(name)
	case what == "uncut" && !k.machine.Cut: // the condition's author sees that another machine is there
		n.CutOff = nil
		f.s.w.Put(n)
	case what == "cloud-off" && !k.machine.Powered, what == "cloud-on":
		n.Shutdown = what == "cloud-off"
		f.s.w.Put(n)
	case what == "cordon":
		n.Draining = !n.Draining
		f.s.w.Put(n)
	case what == "delete-node" && n.Ready != ledger.ReadyTrue:
		f.s.w.Drop(world.Nodes, string(name))
	default:
		return false
	}
	return true
}

func (f *faults) limit(name ledger.NodeName, arg string) bool {
	n, err := strconv.ParseInt(arg, 10, 32)
	drivers, ok := f.s.w.Drivers(name)
	if err != nil || !ok || len(drivers.Drivers) == 0 {
		return false
	}
	d := drivers.Drivers[0]
	d.Limit = int32(n)
	drivers.Drivers = []ledger.DriverOnNode{d}
	f.s.w.Put(drivers)
	return true
}

func (f *faults) heal() {
	f.s.net.down = false
	f.healBadness()
	for _, name := range slices.Sorted(maps.Keys(f.victims())) {
		c := f.caller(name)
		if c.paused {
			f.resume(name, c)
		}
		if k, isNode := f.victims()[name].(*kubelet); isNode {
			f.healNode(k)
		} else if !c.up {
			f.victims()[name].restart()
		}
	}
}

func (f *faults) healNode(k *kubelet) {
	if !k.process().Linked {
		k.join()
	}
	n, exists := f.s.w.Node(k.node)
	if k.machine.Cut || len(n.CutOff) > 0 {
		if !f.nothingLeft(k) {
			k.crash()
		}
		f.s.w.LetIn(k.node)
		n, _ = f.s.w.Node(k.node)
	}
	switch {
	case !k.machine.Powered && exists && n.OutOfService:
		return // for good
	case !k.up || !exists:
		k.restart() // a kubelet registers its node once in its life
	}
	if exists && (n.OutOfService || n.Shutdown || n.Draining || len(n.Fenced) > 0) {
		n.OutOfService, n.Shutdown, n.Draining, n.Fenced = false, false, false, nil
		f.s.w.Put(n)
	}
	f.limit(k.node, strconv.Itoa(int(f.s.config.Limit)))
}

func (f *faults) due() time.Time { return time.Time{} }
