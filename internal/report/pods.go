// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// PodWait is the number of pods that wait for one reason, and the start of the oldest wait.
type PodWait struct {
	Pods   int
	Oldest time.Time
}

type pods struct {
	waiting *prometheus.Desc
	oldest  *prometheus.Desc
	ask     atomic.Pointer[func() map[ledger.Code]PodWait]
}

func newPods() *pods {
	return &pods{
		waiting: prometheus.NewDesc("moorage_pods_waiting",
			"Pods with a node that wait for their volumes, by reason.", []string{"reason"}, nil),
		oldest: prometheus.NewDesc("moorage_pods_waiting_oldest_timestamp_seconds",
			"Since when the oldest of moorage_pods_waiting waits, in seconds since the epoch.", []string{"reason"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (p *pods) Describe(ch chan<- *prometheus.Desc) { ch <- p.waiting; ch <- p.oldest }

// Collect implements prometheus.Collector.
func (p *pods) Collect(ch chan<- prometheus.Metric) {
	ask := p.ask.Load()
	if ask == nil {
		return // it does not lead
	}
	for code, wait := range (*ask)() {
		ch <- prometheus.MustNewConstMetric(p.waiting, prometheus.GaugeValue, float64(wait.Pods), string(code))
		ch <- prometheus.MustNewConstMetric(p.oldest, prometheus.GaugeValue, float64(wait.Oldest.Unix()), string(code))
	}
}

// Leads says that this process decides, until the returned function ends the term. Each scrape asks for the
// due work by queue, and for the waiting pods with a node.
func (m *Metrics) Leads(depth map[string]func() int, waiting func() map[ledger.Code]PodWait) (end func()) {
	if m == nil {
		return func() {}
	}
	m.queues.depth.Store(&depth)
	m.pods.ask.Store(&waiting)
	m.leading.Set(1)
	return func() {
		m.leading.Set(0)
		m.queues.depth.Store(nil)
		m.pods.ask.Store(nil)
	}
}
