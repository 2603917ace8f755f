// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// healthz answers that the process serves. What a restart would not cure, such
// as an expired certificate, is not for it to say.
func healthz(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprintln(w, "ok")
}

// readyz answers whether requests should be sent here.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	err := s.certificate.expired(time.Now())
	if s.stopping.Load() {
		err = fmt.Errorf("the server is stopping")
	}
	if err != nil {
		writeError(w, &requestError{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, err.Error()})
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, &requestError{http.StatusNotFound, metav1.StatusReasonNotFound,
		fmt.Sprintf("there is nothing at %q: pods are mutated at %s", r.URL.Path, pathMutatePod)})
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	writeError(w, &requestError{http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed,
		fmt.Sprintf("%s does not take %s: POST reviews, GET everything else", r.URL.Path, r.Method)})
}

// observe counts and times every answer. The path's label comes from a fixed
// set, so that no client can make a time series of its own.
func (s *Server) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := "other"
		switch r.URL.Path {
		case pathMutatePod, pathHealthz, pathReadyz, pathMetrics:
			path = r.URL.Path
		}
		start := time.Now()
		recorder := &codeRecorder{ResponseWriter: w, code: http.StatusOK}
		next.ServeHTTP(recorder, r)
		s.metrics.answered(path, recorder.code, time.Since(start))
	})
}

// recoverPanics answers 500 where a handler panics, so that the API server gets
// an answer at once and admits the pod, and the bug is counted.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			cause := recover()
			if cause == nil {
				return
			}
			s.metrics.panics.Inc()
			klog.FromContext(r.Context()).Error(fmt.Errorf("panic: %v", cause), "A request was not handled: this is a bug",
				"path", r.URL.Path, "stack", string(debug.Stack()))
			writeError(w, fmt.Errorf("the request was not handled because of a bug in the webhook; its log has the details"))
		}()
		next.ServeHTTP(w, r)
	})
}

// codeRecorder remembers the status code of an answer.
type codeRecorder struct {
	http.ResponseWriter
	code int
}

func (c *codeRecorder) WriteHeader(code int) {
	c.code = code
	c.ResponseWriter.WriteHeader(code)
}
