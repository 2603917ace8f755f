// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/serving"
)

// health: healthy while the process answers; ready when caches are complete and the guard permits it,
// leading or not.
type health struct {
	synced  func() bool
	guarded atomic.Bool // the guard has let it lead
}

func (h *health) ready(w http.ResponseWriter, _ *http.Request) {
	if !h.synced() {
		http.Error(w, "the caches are not complete yet", http.StatusServiceUnavailable)
		return
	}
	if !h.guarded.Load() {
		http.Error(w, "nobody can tell yet whether only one controller writes volumesAttached: see the log", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// serve returns the address, if Listen has one, and the function that ends it.
func (c Config) serve(ctx context.Context, h *health, registry *prometheus.Registry) (address string, stop func(), err error) {
	if c.Listen == "" {
		return "", func() {}, nil
	}
	scrapes, err := access.NewScrapes(c.SecureMetrics, c.Kubeconfig, v1alpha1.ControllerName)
	if err != nil {
		return "", nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", h.ready)
	mux.Handle("GET /metrics", scrapes.Guard(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	if address, stop, err = serving.Probes(ctx, c.Listen, mux, scrapes.TLS()); err != nil {
		return "", nil, fmt.Errorf("listen on --listen=%s: %w", c.Listen, err)
	}
	return address, stop, nil
}
