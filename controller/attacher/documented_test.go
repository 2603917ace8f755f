// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"testing"

	"github.com/moorage-dev/moorage/test/metricstest"
)

func TestMetricsAreDocumented(t *testing.T) {
	c := newCollector("disk.example.com", func() *engine { return nil })
	metricstest.Documented(t, c, "../../docs/metrics.md", "Attacher")
}
