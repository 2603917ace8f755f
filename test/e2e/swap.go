// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Held calls last until the other attacher is there; other calls may take effect after their caller is
// dead.
func swap() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "swap",
		Doc: "external-attacher and moorage-attacher replace each other ten times while volumes change their nodes, each time killed with an attach and a detach under way: " +
			"every pod runs, and nothing is left.",
		Modes:     []sandbox.Mode{sandbox.Standalone},
		Exclusive: true,
		Timeout:   12 * time.Minute,
		Takes:     40 * time.Second,
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.Slots = 8
			shape.AttachLatency, shape.DetachLatency = 300*time.Millisecond, 300*time.Millisecond
		},
		Run: tell(func(s *story) {
			c := &swapping{story: s}
			for i := range 6 {
				name := fmt.Sprintf("v%d", i+1)
				c.claim(name)
				c.come(name)
			}
			c.settle()
			c.leave(c.running[:3])
			for round := range 10 {
				c.swap(round)
			}
			c.leave(slices.Clone(c.running))
		}),
	}
}

type swapping struct {
	*story
	made    int
	running []string // pods; each is named after its claim
	idle    []string // claims
	moorage bool     // moorage-attacher is at work
}

func claimOf(pod string) string {
	claim, _, _ := strings.Cut(pod, "-")
	return claim
}

func (c *swapping) come(claim string) {
	pod := fmt.Sprintf("%s-%d", claim, c.made)
	c.podAt(sandbox.NodeName(1+c.made%3), pod, claim)
	c.made++
	c.running = append(c.running, pod)
}

func (c *swapping) leave(pods []string) {
	for _, pod := range pods {
		c.remove(pod)
		c.idle = append(c.idle, claimOf(pod))
	}
	c.running = slices.DeleteFunc(c.running, func(pod string) bool { return slices.Contains(pods, pod) })
}

func (c *swapping) settle() { c.allRun("the pods run", c.running...) }

func (c *swapping) swap(round int) {
	going, coming := slices.Clone(c.running), slices.Clone(c.idle)
	down, up := c.handle(claimOf(going[0])), c.handle(coming[0])
	for _, claim := range coming {
		c.detached(claim)
	}
	c.idle = nil
	mendDetach := c.hangDetach(down)
	mendAttach := c.breakCalls(diskapi.Fault{Calls: []diskapi.Call{diskapi.ControllerPublish}, Volume: up, Action: diskapi.Hang})
	c.leave(going)
	for _, claim := range coming {
		c.come(claim)
	}
	var attach, detach diskapi.Entry
	c.until("an attach and a detach are under way", func() error {
		var ok, too bool
		attach, ok = c.underWay(diskapi.ControllerPublish, up)
		detach, too = c.underWay(diskapi.ControllerUnpublish, down)
		if !ok || !too {
			return fmt.Errorf("attach: %t, detach: %t", ok, too)
		}
		return nil
	})
	c.moorage = !c.moorage
	c.must(c.Cluster.UseAttacher(c.ctx, c.moorage))
	c.until("both were cut off", func() error { return errors.Join(c.cutOff(attach), c.cutOff(detach)) })
	mendAttach()
	mendDetach()
	c.settle()
	c.say("round %d: replaced by %s; the pods run", round+1, map[bool]string{true: "moorage-attacher", false: "external-attacher"}[c.moorage])
}

func (c *swapping) detached(claim string) {
	c.until("the volume of "+claim+" is detached", func() error {
		for _, node := range []int{1, 2, 3} {
			if a := c.attachment(claim, sandbox.NodeName(node)); a != nil {
				return fmt.Errorf("it is at %s", a.Spec.NodeName)
			}
		}
		return nil
	})
}

func (c *swapping) underWay(call diskapi.Call, handle string) (diskapi.Entry, bool) {
	returned := c.View.Calls(diskapi.Filter{Call: call, Phase: diskapi.Returned, Volume: handle})
	for _, e := range c.View.Calls(diskapi.Filter{Call: call, Phase: diskapi.Arrived, Volume: handle}) {
		if !slices.ContainsFunc(returned, func(r diskapi.Entry) bool { return r.ID == e.ID }) {
			return e, true
		}
	}
	return diskapi.Entry{}, false
}

func (c *swapping) cutOff(call diskapi.Entry) error {
	for _, r := range c.View.Calls(diskapi.Filter{Call: call.Call, Phase: diskapi.Returned, Volume: call.Volume, Outcome: diskapi.Abandoned}) {
		if r.ID == call.ID {
			return nil
		}
	}
	return fmt.Errorf("the %s was not", call.Call)
}

func attachedByMoorage(s sandbox.Scenario) sandbox.Scenario {
	story, _, _ := strings.Cut(s.Doc, " Upstream:")
	s.Name, s.Doc, s.Modes = "attacher-"+s.Name, "With moorage-attacher. "+story, []sandbox.Mode{sandbox.Standalone}
	shape := s.Shape
	s.Shape = func(to *sandbox.Shape) {
		if shape != nil {
			shape(to)
		}
		to.MoorageAttacher = true
	}
	return s
}
