// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"
)

// Observe tells answered of every answer: its HTTP status and how long it took.
func Observe(next http.Handler, answered func(r *http.Request, code int, took time.Duration)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		recorder := &codeRecorder{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(recorder, r)
		answered(r, recorder.code, time.Since(start))
	})
}

// Recover answers 500 where a handler panics, so that the client gets an answer
// at once; panicked counts the bug. server names who answers. A handler that
// panics with http.ErrAbortHandler has no bug: it wants the connection to be cut,
// as net/http then does.
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

// codeRecorder remembers the status code of an answer.
type codeRecorder struct {
	http.ResponseWriter
	code int
}

// WriteHeader remembers the code and passes it on.
func (c *codeRecorder) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}

// Unwrap gives http.ResponseController the writer that has deadlines.
func (c *codeRecorder) Unwrap() http.ResponseWriter { return c.ResponseWriter }
