// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// tenantOf is the part of a key before the slash.
func tenantOf(key string) string {
	tenant, _, _ := strings.Cut(key, "/")
	return tenant
}

// Tenants take turns, and the keys of each come in their order, whenever they were added.
func TestTenantsTakeTurns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var taken []string
	var q *Queue[string]
	q = NewFair("test", func(key string) (string, Rank) { return tenantOf(key), Touched }, func(_ context.Context, key string) (time.Duration, error) {
		if taken = append(taken, key); key == "a/1" {
			q.Add("b/0") // it comes late, and waits for one key of each other tenant
		}
		if q.Len() == 0 {
			cancel()
		}
		return 0, nil
	})
	for _, key := range []string{"a/0", "a/1", "a/2", "a/3", "c/0", "c/1", "a/0"} {
		q.Add(key)
	}
	q.Run(ctx, 1)
	if want := []string{"a/0", "c/0", "a/1", "c/1", "a/2", "b/0", "a/3"}; !slices.Equal(taken, want) {
		t.Errorf("taken %q, want %q", taken, want)
	}
}

// Keys that go ahead come before others that something has touched, and leave them every fourth turn. One
// that is due already moves up when it goes ahead from then on.
func TestSomeGoAhead(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var taken []string
	goes := false
	var q *Queue[string]
	q = NewFair("test", func(key string) (string, Rank) {
		if strings.HasPrefix(key, "in") || goes && key == "out9" {
			return "", Ahead
		}
		return "", Touched
	}, func(_ context.Context, key string) (time.Duration, error) {
		if taken = append(taken, key); q.Len() == 0 {
			cancel()
		}
		return 0, nil
	})
	for _, key := range append(append(keys("out", 3), "out9"), keys("in", 5)...) {
		q.Add(key)
	}
	goes = true
	q.Add("out9")
	q.Run(ctx, 1)
	if want := []string{"out0", "in0", "in1", "in2", "out1", "in3", "in4", "out9", "out2"}; !slices.Equal(taken, want) {
		t.Errorf("taken %q, want %q", taken, want)
	}
}

// A key that is removed waits no more, wherever it stands, and its tenant has no turn for it.
func TestFairRow(t *testing.T) {
	for name, test := range map[string]struct {
		remove []string
		want   []string
	}{
		"none":                {nil, []string{"a/0", "b/0", "c/0", "a/1", "a/2"}},
		"the first":           {[]string{"a/0"}, []string{"a/1", "b/0", "c/0", "a/2"}},
		"one in the middle":   {[]string{"a/1"}, []string{"a/0", "b/0", "c/0", "a/2"}},
		"all of a tenant":     {[]string{"a/2", "a/0", "a/1"}, []string{"b/0", "c/0"}},
		"one that is unknown": {[]string{"d/0", "b/0", "b/0"}, []string{"a/0", "c/0", "a/1", "a/2"}},
	} {
		t.Run(name, func(t *testing.T) {
			var row FairRow[string]
			for _, key := range []string{"a/0", "a/1", "b/0", "a/2", "c/0", "a/1"} {
				row.Push(tenantOf(key), key)
			}
			for _, key := range test.remove {
				row.Remove(key)
			}
			if row.Len() != len(test.want) || row.Has("a/1") != slices.Contains(test.want, "a/1") {
				t.Errorf("%d keys wait, want %d", row.Len(), len(test.want))
			}
			var got []string
			for key, ok := row.Pop(); ok; key, ok = row.Pop() {
				got = append(got, key)
			}
			if !slices.Equal(got, test.want) || row.Len() != 0 || row.tenants.Len() != 0 || len(row.rows) != 0 {
				t.Errorf("popped %q, want %q; left: %+v", got, test.want, row)
			}
			row.Push("a", "a/9") // it can be used again
			if key, ok := row.Pop(); key != "a/9" || !ok {
				t.Errorf("popped %q", key)
			}
		})
	}
}
