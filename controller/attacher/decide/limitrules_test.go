// SPDX-License-Identifier: Apache-2.0

package decide_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/moorage-dev/moorage/controller/attacher/decide"
)

func sizes(t *testing.T, l *decide.Limit, want int, when string) {
	t.Helper()
	if l.Size() != want {
		t.Fatalf("%s: the limit is %d, want %d", when, l.Size(), want)
	}
}

// one takes all calls with room, ends the last with code, and the rest with a code without meaning.
func one(l *decide.Limit, code codes.Code, began, ended time.Time) {
	turns := all(l, began)
	slices.Reverse(turns)
	for _, turn := range turns {
		l.Free(turn, code, false, ended)
		code = codes.Internal
	}
}

// Near the brink the limit grows by one with a round of successes. After two cuts without a success it
// grows by three with a prompt answer, up to the first cut.
func TestLimitGrows(t *testing.T) {
	at := func(s int) time.Time { return epoch.Add(time.Duration(s) * time.Second) }
	l := newLimit(t, 1000)
	sizes(t, l, 256, "at first")
	one(l, codes.Unavailable, at(1), at(2))
	sizes(t, l, 128, "cut at once")
	one(l, codes.OK, at(3), at(4))
	sizes(t, l, 128, "one success at the brink")
	for range 3 { // with each, only the first half has half of the limit in use
		round(t, l, codes.OK, at(5), at(6))
	}
	sizes(t, l, 129, "rounds of successes at the brink")

	one(l, codes.Unavailable, at(7), at(8))
	sizes(t, l, 64, "cut after successes")
	one(l, codes.OK, at(9), at(10))
	sizes(t, l, 64, "one success at the new brink")
	one(l, codes.Unavailable, at(9), at(10))
	sizes(t, l, 32, "cut after that")
	one(l, codes.Unavailable, at(13), at(14))
	sizes(t, l, 16, "cut twice")
	one(l, codes.OK, at(15), at(16))
	sizes(t, l, 19, "one prompt success below the brink")
	turns := all(l, at(17))
	slices.Reverse(turns)
	l.Free(turns[0], codes.OK, false, at(18))
	sizes(t, l, 22, "another one")
	l.Free(turns[1], codes.OK, false, at(18).Add(time.Second/2))
	sizes(t, l, 25, "half as long again is prompt")
	l.Free(turns[2], codes.OK, false, at(18).Add(time.Second/2+1))
	sizes(t, l, 26, "more is slow")
}

func TestLimitHearsWhatIsFresh(t *testing.T) {
	l := newLimit(t, 100)
	old := all(l, epoch)
	l.Free(old[0], codes.Unavailable, false, epoch.Add(time.Second))
	sizes(t, l, 50, "cut")
	l.Free(old[1], codes.Unavailable, false, epoch.Add(2*time.Second))
	sizes(t, l, 50, "another one of the same calls fails")
	l.Free(old[2], codes.OK, false, epoch.Add(2*time.Second))
	for _, turn := range old[3:] {
		l.Free(turn, codes.Internal, false, epoch.Add(2*time.Second))
	}
	one(l, codes.Unavailable, epoch.Add(3*time.Second), epoch.Add(4*time.Second))
	sizes(t, l, 25, "cut again")
	for i := range 12 {
		one(l, codes.OK, epoch.Add(time.Duration(5+i)*time.Second), epoch.Add(time.Duration(5+i)*time.Second+time.Millisecond))
	}
	if l.Size() < 50 {
		t.Errorf("the limit is %d after twelve successes, want that the driver was away at the second cut and 50 are near", l.Size())
	}
}

// Later answers to calls from before the cut do not count.
func TestLimitKnowsThatTheDriverKeptUp(t *testing.T) {
	l := newLimit(t, 100)
	old := all(l, epoch)
	for _, turn := range old[40:] {
		l.Free(turn, codes.Unavailable, false, epoch.Add(time.Second))
	}
	sizes(t, l, 50, "cut")
	turn, _ := l.Take(epoch.Add(2 * time.Second))
	l.Free(turn, codes.OK, false, epoch.Add(3*time.Second))
	l.Free(old[0], codes.OK, false, epoch.Add(3*time.Second))
	turn, _ = l.Take(epoch.Add(4 * time.Second))
	l.Free(turn, codes.Unavailable, false, epoch.Add(5*time.Second))
	sizes(t, l, 25, "cut again")
	turn, _ = l.Take(epoch.Add(6 * time.Second))
	if turn.Place != 0 {
		t.Fatalf("a call at place %d, and 39 are under way", turn.Place)
	}
	for _, turn := range old[1:20] {
		l.Free(turn, codes.Internal, false, epoch.Add(6*time.Second))
	}
	turn, _ = l.Take(epoch.Add(6 * time.Second))
	l.Free(turn, codes.OK, false, epoch.Add(6*time.Second+time.Millisecond))
	sizes(t, l, 25, "one success at the brink")
}

func TestLimitRemembersTheQuickest(t *testing.T) {
	l := newLimit(t, 40)
	one(l, codes.Unavailable, epoch.Add(1), epoch.Add(2))
	one(l, codes.Unavailable, epoch.Add(3), epoch.Add(4))
	sizes(t, l, 10, "cut twice")
	began := epoch.Add(time.Minute)
	turns := all(l, began)
	l.Free(turns[9], codes.OK, false, began.Add(time.Millisecond))
	sizes(t, l, 13, "one prompt success")
	for _, turn := range turns[1:9] {
		l.Free(turn, codes.Internal, false, began.Add(time.Millisecond))
	}
	turns = all(l, began)
	l.Free(turns[len(turns)-1], codes.OK, false, began.Add(50*time.Millisecond))
	sizes(t, l, 14, "one that is slower than the quickest")
}

// Half of the limit must be in use, and the answer within half of the timeout.
func TestWhenTheLimitGrows(t *testing.T) {
	for name, c := range map[string]struct {
		under int
		took  time.Duration
		grows bool
	}{
		"half of it":                   {5, time.Second, true},
		"less than half":               {4, time.Second, false},
		"answered in time":             {10, timeout / 2, true},
		"answered a bit late":          {10, timeout/2 + 1, false},
		"one more might have to wait":  {5, timeout / 4, true},
		"one more would wait too long": {5, timeout/4 + time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimit(t, 40)
			one(l, codes.Unavailable, epoch.Add(1), epoch.Add(2))
			one(l, codes.Unavailable, epoch.Add(3), epoch.Add(4))
			sizes(t, l, 10, "cut twice")
			began := epoch.Add(time.Minute)
			var last decide.Turn
			for range c.under {
				last, _ = l.Take(began)
			}
			l.Free(last, codes.OK, false, began.Add(c.took))
			if got := l.Size() > 10; got != c.grows {
				t.Errorf("it grows: %v, want %v", got, c.grows)
			}
		})
	}
}

func TestLimitMeasuresAnew(t *testing.T) {
	l := newLimit(t, 1000)
	one(l, codes.Unavailable, epoch.Add(1), epoch.Add(2))
	at := epoch.Add(time.Minute)
	one(l, codes.Unavailable, at, at.Add(1))
	at = at.Add(time.Minute)
	one(l, codes.OK, at, at.Add(time.Millisecond))
	near := l.Size()
	at = at.Add(time.Minute)
	one(l, codes.OK, at, at.Add(50*time.Millisecond))
	sizes(t, l, near+3, "slower than before it had nothing to do, and prompt")
}

// A late answer, beside any quick answers, keeps the limit.
func TestLimitGoesByTheQuickest(t *testing.T) {
	l := newLimit(t, 40)
	one(l, codes.Unavailable, epoch.Add(1), epoch.Add(2))
	one(l, codes.Unavailable, epoch.Add(3), epoch.Add(4))
	began := epoch.Add(time.Minute)
	turns := all(l, began)
	for _, c := range []struct {
		took time.Duration
		want int
		when string
	}{
		{100 * time.Millisecond, 13, "the first is prompt"},
		{10 * time.Millisecond, 16, "a quicker one is, too"},
		{50 * time.Millisecond, 17, "slower than the quickest"},
	} {
		last := turns[len(turns)-1]
		turns = turns[:len(turns)-1]
		l.Free(last, codes.OK, false, began.Add(c.took))
		sizes(t, l, c.want, c.when)
	}
	l.Free(all(l, began)[0], codes.OK, false, began.Add(timeout/2+1))
	sizes(t, l, 17, "late, with all in use")
}

func TestLimitOfOneAtATime(t *testing.T) {
	for took, grows := range map[time.Duration]bool{timeout / 20: true, timeout/20 + time.Millisecond: false} {
		l := newLimit(t, 40)
		one(l, codes.Unavailable, epoch.Add(1), epoch.Add(2))
		one(l, codes.Unavailable, epoch.Add(3), epoch.Add(4))
		began := epoch.Add(time.Minute)
		l.Free(all(l, began)[0], codes.OK, false, began.Add(took))
		if got := l.Size() > 10; got != grows {
			t.Errorf("answered after %s, it grows: %v", took, got)
		}
	}
}
