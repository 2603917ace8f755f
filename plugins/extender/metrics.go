// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Safe for parallel use.
type metrics struct {
	requests  *prometheus.CounterVec
	durations *prometheus.HistogramVec
	binds     *prometheus.CounterVec
	panics    prometheus.Counter
	clients   *prometheus.GaugeVec
}

func newMetrics() *metrics {
	return &metrics{
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
}

func (m *metrics) collectors(expiry func() time.Time) []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.durations, m.binds, m.panics, m.clients, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "moorage_extender_certificate_expiry_timestamp_seconds",
		Help: "When the serving certificate ends, in seconds since the epoch.",
	}, func() float64 { return float64(expiry().Unix()) })}
}

// If a process has two extenders, as in tests, the first one's metrics are served.
func (m *metrics) register(expiry func() time.Time) error {
	for _, c := range m.collectors(expiry) {
		if err := legacyregistry.Registerer().Register(c); err != nil && !errors.As(err, &prometheus.AlreadyRegisteredError{}) {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// asked notes the end of a client's certificate, if verified: no client can make a time series of its own.
func (m *metrics) asked(r *http.Request) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return
	}
	certificate := r.TLS.VerifiedChains[0][0]
	m.clients.WithLabelValues(certificate.Subject.CommonName).Set(float64(certificate.NotAfter.Unix()))
}

func (m *metrics) answered(verb string, code int, took time.Duration) {
	m.requests.WithLabelValues(verb, strconv.Itoa(code)).Inc()
	m.durations.WithLabelValues(verb).Observe(took.Seconds())
}

func (m *metrics) bound(err error) {
	result := "bound"
	if err != nil {
		result = "refused"
	}
	m.binds.WithLabelValues(result).Inc()
}
