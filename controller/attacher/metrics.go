// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

type numbers struct {
	attachments, underWay, limit, waiting, unaccounted int
}

func (e *engine) numbers() numbers {
	e.mu.Lock()
	defer e.mu.Unlock()
	return numbers{
		attachments: e.tracker.Len(), underWay: e.limit.InUse(), limit: e.limit.Size(),
		waiting: e.waiting.Len(), unaccounted: e.unaccounted,
	}
}

// collector carries the driver's name, because every driver has its own attacher.
type collector struct {
	engine func() *engine
	steps  *prometheus.CounterVec
	gauges []gauge
}

var _ prometheus.Collector = &collector{}

func newCollector(driver string, engine func() *engine) *collector {
	labels := prometheus.Labels{"driver": driver}
	return &collector{engine: engine, gauges: gauges(labels), steps: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name:        "moorage_attacher_steps_total",
		Help:        "Calls to the driver and requests to the API server, by what they do and how they ended.",
		ConstLabels: labels,
	}, []string{"step", "result"})}
}

type gauge struct {
	desc  *prometheus.Desc
	value func(numbers) int
}

func gauges(labels prometheus.Labels) []gauge {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("moorage_attacher_"+name, help, nil, labels)
	}
	return []gauge{
		{desc("attachments", "VolumeAttachments of the driver."), func(n numbers) int { return n.attachments }},
		{desc("calls_under_way", "Calls that the driver is working on."), func(n numbers) int { return n.underWay }},
		{desc("calls_limit", "Calls that the driver is given at a time; falls while it pushes back."), func(n numbers) int { return n.limit }},
		{desc("volumes_waiting", "Volumes whose call waits for the driver to have room."), func(n numbers) int { return n.waiting }},
		{desc("unaccounted_publications", "Publications in the driver's last list that no VolumeAttachment accounts for."), func(n numbers) int { return n.unaccounted }},
	}
}

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	c.steps.Describe(out)
	for _, g := range c.gauges {
		out <- g.desc
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	c.steps.Collect(out)
	e := c.engine()
	if e == nil {
		return // waits for the lease
	}
	n := e.numbers()
	for _, g := range c.gauges {
		out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, float64(g.value(n)))
	}
}

func (c *collector) count(do decide.Action, r decide.Result) {
	result := "ok"
	switch {
	case r.Moved:
		result = "changed"
	case !r.Failed.IsZero():
		result = r.Failed.Code.String()
		if r.Failed.Code == 0 {
			result = "failed"
		}
	}
	c.steps.WithLabelValues(do.String(), result).Inc()
}
