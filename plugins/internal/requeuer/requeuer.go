// SPDX-License-Identifier: Apache-2.0

package requeuer

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Spacing of attempts that failed after a node had been chosen: the first follows at once, and a
// refused pod goes elsewhere.
const (
	retryFirst = 20 * time.Millisecond
	retryMost  = 10 * time.Second
)

// Retry says how often to wake a woken pod that is not tried: again after InitialDelay,
// and then after twice as long each time, MaxTries times. After that the queue's own flush of 5 minutes is left:
// a pod that is kept out longer has a reason.
type Retry struct {
	InitialDelay time.Duration
	MaxTries     int
	// OnlyBlocked repeats wakes only of pods that another plugin may be keeping from the queue (Keep is told
	// of them): for all other pods one wake is known to be enough.
	OnlyBlocked bool
	// CacheLag is how long other plugins' caches may lag behind a change. An attempt within it may
	// have used their old facts, while the change itself came and the pod was kept from the queue:
	// it does not count as an attempt. This is true only of pods that may be kept.
	CacheLag time.Duration
	// MayBeBlocked: every pod that is tried may be kept from the queue afterwards, unless Rejected
	// denies it.
	MayBeBlocked bool
}

// Facts is the part of watch.Observer that the package needs.
type Facts interface {
	Ledger() *ledger.Ledger
	Snapshot() ledger.Snapshot
	HasSynced() bool
	WaitForSync(context.Context) error
}

// Config is a Requeuer's configuration. All but Now and Retry must be set.
type Config struct {
	Facts   Facts
	Arbiter rules.Arbiter
	Now     func() time.Time // time.Now when nil
	Retry   Retry
	// Turn is how long room is kept for a woken pod that stays silent; DefaultTurn when 0.
	Turn time.Duration
	// Wake has the scheduler try a pod again at once. It must return soon.
	Wake func(ctx context.Context, pod *corev1.Pod)
	// Gone says whether a pod is deleted, bound, or not tried any more. It must return at once.
	Gone func(pod *corev1.Pod) bool
	// Gated says whether a pod must not be tried at all by these facts. It must return at once.
	// When it is nil, no pod is gated.
	Gated func(pod *corev1.Pod, s ledger.Snapshot, r rules.Request) bool
	// Waits is told of waiting pods that may have new reasons, since their volumes have changed. It
	// must return at once; it may be nil.
	Waits func(pod *corev1.Pod)
}

// Requeuer has refused pods tried again; see the package. Safe for parallel use.
type Requeuer struct {
	config  Config
	retries workqueue.TypedRateLimitingInterface[retry]
	signal  chan struct{} // of capacity 1: something was touched
	changes *ledger.Changes

	mu   sync.Mutex
	pods list
}

// retry is a pod to wake at its time: in any case, or because it was woken and has not been tried.
// Without a pod the line is looked at.
type retry struct {
	uid     types.UID
	repeats bool
	expires bool // a wait for a freed slot is over by then; apart from the pod's other retries
}

// Attempt is the basis for judging a pod in one attempt.
type Attempt struct {
	Based bool            // Base is set: the caches were complete
	Base  ledger.Snapshot // the facts of the refusal, as far as the requeuer knows
	Again bool            // the pod has been tried before, by this process
}

// waiting is a pod from its first attempt until it is bound or gone.
type waiting struct {
	Attempt
	pod      *corev1.Pod
	fact     ledger.Pod
	judged   time.Time // when, by Base
	reserved bool      // it has a node: nothing to wake
	gated    bool      // it was kept from being tried
	kept     bool      // another plugin may be keeping it from the queue
	woken    int       // how often since its last attempt that counts
	sampled  int       // how often it was retried for other nodes, since lifted
	lifted   time.Time // when a change last lifted a refusal
	asked    *asked
	freed    freed
	open     openings // refusals that were lifted without a wake
	turn     turn
	touched  bool // the next look judges it in any case
}

// asked is a pod's request by the facts of its Base, once determined. It never changes.
type asked struct {
	rules.Request
	inTheWay []ledger.Code // why no node can be right for it; see rules.Admissible
}

// New returns a Requeuer that wakes no pod before Run.
func New(config Config) *Requeuer {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Turn == 0 {
		config.Turn = DefaultTurn
	}
	if config.Gated == nil {
		config.Gated = func(*corev1.Pod, ledger.Snapshot, rules.Request) bool { return false }
	}
	if config.Waits == nil {
		config.Waits = func(*corev1.Pod) {}
	}
	return &Requeuer{
		config: config,
		retries: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[retry](retryFirst, retryMost)),
		signal:  make(chan struct{}, 1),
		changes: config.Facts.Ledger().Gather(),
		pods:    newList(),
	}
}

// Enter notes that a pod is being tried, and returns the basis for judging it: a snapshot, unless
// the caches are not complete yet. The pod is listed before the snapshot is made, and misses no
// later change. The returned value never changes.
func (w *Requeuer) Enter(pod *corev1.Pod, fact ledger.Pod) Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enter(&waiting{pod: pod, fact: fact})
}

// enter puts a pod on the list; mu is held.
func (w *Requeuer) enter(entry *waiting) Attempt {
	pod := entry.pod
	entry.kept = w.config.Retry.MayBeBlocked
	if earlier := w.pods.all[pod.UID]; earlier != nil {
		entry.Again = true
		entry.sampled, entry.freed, entry.turn = earlier.sampled, earlier.freed, earlier.turn
		if earlier.kept && w.config.Now().Sub(earlier.lifted) < w.config.Retry.CacheLag {
			entry.woken, entry.lifted = earlier.woken, earlier.lifted
		}
	}
	w.pods.put(entry)
	if w.config.Facts.HasSynced() {
		entry.Base, entry.Based, entry.judged = w.config.Facts.Snapshot(), true, w.config.Now()
	}
	return entry.Attempt
}

// Leave takes a pod off the list: it needs nothing any more.
func (w *Requeuer) Leave(uid types.UID) {
	w.mu.Lock()
	w.drop(uid)
	w.mu.Unlock()
}

// Reserved notes that a pod has a node, or no longer has one.
func (w *Requeuer) Reserved(uid types.UID, has bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods.reserve(uid, has)
	if entry := w.pods.all[uid]; entry != nil {
		w.endTurn(entry)
	}
}

// drop takes a pod off the list; mu is held.
func (w *Requeuer) drop(uid types.UID) {
	if entry := w.pods.all[uid]; entry != nil {
		w.endTurn(entry)
	}
	w.pods.drop(uid)
	w.retries.Forget(retry{uid: uid})
}

// Keep notes that another plugin may keep a pod from the queue until its next attempt, or for a
// part of that time. DefaultPreemption keeps a pod while it deletes the victims, and has no event
// for the end (preemption/executor.go): a wake in the meantime is lost.
func (w *Requeuer) Keep(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.kept = true
	}
}

// RetryElsewhere tries a pod again that was refused the nodes of this attempt, and would fit
// another node: in a large cluster the scheduler asks about a part of the nodes at a time. It does
// so most times until a change lifts a refusal: another plugin may be keeping the pod from that
// other node.
func (w *Requeuer) RetryElsewhere(uid types.UID, most int) {
	w.mu.Lock()
	entry := w.pods.all[uid]
	again := entry != nil && entry.sampled < most
	if again {
		entry.sampled++
	}
	w.mu.Unlock()
	if again {
		w.Retry(uid)
	}
}

// Woken says whether a pod was woken and has not been tried since.
func (w *Requeuer) Woken(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.pods.idle[uid]
	return entry != nil && entry.woken > 0
}

// Retry has a pod tried again soon, and less soon each time until it is bound. It counts only for
// pods on the list: no other count would be forgotten.
func (w *Requeuer) Retry(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods.all[uid] != nil {
		w.retries.AddRateLimited(retry{uid: uid})
	}
}

// RetryAfter has a pod tried again after a while.
func (w *Requeuer) RetryAfter(uid types.UID, d time.Duration) { w.retries.AddAfter(retry{uid: uid}, d) }

// Touch hears that the ledger has changed. It returns at once.
func (w *Requeuer) Touch(t ledger.Touched) {
	if w.touchPods(t.Pods) || len(t.Volumes) > 0 || len(t.Nodes) > 0 {
		w.next()
	}
}

// touchPods marks the waiting pods among uids for the next look, and says whether there are any. A
// claim that turns out to need no attachment, such as NFS, touches no volume.
func (w *Requeuer) touchPods(uids []string) (some bool) {
	if len(uids) == 0 {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, uid := range uids {
		if entry := w.pods.idle[types.UID(uid)]; entry != nil {
			entry.touched, some = true, true
		}
	}
	return some
}

// Run wakes pods until ctx is done.
func (w *Requeuer) Run(ctx context.Context) {
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
			w.timePasses()
		case <-w.signal:
			began := time.Now()
			w.Look(ctx)
			rest(ctx, restsFor*time.Since(began))
		}
	}
}

func (w *Requeuer) nextRetry(ctx context.Context) bool {
	next, shutdown := w.retries.Get()
	if shutdown {
		return false
	}
	defer w.retries.Done(next)
	if next.uid == "" {
		w.next()
		return true
	}
	w.mu.Lock()
	entry := w.pods.idle[next.uid]
	due := entry != nil && (!next.repeats || entry.woken > 0 && (entry.kept || !w.config.Retry.OnlyBlocked))
	w.mu.Unlock()
	if due {
		w.wake(ctx, entry)
	}
	return true
}

// wakeUnbased wakes the pods that came before the caches were complete.
func (w *Requeuer) wakeUnbased(ctx context.Context) {
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

// restsFor is the length of the pause after a look, in lengths of the look: with very many waiting
// pods, one look handles all changes meanwhile, and the scheduler is not kept from its work.
const restsFor = 9

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// wake has a pod tried again at once, and woken again if it is not tried. Waking may call Gate, and
// the attempt follows: wake makes its notes before.
func (w *Requeuer) wake(ctx context.Context, entry *waiting) {
	w.mu.Lock()
	if again := w.config.Retry; entry.woken < again.MaxTries {
		w.retries.AddAfter(retry{uid: entry.pod.UID, repeats: true}, again.InitialDelay<<entry.woken)
	}
	entry.woken++
	w.mu.Unlock()
	klog.FromContext(ctx).V(4).Info("Trying a pod again", "pod", klog.KObj(entry.pod))
	w.config.Wake(ctx, entry.pod)
}

// Waiting is how many pods are on the list.
func (w *Requeuer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods.all)
}
