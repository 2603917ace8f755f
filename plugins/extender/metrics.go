// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are those of one process, in a registry of its own. Safe for parallel
// use.
type metrics struct {
	registry  *prometheus.Registry
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	binds     *prometheus.CounterVec
	panics    prometheus.Counter
	clients   *prometheus.GaugeVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_extender_requests_total",
			Help: "Requests answered, by verb and HTTP status code.",
		}, []string{"verb", "code"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "moorage_extender_request_duration_seconds",
			Help:    "Time from a request's headers to the end of its answer, by verb. kube-scheduler stands still during filter and prioritize.",
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15),
		}, []string{"verb"}),
		binds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_extender_binds_total",
			Help: "Binds by how they ended: bound, or refused with nothing left behind.",
		}, []string{"result"}),
		clients: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "moorage_extender_client_certificate_expiry_timestamp_seconds",
			Help: "When the certificate ends that a scheduler last showed, by its common name, in seconds since the epoch.",
		}, []string{"client"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "moorage_extender_panics_total",
			Help: "Requests whose handling panicked; each is a bug.",
		}),
	}
	m.registry.MustRegister(m.requests, m.durations, m.binds, m.panics, m.clients,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// watch adds what is read at each scrape: when the serving certificate ends, and
// whether this process answers.
func (m *metrics) watch(expiry func() time.Time, leads func() bool) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "moorage_extender_certificate_expiry_timestamp_seconds",
			Help: "When the serving certificate ends, in seconds since the epoch.",
		}, func() float64 { return float64(expiry().Unix()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "moorage_extender_leading",
			Help: "1 while this process answers schedulers, else 0.",
		}, func() float64 {
			if leads() {
				return 1
			}
			return 0
		}),
	)
}

// asked notes when the certificate of a request's client ends. Only those whose
// certificate was verified are noted, so that nobody makes a time series of its own.
func (m *metrics) asked(r *http.Request) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return
	}
	certificate := r.TLS.VerifiedChains[0][0]
	m.clients.WithLabelValues(certificate.Subject.CommonName).Set(float64(certificate.NotAfter.Unix()))
}

// answered counts one answer.
func (m *metrics) answered(verb string, code int, took time.Duration) {
	m.requests.WithLabelValues(verb, strconv.Itoa(code)).Inc()
	m.durations.WithLabelValues(verb).Observe(took.Seconds())
}

// bound counts how a bind ended.
func (m *metrics) bound(err error) {
	result := "bound"
	if err != nil {
		result = "refused"
	}
	m.binds.WithLabelValues(result).Inc()
}
