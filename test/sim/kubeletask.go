// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/moorage-dev/moorage/test/world"
)

const kubeletTimeout = 10 * time.Second

func (k *kubelet) ask(p world.Kubelet, what, arg string) bool {
	about := arg
	if what == "report" || what == "resolve" {
		about = "node"
	}
	if k.busy[about] {
		return false
	}
	r, then, possible := k.request(p, what, arg)
	if !possible {
		return false
	}
	if r.Do == 0 {
		return true // nothing to ask for
	}
	k.busy[about] = true
	op := what
	if arg != "" {
		op += " " + arg
	}
	k.s.net.send(&k.caller, op, k.s.Now().Add(kubeletTimeout), r, func(a world.Answer, err error) {
		delete(k.busy, about)
		if err != nil {
			a = world.Answer{Code: world.NotFound} // of no use
		}
		then(a)
	})
	return true
}

func (k *kubelet) request(p world.Kubelet, what, arg string) (r world.Request, then func(world.Answer), possible bool) {
	switch v := volumeOf(arg); what {
	case "report":
		r, possible = p.Report()
		return r, p.Reported, possible
	case "resolve":
		r, possible = p.Resolve()
		return r, p.Resolved, possible
	case "verify":
		r, possible = p.Verify(v)
		return r, func(a world.Answer) { p.Verified(v, a) }, possible
	case "check":
		r, possible = p.Check(v)
		return r, func(a world.Answer) { p.CheckedBy(v, a) }, possible
	case "finish":
		r, possible = p.Finish(arg)
	case "remove":
		r, possible = p.Remove(arg)
	}
	return r, func(world.Answer) {}, possible
}
