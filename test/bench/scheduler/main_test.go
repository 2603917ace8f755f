// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

func TestPlan(t *testing.T) {
	plan, err := options{workloads: "Scheduling*RWO,PreemptionPVs", size: sizeMedium, repeat: 2}.plan()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, run := range plan {
		got = append(got, run.Workload+" "+run.Size+" "+run.Profile)
	}
	want := []string{
		"SchedulingCSIPVsRWO 500Nodes " + result.Stock, "SchedulingCSIPVsRWO 500Nodes " + result.Moorage,
		"PreemptionPVs 1000Nodes " + result.Moorage, "PreemptionPVs 1000Nodes " + result.Stock,
		"SchedulingCSIPVsRWO 500Nodes " + result.Stock, "SchedulingCSIPVsRWO 500Nodes " + result.Moorage,
		"PreemptionPVs 1000Nodes " + result.Moorage, "PreemptionPVs 1000Nodes " + result.Stock,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the plan is\n%q\nwant\n%q", got, want)
	}
	for _, broken := range []options{
		{workloads: "Nothing", size: sizeMedium, repeat: 1}, {workloads: "[", size: sizeMedium, repeat: 1}, {workloads: "*", size: "7", repeat: 1},
	} {
		if plan, err := broken.plan(); err == nil {
			t.Errorf("%+v gives the plan %+v", broken, plan)
		}
	}
}
