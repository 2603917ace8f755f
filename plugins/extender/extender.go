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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/announce"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/plugins/internal/requeuer"
)

var errNotLeading = errors.New("another process of Moorage's scheduler leads, or none does yet; it will be tried again")

type facts interface {
	ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
	requeuer.Facts
	Subscribe(func(ledger.Touched))
	Pod(namespace, name string) (*corev1.Pod, bool)
}

var _ facts = &watch.Observer{}

// Options configure an Extender. Only Now may be unset.
type Options struct {
	Config
	Namespace string
	// Facts and Placer belong to this process's scheduler.
	Facts  facts
	Placer *binding.Placer
	// Pods has all pods without a node. It must not have begun.
	Pods cache.SharedIndexInformer
	// Kube reads and binds pods without volumes, and touches others' condition.
	Kube kubernetes.Interface
	Now  func() time.Time // nil: time.Now
}

// Extender answers the four verbs. Safe for parallel use.
type Extender struct {
	Options
	arbiter    rules.Arbiter
	requeuer   *requeuer.Requeuer
	podToucher *podToucher
	nominees   *nominees
	metrics    *metrics
	podLocks   *podLocks     // serialize the binds of a pod
	judging    chan struct{} // bounds the large requests in memory
	announcer  *announce.Announcer

	listener    net.Listener
	certificate *serving.Certificate
	clients     *serving.Authorities

	term atomic.Pointer[context.Context] // nil before
}

// A preempting pod is woken for 7 s in all: kube-scheduler keeps it from its queue while it deletes the
// victims, and forgets events meanwhile.
const (
	retryDelay = time.Second
	retryTries = 3
)

// judgingAtOnce limits the large requests in work. A scheduler sends one request at a time.
const judgingAtOnce = 4

// New returns an Extender that listens, and answers once it runs. It registers its metrics.
func New(o Options) (*Extender, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	x, err := newExtender(o)
	if err != nil {
		return nil, err
	}
	if x.announcer, err = announce.New(announce.Config{
		Kube: o.Kube, Name: v1alpha1.ExtenderName, Namespace: o.Namespace, Service: o.Service, Address: o.Advertise, Listen: o.Listen,
	}); err != nil {
		return nil, err
	}
	if x.certificate, err = serving.LoadCertificate(o.CertFile, o.KeyFile); err != nil {
		return nil, err
	}
	if x.clients, err = serving.LoadAuthorities(o.ClientCAFile); err != nil {
		return nil, err
	}
	if err := x.metrics.register(func() time.Time { return x.certificate.Leaf().NotAfter }); err != nil {
		return nil, err
	}
	if x.listener, err = net.Listen("tcp", o.Listen); err != nil {
		return nil, fmt.Errorf("listen on --extender-listen=%s: %w", o.Listen, err)
	}
	return x, nil
}

func newExtender(o Options) (*Extender, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	x := &Extender{
		Options: o, metrics: newMetrics(), podLocks: newPodLocks(),
		judging: make(chan struct{}, judgingAtOnce),
	}
	x.podToucher = newPodToucher(o.Kube, o.Now, func(uid types.UID) bool { return x.requeuer.Woken(uid) })
	x.requeuer = requeuer.New(requeuer.Config{
		Facts: o.Facts, Arbiter: x.arbiter, Now: o.Now, Wake: x.podToucher.enqueue, Gone: x.gone,
		Retry: requeuer.Retry{InitialDelay: retryDelay, MaxTries: retryTries, OnlyBlocked: true},
	})
	o.Facts.Subscribe(x.requeuer.Touch)
	o.Placer.Subscribe(x.requeuer.Touch)
	var err error
	x.nominees, err = newNominees(o.Pods, x.requeuer.Retry)
	return x, err
}

// gone says whether no scheduler tries a pod: deleted, bound, or being deleted.
func (x *Extender) gone(pod *corev1.Pod) bool {
	known := x.Facts.Snapshot().Pod(string(pod.UID))
	return known == nil || known.Node != "" || known.Phase != ledger.PodLive
}

const readTimeout = 10 * time.Second

// Run answers schedulers, and has refused pods tried again, until ctx is done. It returns after the last
// answer.
func (x *Extender) Run(ctx context.Context) error {
	klog.FromContext(ctx).Info("Answering other schedulers", "address", x.listener.Addr().String(), "clients", x.ClientNames)
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	running.Go(func() { x.requeuer.Run(beside) })
	running.Go(func() { x.podToucher.run(beside) })
	return serving.Server{
		Handler: x.handler(), TLS: serving.MutualTLS(x.certificate, x.clients, x.ClientNames),
		ReadTimeout: readTimeout, WriteTimeout: readTimeout + 2*binding.RequestTimeout,
	}.Serve(ctx, x.listener)
}

// Lead answers calls about pods with volumes until ctx is done, and points the Service here. The Placer
// must be able to reserve and bind. until returns the present end of the lease.
func (x *Extender) Lead(ctx context.Context, until func() time.Time) {
	x.term.Store(&ctx)
	if x.announcer != nil {
		x.announcer.Lead(ctx, until)
	}
}

func (x *Extender) leading() error {
	if term := x.term.Load(); term == nil || (*term).Err() != nil {
		return errNotLeading
	}
	return nil
}
