// The Prometheus operator's definitions of ServiceMonitor, PodMonitor and
// PrometheusRule are in its module, as data: tests read them, nothing is compiled.
module github.com/moorage-dev/moorage/test/promql/operator

go 1.26.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
