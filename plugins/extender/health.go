// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/moorage-dev/moorage/internal/serving"
)

// probes returns the routes for kubelets and Prometheus, who have no
// scheduler's certificate.
func (d *doors) probes(x *extender) http.Handler {
	router := mux.NewRouter()
	router.HandleFunc("/healthz", healthz).Methods(http.MethodGet, http.MethodHead)
	router.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := d.ready(x); err != nil {
			fail(w, serving.Unavailable("%v", err))
			return
		}
		healthz(w, r)
	}).Methods(http.MethodGet, http.MethodHead)
	router.Handle("/metrics", d.scrapes.Guard(promhttp.HandlerFor(x.metrics.registry, promhttp.HandlerOpts{}))).Methods(http.MethodGet)
	return router
}

// ready says whether requests should be sent here; where a Service is told who
// leads, whether this process could lead.
func (d *doors) ready(x *extender) error {
	if d.stopping.Load() {
		return errors.New("the server is stopping")
	}
	if x.Announce != nil {
		if err := x.warm(); err != nil {
			return err
		}
	} else if _, err := x.leading(); err != nil {
		return err
	}
	return d.certificate.Expired(time.Now())
}

// healthz answers that the process serves.
func healthz(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }
