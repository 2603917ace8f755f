// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/test/metricstest"
)

func TestMetricsAreDocumented(t *testing.T) {
	metricstest.Documented(t, report.NewMetrics(ledger.New().Snapshot).Registry, "../../docs/metrics.md", "Controller")
}
