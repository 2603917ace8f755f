// SPDX-License-Identifier: Apache-2.0

package connect

import "net/http"

// once has each write sent once. client-go sends a request again by itself where an answer of 429 or 5xx has the header
// Retry-After (rest/with_retry.go), up to ten times, and tells its caller only of the last answer: one that says for
// certain that nothing was carried out may follow one behind which the write was. So the header is taken out of answers
// to writes. Whoever writes has pauses of its own.
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

// WrappedRoundTripper is the transport behind it, for those who look for what it can do.
func (o once) WrappedRoundTripper() http.RoundTripper { return o.next }
