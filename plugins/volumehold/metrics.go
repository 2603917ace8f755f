// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

type registry interface {
	Register(metrics.Registerable) error
	CustomRegister(metrics.StableCollector) error
}

const (
	metricNamespace = "moorage"
	metricSubsystem = "scheduler"
)

const (
	stagePlacing   = "placing"
	stageReserving = "reserving"
	reasonPodGroup = "PodGroup"
)

// pluginMetrics are listed in docs/metrics.md; kube-scheduler measures extension points. Safe for parallel
// use.
type pluginMetrics struct {
	rejections *metrics.CounterVec
}

func counter(name, help string) *metrics.CounterOpts {
	return &metrics.CounterOpts{Namespace: metricNamespace, Subsystem: metricSubsystem, Name: name, Help: help, StabilityLevel: metrics.ALPHA}
}

func newMetrics(r registry, c *core) (*pluginMetrics, error) {
	m := &pluginMetrics{
		rejections: metrics.NewCounterVec(counter("rejections_total",
			"Attempts to place a pod that failed, once for each reason; placing: no node would do, reserving: the chosen node would not do any more."), []string{"stage", "reason"}),
	}
	if err := unlessTwice(r.Register(m.rejections)); err != nil {
		return nil, err
	}
	return m, unlessTwice(r.CustomRegister(newScraped(c)))
}

// unlessTwice permits a second scheduler in a process, as in benchmarks: the first one's metrics are
// served.
func unlessTwice(err error) error {
	if err == nil || errors.As(err, &prometheus.AlreadyRegisteredError{}) {
		return nil
	}
	return fmt.Errorf("registering metrics: %w", err)
}

func (m *pluginMetrics) rejected(stage, reason string) {
	m.rejections.WithLabelValues(stage, reason).Inc()
}

// reasons is a set that goroutines add to.
type reasons struct{ bits atomic.Uint64 }

// add does nothing on nil: a dry run is not counted.
func (r *reasons) add(v rules.Verdict) {
	if r == nil {
		return
	}
	for _, reason := range v.Reasons {
		for i, code := range rules.Codes() {
			if code == reason.Code {
				r.bits.Or(1 << i)
			}
		}
	}
}

func (r *reasons) each(f func(ledger.Code)) {
	if r == nil {
		return
	}
	bits := r.bits.Load()
	for i, code := range rules.Codes() {
		if bits&(1<<i) != 0 {
			f(code)
		}
	}
}

type scraped struct {
	metrics.BaseStableCollector
	core               *core
	used, limit, gated *metrics.Desc
	waiting, doubted   *metrics.Desc
}

func newScraped(c *core) *scraped {
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(metrics.BuildFQName(metricNamespace, metricSubsystem, name), help, labels, nil, metrics.ALPHA, "")
	}
	return &scraped{
		core:    c,
		used:    desc("slots_used", "Slots of a driver in the whole cluster that are taken, as this scheduler sees it: attached, attaching, detaching, reserved or unknown.", "driver"),
		limit:   desc("slots_limit", "Slots of a driver in the whole cluster, of nodes that have a limit, as this scheduler sees it.", "driver"),
		gated:   desc("gated_pods", "Pods that are not tried, since no node that exists or may be added would do."),
		waiting: desc("waiting_pods", "Pods with volumes that were tried or gated, and have no node yet."),
		doubted: desc("tickets_in_doubt", "Pending VolumeTickets that this leader could not take over from the one before: their status can't be written, and they are not granted until it can."),
	}
}

func (s *scraped) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{s.used, s.limit, s.gated, s.waiting, s.doubted} {
		ch <- d
	}
}

func (s *scraped) CollectWithStability(ch chan<- metrics.Metric) {
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	gauge(s.gated, float64(s.core.requeuer.Gated()))
	gauge(s.waiting, float64(s.core.requeuer.Waiting()))
	snapshot := s.core.facts.Snapshot()
	doubted := 0
	for t := range snapshot.Tickets() {
		if t.InDoubt {
			doubted++
		}
	}
	gauge(s.doubted, float64(doubted))
	used, limits := map[string]int64{}, map[string]int64{}
	for n := range snapshot.Nodes() {
		for _, d := range n.Drivers {
			used[d.Name] += int64(d.Taken())
			if limit := rules.Limit(d, rules.PolicyFor(snapshot, d.Name, "")); d.Registered && limit != ledger.NoLimit {
				limits[d.Name] += int64(limit)
			}
		}
	}
	for driver, n := range used {
		gauge(s.used, float64(n), driver)
	}
	for driver, n := range limits {
		gauge(s.limit, float64(n), driver)
	}
}
