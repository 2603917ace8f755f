// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// A field is reported once for each generation; other writers' conditions stay.
func TestJudge(t *testing.T) {
	then, now := time.Unix(1, 0), time.Unix(2, 0)
	cooperative := Config{Arbiter: rules.Arbiter{Cooperative: true}}
	known := withDriver().Snapshot()
	object := &v1alpha1.AttachPolicy{Spec: v1alpha1.AttachPolicySpec{Driver: "d", Workers: new(int32(3))}}
	object.Generation = 3
	object.Status.Conditions = []metav1.Condition{{Type: "Audited", Status: metav1.ConditionTrue}}

	told, changed := Judge(cooperative, known, object, then)
	c := meta.FindStatusCondition(told.Status.Conditions, v1alpha1.PolicyInEffect)
	if !changed || c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonWorkersNotCounted ||
		c.ObservedGeneration != 3 || !c.LastTransitionTime.Time.Equal(then) {
		t.Fatalf("beside another controller: changed %t, %+v", changed, c)
	}
	if len(object.Status.Conditions) != 1 || len(told.Status.Conditions) != 2 {
		t.Errorf("of one condition came %v, and was left %v", told.Status.Conditions, object.Status.Conditions)
	}
	if _, again := Judge(cooperative, known, told, now); again {
		t.Error("it is said again")
	}
	edited := told.DeepCopy()
	edited.Generation = 4
	renewed, changed := Judge(cooperative, known, edited, now)
	if c := meta.FindStatusCondition(renewed.Status.Conditions, v1alpha1.PolicyInEffect); !changed || c.ObservedGeneration != 4 || !c.LastTransitionTime.Time.Equal(then) {
		t.Errorf("of a newer generation: changed %t, %+v", changed, c)
	}
	without := told.DeepCopy()
	without.Spec.Workers = nil
	for name, test := range map[string]struct {
		config Config
		policy *v1alpha1.AttachPolicy
	}{
		"in another mode":  {Config{}, told},
		"it asks for less": {cooperative, without},
	} {
		next, changed := Judge(test.config, known, test.policy, now)
		if !changed || len(next.Status.Conditions) != 1 || next.Status.Conditions[0].Type != "Audited" {
			t.Errorf("%s: changed %t, %v", name, changed, next.Status.Conditions)
		}
		if _, again := Judge(test.config, known, next, now); again {
			t.Errorf("%s: it is taken back again", name)
		}
	}
}

func withDriver() *ledger.Ledger {
	l := ledger.New()
	l.Apply(time.Unix(0, 0), ledger.Driver{Name: "d", Version: "1", AttachRequired: true})
	l.Apply(time.Unix(0, 0), ledger.StorageClass{Name: "c", Version: "1"})
	return l
}

func TestInEffect(t *testing.T) {
	made := func(name, driver, class string, second int64) *v1alpha1.AttachPolicy {
		p := &v1alpha1.AttachPolicy{Spec: v1alpha1.AttachPolicySpec{Driver: driver, StorageClassName: class}}
		p.Name, p.UID, p.ResourceVersion, p.CreationTimestamp = name, types.UID(name), "1", metav1.Unix(second, 0)
		return p
	}
	l := withDriver()
	first, second := made("first", "d", "", 1), made("second", "d", "", 2)
	for _, p := range []*v1alpha1.AttachPolicy{first, second} {
		l.Apply(time.Unix(3, 0), convert.Policy(p))
	}
	for name, test := range map[string]struct {
		policy       *v1alpha1.AttachPolicy
		reason, says string
	}{
		"the older one":       {first, "", ""},
		"the younger one":     {second, v1alpha1.ReasonShadowed, "AttachPolicy first"},
		"no such driver":      {made("x", "dd", "", 1), v1alpha1.ReasonDriverUnknown, "dd"},
		"no such class":       {made("x", "d", "cc", 1), v1alpha1.ReasonClassUnknown, "cc"},
		"a class of a driver": {made("x", "d", "c", 1), "", ""},
		"no tickets for operations": {func() *v1alpha1.AttachPolicy {
			p := made("first", "d", "", 1)
			p.Spec.DetachFor = []v1alpha1.VolumeOperation{v1alpha1.OperationExpansion}
			return p
		}(), v1alpha1.ReasonOperationTicketsOff, "operationTickets.enabled=true"},
		"no NetworkFences": {func() *v1alpha1.AttachPolicy {
			p := made("first", "d", "", 1)
			p.Spec.ForceDetach = &v1alpha1.ForceDetachPolicy{NetworkFence: &v1alpha1.NetworkFencePolicy{ClassName: "c"}}
			return p
		}(), v1alpha1.ReasonNetworkFencesOff, "networkFences.enabled=true"},
	} {
		next, changed := Judge(Config{}, l.Snapshot(), test.policy, time.Unix(4, 0))
		c := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.PolicyInEffect)
		switch {
		case test.reason == "" && (c != nil || changed):
			t.Errorf("%s: %+v", name, c)
		case test.reason != "" && (c == nil || !changed || c.Status != metav1.ConditionFalse || c.Reason != test.reason || !strings.Contains(c.Message, test.says)):
			t.Errorf("%s: %+v", name, c)
		}
	}
	limits := made("first", "d", "", 1)
	limits.Spec.Workers = new(int32(3))
	for cooperative, want := range map[bool]string{true: v1alpha1.ReasonWorkersNotCounted, false: ""} {
		next, _ := Judge(Config{Arbiter: rules.Arbiter{Cooperative: cooperative}}, l.Snapshot(), limits, time.Unix(4, 0))
		if c := meta.FindStatusCondition(next.Status.Conditions, v1alpha1.PolicyInEffect); (c != nil) != cooperative || c != nil && c.Reason != want {
			t.Errorf("workers, cooperative %t: %+v", cooperative, c)
		}
	}
	shadowed, _ := Judge(Config{}, l.Snapshot(), second, time.Unix(4, 0))
	l.Apply(time.Unix(5, 0), ledger.PolicyGone{Name: "first"})
	if next, changed := Judge(Config{}, l.Snapshot(), shadowed, time.Unix(5, 0)); !changed || len(next.Status.Conditions) != 0 {
		t.Errorf("the other one is gone: %v", next.Status.Conditions)
	}
}
