// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func refused(name string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "volumetickets"}, name, nil)
}

func (c *cluster) refuseStatus(name string) *atomic.Bool {
	refuses := &atomic.Bool{}
	refuses.Store(true)
	c.Intercept(func(r apitest.Request, serve func()) error {
		if refuses.Load() && r.Resource == "volumetickets/status" && strings.HasSuffix(r.Name, name) {
			return refused(name)
		}
		serve()
		return nil
	})
	return refuses
}

func (c *cluster) isGranted(pod string) bool {
	g := c.granted(pod)
	return g != nil && g.Status == metav1.ConditionTrue
}

func TestTicketThatCannotBeTakenOver(t *testing.T) {
	c := newCluster(t, 4, "n1")
	for _, disk := range []string{"bound", "poor", "rich"} {
		c.disk(disk)
	}
	c.pod("bound", "n1", "bound", false)
	for _, name := range []string{"poor", "rich"} {
		c.pod(name, "", name, false)
		c.ticket(name, "n1", name)
	}
	refuses := c.refuseStatus("uid-poor")
	c.lead(7)
	c.until("the other ticket is granted", func() bool { return c.isGranted("rich") })
	c.until("the bound pod's volume is reported", func() bool { return c.reported("bound", "n1") })
	if g := c.granted("poor"); g != nil {
		t.Errorf("the ticket that is not taken over is decided: %+v", g)
	}
	refuses.Store(false)
	c.until("it is granted", func() bool { return c.isGranted("poor") })
	var after v1alpha1.VolumeTicket
	c.Get("volumetickets", "shop", "uid-poor", &after)
	if after.Status.Epoch != 7 {
		t.Errorf("epoch %d", after.Status.Epoch)
	}
}

// The former leader may have granted it: no earlier ticket gets its slot.
func TestTicketInDoubtKeepsItsSlot(t *testing.T) {
	c := newCluster(t, 1, "n1")
	c.disk("poor")
	c.disk("rich")
	c.pod("poor", "", "poor", false)
	c.ticket("poor", "n1", "poor")
	refuses := c.refuseStatus("uid-poor")
	c.lead(7)
	c.Put("volumetickets", &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "rich"},
		Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketRestore, NodeName: "n1",
			Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "rich"}}}},
	})
	says := func() string {
		var ticket v1alpha1.VolumeTicket
		c.Get("volumetickets", "shop", "rich", &ticket)
		if len(ticket.Status.Conditions) == 0 {
			return ""
		}
		return ticket.Status.Conditions[0].Reason
	}
	c.until("the one that ranks before it is decided", func() bool { return says() != "" })
	if says() != "NoFreeSlot" {
		t.Errorf("it is %s", says())
	}
	refuses.Store(false)
	c.until("the one that ranks before is granted", func() bool { return says() == v1alpha1.ReasonGranted })
}

func TestAttachWaitsForNoTicket(t *testing.T) {
	c := newCluster(t, 4, "n1")
	c.disk("bound")
	c.disk("slow")
	c.pod("bound", "n1", "bound", false)
	c.pod("slow", "", "slow", false)
	c.ticket("slow", "n1", "slow")
	attached := make(chan struct{})
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Resource == "volumetickets/status" {
			select {
			case <-attached:
			case <-t.Context().Done():
				return refused("uid-slow")
			}
		}
		serve()
		return nil
	})
	c.lead(7)
	c.until("the bound pod's volume is reported", func() bool { return c.reported("bound", "n1") })
	close(attached)
	c.until("the ticket is granted", func() bool { return c.isGranted("slow") })
}
