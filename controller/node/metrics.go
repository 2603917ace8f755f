// SPDX-License-Identifier: Apache-2.0

package node

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/internal/nodemounts"
)

// measures are a process's metrics. All carry the node's name.
type measures struct {
	volumes                       *prometheus.GaugeVec
	forgotten, unread, lastLooked prometheus.Gauge
	writes                        *prometheus.CounterVec
	registry                      *prometheus.Registry
}

func newMeasures(node string) *measures {
	labels := prometheus.Labels{"node": node}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels})
	}
	m := &measures{
		volumes: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "moorage_node_volumes",
			Help: "CSI volumes at the node's staging paths, by what is known of them; one may be in several states.", ConstLabels: labels}, []string{"state"}),
		forgotten:  gauge("moorage_node_forgotten_volumes", "Volumes that are staged, mounted or published, and that no pod's folder names."),
		unread:     gauge("moorage_node_unread", "Things that could not be read when the node was looked at last."),
		lastLooked: gauge("moorage_node_last_look_timestamp_seconds", "When the node was looked at last."),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "moorage_node_publications_total",
			Help: "Attempts to publish what the node has, by result. There are none while nothing changes.", ConstLabels: labels}, []string{"result"}),
		registry: prometheus.NewRegistry(),
	}
	m.registry.MustRegister(m.volumes, m.forgotten, m.unread, m.lastLooked, m.writes)
	return m
}

func (m *measures) looked(f nodemounts.Facts, now time.Time) {
	states := map[string]int{"staged": 0, "mounted": 0, "published": 0, "unknown": 0}
	forgotten := 0
	count := func(state string, is bool) {
		if is {
			states[state]++
		}
	}
	for _, v := range f.Volumes {
		count("staged", v.Staged == nodemounts.Yes)
		count("mounted", v.Mounted == nodemounts.Yes)
		count("published", len(v.Published) > 0)
		count("unknown", v.Unknown != "")
		if v.Forgotten {
			forgotten++
		}
	}
	for state, n := range states {
		m.volumes.WithLabelValues(state).Set(float64(n))
	}
	m.forgotten.Set(float64(forgotten))
	m.unread.Set(float64(len(f.Unknown) + states["unknown"]))
	m.lastLooked.Set(float64(now.Unix()))
}

func (m *measures) wrote(result string) { m.writes.WithLabelValues(result).Inc() }
