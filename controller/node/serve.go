// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/serving"
)

// serve returns the function that ends it. No address: nothing is served.
func serve(ctx context.Context, c Config, health func() error, registry *prometheus.Registry) (func(), error) {
	if c.Listen == "" {
		return func() {}, nil
	}
	scrapes, err := access.NewScrapes(c.SecureMetrics, c.Kubeconfig, v1alpha1.NodeName)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		if err := health(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", scrapes.Guard(promhttp.HandlerFor(registry, promhttp.HandlerOpts{})))
	_, stop, err := serving.Probes(ctx, c.Listen, mux, scrapes.TLS())
	if err != nil {
		return nil, fmt.Errorf("listen on --listen=%s: %w", c.Listen, err)
	}
	return stop, nil
}
