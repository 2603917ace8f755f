// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
	"github.com/moorage-dev/moorage/test/bench/scheduler/timing"
)

type reading struct {
	families map[string]*dto.MetricFamily
	err      error
}

func read() reading {
	list, err := legacyregistry.DefaultGatherer.Gather()
	r := reading{families: make(map[string]*dto.MetricFamily, len(list)), err: err}
	for _, family := range list {
		r.families[family.GetName()] = family
	}
	return r
}

func (r reading) each(name string, labels map[string]string, f func(*dto.Metric)) {
	for _, m := range r.families[name].GetMetric() {
		has := 0
		for _, pair := range m.GetLabel() {
			if want, ok := labels[pair.GetName()]; ok && want == pair.GetValue() {
				has++
			}
		}
		if has == len(labels) {
			f(m)
		}
	}
}

func label(m *dto.Metric, name string) string {
	for _, pair := range m.GetLabel() {
		if pair.GetName() == name {
			return pair.GetValue()
		}
	}
	return ""
}

// The benchmark makes these kinds, or they have nothing to do with scheduling.
func loads() []string {
	return []string{
		"create pods", "create persistentvolumes", "create persistentvolumeclaims", "create nodes", "create csinodes", "create namespaces",
		"update persistentvolumes/status", "update persistentvolumeclaims/status", "patch nodes",
	}
}

func writes(begin, end reading) map[string]int {
	count := map[string]float64{}
	add := func(r reading, sign float64) {
		r.each("apiserver_request_total", nil, func(m *dto.Metric) {
			verb := map[string]string{"POST": "create", "PUT": "update", "PATCH": "patch", "APPLY": "patch", "DELETE": "delete"}[label(m, "verb")]
			resource := label(m, "resource")
			if verb == "" || resource == "leases" || resource == "" {
				return
			}
			if sub := label(m, "subresource"); sub != "" {
				resource += "/" + sub
			}
			count[verb+" "+resource] += sign * m.GetCounter().GetValue()
		})
	}
	add(begin, -1)
	add(end, 1)
	list := map[string]int{}
	for kind, n := range count {
		if n > 0 && !slices.Contains(loads(), kind) {
			list[kind] = int(n)
		}
	}
	return list
}

func between(begin, end reading, name string, labels map[string]string) result.Times {
	buckets := map[float64]float64{} // cumulative, by upper bound in seconds
	var count, sum float64
	add := func(r reading, sign float64) {
		r.each(name, labels, func(m *dto.Metric) {
			h := m.GetHistogram()
			count += sign * float64(h.GetSampleCount())
			sum += sign * h.GetSampleSum()
			for _, b := range h.GetBucket() {
				buckets[b.GetUpperBound()] += sign * float64(b.GetCumulativeCount())
			}
		})
	}
	add(begin, -1)
	add(end, 1)
	if count == 0 {
		return result.Times{}
	}
	return result.Times{Count: int64(count), Mean: timing.Seconds(sum / count), P50: timing.Quantile(buckets, count, 0.5), P99: timing.Quantile(buckets, count, 0.99)}
}
