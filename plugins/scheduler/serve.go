// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	goruntime "runtime"
	"time"

	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericfilters "k8s.io/apiserver/pkg/server/filters"
	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/prometheus/slis"
	zpages "k8s.io/component-base/zpages/features"
	"k8s.io/kubernetes/pkg/scheduler/metrics/resources"
)

const (
	serverName     = "kube-scheduler"
	finishRequests = 5 * time.Second
)

// serve answers probes and scrapes at --secure-port until stop is called; wait: stop waits for running
// requests. ctx ends when the process begins to stop.
func (p *process) serve(ctx context.Context) (stop func(wait bool), err error) {
	if p.config.SecureServing == nil {
		return func(bool) {}, nil
	}
	ending := make(chan struct{})
	stopped, closed, err := p.config.SecureServing.Serve(p.allowed(p.pages(ctx)), finishRequests, ending)
	if err != nil {
		close(ending)
		return nil, fmt.Errorf("serve probes and metrics: %w", err)
	}
	return func(wait bool) {
		close(ending)
		if wait {
			<-closed
			<-stopped
		}
	}, nil
}

func (p *process) allowed(pages http.Handler) http.Handler {
	requests := &request.RequestInfoFactory{}
	checked := filters.WithAuthorization(pages, p.config.Authorization.Authorizer, scheme.Codecs)
	checked = filters.WithAuthentication(checked, p.config.Authentication.Authenticator, filters.Unauthorized(scheme.Codecs), nil, nil)
	checked = filters.WithCacheControl(filters.WithRequestInfo(checked, requests))
	return genericfilters.WithPanicRecovery(genericfilters.WithHTTPLogging(checked), requests)
}

func (p *process) pages(ctx context.Context) http.Handler {
	m := mux.NewPathRecorderMux(serverName)
	p.installHealth(ctx, m)
	m.Handle("/metrics", legacyregistry.HandlerWithReset())
	slis.SLIMetricsWithReset{}.Install(m)
	ofPods := resources.Handler(p.config.InformerFactory.Core().V1().Pods().Lister())
	m.HandleFunc("/metrics/resources", func(w http.ResponseWriter, r *http.Request) {
		if p.leading.Load() { // each pod counts in the leader only
			ofPods.ServeHTTP(w, r)
		}
	})
	configz.InstallHandler(m)
	if p.config.ComponentConfig.EnableProfiling {
		routes.Profiling{}.Install(m)
		routes.DebugFlags{}.Install(m, "v", routes.StringFlagPutHandler(logs.GlogSetter))
		if p.config.ComponentConfig.EnableContentionProfiling {
			goruntime.SetBlockProfileRate(1)
		}
	}
	if feature.DefaultFeatureGate.Enabled(zpages.ComponentFlagz) && p.config.Flagz != nil {
		flagz.Install(m, serverName, p.config.Flagz)
	}
	if feature.DefaultFeatureGate.Enabled(zpages.ComponentStatusz) {
		statusz.Install(m, serverName, statusz.NewRegistry(compatibility.DefaultBuildEffectiveVersion(), statusz.WithListedPaths(m.ListedPaths())))
	}
	return m
}

// installHealth serves healthz, livez and readyz. A process with a lapsed lease that believes to lead fails
// healthz and readyz. A process is ready also while another leads.
func (p *process) installHealth(ctx context.Context, m *mux.PathRecorderMux) {
	var alive []healthz.HealthChecker
	if p.config.LeaderElection != nil {
		alive = append(alive, p.config.LeaderElection.WatchDog)
	}
	synced := healthz.NamedCheck("sched-handler-sync", func(*http.Request) error {
		if !p.synced.Load() {
			return errors.New("the caches are not complete yet")
		}
		return nil
	})
	healthz.InstallHandler(m, alive...)
	healthz.InstallLivezHandler(m)
	healthz.InstallReadyzHandler(m, append(alive, healthz.NewShutdownHealthz(ctx.Done()), synced)...)
}
