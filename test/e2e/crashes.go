// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

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

// The API server goes on without a webhook that does not answer.
func (c *crashes) stamping() {
	c.until("pods are stamped", func() error {
		pod, err := c.Client.CoreV1().Pods(c.Namespace).Create(c.ctx, sandbox.Pod("dry-run", "any"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && pod.Annotations[v1alpha1.AnnotationVolumeStatus] == "" {
			err = errors.New("they are not")
		}
		return err
	})
}

func (c *crashes) anyBut(victim string) string {
	all := []string{sandbox.MoorageController, sandbox.MoorageScheduler, sandbox.MoorageWebhook, sandbox.Attacher}
	all = slices.DeleteFunc(all, func(name string) bool { return name == victim })
	return all[c.Rand.IntN(len(all))]
}

// missed looks back: pods that were not held may have reached the next stage just before the kill.
func (c *crashes) missed(points []crashPoint) []crashPoint {
	times := c.times(c.names)
	return slices.DeleteFunc(slices.Clone(points), func(p crashPoint) bool {
		for _, at := range c.crashed {
			if at.after != p.after || at.before != p.before {
				continue
			}
			if p.hold != nil || slices.ContainsFunc(times, func(t sandbox.PodTimes) bool { return between(t, p, at.killed, at.restarted) }) {
				return true
			}
		}
		c.say("in hindsight, nobody was killed when a pod was %s; once more", p)
		return false
	})
}

func between(t sandbox.PodTimes, p crashPoint, from, to time.Time) bool {
	after, reached := t.At[p.after]
	before, left := t.At[p.before]
	return reached && !after.After(from) && (!left || !before.Before(to))
}

func (c *crashes) reached(names []string, stage sandbox.Stage) error {
	for _, t := range c.times(names) {
		if _, ok := t.At[stage]; ok {
			return nil
		}
	}
	return fmt.Errorf("none of %v is %s", names, stage)
}

func (c *crashes) times(names []string) []sandbox.PodTimes {
	return slices.DeleteFunc(c.Timeline.Pods(), func(t sandbox.PodTimes) bool { return !slices.Contains(names, t.Pod) })
}

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
