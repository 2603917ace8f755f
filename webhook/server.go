// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/klog/v2"
)

// Paths of the server.
const (
	pathMutatePod = "/mutate/pod"
	pathHealthz   = "/healthz"
	pathReadyz    = "/readyz"
	pathMetrics   = "/metrics"
)

// Limits of one connection. A review takes well under a millisecond; the API
// server gives up after 30 s at most.
const (
	readTimeout     = 10 * time.Second
	writeTimeout    = 10 * time.Second
	idleTimeout     = 2 * time.Minute
	maxHeaderBytes  = 64 << 10
	shutdownTimeout = 10 * time.Second
)

// Server is the webhook. Its handler is safe for parallel use.
type Server struct {
	config      Config
	certificate *certificate
	metrics     *metrics
	stopping    atomic.Bool
}

// New returns a server, with its certificate loaded. The error says which part
// of config is wrong, or what is wrong with the certificate's files.
func New(config Config) (*Server, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	certificate, err := loadCertificate(config.CertFile, config.KeyFile)
	if err != nil {
		return nil, err
	}
	expiry := func() time.Time { return certificate.leaf().NotAfter }
	return &Server{config: config, certificate: certificate, metrics: newMetrics(expiry)}, nil
}

// Handler returns the routes, without TLS.
func (s *Server) Handler() http.Handler {
	router := mux.NewRouter()
	router.HandleFunc(pathMutatePod, s.mutatePod).Methods(http.MethodPost)
	router.HandleFunc(pathHealthz, healthz).Methods(http.MethodGet, http.MethodHead)
	router.HandleFunc(pathReadyz, s.readyz).Methods(http.MethodGet, http.MethodHead)
	router.Handle(pathMetrics, promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{})).Methods(http.MethodGet)
	router.NotFoundHandler = http.HandlerFunc(notFound)
	router.MethodNotAllowedHandler = http.HandlerFunc(methodNotAllowed)
	return s.observe(s.recoverPanics(router))
}

// Run listens where the configuration says and serves until ctx is done; see
// Serve.
func (s *Server) Run(ctx context.Context) error {
	listener, err := net.Listen("tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w (choose another --listen)", s.config.Listen, err)
	}
	return s.Serve(ctx, listener)
}

// Serve serves TLS on listener, which it closes, until ctx is done. Then it says
// that it is not ready, goes on for the shutdown delay, and lets the requests
// under way end. It returns nil after an orderly end.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate.get},
	}
	logger := klog.FromContext(ctx)
	logger.Info("Serving", "address", listener.Addr().String(), "scheduler", s.config.SchedulerName)
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()

	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-ctx.Done():
	}
	s.stopping.Store(true)
	logger.Info("Stopping", "delay", s.config.ShutdownDelay)
	delay := time.NewTimer(s.config.ShutdownDelay)
	defer delay.Stop()
	select {
	case err := <-ended:
		return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
	case <-delay.C:
	}
	return shutdown(server, ended)
}

// shutdown lets the requests under way end, and cuts off those that don't.
func shutdown(server *http.Server, ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("requests were still under way after %s and were cut off: %w", shutdownTimeout, errors.Join(err, server.Close()))
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
