// SPDX-License-Identifier: Apache-2.0

package pace_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/test/internal/pace"
)

const hands = 20

func starts(ctx context.Context, n int, every time.Duration) ([]time.Duration, error) {
	began := time.Now()
	var mu sync.Mutex
	out := make([]time.Duration, n)
	err := pace.Rate{Hands: hands, Every: every}.Each(ctx, n, func(_ context.Context, i int) error {
		mu.Lock()
		out[i] = time.Since(began)
		mu.Unlock()
		<-time.After(time.Second)
		return nil
	})
	return out, err
}

func TestKeepsTheBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := starts(t.Context(), 4, 300*time.Millisecond)
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range got {
			if want := time.Duration(i) * 300 * time.Millisecond; at != want {
				t.Errorf("call %d began after %s, want %s: it must not wait for the one before", i, at, want)
			}
		}
	})
}

func TestBurstIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got, err := starts(t.Context(), 2*hands, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range got {
			want := time.Duration(0)
			if i >= hands {
				want = time.Second
			}
			if at != want {
				t.Errorf("call %d began after %s, want %s", i, at, want)
			}
		}
	})
}

func TestStopsAtTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		var calls int
		err := pace.Rate{Hands: hands, Every: time.Second}.Each(t.Context(), 10, func(_ context.Context, i int) error {
			calls++
			if i == 2 {
				return broken
			}
			return nil
		})
		if !errors.Is(err, broken) || calls != 3 {
			t.Errorf("%d calls and error %v; want 3 and %v", calls, err, broken)
		}
	})
}

func TestEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		var calls int
		err := pace.Rate{Hands: hands, Every: time.Second}.Each(ctx, 10, func(context.Context, int) error { calls++; return nil })
		if !errors.Is(err, context.DeadlineExceeded) || calls != 3 {
			t.Errorf("%d calls and error %v; want 3 and the deadline", calls, err)
		}
	})
}
