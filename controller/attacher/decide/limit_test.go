// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
	"github.com/moorage-dev/moorage/test/proptest"
)

var epoch = time.Unix(1_000_000, 0)

const timeout = 15 * time.Second

func round(t *testing.T, l *decide.Limit, code codes.Code, began, ended time.Time) {
	t.Helper()
	turns := all(l, began)
	if len(turns) != l.InUse() {
		t.Fatalf("%d calls were taken, %d are in use", len(turns), l.InUse())
	}
	for _, turn := range turns {
		l.Free(turn, code, false, ended)
	}
}

func all(l *decide.Limit, at time.Time) []decide.Turn {
	var turns []decide.Turn
	for {
		turn, ok := l.Take(at)
		if !ok {
			return turns
		}
		turns = append(turns, turn)
	}
}

func newLimit(t *testing.T, most int) *decide.Limit {
	t.Helper()
	l, err := decide.NewLimit(most, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLimitFollowsTheDriver(t *testing.T) {
	l := newLimit(t, 1000)
	first := l.Size()
	round(t, l, codes.OK, epoch, epoch.Add(time.Second))
	if l.Size() <= first {
		t.Fatalf("a driver that keeps up is given %d calls, and was given %d before", l.Size(), first)
	}
	wide := l.Size()
	round(t, l, codes.ResourceExhausted, epoch.Add(time.Second), epoch.Add(2*time.Second))
	if l.Size() != wide/2 {
		t.Fatalf("one round of ResourceExhausted at %d leaves %d, want half of it, once", wide, l.Size())
	}
	for i := range 30 {
		at := epoch.Add(time.Duration(3+i) * time.Second)
		round(t, l, codes.DeadlineExceeded, at, at.Add(time.Millisecond))
	}
	if l.Size() != 10 {
		t.Fatalf("a driver that only times out is given %d calls, want the ten of the stock attacher", l.Size())
	}
	at := epoch.Add(time.Hour)
	rounds := 0
	for ; l.Size() < wide/2 && rounds < 100; rounds++ {
		round(t, l, codes.OK, at, at)
	}
	if rounds > 12 {
		t.Fatalf("it takes %d rounds of successes until a driver is given %d calls again, half of where it began to push back: want a few", rounds, l.Size())
	}
	near := l.Size()
	round(t, l, codes.OK, at, at)
	if l.Size() < near || l.Size() > near+1 {
		t.Fatalf("near where it pushed back, a round of successes leads from %d to %d, want one more at most", near, l.Size())
	}
}

func TestLimitStaysNearTheBrink(t *testing.T) {
	const takes = 100
	l := newLimit(t, 1000)
	at := epoch
	sum, rounds := 0, 400
	for range rounds {
		at = at.Add(time.Second)
		turns := all(l, at)
		sum += min(len(turns), takes)
		for i, turn := range turns {
			code := codes.OK
			if i >= takes {
				code = codes.ResourceExhausted
			}
			l.Free(turn, code, false, at.Add(time.Second/2))
		}
	}
	if got := sum / rounds; got < takes*2/3 {
		t.Fatalf("a driver that takes %d calls at a time is given %d of them on average, want two thirds at least", takes, got)
	}
}

// queueing carries out a fixed number of calls at a time, in order.
type queueing struct {
	parallel int
	latency  time.Duration
	turns    []time.Time // when each place is free
}

func (d *queueing) call(at time.Time) time.Time {
	first := 0
	for i := range d.turns {
		if d.turns[i].Before(d.turns[first]) {
			first = i
		}
	}
	if len(d.turns) < d.parallel {
		d.turns = append(d.turns, at)
		first = len(d.turns) - 1
	}
	if at.After(d.turns[first]) {
		d.turns[first] = at
	}
	d.turns[first] = d.turns[first].Add(d.latency)
	return d.turns[first]
}

func burst(t *testing.T, calls int, d *queueing) (took, longest time.Duration) {
	t.Helper()
	l := newLimit(t, 1000)
	type open struct {
		turn decide.Turn
		ends time.Time
	}
	var under []open
	now := epoch
	for calls > 0 || len(under) > 0 {
		for calls > 0 {
			turn, ok := l.Take(now)
			if !ok {
				break
			}
			calls--
			under = append(under, open{turn, d.call(now)})
		}
		slices.SortStableFunc(under, func(a, b open) int { return a.ends.Compare(b.ends) })
		first := under[0]
		under, now = under[1:], first.ends
		longest = max(longest, now.Sub(first.turn.Began))
		l.Free(first.turn, codes.OK, false, now)
	}
	return now.Sub(epoch), longest
}

// The limit never slows a driver that keeps up, and no calls time out in a queue.
func TestLimitCostsLittle(t *testing.T) {
	for name, c := range map[string]struct {
		calls    int
		driver   queueing
		took     time.Duration
		patience time.Duration
	}{
		"200 at once":                        {200, queueing{parallel: 5000, latency: time.Second}, time.Second, time.Second},
		"1,000 at once, in two rounds":       {1000, queueing{parallel: 5000, latency: time.Second}, 2 * time.Second, time.Second},
		"1,000, and 50 at a time":            {1000, queueing{parallel: 50, latency: time.Second}, 20 * time.Second, timeout},
		"5,000, and 50 at a time":            {5000, queueing{parallel: 50, latency: time.Second}, 100 * time.Second, timeout},
		"5,000, and 30 at a time":            {5000, queueing{parallel: 30, latency: time.Second}, 167 * time.Second, timeout},
		"5,000, and 20 at a time":            {5000, queueing{parallel: 20, latency: time.Second}, 250 * time.Second, timeout},
		"5,000 quick ones, and 20 at a time": {5000, queueing{parallel: 20, latency: 100 * time.Millisecond}, 25 * time.Second, timeout},
	} {
		t.Run(name, func(t *testing.T) {
			took, longest := burst(t, c.calls, &c.driver)
			if took != c.took || longest > c.patience {
				t.Errorf("it takes %s, want %s; the longest call %s of %s", took, c.took, longest, c.patience)
			}
		})
	}
}

func TestLimitIsNotMovedByOneVolume(t *testing.T) {
	l := newLimit(t, 100)
	for i := range 20 {
		at := epoch.Add(time.Duration(i) * time.Minute)
		turn, _ := l.Take(at)
		l.Free(turn, codes.DeadlineExceeded, true, at)
	}
	if l.Size() != 100 {
		t.Fatalf("a volume that fails over and over took the limit to %d", l.Size())
	}
	turn, _ := l.Take(epoch)
	l.Free(turn, codes.Internal, false, epoch)
	if l.Size() != 100 {
		t.Fatalf("Internal took the limit to %d; it says nothing of load", l.Size())
	}
}

func TestLimitStaysInBounds(t *testing.T) {
	proptest.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 400).Draw(t, "most")
		l, err := decide.NewLimit(most, timeout)
		if err != nil {
			t.Fatal(err)
		}
		at := epoch
		var turns []decide.Turn
		for range 200 {
			at = at.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			if rapid.Bool().Draw(t, "take") || l.InUse() == 0 {
				if turn, ok := l.Take(at); ok {
					turns = append(turns, turn)
				}
			} else {
				i := rapid.IntRange(0, len(turns)-1).Draw(t, "which")
				l.Free(turns[i], codes.Code(rapid.Uint32Range(0, 16).Draw(t, "code")), rapid.Bool().Draw(t, "own"), at)
				turns = slices.Delete(turns, i, i+1)
			}
			if l.Size() < min(10, most) || l.Size() > most {
				t.Fatalf("the limit is %d, outside of [%d,%d]", l.Size(), min(10, most), most)
			}
		}
	})
	if _, err := decide.NewLimit(0, timeout); err == nil {
		t.Fatal("a limit of no calls at all was accepted")
	}
	if _, err := decide.NewLimit(1, 0); err == nil {
		t.Fatal("calls without any time were accepted")
	}
}

func TestBackoff(t *testing.T) {
	b := decide.Backoff{First: time.Second, Max: 5 * time.Minute}
	for failures, want := range map[int]time.Duration{
		1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 9: 256 * time.Second, 10: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		if got := b.After(failures, 0); got != want {
			t.Errorf("after %d failures: %s, want %s", failures, got, want)
		}
		if got := b.After(failures, 0.999); got <= want || got > want+want/5 {
			t.Errorf("after %d failures with jitter: %s, want a fifth more than %s at most", failures, got, want)
		}
	}
}

func TestRejected(t *testing.T) {
	for code := codes.OK; code <= codes.Unauthenticated; code++ {
		definite := false
		switch code {
		case codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
			codes.OutOfRange, codes.Unimplemented, codes.Internal, codes.Unauthenticated:
			definite = true
		}
		if decide.Rejected(code) != definite {
			t.Errorf("%s: a definite answer: %v, want %v", code, !definite, definite)
		}
	}
}

func TestPVFinalizer(t *testing.T) {
	for _, c := range []struct {
		name string
		pv   decide.PersistentVolume
		want bool
	}{
		{"in life", decide.PersistentVolume{Stamped: true}, false},
		{"deleted and unused", decide.PersistentVolume{Stamped: true, Deleting: true}, true},
		{"deleted and used", decide.PersistentVolume{Stamped: true, Deleting: true, Used: true}, false},
		{"deleted, not ours", decide.PersistentVolume{Deleting: true}, false},
		{"given back to the in-tree plugin", decide.PersistentVolume{Stamped: true, Orphaned: true}, true},
		{"given back, still used", decide.PersistentVolume{Stamped: true, Orphaned: true, Used: true}, false},
	} {
		if got := c.pv.Unstamp(); got != c.want {
			t.Errorf("%s: comes off: %v, want %v", c.name, got, c.want)
		}
	}
}
