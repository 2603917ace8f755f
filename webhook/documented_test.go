// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	"github.com/moorage-dev/moorage/test/metricstest"
)

func TestMetricsAreDocumented(t *testing.T) {
	metricstest.Documented(t, newServer(t).metrics.registry, "../docs/metrics.md", "Webhook")
}
