// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/semaphore"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/serving"
)

const (
	pathMutatePod = "/mutate/pod"
	pathHealthz   = "/healthz"
	pathReadyz    = "/readyz"
	pathMetrics   = "/metrics"
)

// A review takes well under a millisecond; the API server gives up after 30 s at most.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
)

const name = "moorage-webhook"

// Server is the webhook. Its handler is safe for parallel use.
type Server struct {
	config      Config
	certificate *serving.Certificate
	metrics     *metrics
	scrapes     *access.Scrapes // nil: metrics for all clients
	stopping    atomic.Bool

	bodies   *room               // maxBodiesBytes
	decoding *semaphore.Weighted // maxDecoding
}

// New returns a server, with its certificate loaded. The error names the fault in config or in the
// certificate's files.
func New(config Config) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	certificate, err := serving.LoadCertificate(config.CertFile, config.KeyFile)
	if err != nil {
		return nil, err
	}
	scrapes, err := access.NewScrapes(config.SecureMetrics, config.Kubeconfig, name)
	if err != nil {
		return nil, err
	}
	expiry := func() time.Time { return certificate.Leaf().NotAfter }
	return &Server{config: config, certificate: certificate, metrics: newMetrics(expiry), scrapes: scrapes,
		bodies: newRoom(maxBodiesBytes), decoding: semaphore.NewWeighted(maxDecoding)}, nil
}

// Handler returns the routes, without TLS.
func (s *Server) Handler() http.Handler {
	router := mux.NewRouter()
	router.HandleFunc(pathMutatePod, s.mutatePod).Methods(http.MethodPost)
	router.HandleFunc(pathHealthz, healthz).Methods(http.MethodGet, http.MethodHead)
	router.HandleFunc(pathReadyz, s.readyz).Methods(http.MethodGet, http.MethodHead)
	router.Handle(pathMetrics, s.scrapes.Guard(promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))).Methods(http.MethodGet)
	router.NotFoundHandler = http.HandlerFunc(notFound)
	router.MethodNotAllowedHandler = http.HandlerFunc(methodNotAllowed)
	return s.observe(s.recoverPanics(router))
}

// Run serves at the configured address until ctx is done; see Serve.
func (s *Server) Run(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w (choose another --listen)", s.config.Listen, err)
	}
	return s.Serve(ctx, listener)
}

// Serve serves TLS on listener, and closes it, until ctx is done. Then it reports not ready, goes on for
// the shutdown delay, and lets running requests end. nil: an orderly end.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	klog.FromContext(ctx).Info("Serving", "address", listener.Addr().String(), "scheduler", s.config.SchedulerName)
	return serving.Server{
		Handler: s.Handler(), TLS: serving.TLS(s.certificate),
		ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		ShutdownDelay: s.config.ShutdownDelay, Stopping: func() { s.stopping.Store(true) },
	}.Serve(ctx, listener)
}
