// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/test/sandbox"
)

const killedFor = 20 * time.Minute

func RealKills() sandbox.Scenario {
	return sandbox.Scenario{
		Name: "real-kills",
		Doc: fmt.Sprintf("Four PostgreSQL, three etcd and three Redis write numbered records for %s, while every few seconds a component is killed or a database's pod is deleted, by force one time in five. "+
			"In the end each acknowledged record is there, nothing is damaged, and the file systems are clean. It needs root, and make real.", killedFor),
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Extra:     true,
		Exclusive: true,
		Timeout:   killedFor + 20*time.Minute,
		Shape:     func(shape *sandbox.Shape) { dataNodes(shape); shape.Slots = 8 },
		Run: tell(func(s *story) {
			if s.Mode != sandbox.Standalone {
				s.must(s.Compare())
			}
			s.warm(databases[0].image)
			var all []*writer
			for i, kind := range []int{0, 0, 0, 0, 1, 1, 1, 2, 2, 2} {
				d := databases[kind]
				d.name = fmt.Sprintf("%s-%d", d.name, i)
				c := s.writer(d)
				c.pace = 500 * time.Millisecond
				all = append(all, c)
			}
			c := &churn{story: s}
			pacing := time.NewTicker(5 * time.Second)
			defer pacing.Stop()
			for ends := time.Now().Add(killedFor); time.Now().Before(ends); {
				s.disturb(c, all[s.Rand.IntN(len(all))])
				select {
				case <-pacing.C: // the rate of the kills; nothing is waited for
				case <-s.ctx.Done():
					s.must(s.ctx.Err())
				}
			}
			longest := time.Duration(0)
			for _, c := range all {
				err := ended(func() {
					pod := s.successor(c.name+" answers", c.name, s.isReady)
					c.begins(pod)
					c.acknowledges(pod.UID)
				})
				c.stop()
				if err != nil {
					if s.Mode == sandbox.Standalone || s.ctx.Err() != nil {
						s.must(err)
					}
					s.say("%s does not come back: %v", c.name, err)
					c.patience = 20 * time.Second
				}
				longest = max(longest, c.longest())
				s.say("%s: %d records were acknowledged, the longest pause was %.1f s", c.name, c.last(), c.longest().Seconds())
			}
			s.SetCount("ms, longest pause of a database", int(longest.Milliseconds()))
			for _, c := range all {
				s.counts(c, c.name+"-0", "") // its client has stopped
			}
		}),
	}
}

func (s *story) disturb(c *churn, w *writer) {
	if s.Rand.IntN(2) == 0 {
		c.restart(c.any(c.placing()))
		return
	}
	pod := w.newest()
	if pod == nil {
		return // it is on its way
	}
	if s.Rand.IntN(5) == 0 {
		if s.forceDelete(s.ctx, pod.Name) == nil {
			s.Count("pods deleted by force")
		}
	} else if s.DeletePod(s.ctx, pod.Name) == nil {
		s.Count("pods deleted")
	}
}

func (c *writer) begins(pod *corev1.Pod) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, pod.UID)
}
