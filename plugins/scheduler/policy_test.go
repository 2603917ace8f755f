// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
)

// policy puts a policy that binds after the attach, refused or not.
func (c *cluster) policy(version int, refused bool) *v1alpha1.AttachPolicy {
	policy := &v1alpha1.AttachPolicy{Spec: v1alpha1.AttachPolicySpec{Driver: driver, BindAfter: v1alpha1.BindAfterAttached}}
	policy.Name, policy.UID, policy.ResourceVersion = "late", "late", strconv.Itoa(version)
	if refused {
		reason := arbiter.Reason{Code: arbiter.NotBeforeBind, Driver: driver}
		policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.PolicyRefused, Status: metav1.ConditionTrue, Reason: string(reason.Code), Message: reason.Message()}}
	}
	return policy
}

// A policy comes to be refused: who asked before is told by the ticket, and from
// then on nobody asks, who came later not even once. That nothing is written for
// them means that no attempt is made. When the policy is had after all, the pods
// that waited are placed.
func TestRefusedPolicyIsNotAskedAgain(t *testing.T) {
	c := newCluster(t)
	policies := v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceAttachPolicies)
	update := func(p *v1alpha1.AttachPolicy) {
		if err := c.moorage.tracker.Update(policies, p, ""); err != nil {
			t.Error(err)
		}
	}
	if err := c.moorage.tracker.Add(c.policy(1, false)); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var asked []string
	granting := false
	c.moorage.decide(func(ticket *v1alpha1.VolumeTicket) (metav1.ConditionStatus, string) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, ticket.Name)
		if granting {
			return metav1.ConditionTrue, ""
		}
		update(c.policy(2, true))
		return metav1.ConditionFalse, arbiter.Reason{Code: arbiter.NotBeforeBind, Driver: driver}.Message()
	})
	early := c.pod("early", v1alpha1.SchedulerName, true)
	c.waits(early, "--attach-before-bind")
	c.eventually("the refused ticket to be withdrawn", func() bool { _, there := c.moorage.ticket(early); return !there })
	later := c.pod("later", v1alpha1.SchedulerName, true)
	c.waits(later, "--attach-before-bind")
	c.untried(later)
	mu.Lock()
	if !slices.Contains(asked, string(early.UID)) || slices.Contains(asked, string(later.UID)) {
		t.Errorf("asked have %v", asked)
	}
	granting = true
	mu.Unlock()
	granted := c.policy(3, false)
	granted.Spec.BindAfter = v1alpha1.BindAfterGranted
	update(granted)
	c.bound(early)
	c.bound(later)
}
