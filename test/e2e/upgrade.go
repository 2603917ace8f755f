// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// The scenario pays on clusters that begin with another release: make test-upgrade FROM=1.36.
func upgrade() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "upgrade",
		Doc: "kube-apiserver, kube-controller-manager and then each kubelet are ended and started again as this release (make test-upgrade FROM=1.36), while pods come and go. " +
			"Pods that stay keep their volumes, of which none is detached.",
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative},
		Extra:     true,
		Exclusive: true,
		Timeout:   10 * time.Minute,
		Shape:     threeByFour,
		Run: tell(func(s *story) {
			s.ExpectDenials() // an API server that begins refuses all requests until it has read the roles
			u := &upgrading{story: s, nodes: []string{"worker-1", "worker-2", "worker-3"}, handles: map[string]string{}}
			for _, node := range u.nodes {
				name := "stays-" + node
				s.claim(name)
				s.podAt(node, name, name)
				s.runs(name)
				u.handles[node] = s.handle(name)
			}
			u.say("a pod runs on each node; Kubernetes is %s", u.release())
			for _, component := range append([]string{sandbox.APIServer, sandbox.ControllerManager}, u.nodes...) {
				u.upgrade(component)
			}
			u.say("all is upgraded: Kubernetes is %s, and nothing was detached", u.release())
		}),
	}
}

type upgrading struct {
	*story
	nodes   []string
	handles map[string]string // of the volumes that stay, by node
	moved   int
}

func (u *upgrading) upgrade(component string) {
	claim := fmt.Sprintf("moves-%d", u.moved)
	from, to := u.nodes[u.moved%3], u.nodes[(u.moved+1)%3]
	u.moved++
	u.claim(claim)
	u.podAt(from, claim, claim)
	u.runs(claim)
	u.remove(claim)
	u.must(u.Cluster.Upgrade(u.ctx, component))
	u.release()
	u.podAt(to, claim+"-again", claim)
	u.runs(claim + "-again")
	for node, handle := range u.handles {
		u.never(diskapi.ControllerUnpublish, handle, node)
		u.must(u.Running("stays-" + node))
	}
	u.say("%s is upgraded; a volume moved from %s to %s meanwhile, and the others were left alone", component, from, to)
}
