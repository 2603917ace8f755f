// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
	"github.com/moorage-dev/moorage/test/sandbox/disk/judge"
)

// Only the judge asserts on the way; in the end every pod runs, and nothing is left over. Cooperative and
// Upstream modes count violations; in Cooperative mode every pod still has to run.
func chaos(scenario sandbox.Scenario, pods, actions int, pace time.Duration) sandbox.Scenario {
	scenario.Doc = fmt.Sprintf("Up to %d pods come and go, %d actions long: kill -9 of every component and of kubelets, restarts of the API server, calls that fail, hang and take their time. "+
		"In the end every pod runs, nothing is left over, and the judge has seen no violation. Cooperative: every pod runs; violations and leftovers, which may be kube-controller-manager's, are counted. Upstream: all that goes wrong is counted.", pods, actions)
	scenario.Exclusive = true
	scenario.Shape = func(shape *sandbox.Shape) {
		withNodes(shape)
		shape.RequireReport = shape.MoorageNode
		shape.Nodes, shape.Slots = chaosNodes, pods/4
		shape.AttachLatency, shape.DetachLatency = 100*time.Millisecond, 100*time.Millisecond
	}
	scenario.Run = tell(func(s *story) {
		c := &churn{story: s, most: pods, pace: pace}
		s.say("seed %d", s.Seed)
		if s.Mode != sandbox.Standalone {
			s.must(s.Compare())
		}
		pacing := time.NewTicker(pace)
		defer pacing.Stop()
		for range actions {
			c.act()
			select {
			case <-pacing.C: // the rate of the churn; nothing is waited for
			case <-s.ctx.Done():
				s.must(s.ctx.Err())
			}
		}
		c.calm()
		if s.Mode == sandbox.Standalone {
			c.unmounts()
		}
		s.say("%s", c.summary())
		c.allRun()
		c.atTwoNodes()
	})
	return scenario
}

const chaosNodes = 5

func chaosShort() sandbox.Scenario {
	return chaos(sandbox.Scenario{
		Name:    "chaos-short",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Timeout: 6 * time.Minute,
		Takes:   2 * time.Minute,
	}, 30, 240, 200*time.Millisecond)
}

func Chaos() sandbox.Scenario {
	return chaos(sandbox.Scenario{
		Name:    "chaos",
		Modes:   sandbox.Modes(),
		Timeout: 20 * time.Minute,
		Extra:   true,
	}, 200, 2400, 250*time.Millisecond)
}

type churn struct {
	*story
	most   int
	pace   time.Duration // from one action to the next
	made   int
	pods   []string          // that should run
	claims map[string]string // of each pod
	idle   []string          // claims without a pod
	faults []string
}

// Without faults, failed calls are tried again after minutes.
const patience = 4 * time.Minute

func (c *churn) allRun() {
	err := c.EventuallyWithin(c.ctx, patience, "every pod runs", func() error {
		for _, pod := range c.pods {
			if err := c.Running(pod); err != nil {
				return err
			}
		}
		return nil
	})
	if c.moorage() {
		c.must(err)
	}
	for _, pod := range c.pods {
		if err := c.Running(pod); err != nil {
			c.Hangs(err)
			continue
		}
		c.Count("pods that run in the end")
	}
	c.say("%d of %d pods run", len(c.pods)-len(c.Hanging()), len(c.pods))
}

func (c *churn) atTwoNodes() {
	log, err := c.Disk.Log(c.ctx, 0, diskapi.Filter{})
	c.must(err)
	for _, t := range judge.FindTogether(log) {
		what := sandbox.AttachedToTwo
		if t.Mounted {
			what = sandbox.MountedAtTwo
		}
		c.Count(what)
		c.say("%s: %s at %s and %s (entry %d)", what, t.Entry.Volume, t.Other, t.Entry.Node, t.Entry.Seq)
	}
}

func (c *churn) act() {
	actions := []struct {
		weight int
		name   string
		do     func() bool
	}{
		{40, "pods made", c.come}, {25, "pods deleted", c.leave}, {10, "pods deleted by force", c.vanish},
		{10, "", c.kill}, {2, "", c.killNode}, {1, "", c.restartAPI},
		{8, "", c.fault}, {6, "faults ended on the way", c.mendOne},
	}
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	n := c.Rand.IntN(total)
	for _, a := range actions {
		if n -= a.weight; n < 0 {
			if a.do() && a.name != "" {
				c.Count(a.name)
			}
			return
		}
	}
}

func (c *churn) any(list []string) string { return list[c.Rand.IntN(len(list))] }

func (c *churn) come() bool {
	if len(c.pods) >= c.most {
		return false
	}
	c.made++
	name := fmt.Sprintf("p%03d", c.made)
	claim := name
	if len(c.idle) > 0 && c.Rand.IntN(2) == 0 {
		i := c.Rand.IntN(len(c.idle))
		claim = c.idle[i]
		c.idle = slices.Delete(c.idle, i, i+1)
	} else if c.CreateClaim(c.ctx, sandbox.Claim(claim, "ReadWriteOnce")) != nil {
		return false // the API server is away
	}
	if c.CreatePod(c.ctx, sandbox.Pod(name, claim)) != nil {
		c.idle = append(c.idle, claim)
		return false
	}
	if c.claims == nil {
		c.claims = map[string]string{}
	}
	c.pods, c.claims[name] = append(c.pods, name), claim
	return true
}

func (c *churn) leave() bool { return c.part(c.DeletePod) }

func (c *churn) vanish() bool { return c.part(c.forceDelete) }

func (c *churn) part(how func(context.Context, string) error) bool {
	if len(c.pods) == 0 {
		return false
	}
	i := c.Rand.IntN(len(c.pods))
	name := c.pods[i]
	if how(c.ctx, name) != nil {
		return false
	}
	c.pods = slices.Delete(c.pods, i, i+1)
	c.idle = append(c.idle, c.claims[name])
	return true
}

func (c *churn) kill() bool {
	node := sandbox.NodeName(1 + c.Rand.IntN(chaosNodes))
	components := c.placing()
	if c.Mode == sandbox.Standalone {
		components = append(components, sandbox.MoorageNode(node))
	}
	name := c.any(components)
	if name == sandbox.MoorageNode(node) {
		return c.restartAs(name, "moorage-node")
	}
	return c.restart(name)
}

func (c *churn) placing() []string {
	switch c.Mode {
	case sandbox.Standalone:
		return []string{sandbox.MoorageController, sandbox.MoorageScheduler, sandbox.MoorageWebhook, sandbox.Attacher, sandbox.ControllerManager}
	case sandbox.Cooperative:
		return []string{sandbox.Scheduler, sandbox.Attacher, sandbox.ControllerManager, sandbox.MoorageController, sandbox.MoorageScheduler, sandbox.MoorageWebhook}
	default:
		return []string{sandbox.Scheduler, sandbox.Attacher, sandbox.ControllerManager}
	}
}

// killNode does not follow the beat of the actions: else a kubelet would be done with a deletion at each
// kill.
func (c *churn) killNode() bool {
	select {
	case <-time.After(time.Duration(c.Rand.Int64N(int64(c.pace)))):
	case <-c.ctx.Done():
	}
	return c.restartAs(sandbox.NodeName(1+c.Rand.IntN(chaosNodes)), "kubelet")
}

func (c *churn) restartAPI() bool {
	c.ExpectDenials()
	return c.restart(sandbox.APIServer)
}

func (c *churn) restart(name string) bool { return c.restartAs(name, name) }

func (c *churn) restartAs(name, kind string) bool {
	c.must(c.Cluster.Kill(c.ctx, name))
	c.must(c.Cluster.StartAgain(name))
	c.Count("kill -9: " + kind)
	return true
}

func (c *churn) fault() bool {
	calls := [][]diskapi.Call{{diskapi.ControllerPublish}, {diskapi.ControllerUnpublish}, {diskapi.ControllerPublish, diskapi.ControllerUnpublish}}
	fault := diskapi.Fault{Calls: calls[c.Rand.IntN(len(calls))], Probability: 0.3, Seed: c.Rand.Uint64(), Message: "chaos"}
	switch c.Rand.IntN(4) {
	case 0:
		fault.Action, fault.Code = diskapi.Fail, "Internal"
	case 1:
		fault.Action, fault.Code = diskapi.FailAfter, "DeadlineExceeded"
	case 2:
		fault.Action, fault.DelayMs, fault.Message = diskapi.Delay, 2000, ""
	default:
		fault.Action, fault.Times, fault.Message = diskapi.Hang, 3, ""
	}
	set, err := c.Disk.SetFault(c.ctx, fault)
	c.must(err)
	c.faults = append(c.faults, set.ID)
	c.Count("faults: calls " + string(fault.Action))
	return true
}

func (c *churn) mendOne() bool {
	if len(c.faults) == 0 {
		return false
	}
	c.must(c.Disk.ClearFault(c.ctx, c.faults[0]))
	c.faults = c.faults[1:]
	return true
}

func (c *churn) calm() {
	c.must(c.Disk.ClearFaults(c.ctx))
	c.must(c.Cluster.Heal(c.ctx))
}

// unmounts takes down only volumes without a pod at the node, and while no pod comes to a node.
func (c *churn) unmounts() {
	for _, node := range c.View.Nodes() {
		c.cordon(node.Name)
		defer c.uncordon(node.Name)
	}
	c.until("nothing is mounted that a kubelet has forgotten", func() error {
		for _, node := range c.View.Nodes() {
			word, err := c.word(node.Name)
			if err != nil {
				return err
			}
			for _, v := range word.Status.Volumes {
				switch {
				case !v.Forgotten || v.Handle == "" || v.Unknown != "": // its kubelet has it, or moorage-node can't tell
					continue
				case !c.hasUser(node.Name, v.Handle):
					c.must(c.Cluster.Unstage(c.ctx, node.Name, v.Handle, v.Path))
					c.Count("volumes that kubelets had forgotten")
				}
				return fmt.Errorf("%s says %+v", node.Name, v)
			}
		}
		return nil
	})
}

func (c *churn) hasUser(node, handle string) bool {
	if c.InUse(node, handle) {
		return true
	}
	return slices.ContainsFunc(c.View.Pods(c.Namespace), func(pod *corev1.Pod) bool {
		its, err := c.Handle(c.claims[pod.Name])
		return pod.Spec.NodeName == node && (err != nil || its == handle)
	})
}

func (c *churn) summary() string {
	var parts []string
	for name, n := range c.Counts() {
		parts = append(parts, fmt.Sprintf("%d × %s", n, name))
	}
	slices.Sort(parts)
	return "churned: " + strings.Join(parts, ", ")
}
