// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	readHeaderTimeout = 5 * time.Second
	shutdownTimeout   = 2 * time.Second
	// A client that reads slowly, or asks no more, keeps no connection for ever.
	writeTimeout = 30 * time.Second
	idleTimeout  = 2 * time.Minute
)

// health answers probes: the process is healthy while it answers, and ready
// when its caches are complete, leading or not.
type health struct{ synced func() bool }

func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	if !h.synced() {
		http.Error(w, "the caches are not complete yet", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// serve serves probes and metrics on an address, unless it is empty, and
// returns the address it listens on. The function it returns ends that.
func serve(ctx context.Context, address string, h *health, registry *prometheus.Registry) (string, func(), error) {
	if address == "" {
		return "", func() {}, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("listen on --listen=%s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readHeaderTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // ends with Shutdown
	}()
	return listener.Addr().String(), func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		_ = server.Shutdown(ending) // what is left is cut off with the process
		<-served
	}, nil
}
