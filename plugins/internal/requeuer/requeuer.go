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

// After a failure with a chosen node the first retry follows at once.
const (
	retryFirst = 20 * time.Millisecond
	retryMost  = 10 * time.Second
)

// Retry says how often to wake a woken but untried pod: after InitialDelay, and then after twice as long
// each time, MaxTries times. Later only the queue's own flush of 5 minutes is left.
type Retry struct {
	InitialDelay time.Duration
	MaxTries     int
	// OnlyBlocked repeats wakes only for pods that another plugin may keep from the queue (Keep): for
	// others one wake is enough.
	OnlyBlocked bool
	// CacheLag is how long other plugins' caches may lag behind a change. An attempt within it may have
	// used their old facts: it does not count. This applies only to pods that may be kept.
	CacheLag time.Duration
	// MayBeBlocked: every tried pod may be kept from the queue, unless Rejected denies it.
	MayBeBlocked bool
}

// Facts is the needed part of watch.Observer.
type Facts interface {
	Ledger() *ledger.Ledger
	Snapshot() ledger.Snapshot
	HasSynced() bool
	WaitForSync(context.Context) error
}

// Config configures a Requeuer. Now, Retry, Turn, Gated and Waits may be unset.
type Config struct {
	Facts   Facts
	Arbiter rules.Arbiter
	Now     func() time.Time // nil: time.Now
	Retry   Retry
	// Turn is how long room is kept for a silent woken pod; 0: DefaultTurn.
	Turn time.Duration
	// Wake has the scheduler try a pod at once. It must return soon.
	Wake func(ctx context.Context, pod *corev1.Pod)
	// Gone says whether a pod is deleted, bound, or not tried any more. It must return at once.
	Gone func(pod *corev1.Pod) bool
	// Gated says whether a pod must not be tried by these facts. It must return at once. nil: no pod is
	// gated.
	Gated func(pod *corev1.Pod, s ledger.Snapshot, r rules.Request) bool
	// Waits hears of waiting pods whose volumes have changed. It must return at once; it may be nil.
	Waits func(pod *corev1.Pod)
}

// Requeuer wakes refused pods; see the package. Safe for parallel use.
type Requeuer struct {
	config  Config
	retries workqueue.TypedRateLimitingInterface[retry]
	signal  chan struct{} // of capacity 1: something was touched
	changes *ledger.Changes

	mu   sync.Mutex
	pods list
}

// retry wakes a pod at its time: always, or because it was woken and not tried. Without a pod it looks at
// the line.
type retry struct {
	uid     types.UID
	repeats bool
	expires bool // end of a wait for a freed slot; apart from other retries
}

// Attempt is the basis for judging a pod in one attempt.
type Attempt struct {
	Based bool            // caches complete
	Base  ledger.Snapshot // of the refusal
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
	kept     bool      // another plugin may keep it from the queue
	woken    int       // since the last attempt that counts
	sampled  int       // retries for other nodes, since lifted
	lifted   time.Time // when a change last lifted a refusal
	asked    *asked
	freed    freed
	open     openings // without a wake
	turn     turn
	touched  bool // the next look judges it
}

// asked is a pod's request by the facts of its Base. It never changes.
type asked struct {
	rules.Request
	inTheWay []ledger.Code // no node can be right; see rules.Admissible
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

// Enter notes that a pod is being tried, and returns a snapshot to judge it by, unless the caches are
// incomplete. The pod is listed before the snapshot is made, and misses no later change.
func (w *Requeuer) Enter(pod *corev1.Pod, fact ledger.Pod) Attempt {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enter(&waiting{pod: pod, fact: fact})
}

// mu is held.
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

// Leave takes a pod off the list.
func (w *Requeuer) Leave(uid types.UID) {
	w.mu.Lock()
	w.drop(uid)
	w.mu.Unlock()
}

// Reserved notes whether a pod has a node.
func (w *Requeuer) Reserved(uid types.UID, has bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pods.reserve(uid, has)
	if entry := w.pods.all[uid]; entry != nil {
		w.endTurn(entry)
	}
}

// mu is held.
func (w *Requeuer) drop(uid types.UID) {
	if entry := w.pods.all[uid]; entry != nil {
		w.endTurn(entry)
	}
	w.pods.drop(uid)
	w.retries.Forget(retry{uid: uid})
}

// Keep notes that another plugin may keep a pod from the queue until its next attempt. DefaultPreemption
// does so while it deletes the victims, without an event for the end (preemption/executor.go): a wake in
// the meantime is lost.
func (w *Requeuer) Keep(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.pods.all[uid]; entry != nil {
		entry.kept = true
	}
}

// RetryElsewhere retries a pod that would fit a node outside this attempt: in a large cluster the scheduler
// asks about a part of the nodes at a time. It does so most times until a change lifts a refusal: another
// plugin may be keeping the pod from that node.
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

// Woken says whether a pod was woken and not tried since.
func (w *Requeuer) Woken(uid types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := w.pods.idle[uid]
	return entry != nil && entry.woken > 0
}

// Retry has a pod tried soon, and less soon each time until it is bound. It counts only listed pods: no
// other count would be forgotten.
func (w *Requeuer) Retry(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pods.all[uid] != nil {
		w.retries.AddRateLimited(retry{uid: uid})
	}
}

// RetryAfter has a pod tried after a while.
func (w *Requeuer) RetryAfter(uid types.UID, d time.Duration) { w.retries.AddAfter(retry{uid: uid}, d) }

// Touch hears of the ledger's changes. It returns at once.
func (w *Requeuer) Touch(t ledger.Touched) {
	if w.touchPods(t.Pods) || len(t.Volumes) > 0 || len(t.Nodes) > 0 {
		w.next()
	}
}

// touchPods marks waiting pods for the next look; false: none. A claim that turns out to need no
// attachment, such as NFS, touches no volume.
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

// restsFor is the pause after a look, in lengths of the look: looks must not keep the scheduler from its
// work.
const restsFor = 9

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Waking may call Gate, and the attempt follows: wake makes its notes before.
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

// Waiting counts the listed pods.
func (w *Requeuer) Waiting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pods.all)
}
