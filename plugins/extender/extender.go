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

// facts is the part of watch.Observer that the extender needs.
type facts interface {
	ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
	requeuer.Facts
	Subscribe(func(ledger.Touched))
	// Pod returns a pod, with its priority.
	Pod(namespace, name string) (*corev1.Pod, bool)
}

var _ facts = &watch.Observer{}

// Options configure an Extender. All but Now must be set.
type Options struct {
	Config
	// Namespace is the Service's.
	Namespace string
	// Facts and Placer belong to the scheduler in the same process.
	Facts  facts
	Placer *binding.Placer
	// Pods has all pods without a node. It must not have begun.
	Pods cache.SharedIndexInformer
	// Kube reads and binds pods without volumes, and touches the condition of others.
	Kube kubernetes.Interface
	Now  func() time.Time // time.Now when nil
}

// Extender answers the four verbs. Safe for parallel use.
type Extender struct {
	Options
	arbiter    rules.Arbiter
	requeuer   *requeuer.Requeuer
	podToucher *podToucher
	nominees   *nominees
	metrics    *metrics
	podLocks   *podLocks     // binds of one pod happen one after the other
	judging    chan struct{} // bounds how many large requests are read at once
	announcer  *announce.Announcer

	listener    net.Listener
	certificate *serving.Certificate
	clients     *serving.Authorities

	term atomic.Pointer[context.Context] // this process's term as leader; nil before
}

// A preempting pod that is woken is woken again, for 7 s in all: kube-scheduler keeps it from its
// queue while it deletes the victims, and forgets events meanwhile.
const (
	retryDelay = time.Second
	retryTries = 3
)

// judgingAtOnce is how many filters, priorities and preemptions are read and judged at once; others
// wait. A scheduler sends one request at a time.
const judgingAtOnce = 4

// New returns an Extender that listens, and answers once it runs. It registers its metrics with the
// process's.
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

// gone says whether a refused pod is deleted, bound, or being deleted: no scheduler tries such a
// pod.
func (x *Extender) gone(pod *corev1.Pod) bool {
	known := x.Facts.Snapshot().Pod(string(pod.UID))
	return known == nil || known.Node != "" || known.Phase != ledger.PodLive
}

// readTimeout is how long a scheduler may take to send a request.
const readTimeout = 10 * time.Second

// Run answers schedulers, and has refused pods tried again, until ctx is done. It returns when the
// last answer is sent.
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

// Lead has calls about pods with volumes answered here until ctx is done, and the Service lead
// here. The Placer must be able to reserve and bind meanwhile. until returns the present end of the
// lease.
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
