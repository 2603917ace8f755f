// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// An older definition of VolumeHolds drops bootID: no hold is written repeatedly for it.
func TestOlderDefinitionWithoutBoot(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.Unknown("volumeholds", "holder.bootID")
	c.changeNode("n1", func(n *corev1.Node) { n.Status.NodeInfo.BootID, n.Status.NodeInfo.SystemUUID = "b1", "m1" })
	c.disk("data")
	c.stranger("data", "n1")
	c.pod("db", "n1", "data", false)
	c.lead(1)
	c.until("the volume is reported", func() bool { return c.reported("data", "n1") })
	c.until("it is known that the API server drops the boot", func() bool { return c.observer.Snapshot().DropsHoldBoots() })

	c.Unknown("volumeholds", "")
	c.disk("more")
	c.stranger("more", "n1")
	c.pod("web", "n1", "more", false)
	c.until("the next volume is reported", func() bool { return c.reported("more", "n1") })
	c.until("its hold names the boot", func() bool { return c.hold("more").Holder != nil && c.hold("more").Holder.BootID == "b1" })
	c.until("it is known that the API server keeps it", func() bool { return !c.observer.Snapshot().DropsHoldBoots() })
}
