// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

const (
	resultOK    = "ok"
	resultError = "error"
)

// Metrics are the controller's, in an own registry. Its methods are safe for parallel use, and do nothing
// on nil.
type Metrics struct {
	Registry *prometheus.Registry

	operations *prometheus.HistogramVec
	steps      *prometheus.CounterVec
	forced     *prometheus.CounterVec
	violations *prometheus.CounterVec
	found      *prometheus.CounterVec
	differ     *prometheus.GaugeVec
	tickets    *prometheus.CounterVec // for operations
	ended      *prometheus.CounterVec
	leading    prometheus.Gauge
	queues     *queues
	pods       *pods
	streams    *streams
	upstream   upstream
}

// NewMetrics makes the metrics. snapshot is called at each scrape; nil leaves its metrics out.
func NewMetrics(snapshot func() ledger.Snapshot) *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		queues:   newQueues(),
		pods:     newPods(),
		streams:  newStreams(),
		leading: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "moorage_leading", Help: "1 while this process decides and writes, and 0 while it stands by.",
		}),
		upstream: newUpstream(),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "moorage_operation_seconds",
			Help:    "From the first write of an attach or detach to its end: reported in volumesAttached, or the VolumeAttachment gone.",
			Buckets: prometheus.ExponentialBuckets(0.01, 2, 16),
		}, []string{"operation", "driver"}),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_steps_total",
			Help: "Steps executed: each is one write to the API, shared by several where they are of one node.",
		}, []string{"step", "result"}),
		forced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_forced_detaches_total",
			Help: "Volumes detached without their kubelet's report, by rule.",
		}, []string{"rule"}),
		violations: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "moorage_invariant_violations_total",
			Help: "Broken invariants that an audit found. Any is a bug, or somebody else's doing.",
		}, []string{"invariant"}),
	}
	m.tickets = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "moorage_operation_tickets_total",
		Help: "Tickets for the operations of drivers, by operation and what came of them: made, done, unfinished (it had the volume, and the operation did not come to its end), waited (it never had the volume).",
	}, []string{"operation", "result"})
	m.ended = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "moorage_tickets_ended_total",
		Help: "VolumeTickets of integrators and users that this process has ended, by type and cause.",
	}, []string{"type", "cause"})
	m.found = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "moorage_truth_differences_found_total",
		Help: "Differences that the truth check has found and told, by code: between nodes, VolumeAttachments, holds, tickets and pods.",
	}, []string{"code"})
	m.differ = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "moorage_truth_differences",
		Help: "Differences that there were at the last round of the truth check, by code.",
	}, []string{"code"})
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "moorage_build_info", Help: "1, labelled with the version that runs.", ConstLabels: prometheus.Labels{"version": Version},
	})
	build.Set(1)
	m.Registry.MustRegister(build, m.operations, m.steps, m.forced, m.violations, m.tickets, m.ended, m.found, m.differ, m.leading, m.queues, m.pods, m.streams.open, m.upstream.forced, m.upstream.operations,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if snapshot != nil {
		m.Registry.MustRegister(newWorld(snapshot))
	}
	return m
}

// Attached records the time of an attach from VolumeAttachment to volumesAttached.
func (m *Metrics) Attached(driver string, took time.Duration) { m.operation("attach", driver, took) }

// Detached records a detach from the first write to the end of the VolumeAttachment.
func (m *Metrics) Detached(driver string, took time.Duration) { m.operation("detach", driver, took) }

func (m *Metrics) operation(name, driver string, took time.Duration) {
	if m != nil {
		m.operations.WithLabelValues(name, driver).Observe(took.Seconds())
		m.upstream.operation(name, driver, took)
	}
}

// Step records a step's outcome.
func (m *Metrics) Step(step rules.Step, err error) {
	if m == nil {
		return
	}
	result := resultOK
	if err != nil {
		result = resultError
	}
	m.steps.WithLabelValues(step.Kind.String(), result).Inc()
	if err == nil && step.Forces() {
		m.Forced(step.Rule)
	}
}

// Forced counts a forced detach without an executed step: its answer was lost, or an earlier leader sent
// it.
func (m *Metrics) Forced(rule string) {
	if m != nil {
		m.forced.WithLabelValues(rule).Inc()
		m.upstream.force(rule)
	}
}

// TicketEnded counts an ended ticket.
func (m *Metrics) TicketEnded(kind ledger.TicketType, cause rules.EndCause) {
	if m != nil {
		m.ended.WithLabelValues(string(kind), string(cause)).Inc()
	}
}

// OperationTicket counts a made ticket for a driver's operation, or its outcome.
func (m *Metrics) OperationTicket(operation, result string) {
	if m != nil {
		m.tickets.WithLabelValues(operation, result).Inc()
	}
}

// Difference counts a finding of the truth check.
func (m *Metrics) Difference(code string) {
	if m != nil {
		m.found.WithLabelValues(code).Inc()
	}
}

// Differences sets the present number of a code's differences.
func (m *Metrics) Differences(code string, n int) {
	if m != nil {
		m.differ.WithLabelValues(code).Set(float64(n))
	}
}

// Violations counts the findings of an audit.
func (m *Metrics) Violations(found []rules.Violation) {
	if m == nil {
		return
	}
	for _, v := range found {
		m.violations.WithLabelValues(v.Invariant).Inc()
	}
}
