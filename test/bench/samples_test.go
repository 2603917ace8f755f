// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/test/proptest"
)

func upTo(n int) Samples {
	var s Samples
	for i := range n {
		s = append(s, float64(i+1))
	}
	rand.Shuffle(n, func(i, j int) { s[i], s[j] = s[j], s[i] })
	return s
}

func TestPercentile(t *testing.T) {
	for _, tt := range []struct {
		n    int
		p    int
		want float64
		ok   bool
	}{
		{0, 50, 0, false},
		{1, 50, 1, true},
		{2, 50, 1, true},
		{3, 50, 2, true},
		{40, 50, 20, true},
		{40, 98, 40, true},
		{99, 99, 0, false},
		{100, 99, 99, true},
		{200, 99, 198, true},
		{201, 99, 199, true},
		{1000, 1, 10, true},
		{100, 100, 100, true},
		{100, 0, 0, false},
		{100, 101, 0, false},
	} {
		if got, ok := upTo(tt.n).Percentile(tt.p); got != tt.want || ok != tt.ok {
			t.Errorf("p%v of 1…%d is %v, %t; want %v, %t", tt.p, tt.n, got, ok, tt.want, tt.ok)
		}
	}
}

func TestPercentileIsNearestRank(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		s := Samples(rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 300).Draw(t, "samples"))
		p := rapid.IntRange(1, 98).Draw(t, "p")
		got, ok := s.Percentile(p)
		if !ok {
			t.Fatalf("no p%v of %d samples", p, len(s))
		}
		share := func(limit float64) (upTo, below int) {
			for _, v := range s {
				if v <= limit {
					upTo++
				}
				if v < limit {
					below++
				}
			}
			return upTo, below
		}
		atMost, below := share(got)
		if need := p * len(s); atMost*100 < need || below*100 >= need {
			t.Fatalf("p%v of %v is %v: %d samples are not above it, %d below", p, s, got, atMost, below)
		}
	})
}

func TestPercentileLeavesSamplesAlone(t *testing.T) {
	s := Samples{3, 1, 2}
	s.Percentile(50)
	if s[0] != 3 || s[1] != 1 || s[2] != 2 {
		t.Errorf("the samples were reordered: %v", s)
	}
}

func TestAddKeepsMicroseconds(t *testing.T) {
	var s Samples
	s.add(-1500 * time.Microsecond)
	s.add(2*time.Second + 3*time.Microsecond + 400)
	if len(s) != 2 || s[0] != -1.5 || s[1] != 2000.003 {
		t.Errorf("got %v, want [-1.5 2000.003]", s)
	}
}

func TestRatio(t *testing.T) {
	if r, ok := ratio(1, 4); !ok || r != 0.25 {
		t.Errorf("1 : 4 is %v, %t", r, ok)
	}
	for _, pair := range [][2]float64{{-1, 4}, {1, 0}, {1, -4}, {0, 4}} {
		if r, ok := ratio(pair[0], pair[1]); ok {
			t.Errorf("%v : %v has a ratio, %v", pair[0], pair[1], r)
		}
	}
}

func TestFormatMillis(t *testing.T) {
	for ms, want := range map[float64]string{
		0: "0.0 ms", 1.26: "1.3 ms", 9.949: "9.9 ms", 9.95: "10 ms", -3.2: "-3.2 ms", 999.4: "999 ms",
		999.5: "1.00 s", 5432: "5.43 s", 9994: "9.99 s", 9996: "10.0 s", 119_600: "119.6 s", -1234: "-1.23 s",
	} {
		if got := formatMillis(ms); got != want {
			t.Errorf("%v ms is written %q, want %q", ms, got, want)
		}
	}
}
