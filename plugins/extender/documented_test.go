// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/moorage-dev/moorage/test/metricstest"
)

func TestMetricsAreDocumented(t *testing.T) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newMetrics().collectors(time.Now)...)
	metricstest.Documented(t, registry, "../../docs/metrics.md", "Extender")
}
