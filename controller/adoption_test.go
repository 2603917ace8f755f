// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// Installed into a cluster in which hundreds of volumes are attached by another
// controller, it has complete books, detaches nothing and writes no node status.
func TestAdoption(t *testing.T) {
	const nodes, each = 10, 30
	c := newCluster(t, each, names("n", nodes)...)
	var handles []string
	for n := range nodes {
		node := fmt.Sprintf("n%d", n)
		var here []string
		for i := range each {
			handle := fmt.Sprintf("%s-v%d", node, i)
			c.disk(handle)
			c.pod("pod-"+handle, node, handle, false)
			c.Put("volumeattachments", &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: va(handle, node)},
				Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node,
					Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(handle)}},
				Status: storagev1.VolumeAttachmentStatus{Attached: true},
			})
			here, handles = append(here, handle), append(handles, handle)
		}
		c.node(node, here)
		c.report(node, here...)
	}
	c.Forget()
	c.lead(1)
	c.until("every volume has its hold", func() bool {
		list, err := c.Moorage.VolumeHolds().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == len(handles)
	})
	for _, handle := range handles {
		node, _, _ := strings.Cut(handle, "-")
		h := c.hold(handle)
		if h.Holder == nil || h.Holder.Node != node || len(h.Holder.Requesters) != 1 || h.Holder.Requesters[0].Name != "pod-"+handle {
			t.Fatalf("the hold of %s is %+v", handle, h)
		}
	}
	for n := range nodes {
		for _, d := range c.observer.Snapshot().Node(ledger.NodeName(fmt.Sprintf("n%d", n))).Drivers {
			if d.Used != each {
				t.Errorf("n%d: %d slots used", n, d.Used)
			}
		}
	}
	for _, w := range c.Writes() {
		if !strings.HasPrefix(w, "create volumeholds ") {
			t.Errorf("it wrote: %s", w)
		}
	}
}
