// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Its reason makes no autoscaler add nodes.
func TestIncompleteGroupReservesNothing(t *testing.T) {
	c := newCluster(t)
	x := c.pod("x", v1alpha1.SchedulerName, true)
	c.bound(x)
	c.bound(c.pod("y", v1alpha1.SchedulerName, true))
	a1 := c.inGroup("a", "a1", 1)
	c.waits(a1, "PodGroup shop/a has 1 of the 2 pods that it needs")
	z := c.pod("z", v1alpha1.SchedulerName, true)
	c.bound(z)
	a2 := c.inGroup("a", "a2", 2)
	c.delete(x)
	c.delete(z)
	c.bound(a1)
	c.bound(a2)
}

func TestGroupComesAfterItsPods(t *testing.T) {
	c := newCluster(t)
	l1, l2 := c.inGroup("late", "l1", 1), c.inGroup("late", "l2", 1)
	c.waits(l1, "PodGroup shop/late does not exist. No new node would help.")
	c.waits(l2, "PodGroup shop/late does not exist. No new node would help.")
	c.podGroup("late", 2)
	c.bound(l1)
	c.bound(l2)
}
