// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func (c *cluster) attempts() int {
	c.t.Helper()
	metrics.Register()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		c.t.Fatal(err)
	}
	total := 0
	for _, family := range families {
		if family.GetName() != "scheduler_schedule_attempts_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "profile" && label.GetValue() == v1alpha1.SchedulerName {
					total += int(metric.GetCounter().GetValue())
				}
			}
		}
	}
	return total
}
