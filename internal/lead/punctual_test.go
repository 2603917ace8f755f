// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestPunctual(t *testing.T) {
	sent := 0
	transport := Punctual(roundTrip(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{}, nil
	}))
	send := func(deadline time.Time) error {
		ctx, cancel := context.WithDeadline(context.Background(), deadline)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://api", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = transport.RoundTrip(request)
		return err
	}
	if err := send(time.Now().Add(-time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) || sent != 0 {
		t.Errorf("a request that is late: %v, %d sent", err, sent)
	}
	if err := send(time.Now().Add(time.Minute)); err != nil || sent != 1 {
		t.Errorf("a request in time: %v, %d sent", err, sent)
	}
}

// The monotonic clock stood still: the deadline is over by the wall clock alone.
func TestPunctualAfterASuspension(t *testing.T) {
	sent := 0
	now, suspended := time.Now(), time.Duration(0)
	transport := punctual{roundTrip(func(*http.Request) (*http.Response, error) {
		sent++
		return &http.Response{}, nil
	}), clock{func() time.Time { return now }, func() time.Time { return now.Round(0).Add(suspended) }}}
	ctx, cancel := context.WithDeadline(context.Background(), now.Add(time.Minute))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, "http://api", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transport.RoundTrip(request); err != nil || sent != 1 {
		t.Errorf("a request in time: %v, %d sent", err, sent)
	}
	suspended = time.Minute
	if _, err := transport.RoundTrip(request); !errors.Is(err, context.DeadlineExceeded) || sent != 1 {
		t.Errorf("a request that is late by the wall clock: %v, %d sent", err, sent)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
