// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// onControllerDown: who is bound when the controller doesn't answer, and who
// is not, though the args would have it.
func TestControllerDown(t *testing.T) {
	policy := func(ungranted bool) ledger.Event {
		return ledger.Policy{Name: "p", Version: "1", Driver: driver, GrantTimeout: time.Second, BindUngranted: ungranted, Says: ledger.FieldOnControllerDown}
	}
	silent := func(*rig, *cycle) {}
	tests := map[string]struct {
		args   bool
		events []ledger.Event
		do     func(*rig, *cycle)
		bound  bool
	}{
		"args":                         {true, nil, silent, true},
		"default":                      {false, nil, silent, false},
		"policy":                       {false, one(policy(true)), silent, true},
		"policy that waits":            {true, one(policy(false)), silent, false},
		"policy that does not say":     {true, one(ledger.Policy{Name: "p", Version: "1", Driver: driver}), silent, true},
		"one of two drivers has one":   {false, one(policy(true), ledger.Policy{Name: "q", Version: "1", Driver: roomy, GrantTimeout: time.Second}), silent, false},
		"the controller answers: wait": {true, nil, func(r *rig, c *cycle) { r.decide(c.pod, metav1.ConditionUnknown, "the driver is not registered") }, false},
		"the controller refuses":       {true, nil, func(r *rig, c *cycle) { r.decide(c.pod, metav1.ConditionFalse, "somebody was faster") }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, all(disk("data", ledger.AccessNode), diskOf(roomy, "more", ledger.AccessNode), test.events,
				one(slotsAt("n1", 2, roomy)))...)
			r.plugin.bindUngranted, r.plugin.grantTimeout = test.args, time.Second
			pod := podWith("p", "data", "more")
			if !strings.Contains(name, "two drivers") {
				pod = podWith("p", "data")
			}
			r.known(pod)
			c := r.reserve(pod, "n1").permit()
			r.written(pod, "n1")
			test.do(r, c)
			if status := c.verdict(); status.IsSuccess() != test.bound {
				t.Errorf("got %v, want it bound: %t", status, test.bound)
			}
			want := map[bool]float64{true: 1}[test.bound]
			eventually(t, "it to be counted", func() bool { return r.counted("moorage_scheduler_ungranted_binds_total") == want })
		})
	}
}

// A pod that is bound without a grant does not wait for one in PreBind either.
func TestUngrantedPodSkipsPreBind(t *testing.T) {
	r := newRig(t, all(disk("data", ledger.AccessNode), one(ledger.Policy{
		Name: "p", Version: "1", Driver: driver, GrantTimeout: time.Second, BindUngranted: true}))...)
	pod := podWith("p", "data")
	r.known(pod)
	c := r.reserve(pod, "n1").permit()
	if status := c.verdict(); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := r.RunPreBindPreFlights(t.Context(), c.state, pod, "n1"); !status.IsSkip() {
		t.Errorf("PreBind is not skipped: %v", status)
	}
}
