// SPDX-License-Identifier: Apache-2.0

package report

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// upstream are the attach/detach controller's metrics under its own names
// (pkg/controller/volume/attachdetach/metrics and pkg/volume/util/metrics.go).
type upstream struct {
	forced     *prometheus.CounterVec
	operations *prometheus.HistogramVec
}

func newUpstream() upstream {
	return upstream{
		forced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "attach_detach_controller_attachdetach_controller_forced_detaches",
			Help: "Number of times the A/D Controller performed a forced detach",
		}, []string{"reason"}),
		operations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "storage_operation_duration_seconds",
			Help:    "Storage operation duration",
			Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
		}, []string{"volume_plugin", "operation_name", "status", "migrated"}),
	}
}

func (u upstream) force(rule string) {
	reason := "timeout"
	if rule == rules.OutOfService {
		reason = "out-of-service"
	}
	u.forced.WithLabelValues(reason).Inc()
}

// operation: a migrated in-tree volume is known by its CSI driver alone, so that migrated is always false.
func (u upstream) operation(name, driver string, took time.Duration) {
	u.operations.WithLabelValues(pluginName(driver), "volume_"+name, "success", "false").Observe(took.Seconds())
}

func pluginName(driver string) string {
	if (ledger.VolumeID{Driver: driver}).NoAttach() {
		return driver
	}
	return "kubernetes.io/csi:" + driver
}

// collectVolumes counts volumes that a pod wants at a node, or that are (being) attached there, as upstream
// does.
func (w *world) collectVolumes(s ledger.Snapshot, gauge func(*prometheus.Desc, float64, ...string)) {
	type kind struct{ driver, state string }
	count := map[kind]int{}
	for v := range s.Volumes() {
		for i := range v.OnNodes {
			p := &v.OnNodes[i]
			if p.UsedByPod() {
				count[kind{v.ID.Driver, "desired_state_of_world"}]++
			}
			if p.HasAttachments() || v.ID.NoAttach() && p.Reported {
				count[kind{v.ID.Driver, "actual_state_of_world"}]++
			}
		}
	}
	for k, n := range count {
		gauge(w.total, float64(n), pluginName(k.driver), k.state)
	}
}
