// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moorage-dev/moorage/test/sandbox"
)

// crash guards I8: any process may be killed at any instant. Pods start in
// waves; each wave is led to one step of the path, and there whoever would do
// the next step is killed, together with somebody else whom the seed chooses.
// All come back at once, while earlier waves are still under way.
func crash() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "crash",
		Doc: "50 pods start while controller, scheduler, webhook and external-attacher are killed with SIGKILL between the steps of the path, every step covered, and come back: " +
			"all run, nothing is left over, no violation.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Timeout: 12 * time.Minute,
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
			for _, name := range c.names {
				s.remove(name)
			}
			c.until("all pods are gone", c.everyPod(s.PodGone))
		}),
	}
}

// crashPoint is a step of the path between whose two stages somebody is killed.
type crashPoint struct {
	after, before sandbox.Stage
	// victim would do what comes next.
	victim string
	// hold keeps new pods from going further, and is called before there are
	// any; nil where the next stage is long in coming or only luck helps. lead
	// is called once there are pods. free ends what is still held when the
	// victim is dead.
	hold, lead, free func(*crashes)
}

func (p crashPoint) String() string { return fmt.Sprintf("%q and not %q", p.after, p.before) }

// crashes counts what was done.
type crashes struct {
	*story
	names []string // of all pods so far
	kills int
	seen  []struct {
		crashPoint
		killed, restarted time.Time
	}
	mend func() // ends a fault of the disk service
}

// wave creates pods, each with a volume of its own.
func (c *crashes) wave(n int) []string {
	var wave []string
	for range n {
		name := fmt.Sprintf("p%02d", len(c.names)+1)
		c.claim(name)
		c.pod(name, name)
		c.names, wave = append(c.names, name), append(wave, name)
	}
	return wave
}

// webhookDown creates pods while the webhook is dead.
func (c *crashes) webhookDown(n int) {
	c.must(c.Cluster.Kill(c.ctx, sandbox.MoorageWebhook))
	c.kills++
	c.wave(n)
	c.must(c.Cluster.StartAgain(sandbox.MoorageWebhook))
	c.say("%d pods were created while the webhook was dead", n)
}

// crashAt leads a wave of pods to a point and kills there.
func (c *crashes) crashAt(p crashPoint, pods int) {
	if p.hold != nil {
		p.hold(c)
	}
	wave := c.wave(pods)
	if p.lead != nil {
		p.lead(c)
	}
	c.until("a pod is "+p.String(), func() error {
		for _, t := range c.times(wave) {
			if between(t, p, time.Now(), time.Now()) {
				return nil
			}
		}
		return fmt.Errorf("none of %v is", wave)
	})
	victims := []string{p.victim, c.anyBut(p.victim)}
	for _, victim := range victims {
		c.must(c.Cluster.Kill(c.ctx, victim))
		c.kills++
	}
	killed := time.Now()
	if p.free != nil {
		p.free(c)
	}
	for _, victim := range victims {
		c.must(c.Cluster.StartAgain(victim))
	}
	c.seen = append(c.seen, struct {
		crashPoint
		killed, restarted time.Time
	}{p, killed, time.Now()})
	c.say("killed when a pod was %s: %s", p, strings.Join(victims, ", "))
}

// anyBut chooses another victim.
func (c *crashes) anyBut(victim string) string {
	all := []string{sandbox.MoorageController, sandbox.MoorageScheduler, sandbox.MoorageWebhook, sandbox.Attacher}
	all = slices.DeleteFunc(all, func(name string) bool { return name == victim })
	return all[c.Rand.IntN(len(all))]
}

// missed lists the points at which nobody was killed, by what is known now of
// when each pod reached each stage: the next stage may have been reached just
// before the kill, and only been heard of after it.
func (c *crashes) missed(points []crashPoint) []crashPoint {
	times := c.times(c.names)
	return slices.DeleteFunc(slices.Clone(points), func(p crashPoint) bool {
		for _, at := range c.seen {
			if at.after != p.after || at.before != p.before {
				continue
			}
			for _, t := range times {
				if between(t, p, at.killed, at.restarted) {
					return true
				}
			}
		}
		c.say("nobody was killed when a pod was %s; once more", p)
		return false
	})
}

// between says whether a pod was at a point from one moment to another.
func between(t sandbox.PodTimes, p crashPoint, from, to time.Time) bool {
	after, reached := t.At[p.after]
	before, left := t.At[p.before]
	return reached && !after.After(from) && (!left || !before.Before(to))
}

// reached returns nil when one of the pods has reached a stage.
func (c *crashes) reached(names []string, stage sandbox.Stage) error {
	for _, t := range c.times(names) {
		if _, ok := t.At[stage]; ok {
			return nil
		}
	}
	return fmt.Errorf("none of %v is %s", names, stage)
}

// times lists the paths of pods.
func (c *crashes) times(names []string) []sandbox.PodTimes {
	return slices.DeleteFunc(c.Timeline.Pods(), func(t sandbox.PodTimes) bool { return !slices.Contains(names, t.Pod) })
}

// everyPod checks all pods so far.
func (c *crashes) everyPod(check func(string) error) func() error {
	return func() error {
		for _, name := range c.names {
			if err := check(name); err != nil {
				return err
			}
		}
		return nil
	}
}
