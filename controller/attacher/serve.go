// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection" // leader_election_master_status
	_ "k8s.io/component-base/metrics/prometheus/restclient"              // rest_client_requests_total

	"github.com/moorage-dev/moorage/internal/serving"
)

const (
	// Both are csi-lib-utils'.
	leaderHealthPath = "/healthz/leader-election"
	healthTimeout    = 20 * time.Second
)

// serve returns the function that ends it. No address: nothing is served.
func serve(ctx context.Context, c Config, manager metrics.CSIMetricsManager, own prometheus.Collector, health *leaderelection.HealthzAdaptor) (stop func(), err error) {
	if c.Listen == "" {
		return func() {}, nil
	}
	registry := prometheus.NewRegistry()
	if err := registry.Register(own); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	manager.WithAdditionalRegistry(legacyregistry.DefaultGatherer).WithAdditionalRegistry(registry)
	mux := http.NewServeMux()
	manager.RegisterToServer(mux, c.MetricsPath)
	if health != nil {
		mux.HandleFunc(leaderHealthPath, func(w http.ResponseWriter, r *http.Request) {
			if err := health.Check(r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			fmt.Fprint(w, "ok")
		})
	}
	if _, stop, err = serving.Probes(ctx, c.Listen, mux, nil); err != nil {
		return nil, fmt.Errorf("listen on --http-endpoint=%s: %w", c.Listen, err)
	}
	return stop, nil
}
