// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// comparison is what a scenario counts, and whether it only counts.
type comparison struct {
	compares bool
	hanging  []string
	counts   map[string]int
	steps    []Step
}

// Step is something that a scenario does again and again, such as a kill at a certain
// instant, and what came of it.
type Step struct {
	Name string `json:"name"`
	// Done is how often it was done.
	Done int `json:"done"`
	// Broken is how many violations the judge has seen of the volumes concerned, by rule.
	Broken map[diskapi.Rule]int `json:"broken,omitempty"`
}

// Counts of volumes for one node that were at two.
const (
	AttachedToTwo = "volumes attached to two nodes at once"
	MountedAtTwo  = "volumes mounted at two nodes at once"
)

// Compare has what a cluster does wrong in which kube-controller-manager attaches and detaches
// be counted in the result, and not fail the scenario: violations, what is left over, and pods
// that are told to Hangs. It is an error in Standalone mode, which is judged. It is serial.
func (e *Env) Compare() error {
	if e.Mode == Standalone {
		return fmt.Errorf("mode %s is judged, not compared with", e.Mode)
	}
	e.compares = true
	return nil
}

// ExpectForgotten counts volumes that a kubelet has forgotten, and that were detached for that, in the
// result, without failing the scenario. It is an error with moorage-node, which reports them. It is
// serial.
func (e *Env) ExpectForgotten() error {
	if e.Cluster.Shape().MoorageNode {
		return errors.New("a volume that a kubelet has forgotten: moorage-node is judged by it")
	}
	e.ExpectForced()
	return nil
}

// ExpectForced counts what comes of a detach by time alone, from a node that may still write, without
// failing the scenario.
func (e *Env) ExpectForced() {
	for _, rule := range []diskapi.Rule{
		diskapi.UnpublishWhileStaged, diskapi.StagedAtTwo, diskapi.WriteLost, diskapi.WrittenByTwo,
	} {
		e.excuse(rule)
	}
}

// Hangs notes that a pod was given time to run and did not, and why. It is
// serial.
func (c *comparison) Hangs(why error) { c.hanging = append(c.hanging, why.Error()) }

// Hanging lists the pods given to Hangs.
func (c *comparison) Hanging() []string { return c.hanging }

// Count adds one to what the result says of how often something was done. It is
// serial.
func (c *comparison) Count(what string) {
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what]++
}

// SetCount says a number in the result, such as a time in milliseconds. It is serial.
func (c *comparison) SetCount(what string, n int) {
	c.Count(what)
	c.counts[what] = n
}

// Counts has the counts of Count and SetCount.
func (c *comparison) Counts() map[string]int { return c.counts }

// Steps has the notes of StepDone and StepBroke, in the order of the steps' first names.
func (c *comparison) Steps() []Step { return c.steps }

// StepDone notes that a step was done so often. It is serial.
func (c *comparison) StepDone(name string, times int) { c.step(name).Done += times }

// StepBroke notes a violation that came of a step. It is serial.
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
