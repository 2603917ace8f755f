// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/serving"
)

// healthz reports no faults that a restart would not cure, such as an expired certificate.
func healthz(w http.ResponseWriter, _ *http.Request) {
	_, _ = fmt.Fprintln(w, "ok")
}

func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	err := s.certificate.Expired(time.Now())
	if s.stopping.Load() {
		err = fmt.Errorf("the server is stopping")
	}
	if err != nil {
		serving.WriteError(w, name, serving.Unavailable("%v", err))
		return
	}
	_, _ = fmt.Fprintln(w, "ok")
}

func notFound(w http.ResponseWriter, r *http.Request) {
	serving.WriteError(w, name, &serving.RequestError{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("there is nothing at %q: pods are mutated at %s", r.URL.Path, pathMutatePod)})
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	serving.WriteError(w, name, &serving.RequestError{Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("%s does not take %s: POST reviews, GET everything else", r.URL.Path, r.Method)})
}

// The path's label is from a fixed set: no client can make its own time series.
func (s *Server) observe(next http.Handler) http.Handler {
	return serving.Observe(next, func(r *http.Request, code int, took time.Duration) {
		path := "other"
		switch r.URL.Path {
		case pathMutatePod, pathHealthz, pathReadyz, pathMetrics:
			path = r.URL.Path
		}
		s.metrics.answered(path, code, took)
	})
}

// recoverPanics answers 500 and counts the bug: the API server admits the pod at once.
func (s *Server) recoverPanics(next http.Handler) http.Handler {
	return serving.Recover(next, name, s.metrics.panics.Inc)
}
