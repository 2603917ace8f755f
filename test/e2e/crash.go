// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// crash guards I8: any process may be killed at any instant.
func crash() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "crash",
		Doc: "50 pods start while controller, scheduler, webhook and external-attacher are killed with SIGKILL between the steps of the path, every step covered, and come back. " +
			"Then the leading scheduler is paused, later killed, as new pods come, and a standby takes over; the paused one goes on afterwards: all run, nothing is left over, no violation.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Timeout: 12 * time.Minute,
		Takes:   3 * time.Minute,
		Shape: func(shape *sandbox.Shape) {
			threeByFour(shape)
			shape.Slots = 40
		},
		Run: tell(func(s *story) {
			const pods = 50
			c := &crashes{story: s}
			points := crashPoints()
			s.Rand.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
			s.say("seed %d", s.Seed)
			c.webhookDown(pods % len(points))
			for left := points; len(left) > 0; left = c.missed(points) {
				for _, p := range left {
					c.crashAt(p, pods/len(points))
				}
				c.until("all pods run", c.everyPod(s.Running))
			}
			s.expect(len(c.names) >= pods, "there were 50 pods", "there were %d", len(c.names))
			s.say("%d pods run, after %d kills; every step was covered", len(c.names), c.kills)
			c.takeOvers()
			for _, name := range c.names {
				s.remove(name)
			}
			c.until("all pods are gone", c.everyPod(s.PodGone))
		}),
	}
}

type crashPoint struct {
	after, before sandbox.Stage
	victim        string
	// hold is called before there are pods; it is nil if the next stage takes long or luck decides. free is
	// called after the kill.
	hold, free func(*crashes)
	lead       func(c *crashes, wave []string)
}

func (p crashPoint) String() string { return fmt.Sprintf("%q and not %q", p.after, p.before) }

type crashes struct {
	*story
	names   []string // of all pods so far
	kills   int
	crashed []crashedAt
	mend    func() // ends a fault of the disk service
}

type crashedAt struct {
	crashPoint
	killed, restarted time.Time
}

func (c *crashes) webhookDown(n int) {
	c.must(c.Cluster.Kill(c.ctx, sandbox.MoorageWebhook))
	c.kills++
	c.wave(n)
	c.must(c.Cluster.StartAgain(sandbox.MoorageWebhook))
	c.say("%d pods were created while the webhook was dead", n)
}

func (c *crashes) crashAt(p crashPoint, pods int) {
	for !c.led(p, pods) {
		c.say("no pod was seen %s; once more", p)
	}
	victims := []string{p.victim, c.anyBut(p.victim)}
	for _, victim := range victims {
		c.must(c.Cluster.Kill(c.ctx, victim))
		c.kills++
	}
	at := crashedAt{crashPoint: p, killed: time.Now()}
	if p.free != nil {
		p.free(c)
	}
	at.restarted = time.Now()
	for _, victim := range victims {
		c.must(c.Cluster.StartAgain(victim))
	}
	c.crashed = append(c.crashed, at)
	c.say("killed when a pod was %s: %s", p, strings.Join(victims, ", "))
}

// led returns false if all pods were past the point before a pod was seen there.
func (c *crashes) led(p crashPoint, pods int) bool {
	c.stamping()
	if p.hold != nil {
		p.hold(c)
	}
	wave := c.wave(pods)
	if p.lead != nil {
		p.lead(c, wave)
	}
	seen := false
	c.until("a pod is "+p.String(), func() error {
		past := 0
		for _, t := range c.times(wave) {
			if now := time.Now(); between(t, p, now, now) {
				seen = true
				return nil
			}
			if _, left := t.At[p.before]; left {
				past++
			}
		}
		if past == len(wave) {
			return nil
		}
		return fmt.Errorf("none of %v is; %d are past it", wave, past)
	})
	return seen
}
