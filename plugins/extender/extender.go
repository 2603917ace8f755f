// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/internal/announce"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/observe"
	"github.com/moorage-dev/moorage/plugins/internal/requeuer"
)

// facts is what the extender needs of observe.Observer.
type facts interface {
	ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
	requeuer.Facts
	// CatchUp takes in all that a new leader decides from, as it is now.
	CatchUp(context.Context) error
	Subscribe(func(ledger.Touched))
	// NothingBound says whether no pod with a volume is bound in the cluster yet.
	NothingBound(context.Context) (bool, error)
	// Pod returns what is known of a pod, its priority included.
	Pod(namespace, name string) (*corev1.Pod, bool)
}

var _ facts = &observe.Observer{}

// options is what an Extender works with.
type options struct {
	Facts facts
	Kube  kubernetes.Interface // to bind pods, and to touch their condition
	// WriteTimeout is that of Config.
	WriteTimeout time.Duration
	MaxBodyBytes int64
	// Announce tells a Service who leads; nil: readiness does.
	Announce *announce.Announcer
	Now      func() time.Time // time.Now when nil
}

// extender answers the four verbs. Safe for parallel use.
type extender struct {
	options
	arbiter    arbiter.Arbiter
	requeuer   *requeuer.Requeuer
	podToucher *podToucher
	nominees   *nominees // nil: none are known
	metrics    *metrics
	podLocks   *podLocks     // binds of one pod happen one after the other
	judging    chan struct{} // bounds how many large requests are read at once

	// reserving is held from a verdict until the ledger counts it.
	reserving sync.Mutex
	term      atomic.Pointer[term]
}

// A pod that preempts others and is woken meanwhile is woken again, 7 s in all:
// kube-scheduler keeps it from its queue while it deletes the victims, and
// forgets what comes meanwhile.
const (
	insistFirst = time.Second
	insistMost  = 3
)

// judgingAtOnce is how many filters, priorities and preemptions are read and
// judged at once; others wait. Schedulers ask for one at a time.
const judgingAtOnce = 4

func newExtender(o options) *extender {
	if o.Now == nil {
		o.Now = time.Now
	}
	x := &extender{
		options: o, metrics: newMetrics(), podLocks: newPodLocks(),
		judging: make(chan struct{}, judgingAtOnce),
	}
	x.arbiter.HearsNoNodes = true
	x.podToucher = newPodToucher(o.Kube, o.Now, o.WriteTimeout, func(uid types.UID) bool { return x.requeuer.Woken(uid) })
	x.requeuer = requeuer.New(requeuer.Config{
		Facts: o.Facts, Arbiter: x.arbiter, Now: o.Now, Wake: x.podToucher.enqueue, Gone: x.gone,
		Insist: requeuer.Insistence{First: insistFirst, Most: insistMost, OnlyKept: true},
	})
	o.Facts.Subscribe(x.touched)
	return x
}

// seeNominees has the extender count the pods that schedulers have promised a
// node. To be called before run.
func (x *extender) seeNominees(kube kubernetes.Interface) error {
	known, err := newNominees(kube, x.requeuer.Retry)
	if err == nil {
		x.nominees = known
	}
	return err
}

// touched passes on what changed in the ledger.
func (x *extender) touched(t ledger.Touched) { x.requeuer.Touch(t) }

// gone says whether a refused pod is no more, or bound, or being deleted: no scheduler tries
// such a pod.
func (x *extender) gone(pod *corev1.Pod) bool {
	known := x.Facts.Snapshot().Pod(string(pod.UID))
	return known == nil || known.Node != "" || known.Phase != ledger.PodLive
}

// run does what goes on beside requests, until ctx is done, which ends with the
// process.
func (x *extender) run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { x.requeuer.Run(ctx) })
	running.Go(func() { x.podToucher.run(ctx) })
	if x.nominees != nil {
		running.Go(func() { x.nominees.informer.RunWithContext(ctx) })
	}
	running.Wait()
}
