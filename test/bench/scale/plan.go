// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"fmt"
	"time"

	"github.com/moorage-dev/moorage/test/bench/scale/result"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const zones = 3

type plan struct {
	mode                             sandbox.Mode
	nodes, perNode, perPod           int
	latency, status                  time.Duration
	rest, quiet, patience            time.Duration
	moorageAttacher                  bool
	skipStorm, skipDrain, skipChange bool
}

func (p plan) slots() int { return 2 * p.perNode }

func (p plan) validate() error {
	switch {
	case p.nodes < zones:
		return fmt.Errorf("%d nodes: at least %d are needed, one in each zone", p.nodes, zones)
	case p.perPod < 1 || p.perNode < p.perPod || p.perNode%p.perPod != 0:
		return fmt.Errorf("%d volumes at a node, and %d in a pod: the one must be a multiple of the other", p.perNode, p.perPod)
	case p.perNode/p.perPod > maxPods/2:
		return fmt.Errorf("%d pods at a node: it has room for %d, and half of that is kept free", p.perNode/p.perPod, maxPods)
	case p.patience <= 0 || p.latency < 0:
		return fmt.Errorf("patience %s and latency %s: use times above zero", p.patience, p.latency)
	}
	return nil
}

const maxPods = 250

func (p plan) workloads() int { return p.nodes * p.perNode / p.perPod }

func (p plan) load() result.Load {
	attacher := "external-attacher"
	if p.moorageAttacher {
		attacher = "moorage-attacher"
	}
	return result.Load{
		Nodes: p.nodes, Volumes: p.nodes * p.perNode, Pods: p.workloads(), Slots: p.slots(), LatencySeconds: p.latency.Seconds(),
		StatusSeconds: p.status.Seconds(), Attacher: attacher,
	}
}

// Nodes are counted from 0.
func nodeName(i int) string { return fmt.Sprintf("hollow-%04d", i) }

func zoneOf(i int) int { return i % zones }

func (p plan) inZone(zone int) []string {
	var out []string
	for i := range p.nodes {
		if zoneOf(i) == zone {
			out = append(out, nodeName(i))
		}
	}
	return out
}

// A storm, the drain, and the storm with a change of leader.
const (
	stormZone = iota
	changeZone
	drainZone
)

func (p plan) controller() (process, leaseNamespace, user string) {
	if p.mode == sandbox.Standalone {
		return sandbox.MoorageController, sandbox.MoorageNamespace, "system:serviceaccount:moorage-system:moorage-controller"
	}
	return sandbox.ControllerManager, "kube-system", "system:serviceaccount:kube-system:attachdetach-controller"
}
