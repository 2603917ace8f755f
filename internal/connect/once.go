// SPDX-License-Identifier: Apache-2.0

package connect

import "net/http"

// once has each write sent once. client-go repeats a request if an answer of 429 or 5xx has the header
// Retry-After (rest/with_retry.go), up to ten times, and returns only the last answer: an answer that
// nothing was carried out may follow a lost success. Therefore the header is removed from answers to
// writes. Writers have pauses of their own.
type once struct{ next http.RoundTripper }

// SendOnce has a transport send each write once.
func SendOnce(next http.RoundTripper) http.RoundTripper { return once{next} }

// RoundTrip sends the request, as http.RoundTripper says.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.next.RoundTrip(r)
	if answer != nil && r.Method != http.MethodGet {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// WrappedRoundTripper is the transport behind it, for callers that look for its abilities.
func (o once) WrappedRoundTripper() http.RoundTripper { return o.next }
