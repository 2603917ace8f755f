// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	gapPlays = 3
	gapProbe = 500 * time.Millisecond
	gapGrace = 30 * time.Second
)

// LeaderGaps measures the time without a binding, and without an attach, when a leader goes. Each role has
// a second process that waits for the Lease, as two replicas of the chart do, and Leases last their default.
func LeaderGaps() sandbox.Scenario {
	return sandbox.Scenario{
		Name:    "leader-gaps",
		Doc:     "How long no pod is bound, and nothing is attached, when the leading controller or scheduler is killed, or ended as in a rolling upgrade.",
		Modes:   []sandbox.Mode{sandbox.Standalone},
		Extra:   true,
		Timeout: 30 * time.Minute,
		Shape:   func(shape *sandbox.Shape) { shape.DefaultLeases, shape.Slots = true, 200 },
		Run: tell(func(s *story) {
			g := &leaderGaps{story: s, leads: map[string]string{}, next: map[string]string{}}
			for _, role := range []string{sandbox.MoorageController, sandbox.MoorageScheduler} {
				next, err := s.Cluster.StandBy(role)
				s.must(err)
				g.leads[role], g.next[role] = role, next
			}
			for _, role := range []string{sandbox.MoorageController, sandbox.MoorageScheduler} {
				g.plays(role, "killed", 40*time.Second, func(name string) error { return s.Cluster.Kill(s.ctx, name) })
				g.plays(role, "ended", 15*time.Second, func(name string) error { return s.Cluster.Terminate(s.ctx, name, gapGrace) })
			}
		}),
	}
}

type leaderGaps struct {
	*story
	leads, next map[string]string // processes by role
	n           int               // of plays
}

func (g *leaderGaps) plays(role, how string, lasts time.Duration, stop func(name string) error) {
	var bindings, attaches []time.Duration
	for range gapPlays {
		binding, attach := g.play(role, lasts, stop)
		g.say("%s is %s: no binding for %.1f s, no attach for %.1f s", role, how, binding.Seconds(), attach.Seconds())
		bindings, attaches = append(bindings, binding), append(attaches, attach)
	}
	g.countTimes(fmt.Sprintf("%s %s, no binding", role, how), bindings)
	g.countTimes(fmt.Sprintf("%s %s, no attach", role, how), attaches)
}

// play makes two pods at every probe: one for the scheduler, and one that has a node already, so that its
// attach needs only the controller. The leader stops after the first probes.
func (g *leaderGaps) play(role string, lasts time.Duration, stop func(name string) error) (binding, attach time.Duration) {
	g.n++
	probes := int(lasts / gapProbe)
	name := func(kind string, i int) string { return fmt.Sprintf("%s-%d-%d", kind, g.n, i) }
	for i := range probes {
		for _, kind := range []string{"placed", "bound"} {
			claim := sandbox.Claim(name(kind, i), corev1.ReadWriteOnce)
			claim.Spec.StorageClassName = new("disk-immediate")
			g.must(g.CreateClaim(g.ctx, claim))
		}
	}
	g.until("the claims are bound", func() error {
		for _, c := range g.View.Claims(g.Namespace) {
			if c.Status.Phase != corev1.ClaimBound {
				return fmt.Errorf("%s is not", c.Name)
			}
		}
		return nil
	})

	var bound, attached moments
	stopped := make(chan error, 1)
	began, made, asked := time.Now(), 0, false
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for len(bound.at) < probes || len(attached.at) < probes {
		select {
		case <-g.ctx.Done():
			g.must(g.ctx.Err())
		case <-tick.C:
		}
		if since := time.Since(began); made < probes && since >= time.Duration(made)*gapProbe {
			g.pod(name("placed", made), name("placed", made))
			pod := sandbox.Pod(name("bound", made), name("bound", made))
			pod.Spec.NodeName = sandbox.NodeName(made%3 + 1)
			g.must(g.CreatePod(g.ctx, pod))
			made++
		} else if !asked && since >= 3*time.Second {
			asked = true
			go func() { stopped <- stop(g.leads[role]) }()
		}
		at := map[string]bool{}
		for _, a := range g.View.Attachments() {
			if pv := a.Spec.Source.PersistentVolumeName; pv != nil {
				at[*pv] = true
			}
		}
		for i := range made {
			if pod := g.View.Pod(g.Namespace, name("placed", i)); pod != nil && pod.Spec.NodeName != "" {
				bound.saw(i)
			}
			if c := g.View.Claim(g.Namespace, name("bound", i)); c != nil && at[c.Spec.VolumeName] {
				attached.saw(i)
			}
		}
	}
	g.must(<-stopped)
	g.must(g.Cluster.StartAgain(g.leads[role]))
	g.leads[role], g.next[role] = g.next[role], g.leads[role]

	for i := range probes {
		g.remove(name("placed", i))
		g.remove(name("bound", i))
	}
	g.until("all pods are gone, and their volumes detached", func() error {
		if len(g.View.Pods(g.Namespace)) > 0 || len(g.View.Attachments()) > 0 {
			return errors.New("not yet")
		}
		return nil
	})
	return bound.gap(), attached.gap()
}

// moments are when things were seen first.
type moments struct {
	seen map[int]bool
	at   []time.Time
}

func (m *moments) saw(i int) {
	if m.seen == nil {
		m.seen = map[int]bool{}
	}
	if !m.seen[i] {
		m.seen[i] = true
		m.at = append(m.at, time.Now())
	}
}

// gap is the longest time between two moments.
func (m *moments) gap() (longest time.Duration) {
	for i := 1; i < len(m.at); i++ {
		longest = max(longest, m.at[i].Sub(m.at[i-1]))
	}
	return longest
}
