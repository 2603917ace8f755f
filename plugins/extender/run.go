// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/lead"
	"github.com/moorage-dev/moorage/internal/observe"
	"github.com/moorage-dev/moorage/internal/serving"
)

// readTimeout is how long a scheduler may take to send a request.
const readTimeout = 10 * time.Second

// Run runs the extender until ctx is done. It returns lead.ErrLost when another
// process may lead.
func Run(ctx context.Context, config Config) error {
	if err := config.Validate(); err != nil {
		return err
	}
	doors, err := open(config)
	if err != nil {
		return err
	}
	clients, err := connect.New(config.connection())
	if err != nil {
		return errors.Join(err, doors.close())
	}
	observer, err := observe.New(observe.Config{Kube: clients.Read, Moorage: clients.ReadMoorage})
	if err != nil {
		return errors.Join(err, doors.close())
	}
	announce, err := config.announcer(clients.Write)
	if err != nil {
		return errors.Join(err, doors.close())
	}
	x := newExtender(options{
		Facts: observer, Kube: clients.Write, WriteTimeout: config.WriteTimeout, MaxBodyBytes: config.MaxBodyBytes,
		Announce: announce,
	})
	if err := x.seeNominees(clients.Read); err != nil {
		return errors.Join(err, doors.close())
	}
	x.metrics.watch(func() time.Time { return doors.certificate.Leaf().NotAfter }, func() bool { _, err := x.leading(); return err == nil })

	// What goes on beside requests ends after the last one is answered.
	process, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { observer.Run(process) })
	running.Go(func() { x.run(process) })
	return x.serve(ctx, process, config, doors, clients)
}

// serve answers schedulers and leads until ctx is done, or the lease is lost.
// Requests end before the lease is given up; process ends after both.
func (x *extender) serve(ctx, process context.Context, config Config, doors *doors, clients *connect.Clients) error {
	answering, stopAnswering := context.WithCancel(ctx)
	defer stopAnswering()
	leading, stopLeading := context.WithCancel(process)
	defer stopLeading()
	lease := config.lease()
	lease.Untouched = x.Facts.NothingBound
	led := make(chan error, 1)
	go func() {
		defer stopAnswering()
		led <- lead.Lead(leading, lease, clients.Lease, x.lead)
	}()
	err := doors.serve(answering, config, x)
	stopLeading()
	return errors.Join(err, <-led)
}

// doors are the listeners, and what schedulers are shown and must show.
type doors struct {
	scrapes        *access.Scrapes
	certificate    *serving.Certificate
	clients        *serving.Authorities
	verbs, probing net.Listener // probing may be nil
	stopping       atomic.Bool
}

// open loads the certificates and listens.
func open(config Config) (*doors, error) {
	var d doors
	var err error
	if d.certificate, err = serving.LoadCertificate(config.CertFile, config.KeyFile); err != nil {
		return nil, err
	}
	if d.clients, err = serving.LoadAuthorities(config.ClientCAFile); err != nil {
		return nil, err
	}
	if d.scrapes, err = access.NewScrapes(config.SecureMetrics, config.Kubeconfig, v1alpha1.ExtenderName); err != nil {
		return nil, err
	}
	if d.verbs, err = net.Listen("tcp", config.Listen); err != nil {
		return nil, fmt.Errorf("listen on --listen=%s: %w", config.Listen, err)
	}
	if config.HealthListen == "" {
		return &d, nil
	}
	if d.probing, err = net.Listen("tcp", config.HealthListen); err != nil {
		return nil, errors.Join(fmt.Errorf("listen on --health-listen=%s: %w", config.HealthListen, err), d.close())
	}
	return &d, nil
}

func (d *doors) close() error {
	if d.probing == nil {
		return d.verbs.Close()
	}
	return errors.Join(d.verbs.Close(), d.probing.Close())
}

// serve serves both listeners until ctx is done. Probes are answered for as
// long as verbs are.
func (d *doors) serve(ctx context.Context, config Config, x *extender) error {
	klog.FromContext(ctx).Info("Serving", "address", d.verbs.Addr().String(), "clients", config.ClientNames)
	probing, stopProbing := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stopProbing()
	if d.probing != nil {
		running.Go(func() {
			err := serving.Server{Handler: d.probes(x), TLS: d.scrapes.TLS(), ReadTimeout: readTimeout, WriteTimeout: readTimeout}.Serve(probing, d.probing)
			if err != nil {
				klog.FromContext(ctx).Error(err, "Probes and metrics are not served any more")
			}
		})
	}
	return serving.Server{
		Handler: x.handler(), TLS: serving.MutualTLS(d.certificate, d.clients, config.ClientNames),
		ReadTimeout: readTimeout, WriteTimeout: readTimeout + 2*config.WriteTimeout,
		ShutdownDelay: config.ShutdownDelay, Stopping: func() { d.stopping.Store(true) },
	}.Serve(ctx, d.verbs)
}
