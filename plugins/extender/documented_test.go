// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"testing"
	"time"

	"github.com/moorage-dev/moorage/test/metricstest"
)

func TestMetricsAreDocumented(t *testing.T) {
	m := newMetrics()
	m.watch(func() time.Time { return time.Time{} }, func() bool { return false })
	metricstest.Documented(t, m.registry, "../../docs/metrics.md", "Extender")
}
