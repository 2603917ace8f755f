// SPDX-License-Identifier: Apache-2.0

package waker

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Spacing of attempts that came to nothing after a node had been chosen: the
// first follows at once, so that a refused pod goes elsewhere.
const (
	retryFirst = 20 * time.Millisecond
	retryMost  = 10 * time.Second
)

// A pod that was woken and is not tried is woken again, after insistFirst and
// then after twice as long each time, insistMost times: 51 s in all. Another
// plugin may have kept it from the queue for a moment, and not know that it has
// been woken meanwhile: DefaultPreemption does while it deletes victims, and has
// no event of its own for the end of that (preemption/executor.go). After that
// the queue's own flush of 5 minutes is left; who is kept for longer is kept for
// a reason.
const (
	insistFirst = 100 * time.Millisecond
	insistMost  = 9
)

// settles is how long after a change kube-scheduler's own caches may not have
// it yet: an attempt by then may have been one on old facts of other plugins, to
// which the change itself comes while the pod is kept from the queue, and does
// not count as one.
const settles = time.Second

// RefusalLasts is how long a node is left out for a pod that the controller has
// refused there, although the ledger would allow it. By then the ledger has
// what the controller went by; and if it never gets it, the pod goes elsewhere
// first. Without this kube-scheduler would choose the same of several nodes that
// score alike.
const RefusalLasts = 5 * time.Second

// Facts is what the package needs of observe.Observer.
type Facts interface {
	Ledger() *ledger.Ledger
	Snapshot() ledger.Snapshot
	HasSynced() bool
	WaitForSync(context.Context) error
}

// Config is what a Waker works with. All but Now must be set.
type Config struct {
	Facts   Facts
	Arbiter arbiter.Arbiter
	Now     func() time.Time // time.Now when nil
	// Wake has the scheduler try a pod again at once. It must return soon.
	Wake func(ctx context.Context, pod *corev1.Pod)
	// Gone says whether a pod is no more, or bound. It must return at once.
	Gone func(pod *corev1.Pod) bool
	// Gated says whether a pod must not be tried at all by these facts. It must
	// return at once. No pod is when nil.
	Gated func(pod *corev1.Pod, s ledger.Snapshot, r arbiter.Request) bool
	// Waits is told of pods that wait and of which there may be something new to
	// say, since their volumes have changed. It must return at once; nil for
	// nobody.
	Waits func(pod *corev1.Pod)
}

// Waker has refused pods tried again; see the package. Safe for parallel use.
type Waker struct {
	config  Config
	retries workqueue.TypedRateLimitingInterface[retry]
	signal  chan struct{} // of capacity 1: something was touched
	changes *ledger.Changes

	mu   sync.Mutex
	pods list
}

// retry is a pod that is to be woken when its time comes: in any case, or as one
// that was woken and has not been tried.
type retry struct {
	uid     types.UID
	insists bool
}

// Attempt is what a pod is judged by in one attempt to place it.
type Attempt struct {
	Based   bool            // Base is set: the caches were complete
	Base    ledger.Snapshot // by which it was refused, as far as the waker knows
	Refused []Refusal       // by the controller, newest last
}

// Refusal is what the controller said of a pod at a node.
type Refusal struct {
	Node    ledger.NodeName
	Message string
	until   time.Time
}

// waiting is a pod from its first attempt until it is bound or gone.
type waiting struct {
	Attempt
	pod      *corev1.Pod
	fact     ledger.Pod
	reserved bool      // it has a node: nothing to wake
	gated    bool      // it was kept from being tried
	woken    int       // how often since its last attempt that counts
	lifted   time.Time // when a change last lifted a refusal
	asked    *asked
}

// asked is what a pod asks for by the facts of its Base, once that was looked
// at. It never changes.
type asked struct {
	arbiter.Request
	admissible bool
}

// New returns a Waker that wakes nobody before Run.
func New(config Config) *Waker {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Gated == nil {
		config.Gated = func(*corev1.Pod, ledger.Snapshot, arbiter.Request) bool { return false }
	}
	if config.Waits == nil {
		config.Waits = func(*corev1.Pod) {}
	}
	return &Waker{
		config: config,
		retries: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[retry](retryFirst, retryMost)),
		signal:  make(chan struct{}, 1),
		changes: config.Facts.Ledger().Gather(),
		pods:    newList(),
	}
}

// Enter notes that a pod is being tried, and returns what to judge it by: a
// snapshot, unless the caches are not complete yet, and the refusals that last.
// The pod is on the list before the snapshot is made: no change after it is
// missed. What it returns never changes.
func (w *Waker) Enter(pod *corev1.Pod, fact ledger.Pod) Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enter(&waiting{pod: pod, fact: fact})
}

// enter puts a pod on the list; mu is held.
func (w *Waker) enter(entry *waiting) Attempt {
	pod := entry.pod
	if earlier := w.pods.all[pod.UID]; earlier != nil {
		now := w.config.Now()
		if now.Sub(earlier.lifted) < settles {
			entry.woken, entry.lifted = earlier.woken, earlier.lifted
		}
		for _, r := range earlier.Refused {
			if now.Before(r.until) {
				entry.Refused = append(entry.Refused, r)
			}
		}
	}
	w.pods.put(entry)
	if w.config.Facts.HasSynced() {
		entry.Base, entry.Based = w.config.Facts.Snapshot(), true
	}
	return entry.Attempt
}

// Refuse leaves a node out for a pod, for a while.
func (w *Waker) Refuse(uid types.UID, n ledger.NodeName, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.Refused = append(slices.Clip(entry.Refused), Refusal{n, message, w.config.Now().Add(RefusalLasts)})
		w.retries.AddAfter(retry{uid: uid}, RefusalLasts)
	}
}

// Leave takes a pod off the list: it needs nothing any more.
func (w *Waker) Leave(uid types.UID) {
	w.mu.Lock()
	w.pods.drop(uid)
	w.mu.Unlock()
	w.retries.Forget(retry{uid: uid})
}

// Reserved notes that a pod has a node, or no longer has one.
func (w *Waker) Reserved(uid types.UID, has bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods.reserve(uid, has)
}

// Retry has a pod tried again soon, and less soon each time until it is bound.
func (w *Waker) Retry(uid types.UID) { w.retries.AddRateLimited(retry{uid: uid}) }

// RetryAfter has a pod tried again after a while.
func (w *Waker) RetryAfter(uid types.UID, d time.Duration) { w.retries.AddAfter(retry{uid: uid}, d) }

// Touch hears that the ledger has changed. It returns at once.
func (w *Waker) Touch(t ledger.Touched) {
	if len(t.Volumes) == 0 && len(t.Nodes) == 0 {
		return
	}
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// Run wakes pods until ctx is done.
func (w *Waker) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer w.retries.ShutDown()
	running.Go(func() {
		for w.nextRetry(ctx) {
		}
	})
	if w.config.Facts.WaitForSync(ctx) != nil {
		return
	}
	w.wakeUnbased(ctx)
	sweep := time.NewTicker(sweepInterval)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			w.Sweep()
		case <-w.signal:
			began := time.Now()
			w.Look(ctx)
			rest(ctx, restsFor*time.Since(began))
		}
	}
}

func (w *Waker) nextRetry(ctx context.Context) bool {
	next, shutdown := w.retries.Get()
	if shutdown {
		return false
	}
	defer w.retries.Done(next)
	w.mu.Lock()
	entry := w.pods.idle[next.uid]
	due := entry != nil && (!next.insists || entry.woken > 0)
	w.mu.Unlock()
	if due {
		w.wake(ctx, entry)
	}
	return true
}

// wakeUnbased wakes the pods that came before the caches were complete.
func (w *Waker) wakeUnbased(ctx context.Context) {
	w.mu.Lock()
	var early []*waiting
	for _, entry := range w.pods.all {
		if !entry.Based {
			early = append(early, entry)
		}
	}
	w.mu.Unlock()
	for _, entry := range early {
		w.wake(ctx, entry)
	}
}

// restsFor is how much longer than a look the pause after it is: where very many
// pods wait, what comes meanwhile is left to one look, and the scheduler is not
// kept from its work.
const restsFor = 9

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// wake has a pod tried again at once, and woken again should it not be tried.
// Waking may call Gate, and is followed by the attempt: what is noted is noted
// before.
func (w *Waker) wake(ctx context.Context, entry *waiting) {
	w.mu.Lock()
	if entry.woken < insistMost {
		w.retries.AddAfter(retry{entry.pod.UID, true}, insistFirst<<entry.woken)
	}
	entry.woken++
	w.mu.Unlock()
	klog.FromContext(ctx).V(4).Info("Trying a pod again", "pod", klog.KObj(entry.pod))
	w.config.Wake(ctx, entry.pod)
}

// Waiting is how many pods are on the list.
func (w *Waker) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods.all)
}
