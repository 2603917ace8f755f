// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

type comparison struct {
	compares bool
	hanging  []string
	counts   map[string]int
	steps    []Step
}

type Step struct {
	Name   string               `json:"name"`
	Done   int                  `json:"done"`
	Broken map[diskapi.Rule]int `json:"broken,omitempty"`
}

const (
	AttachedToTwo = "volumes attached to two nodes at once"
	MountedAtTwo  = "volumes mounted at two nodes at once"
)

// Compare has violations, leftovers and hanging pods counted, in place of failing the scenario, where
// kube-controller-manager attaches. It is an error in Standalone mode. It is serial.
func (e *Env) Compare() error {
	if e.Mode == Standalone {
		return fmt.Errorf("mode %s is judged, not compared with", e.Mode)
	}
	e.compares = true
	return nil
}

// ExpectForgotten only counts forgotten volumes. It is an error with moorage-node, which reports them. It
// is serial.
func (e *Env) ExpectForgotten() error {
	if e.Cluster.Shape().MoorageNode {
		return errors.New("a volume that a kubelet has forgotten: moorage-node is judged by it")
	}
	e.ExpectForced()
	return nil
}

// ExpectForced only counts the effects of a detach by time alone.
func (e *Env) ExpectForced() {
	for _, rule := range []diskapi.Rule{
		diskapi.UnpublishWhileStaged, diskapi.StagedAtTwo, diskapi.WriteLost, diskapi.WrittenByTwo,
	} {
		e.excuse(rule)
	}
}

// Hangs notes that a pod did not run in time, and why. It is serial.
func (c *comparison) Hangs(why error) { c.hanging = append(c.hanging, why.Error()) }

func (c *comparison) Hanging() []string { return c.hanging }

// Count is serial.
func (c *comparison) Count(what string) {
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what]++
}

// SetCount is serial.
func (c *comparison) SetCount(what string, n int) {
	c.Count(what)
	c.counts[what] = n
}

func (c *comparison) Counts() map[string]int { return c.counts }

func (c *comparison) Steps() []Step { return c.steps }

// StepDone is serial.
func (c *comparison) StepDone(name string, times int) { c.step(name).Done += times }

// StepBroke is serial.
func (c *comparison) StepBroke(name string, rule diskapi.Rule) {
	step := c.step(name)
	if step.Broken == nil {
		step.Broken = map[diskapi.Rule]int{}
	}
	step.Broken[rule]++
}

func (c *comparison) step(name string) *Step {
	i := slices.IndexFunc(c.steps, func(s Step) bool { return s.Name == name })
	if i < 0 {
		i = len(c.steps)
		c.steps = append(c.steps, Step{Name: name})
	}
	return &c.steps[i]
}
