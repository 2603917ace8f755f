// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moorage-dev/moorage/internal/protocol"
)

func running(t *testing.T, workers int, process func(context.Context, string) (time.Duration, error)) *Queue[string] {
	t.Helper()
	q := New("test", process)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.Run(ctx, workers)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return q
}

// A key has a single worker; a key touched meanwhile is processed again.
func TestOneAtATime(t *testing.T) {
	var mu sync.Mutex
	busy, most, runs := 0, 0, 0
	began, goOn := make(chan struct{}, 10), make(chan struct{})
	q := running(t, 4, func(context.Context, string) (time.Duration, error) {
		mu.Lock()
		busy, runs = busy+1, runs+1
		most = max(most, busy)
		mu.Unlock()
		began <- struct{}{}
		<-goOn
		mu.Lock()
		busy--
		mu.Unlock()
		return 0, nil
	})
	q.Add("a")
	<-began
	for range 5 {
		q.Add("a") // while it is processed
	}
	goOn <- struct{}{}
	<-began
	goOn <- struct{}{}
	mu.Lock()
	defer mu.Unlock()
	if most != 1 || runs != 2 {
		t.Errorf("%d at once, %d runs; want 1 and 2", most, runs)
	}
}

// A touch does not wait for the time or the pause.
func TestAgain(t *testing.T) {
	began := make(chan int, 10)
	runs := 0
	q := running(t, 1, func(context.Context, string) (time.Duration, error) {
		runs++
		began <- runs
		switch runs {
		case 1:
			return time.Millisecond, nil // comes back by itself
		case 2:
			return 0, fmt.Errorf("changed: %w", protocol.ErrStale) // and again
		case 3:
			return time.Hour, errors.New("broken")
		}
		return time.Hour, nil
	})
	q.Add("a")
	for want := 1; want <= 4; want++ {
		if got := <-began; got != want {
			t.Fatalf("run %d, want %d", got, want)
		}
	}
	q.Add("a") // although it is to be looked at in an hour
	if got := <-began; got != 5 {
		t.Errorf("run %d, want 5", got)
	}
}

func TestSpread(t *testing.T) {
	for range 100 {
		if pause := Spread(time.Minute); pause > time.Minute || pause < 45*time.Second {
			t.Errorf("a minute is spread to %s", pause)
		}
	}
	if pause := Spread(time.Nanosecond); pause != time.Nanosecond {
		t.Errorf("a moment is spread to %s", pause)
	}
}

// Stale does not count as failed; success forgets both.
func TestAttemptsAreCountedApart(t *testing.T) {
	const first = 200 * time.Millisecond
	q := New("test", func(context.Context, string) (time.Duration, error) { return 0, nil })
	for range 5 {
		q.failed("a", protocol.ErrStale)
	}
	if pause := q.failed("a", errors.New("broken")); pause > first {
		t.Errorf("the first failure pauses %s", pause)
	}
	q.failed("a", errors.New("broken"))
	if pause := q.failed("a", errors.New("broken")); pause < first*3 {
		t.Errorf("the third failure pauses %s", pause)
	}
	q.succeeded("a")
	if pause := q.failed("a", errors.New("broken")); pause > first {
		t.Errorf("after a success a failure pauses %s", pause)
	}
}

// A key is retried within a minute, however often it failed.
func TestPausesAreOfEachKey(t *testing.T) {
	q := New("test", func(context.Context, string) (time.Duration, error) { return 0, nil })
	for range 1000 {
		if pause := q.failed("a", errors.New("broken")); pause > time.Minute {
			t.Fatalf("it pauses %s", pause)
		}
	}
	if pause := q.failed("b", errors.New("broken")); pause > 200*time.Millisecond {
		t.Errorf("another one pauses %s", pause)
	}
}

func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	began := make(chan string, 10)
	q := New("test", func(ctx context.Context, key string) (time.Duration, error) {
		began <- key
		<-ctx.Done()
		return 0, ctx.Err()
	})
	q.Add("a")
	q.Add("b")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		q.Run(ctx, 1)
	}()
	<-began
	cancel()
	<-ended
	if len(began) != 0 {
		t.Errorf("%s was begun after the end", <-began)
	}
}

// A due key does not wait for its pause after failures.
func TestPauseEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const due = 10 * time.Second
		began := time.Now()
		looks := make(chan time.Duration, 2)
		q := New("test", func(context.Context, string) (time.Duration, error) {
			since := time.Since(began)
			looks <- since
			return due - since, errors.New("broken")
		})
		for range 20 {
			q.failed("a", errors.New("broken")) // it pauses for long by now
		}
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { q.Run(ctx, 1) })
		q.Add("a")
		if first, second := <-looks, <-looks; first != 0 || second != due {
			t.Errorf("it is looked at after %s and %s, want at once and after %s", first, second, due)
		}
		cancel()
		ended.Wait()
	})
}
