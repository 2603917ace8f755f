// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"
)

func order(t *testing.T, add func(*Queue[string])) []string {
	t.Helper()
	var taken []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var q *Queue[string]
	q = New("test", func(_ context.Context, key string) (time.Duration, error) {
		taken = append(taken, key)
		if q.Len() == 0 {
			cancel()
		}
		return 0, nil
	})
	add(q)
	q.Run(ctx, 1)
	return taken
}

func keys(prefix string, n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}

// A key that can wait holds up no touched key, and gets its share of the work.
func TestLater(t *testing.T) {
	taken := order(t, func(q *Queue[string]) {
		for _, k := range keys("any", 100) {
			q.Later(k)
		}
		for _, k := range keys("touched", 9) {
			q.Add(k)
		}
		if q.Len() != 109 {
			t.Errorf("%d are due", q.Len())
		}
	})
	want := []string{
		"touched0", "touched1", "touched2", "any0", "touched3", "touched4", "touched5", "any1",
		"touched6", "touched7", "touched8", "any2", "any3",
	}
	if len(taken) != 109 || !slices.Equal(taken[:len(want)], want) || taken[108] != "any99" {
		t.Errorf("%d were taken: %v", len(taken), taken)
	}
}

func TestTouchedMovesUp(t *testing.T) {
	taken := order(t, func(q *Queue[string]) {
		for _, k := range keys("any", 5) {
			q.Later(k)
		}
		q.Add("any4")
		q.Add("any4")
		q.Add("touched")
		q.Later("touched")
		q.Later("any0")
	})
	if want := []string{"any4", "touched", "any0", "any1", "any2", "any3"}; !slices.Equal(taken, want) {
		t.Errorf("taken %v, want %v", taken, want)
	}
}

// First keys have two of four turns, from any row.
func TestFirst(t *testing.T) {
	taken := order(t, func(q *Queue[string]) {
		q.Later("any0")
		q.Later("any1")
		for _, k := range keys("touched", 4) {
			q.Add(k)
		}
		q.First("touched2")
		q.First("any1")
		q.First("new")
		q.Add("new")
		if q.Len() != 7 {
			t.Errorf("%d are due", q.Len())
		}
	})
	if want := []string{"touched0", "touched2", "any1", "any0", "touched1", "new", "touched3"}; !slices.Equal(taken, want) {
		t.Errorf("taken %v, want %v", taken, want)
	}
}

// A key touched while it is processed is urgent, in either order.
func TestTouchedWhileProcessed(t *testing.T) {
	for name, ask := range map[string]func(*Queue[string], string){
		"touched first": func(q *Queue[string], key string) { q.Add(key); q.Later(key) },
		"touched last":  func(q *Queue[string], key string) { q.Later(key); q.Add(key) },
	} {
		t.Run(name, func(t *testing.T) {
			var taken []string
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var q *Queue[string]
			q = New("test", func(_ context.Context, key string) (time.Duration, error) {
				taken = append(taken, key)
				switch len(taken) {
				case 1:
					ask(q, key)
				case 4:
					cancel()
				}
				return 0, nil
			})
			for _, k := range keys("any", 3) {
				q.Later(k)
			}
			q.Run(ctx, 1)
			if want := []string{"any0", "any0", "any1", "any2"}; !slices.Equal(taken, want) {
				t.Errorf("taken %v, want %v", taken, want)
			}
			if l := q.due; len(l.asked)+l.Len() > 0 {
				t.Errorf("kept: %v, %v", l.asked, l.rows)
			}
		})
	}
}

// A due key does not wait behind a resync that added it, too.
func TestWhoseTimeHasComeIsNotPatient(t *testing.T) {
	taken := order(t, func(q *Queue[string]) {
		for _, k := range keys("any", 100) {
			q.Later(k)
		}
		q.Later("timed")
		q.later.Add("timed") // as the delaying queue does when an AddAfter is due
	})
	if taken[0] != "timed" {
		t.Errorf("its time has come, and %d others that nothing has touched are taken before it", slices.Index(taken, "timed"))
	}
}
