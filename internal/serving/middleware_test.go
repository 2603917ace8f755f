// SPDX-License-Identifier: Apache-2.0

package serving_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/moorage-dev/moorage/internal/serving"
)

// An aborting handler is no bug; any other panic is, and is answered.
func TestRecover(t *testing.T) {
	for name, test := range map[string]struct {
		cause any
		bugs  int
	}{
		"a bug":          {"the handler has a bug", 1},
		"an error":       {http.ErrBodyNotAllowed, 1},
		"an abort":       {http.ErrAbortHandler, 0},
		"not comparable": {[]string{"a", "b"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bugs := 0
			server := httptest.NewServer(serving.Recover(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(test.cause) }),
				"test", func() { bugs++ }))
			answer, err := http.Post(server.URL, "application/json", http.NoBody)
			if err == nil {
				answer.Body.Close()
			}
			server.Close() // and the handler is over
			if answered := err == nil && answer.StatusCode == http.StatusInternalServerError; answered != (test.bugs > 0) {
				t.Errorf("the answer is %+v (%v)", answer, err)
			}
			if bugs != test.bugs {
				t.Errorf("%d bugs are counted, want %d", bugs, test.bugs)
			}
		})
	}
}
