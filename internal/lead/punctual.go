// SPDX-License-Identifier: Apache-2.0

package lead

import (
	"context"
	"net/http"
	"time"
)

// Punctual wraps a transport so that it sends no request whose deadline is over.
// A process that was paused between making a request and sending it may find
// out too late otherwise.
func Punctual(next http.RoundTripper) http.RoundTripper { return punctual{next} }

type punctual struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p punctual) RoundTrip(r *http.Request) (*http.Response, error) {
	if deadline, ok := r.Context().Deadline(); ok && !time.Now().Before(deadline) {
		return nil, context.DeadlineExceeded
	}
	return p.next.RoundTrip(r)
}
