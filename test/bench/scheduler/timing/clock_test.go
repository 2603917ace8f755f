// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"testing"
	"time"
)

// A time is below its bucket's end by at most an eighth.
func TestBucketsHoldTheirTimes(t *testing.T) {
	for n := uint64(0); n < 1<<40; n = n*9/8 + 1 {
		end := above(bucket(n))
		if end <= time.Duration(n) || float64(end) > float64(n)*1.125+1 {
			t.Errorf("%d ns is in a bucket that ends at %d ns", n, end)
		}
		if b := bucket(n); b > 0 && above(b-1) > time.Duration(n) {
			t.Errorf("%d ns would fit a smaller bucket", n)
		}
	}
}

func TestClock(t *testing.T) {
	var c Clock
	if got := c.Times(); got.Count != 0 || got.P99 != 0 {
		t.Errorf("an empty clock says %+v", got)
	}
	for range 98 {
		c.Add(4)
	}
	c.Add(time.Second)
	c.Add(-time.Second)
	got := c.Times()
	if got.Count != 100 || got.P50 != 5 || got.P99 != 5 || got.Mean != (time.Second+98*4)/100 {
		t.Errorf("the clock says %+v", got)
	}
	c.Add(time.Second)
	if got := c.Times().P99; got < time.Second || got > 9*time.Second/8 {
		t.Errorf("with a second slow one of 101, p99 is %s", got)
	}
	c.Reset()
	if got := c.Times(); got.Count != 0 {
		t.Errorf("after a reset the clock says %+v", got)
	}
}

func TestQuantile(t *testing.T) {
	// 50 up to 1 s, 50 more up to 2 s.
	buckets := map[float64]float64{1: 50, 2: 100, 4: 100}
	for share, want := range map[float64]time.Duration{0.25: 500 * time.Millisecond, 0.5: time.Second, 0.99: 1980 * time.Millisecond, 1: 2 * time.Second} {
		if got := Quantile(buckets, 100, share); got != want {
			t.Errorf("%.2f of all are at most %s, want %s", share, got, want)
		}
	}
	if got := Quantile(buckets, 200, 0.99); got != 4*time.Second {
		t.Errorf("beyond the last bucket: %s", got)
	}
	if got := Quantile(nil, 0, 0.5); got != 0 {
		t.Errorf("of nothing: %s", got)
	}
}
