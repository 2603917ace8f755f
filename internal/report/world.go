// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// world shows the facts at each scrape: slots and tickets.
type world struct {
	snapshot func() ledger.Snapshot
	used     *prometheus.Desc
	limit    *prometheus.Desc
	tickets  *prometheus.Desc
	volumes  *prometheus.Desc
}

func newWorld(snapshot func() ledger.Snapshot) *world {
	return &world{
		snapshot: snapshot,
		used: prometheus.NewDesc("moorage_slots_used",
			"Slots of a driver that are taken at a node: attached, attaching, detaching, reserved or unknown.", []string{"node", "driver"}, nil),
		limit: prometheus.NewDesc("moorage_slots_limit",
			"Slots of a driver that a node has, by its CSINode and the policy; none where there is no limit.", []string{"node", "driver"}, nil),
		tickets: prometheus.NewDesc("moorage_tickets",
			"VolumeTickets by type, phase and the reason of their condition Granted.", []string{"type", "phase", "reason"}, nil),
		volumes: prometheus.NewDesc("moorage_volumes",
			"Volumes known.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (w *world) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{w.used, w.limit, w.tickets, w.volumes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (w *world) Collect(ch chan<- prometheus.Metric) {
	s := w.snapshot()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(w.volumes, float64(s.Size()))
	for n := range s.Nodes() {
		for _, d := range n.Drivers {
			gauge(w.used, float64(d.Used), string(n.Name), d.Name)
			if limit := arbiter.Limit(d, arbiter.PolicyFor(s, d.Name, "")); d.Registered && limit != ledger.NoLimit {
				gauge(w.limit, float64(limit), string(n.Name), d.Name)
			}
		}
	}
	type kind struct{ typ, phase, reason string }
	count := map[kind]int{}
	for t := range s.Tickets() {
		phase := t.Phase.String()
		if t.Ghost {
			phase = "ghost"
		}
		count[kind{string(t.Type), phase, t.Reason}]++
	}
	for k, n := range count {
		gauge(w.tickets, float64(n), k.typ, k.phase, k.reason)
	}
}
