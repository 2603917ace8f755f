// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/access"
	"github.com/moorage-dev/moorage/internal/announce"
	"github.com/moorage-dev/moorage/internal/bind"
	"github.com/moorage-dev/moorage/internal/connect"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/serving"
)

// BindConfig says where schedulers ask the controller that leads to bind pods without
// VolumeTickets, and what they show.
type BindConfig struct {
	// Listen is the host:port; empty: nobody is asked, and every pod has a ticket.
	Listen string
	// CertFile and KeyFile are the PEM files of the serving certificate and its key,
	// ClientCAFile that of the authorities of schedulers' certificates. All are read again
	// when they change.
	CertFile, KeyFile, ClientCAFile string
	// Service is a Service without a selector in the controller's namespace, which the
	// leader points at itself: at the IP address Advertise and the port of Listen. Empty:
	// the only replica is asked.
	Service, Advertise string
	// Schedulers are the schedulerNames of the pods that are bound; empty: any.
	Schedulers []string
}

func (c *BindConfig) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Listen, "bind-listen", c.Listen, "host:port where schedulers ask for pods to be bound without VolumeTickets, over TLS; none when empty")
	flags.StringVar(&c.CertFile, "tls-cert-file", c.CertFile, "with --bind-listen: PEM file of the serving certificate, read again when it changes")
	flags.StringVar(&c.KeyFile, "tls-private-key-file", c.KeyFile, "with --bind-listen: PEM file of the serving certificate's key, read again when it changes")
	flags.StringVar(&c.ClientCAFile, "client-ca-file", c.ClientCAFile, "with --bind-listen: PEM file of the authorities that sign schedulers' certificates, read again when it changes; whom they name must be allowed to create pods/binding")
	flags.StringVar(&c.Service, "service", c.Service, "with --bind-listen: Service without a selector that the leader points at itself; not needed where there is one replica")
	flags.StringVar(&c.Advertise, "advertise-address", c.Advertise, "with --service: IP address at which schedulers reach this process, on the port of --bind-listen")
	flags.StringSliceVar(&c.Schedulers, "bind-schedulers", c.Schedulers, "with --bind-listen: schedulerNames of the pods that are bound; any when empty")
}

// podCache is what is known of pods.
type podCache interface {
	Pod(namespace, name string) (*corev1.Pod, bool)
}

// serves says of a pod whether it is for one of the schedulers that are bound for.
func (c BindConfig) serves(pods podCache) func(*ledger.Pod) bool {
	if len(c.Schedulers) == 0 {
		return nil
	}
	return func(fact *ledger.Pod) bool {
		pod, known := pods.Pod(fact.Namespace, fact.Name)
		return known && string(pod.UID) == fact.UID && slices.Contains(c.Schedulers, pod.Spec.SchedulerName)
	}
}

// on says whether schedulers may ask.
func (c BindConfig) on() bool { return c.Listen != "" }

func (c BindConfig) validate() []error {
	if !c.on() {
		return nil
	}
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("--bind-listen must be host:port, such as :8446: %w", err))
	}
	for _, required := range []struct{ flag, value string }{
		{"--tls-cert-file", c.CertFile}, {"--tls-private-key-file", c.KeyFile}, {"--client-ca-file", c.ClientCAFile},
	} {
		if required.value == "" {
			errs = append(errs, fmt.Errorf("%s is missing: with --bind-listen both sides show a certificate", required.flag))
		}
	}
	if _, err := c.announcer("", nil); err != nil {
		errs = append(errs, err)
	}
	return errs
}

// announcer points Service at this process while it leads; nil without one.
func (c BindConfig) announcer(namespace string, clients *connect.Clients) (*announce.Announcer, error) {
	config := announce.Config{Name: v1alpha1.ControllerName, Namespace: namespace, Service: c.Service, Address: c.Advertise, Listen: c.Listen}
	if clients != nil {
		config.Kube = clients.Write
	}
	return announce.New(config, "--bind-listen")
}

// binds is where schedulers ask for binds; nil: nowhere.
type binds struct {
	listener  net.Listener
	server    serving.Server
	announcer *announce.Announcer // may be nil
	leads     atomic.Pointer[bind.Binder]
}

// Times of a request to bind a pod: a bind takes the write timeout at most, which callers
// don't wait for in vain.
const (
	bindReadTimeout  = 5 * time.Second
	bindWriteTimeout = 30 * time.Second
)

// open listens, and answers nothing before serve.
func (c BindConfig) open(namespace string, clients *connect.Clients) (*binds, error) {
	if !c.on() {
		return nil, nil
	}
	certificate, err := serving.LoadCertificate(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, err
	}
	authorities, err := serving.LoadAuthorities(c.ClientCAFile)
	if err != nil {
		return nil, err
	}
	b := &binds{}
	if b.announcer, err = c.announcer(namespace, clients); err != nil {
		return nil, err
	}
	if b.listener, err = net.Listen("tcp", c.Listen); err != nil {
		return nil, fmt.Errorf("listen on --bind-listen=%s: %w", c.Listen, err)
	}
	handler := bind.Allowing(bind.Handler(b.leading), access.NewReviews(clients.Write.AuthorizationV1().SubjectAccessReviews(), clock.RealClock{}))
	b.server = serving.Server{
		Handler: serving.Recover(handler, v1alpha1.ControllerName, func() {}), TLS: serving.MutualTLS(certificate, authorities, nil),
		ReadTimeout: bindReadTimeout, WriteTimeout: bindWriteTimeout,
	}
	return b, nil
}

// leading is whoever binds pods in this term; nil: this process doesn't lead.
func (b *binds) leading() bind.Binder {
	if leads := b.leads.Load(); leads != nil {
		return *leads
	}
	return nil
}

// serve answers until ctx is done, which ends after the last term.
func (b *binds) serve(ctx context.Context) {
	if b == nil {
		return
	}
	if err := b.server.Serve(ctx, b.listener); err != nil && !errors.Is(err, net.ErrClosed) {
		klog.FromContext(ctx).Error(err, "Schedulers can't ask for binds any more: they write VolumeTickets")
	}
}

// lead has schedulers ask leads until ctx is done. until is when the lease ends.
func (b *binds) lead(ctx context.Context, leads bind.Binder, until func() time.Time) {
	if b == nil {
		return
	}
	b.leads.Store(&leads)
	defer b.leads.Store(nil)
	if b.announcer != nil {
		b.announcer.Lead(ctx, until)
	}
	<-ctx.Done()
}
