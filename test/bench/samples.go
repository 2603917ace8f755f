// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"math"
	"slices"
	"time"
)

type Samples []float64

// Below it the 99th percentile is the maximum.
const minForP99 = 100

// A microsecond is the precision of the audit log.
func (s *Samples) add(d time.Duration) {
	*s = append(*s, float64(d.Round(time.Microsecond).Microseconds())/1000)
}

// Percentile is nearest-rank in milliseconds, never interpolated. False without samples, or from 99 on with
// fewer than 100.
func (s Samples) Percentile(p int) (float64, bool) {
	if len(s) == 0 || p < 1 || p > 100 || p >= 99 && len(s) < minForP99 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s))
	rank := (p*len(sorted) + 99) / 100 // rounded up
	return sorted[rank-1], true
}

// ratio is false when either isn't positive.
func ratio(a, b float64) (float64, bool) {
	if a <= 0 || b <= 0 {
		return 0, false
	}
	return a / b, true
}

func formatMillis(ms float64) string {
	switch size := math.Abs(ms); {
	case size >= 9_995:
		return fmt.Sprintf("%.1f s", ms/1000)
	case size >= 999.5:
		return fmt.Sprintf("%.2f s", ms/1000)
	case size >= 9.95:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.1f ms", ms)
}

func formatRatio(r float64) string {
	if r < 0.095 {
		return fmt.Sprintf("%.3f", r)
	}
	return fmt.Sprintf("%.2f", r)
}
