// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/test/apitest"
)

func (c *cluster) theirs(node string, handles ...string) {
	for _, handle := range handles {
		c.disk(handle)
		c.pod("pod-"+handle, node, handle, false)
		c.stranger(handle, node)
	}
	c.node(node, handles)
	c.report(node, handles...)
}

// stranger has no note, so its volume needs a VolumeHold.
func (c *cluster) stranger(handle, node string) {
	c.Put("volumeattachments", &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: va(handle, node)},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(handle)}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	})
}

// Installed beside volumes of another controller, it detaches nothing and writes no node status.
func TestAdoption(t *testing.T) {
	const nodes, each = 10, 30
	c := newCluster(t, each, names("n", nodes)...)
	var handles []string
	for n := range nodes {
		node := fmt.Sprintf("n%d", n)
		here := names(node+"-v", each)
		c.theirs(node, here...)
		handles = append(handles, here...)
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

func TestAdoptionHoldsUpNobody(t *testing.T) {
	const many = 300
	c := newCluster(t, many+1, "n1")
	c.theirs("n1", names("v", many)...)
	c.disk("new")
	began, goOn := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(release)
	var first sync.Once
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && r.Resource == "volumeholds" {
			first.Do(func() { close(began) })
			<-goOn
		}
		serve()
		return nil
	})
	c.lead(1)
	<-began
	c.pod("new", "n1", "new", false)
	c.until("the pod is known", func() bool { return c.observer.Snapshot().Pod("uid-new") != nil })
	release()
	c.until("its volume is reported", func() bool { return c.reported("new", "n1") })
	holds := 0
	for _, w := range c.Writes() {
		if strings.HasPrefix(w, "create volumeattachments") {
			break
		}
		if strings.HasPrefix(w, "create volumeholds") {
			holds++
		}
	}
	if holds > many/2 {
		t.Errorf("%d volumes were adopted before anything was done for the pod", holds)
	}
}
