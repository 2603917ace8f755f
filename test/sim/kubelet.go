// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/world"
)

type kubelet struct {
	caller
	s       *Sim
	node    ledger.NodeName
	machine *world.Machine
	silent  time.Time
	podsAt  int             // the seen part of the pods' log
	busy    map[string]bool // requests in flight
}

func newKubelet(s *Sim, n ledger.NodeName, m *world.Machine) *kubelet {
	return &kubelet{s: s, caller: caller{name: string(n), up: true}, node: n, machine: m, busy: map[string]bool{}}
}

func (k *kubelet) process() world.Kubelet { return k.s.w.KubeletOf(k.machine) }

func (k *kubelet) kill() {
	k.incarnation++
	k.up = false
	k.process().Kill()
	k.quiet()
}

func (k *kubelet) crash() {
	k.kill()
	k.machine.PowerOff()
}

func (k *kubelet) cut() {
	k.process().Linked = false
	k.quiet()
}

func (k *kubelet) join() {
	k.process().Linked = true
	k.heard()
}

func (k *kubelet) quiet() {
	if k.silent.IsZero() {
		k.silent = k.s.Now()
	}
}

func (k *kubelet) heard() {
	if k.up && k.process().Linked {
		k.silent = time.Time{}
	}
}

func (k *kubelet) restart() { k.startWithout() }

func (k *kubelet) startWithout(unknown ...ledger.VolumeID) {
	k.incarnation++
	k.up = true
	k.podsAt, k.busy = 0, map[string]bool{}
	k.process().Start(unknown...)
	k.heard()
}

func (k *kubelet) working() bool { return k.up && k.process().Linked }

func (k *kubelet) offer(m *menu) {
	if !k.awake() {
		return
	}
	p := k.process()
	k.offerLocal(m, p)
	if !p.Linked {
		return
	}
	if !p.Registered {
		m.add(8, k.name, "register", "")
		return
	}
	if k.podsAt < len(k.s.logs[world.Pods]) {
		m.add(6, k.name, "watch-pods", "")
	}
	if n, _ := k.s.w.Node(k.node); n.Version != p.Node.Version || n.UID != p.Node.UID {
		m.add(3, k.name, "watch-node", "")
	}
	if !k.busy["node"] {
		if p.News() {
			m.add(4, k.name, "report", "")
		}
		if p.CanResolve() {
			m.add(6, k.name, "resolve", "")
		}
	}
	for _, v := range p.Desired() {
		if k.busy[volumeArg(v)] {
			continue
		}
		if p.CanVerify(v) {
			m.add(6, k.name, "verify", volumeArg(v))
		}
		if p.CanCheck(v) {
			m.add(6, k.name, "check", volumeArg(v))
		}
	}
	for _, pod := range p.Pods {
		if k.busy[pod.UID] {
			continue
		}
		if p.CanFinish(pod.UID) {
			m.add(4, k.name, "finish", pod.UID)
		}
		if p.CanRemove(pod.UID) {
			m.add(6, k.name, "remove", pod.UID)
		}
	}
}

func (k *kubelet) offerLocal(m *menu, p world.Kubelet) {
	var room [8]string
	stoppable := room[:0]
	for uid := range k.machine.Containers {
		if p.CanStop(uid) {
			stoppable = append(stoppable, uid)
		}
	}
	slices.Sort(stoppable)
	for _, uid := range stoppable {
		m.add(6, k.name, "stop", uid)
	}
	for _, pod := range p.Pods {
		if p.CanRun(pod.UID) {
			m.add(6, k.name, "run", pod.UID)
		}
		for _, v := range p.Mountable(pod.UID) {
			m.add(6, k.name, "mount", volumeArg(v)+" "+pod.UID)
		}
	}
	for _, v := range k.machine.Staged {
		for _, uid := range k.machine.Mounts[v] {
			if p.CanUnmount(v, uid) {
				m.add(6, k.name, "unmount", volumeArg(v)+" "+uid)
			}
		}
		if p.CanUnstage(v) {
			m.add(6, k.name, "unstage", volumeArg(v))
		}
	}
	for _, v := range p.Attached {
		if p.CanLeave(v) {
			m.add(6, k.name, "leave", volumeArg(v))
		}
	}
}

func (k *kubelet) act(what, arg string) bool {
	p := k.process()
	first, uid, _ := strings.Cut(arg, " ")
	v := volumeOf(first)
	switch {
	case !k.awake():
		return false
	case what == "stop":
		return p.Stop(arg)
	case what == "run":
		return p.Run(arg)
	case what == "mount":
		return p.Mount(v, uid)
	case what == "unmount":
		return k.unmount(p, v, uid)
	case what == "unstage":
		return p.Unstage(v)
	case what == "leave":
		return p.Leave(v)
	case !p.Linked:
		return false
	case what == "register":
		return p.Register(ledger.DriverOnNode{Name: driver, NodeID: k.machine.ID, Limit: k.s.config.Limit})
	case !p.Registered:
		return false
	case what == "watch-pods":
		return k.watchPods(p)
	case what == "watch-node":
		return p.SeeNode()
	}
	return k.ask(p, what, arg)
}

func (k *kubelet) unmount(p world.Kubelet, v ledger.VolumeID, uid string) bool {
	if k.s.w.Forgetful {
		return p.Unpublish(v, uid)
	}
	return p.Unmount(v, uid)
}

func (k *kubelet) watchPods(p world.Kubelet) bool {
	log := k.s.logs[world.Pods]
	if k.podsAt >= len(log) {
		return false
	}
	p.SeenPods = true
	for ; k.podsAt < len(log); k.podsAt++ {
		pod, exists := log[k.podsAt].Fact.(ledger.Pod)
		switch {
		case exists && pod.Node == k.node:
			p.SeePod(pod)
		case !exists:
			p.LosePod(log[k.podsAt].Key)
		}
	}
	return true
}

func (k *kubelet) due() time.Time {
	var t time.Time
	if !k.awake() {
		return t
	}
	p := k.process()
	for _, v := range p.Desired() {
		if !k.busy[volumeArg(v)] {
			t = earlier(t, p.Pause(v))
		}
	}
	return t
}
