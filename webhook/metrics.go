// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics have their own registry. Safe for parallel use.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	stamped   prometheus.Counter
	moved     prometheus.Counter
	panics    prometheus.Counter
}

func newMetrics(expiry func() time.Time) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_webhook_requests_total",
			Help: "Requests answered, by path and HTTP status code.",
		}, []string{"path", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "moorage_webhook_request_duration_seconds",
			Help:    "Time from a request's arrival to its answer, by path.",
			Buckets: prometheus.ExponentialBuckets(0.0002, 3, 10),
		}, []string{"path"}),
		stamped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "moorage_webhook_pods_stamped_total",
			Help: "Pods that got the placeholder of their volume status.",
		}),
		moved: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "moorage_webhook_pods_given_to_scheduler_total",
			Help: "Pods whose scheduler was the default one and is now Moorage's.",
		}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "moorage_webhook_panics_total",
			Help: "Requests whose handling panicked; each is a bug.",
		}),
	}
	m.registry.MustRegister(
		m.requests, m.durations, m.stamped, m.moved, m.panics,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "moorage_webhook_certificate_expiry_timestamp_seconds",
			Help: "When the serving certificate ends, in seconds since the epoch.",
		}, func() float64 { return float64(expiry().Unix()) }),
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

func (m *metrics) answered(path string, code int, took time.Duration) {
	m.requests.WithLabelValues(path, strconv.Itoa(code)).Inc()
	m.durations.WithLabelValues(path).Observe(took.Seconds())
}
