// SPDX-License-Identifier: Apache-2.0

package work

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

func tenantOf(key string) string {
	tenant, _, _ := strings.Cut(key, "/")
	return tenant
}

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

// Other keys keep every fourth turn.
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
