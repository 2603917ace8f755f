// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"
)

// Observe calls answered for every answer, with its HTTP status and duration.
func Observe(next http.Handler, answered func(r *http.Request, code int, took time.Duration)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		recorder := &codeRecorder{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(recorder, r)
		answered(r, recorder.code, time.Since(start))
	})
}

// Recover answers 500 if a handler panics; panicked counts the bug. http.ErrAbortHandler is no bug:
// net/http then cuts the connection.
func Recover(next http.Handler, server string, panicked func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			switch cause {
			case nil:
				return
			case http.ErrAbortHandler:
				panic(cause)
			}
			panicked()
			klog.FromContext(r.Context()).Error(fmt.Errorf("panic: %v", cause), "A request was not handled: this is a bug",
				"path", r.URL.Path, "stack", string(debug.Stack()))
			WriteError(w, server, fmt.Errorf("the request was not handled because of a bug in the server; its log has the details"))
		}()
		next.ServeHTTP(w, r)
	})
}

type codeRecorder struct {
	http.ResponseWriter
	code int
}

func (c *codeRecorder) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}

func (c *codeRecorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }
