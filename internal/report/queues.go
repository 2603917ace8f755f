// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

type queues struct {
	desc  *prometheus.Desc
	depth atomic.Pointer[map[string]func() int]
}

func newQueues() *queues {
	return &queues{desc: prometheus.NewDesc("moorage_queue_depth",
		"Keys that are due in a queue of the controller and not taken up yet: volumes to plan for, tickets to end, pods to tell, tickets of operations to make and end.", []string{"queue"}, nil)}
}

// Describe implements prometheus.Collector.
func (q *queues) Describe(ch chan<- *prometheus.Desc) { ch <- q.desc }

// Collect implements prometheus.Collector.
func (q *queues) Collect(ch chan<- prometheus.Metric) {
	depth := q.depth.Load()
	if depth == nil {
		return // it does not lead
	}
	for name, due := range *depth {
		ch <- prometheus.MustNewConstMetric(q.desc, prometheus.GaugeValue, float64(due()), name)
	}
}
