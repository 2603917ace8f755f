// SPDX-License-Identifier: Apache-2.0

package ticket

// Depth is at how many nodes tickets are due to be granted, and how many tickets
// are due to be ended. Safe for parallel use.
func (c *Controller) Depth() (grants, ends int) { return c.nodes.Len(), c.rest.Len() }
