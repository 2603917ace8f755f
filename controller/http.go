// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/serving"
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
func serve(ctx context.Context, address string, h *health, registry *prometheus.Registry, scrapes *access.Scrapes) (string, func(), error) {
	if address == "" {
		return "", func() {}, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", scrapes.Guard(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	at, stop, err := serving.Probes(ctx, address, mux, scrapes.TLS())
	if err != nil {
		return "", nil, fmt.Errorf("listen on --listen=%s: %w", address, err)
	}
	return at, stop, nil
}
