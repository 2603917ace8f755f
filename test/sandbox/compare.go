// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"

	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// comparison is what a scenario counts, and whether it only counts.
type comparison struct {
	compares bool
	hanging  []string
	counts   map[string]int
}

// What is counted of volumes for one node that were at two.
const (
	AttachedToTwo = "volumes attached to two nodes at once"
	MountedAtTwo  = "volumes mounted at two nodes at once"
)

// Compare has what a cluster without Moorage does wrong be counted in the
// result, and not fail the scenario: violations, what is left over, and pods
// that are told to Hangs. It is an error where Moorage is to be judged. It is
// serial.
func (e *Env) Compare() error {
	if e.Mode.Moorage() {
		return fmt.Errorf("mode %s is judged, not compared with", e.Mode)
	}
	e.compares = true
	return nil
}

// ExpectForgotten has volumes that a kubelet has forgotten, and that were detached for
// that, be counted in the result, and not fail the scenario. It is an error where
// moorage-node runs, which is there to tell of them. It is serial.
func (e *Env) ExpectForgotten() error {
	if e.Cluster.Shape().MoorageNode {
		return errors.New("a volume that a kubelet has forgotten: moorage-node is judged by it")
	}
	for _, rule := range []diskapi.Rule{diskapi.UnpublishWhileStaged, diskapi.StagedAtTwo} {
		e.excuse(rule)
	}
	return nil
}

// Hangs notes that a pod was given time to run and did not, and why. It is
// serial.
func (c *comparison) Hangs(why error) { c.hanging = append(c.hanging, why.Error()) }

// Hanging lists what Hangs has noted.
func (c *comparison) Hanging() []string { return c.hanging }

// Count adds one to what the result says of how often something was done. It is
// serial.
func (c *comparison) Count(what string) {
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.counts[what]++
}

// Counts is what Count has counted.
func (c *comparison) Counts() map[string]int { return c.counts }
