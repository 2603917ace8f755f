// SPDX-License-Identifier: Apache-2.0

package report

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/internal/ledger"
)

// PodWait is how many pods wait for one reason, and since when the oldest of them waits.
type PodWait struct {
	Pods   int
	Oldest time.Time
}

// pods shows at each scrape which pods with a node wait for their volumes.
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

// Leads says that this process decides and writes from now on. Each scrape then asks for the due
// work, by the names of queues, and for the pods with a node that wait for their volumes. Functions
// of an earlier term are called no more. The returned function ends the term.
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
