// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
)

// A policy is refused in the one mode that can't have it, said once, and taken back
// in any other; what others have put there stays.
func TestJudge(t *testing.T) {
	then, now := time.Unix(1, 0), time.Unix(2, 0)
	cooperative := arbiter.Arbiter{Cooperative: true}
	object := &v1alpha1.AttachPolicy{Spec: v1alpha1.AttachPolicySpec{Driver: "d", BindAfter: v1alpha1.BindAfterAttached}}
	object.Generation = 3
	object.Status.Conditions = []metav1.Condition{{Type: "Audited", Status: metav1.ConditionTrue}}

	refused, changed := Judge(cooperative, object, then)
	c := meta.FindStatusCondition(refused.Status.Conditions, v1alpha1.PolicyRefused)
	if !changed || c == nil || c.Status != metav1.ConditionTrue || c.Reason != string(arbiter.NotBeforeBind) ||
		c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(then) || !strings.Contains(c.Message, "--attach-before-bind") {
		t.Fatalf("beside another controller: changed %t, %+v", changed, c)
	}
	if len(object.Status.Conditions) != 1 || len(refused.Status.Conditions) != 2 {
		t.Errorf("of one condition came %v, and was left %v", refused.Status.Conditions, object.Status.Conditions)
	}
	if _, again := Judge(cooperative, refused, now); again {
		t.Error("it is said again")
	}
	edited := refused.DeepCopy()
	edited.Generation = 4
	renewed, changed := Judge(cooperative, edited, now)
	if c := meta.FindStatusCondition(renewed.Status.Conditions, v1alpha1.PolicyRefused); !changed || c.ObservedGeneration != 4 || !c.LastTransitionTime.Time.Equal(then) {
		t.Errorf("of a newer generation: changed %t, %+v", changed, c)
	}
	granted := refused.DeepCopy()
	granted.Spec.BindAfter = v1alpha1.BindAfterGranted
	for name, test := range map[string]struct {
		a      arbiter.Arbiter
		policy *v1alpha1.AttachPolicy
	}{
		"in another mode":  {arbiter.Arbiter{}, refused},
		"attached early":   {arbiter.Arbiter{Cooperative: true, BeforeBind: true}, refused},
		"it asks for less": {cooperative, granted},
	} {
		next, changed := Judge(test.a, test.policy, now)
		if !changed || len(next.Status.Conditions) != 1 || next.Status.Conditions[0].Type != "Audited" {
			t.Errorf("%s: changed %t, %v", name, changed, next.Status.Conditions)
		}
		if _, again := Judge(test.a, next, now); again {
			t.Errorf("%s: it is taken back again", name)
		}
	}
}
