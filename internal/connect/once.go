// SPDX-License-Identifier: Apache-2.0

package connect

import "net/http"

// once sends each write once. client-go repeats a request after a 429 or 5xx with Retry-After
// (rest/with_retry.go), up to ten times, and returns only the last answer: "nothing was carried out" may
// follow a lost success. Therefore the header is removed from answers to writes. Writers have their own
// pauses.
type once struct{ next http.RoundTripper }

// SendOnce makes a transport send each write once.
func SendOnce(next http.RoundTripper) http.RoundTripper { return once{next} }

func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.next.RoundTrip(r)
	if answer != nil && r.Method != http.MethodGet {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// WrappedRoundTripper is for callers that look for the transport's abilities.
func (o once) WrappedRoundTripper() http.RoundTripper { return o.next }
