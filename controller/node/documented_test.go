// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"github.com/moorage-dev/moorage/test/metricstest"
)

func TestMetricsAreDocumented(t *testing.T) {
	metricstest.Documented(t, newMeasures("n1").registry, "../../docs/metrics.md", "Node")
}
