// SPDX-License-Identifier: Apache-2.0

// Package timing counts durations in buckets, and reads percentiles from buckets.
package timing

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

// Buckets per power of two: a percentile is at most an eighth too high.
const steps = 8

// Clock is empty as a zero value, and safe for parallel use.
type Clock struct {
	buckets [64 * steps]atomic.Int64
	total   atomic.Int64 // nanoseconds
}

// Add counts a negative time as zero.
func (c *Clock) Add(d time.Duration) {
	d = max(d, 0)
	c.buckets[bucket(uint64(d))].Add(1)
	c.total.Add(int64(d))
}

func bucket(n uint64) int {
	if n < steps {
		return int(n)
	}
	power := bits.Len64(n) - 1
	return (power-2)*steps + int(n>>(power-3))&(steps-1)
}

func above(bucket int) time.Duration {
	if bucket < steps {
		return time.Duration(bucket + 1)
	}
	power := bucket/steps + 2
	return time.Duration((steps + bucket%steps + 1) << (power - 3))
}

// Reset may or may not forget a time that is counted meanwhile.
func (c *Clock) Reset() {
	for i := range c.buckets {
		c.buckets[i].Store(0)
	}
	c.total.Store(0)
}

// Times gives the end of a bucket as a percentile.
func (c *Clock) Times() result.Times {
	var t result.Times
	for i := range c.buckets {
		t.Count += c.buckets[i].Load()
	}
	if t.Count == 0 {
		return t
	}
	t.Mean = time.Duration(c.total.Load() / t.Count)
	t.P50, t.P99 = c.percentile(t.Count, 50), c.percentile(t.Count, 99)
	return t
}

func (c *Clock) percentile(count, percent int64) time.Duration {
	rank, seen := (count*percent+99)/100, int64(0)
	for i := range c.buckets {
		if seen += c.buckets[i].Load(); seen >= rank {
			return above(i)
		}
	}
	return 0
}

// Quantile reads a cumulative histogram. Values are spread evenly in a bucket; beyond the last its end
// counts.
func Quantile(buckets map[float64]float64, count, share float64) time.Duration {
	bounds := make([]float64, 0, len(buckets))
	for bound := range buckets {
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	rank, below, lower := count*share, 0.0, 0.0
	for _, bound := range bounds {
		if n := buckets[bound]; n >= rank && n > below {
			return Seconds(lower + (bound-lower)*(rank-below)/(n-below))
		}
		below, lower = buckets[bound], bound
	}
	return Seconds(lower)
}

func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
