// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func (c *cluster) backupTicket(name string, claims ...string) {
	k := &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec:       v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketBackup, NodeName: "n1"},
	}
	for _, claim := range claims {
		k.Spec.Volumes = append(k.Spec.Volumes, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: claim}})
	}
	c.Put("volumetickets", k)
}

func (c *cluster) told(name string) metav1.Condition {
	var t v1alpha1.VolumeTicket
	c.Get("volumetickets", "shop", name, &t)
	if g := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted); g != nil {
		return *g
	}
	return metav1.Condition{}
}

// The first ticket that lacks only a slot gets it, even behind a ticket that waits for a volume.
func TestFreedSlotIsTold(t *testing.T) {
	c := newCluster(t, 1, "n1", "n2")
	waiting := names("w", 20)
	for _, name := range append([]string{"full", "elsewhere"}, waiting...) {
		c.disk(name)
	}
	c.pod("full", "n1", "full", false)
	c.pod("elsewhere", "n2", "elsewhere", false)
	c.lead(1)
	c.until("the pods have their volumes", func() bool { return c.reported("full", "n1") && c.reported("elsewhere", "n2") })
	c.backupTicket("a", waiting[1], "elsewhere") // waits for the pod at n2
	for _, name := range waiting {
		c.backupTicket(name, name)
	}
	c.until("all are told why they wait", func() bool {
		for _, name := range waiting {
			if c.told(name).Reason != "NoFreeSlot" {
				return false
			}
		}
		return c.told("a").Reason == "HeldElsewhere"
	})
	c.Forget()
	c.Remove("pods", "shop", "full")
	c.until("the first has the slot", func() bool { return c.told(waiting[0]).Status == metav1.ConditionTrue && c.reported(waiting[0], "n1") })
	writes := map[string]int{}
	for _, w := range c.Writes() {
		if strings.HasPrefix(w, "update volumetickets/status") {
			writes[w]++
		}
	}
	if len(writes) > 1 {
		t.Errorf("one slot came free, and the statuses of %d tickets were written: %v", len(writes), writes)
	}
}

// A policy may refuse a ticket's status; other tickets get their answer.
func TestUnwritableTicketSilencesNobody(t *testing.T) {
	c := newCluster(t, 1, "n1")
	for _, name := range []string{"x", "a", "b"} {
		c.disk(name)
	}
	c.pod("fill", "n1", "x", false)
	c.lead(1)
	c.until("the node is full", func() bool { return c.reported("x", "n1") })
	var refused atomic.Bool
	c.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "update" && strings.Contains(r.Resource+"/"+r.Name, "volumetickets") && strings.HasSuffix(r.Name, "uid-a") {
			refused.Store(true)
			return apierrors.NewForbidden(schema.GroupResource{Group: "moorage.dev", Resource: "volumetickets"}, r.Name, errors.New("refused by somebody's policy"))
		}
		serve()
		return nil
	})
	c.pod("a", "", "a", true)
	c.ticket("a", "n1", "a")
	c.until("the answer to the first is refused", refused.Load)
	c.pod("b", "", "b", true)
	c.ticket("b", "n1", "b")
	c.backupTicket("c", "b")
	c.until("the others are answered", func() bool { return c.granted("b") != nil && c.told("c").Reason != "" })
}
