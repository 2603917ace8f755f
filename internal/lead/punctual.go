// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"net/http"
)

// Punctual wraps a transport so that it sends no request after its deadline, by the monotonic or the wall
// clock, even after a pause or suspension.
func Punctual(next http.RoundTripper) http.RoundTripper { return punctual{next, realClock()} }

type punctual struct {
	next  http.RoundTripper
	clock clock
}

// RoundTrip implements http.RoundTripper.
func (p punctual) RoundTrip(r *http.Request) (*http.Response, error) {
	if deadline, ok := r.Context().Deadline(); ok && p.clock.left(deadline) <= 0 {
		return nil, context.DeadlineExceeded
	}
	return p.next.RoundTrip(r)
}
