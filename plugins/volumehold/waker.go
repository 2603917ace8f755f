// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
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

// refusalLasts is how long a node is left out for a pod that the controller has
// refused there, although the ledger would allow it. By then the ledger has
// what the controller went by; and if it never gets it, the pod goes elsewhere
// first. Without this kube-scheduler would choose the same of several nodes that
// score alike.
const refusalLasts = 5 * time.Second

// waker has a refused pod tried again when a change lifts a refusal: when a
// verdict on the pod, or on the pod at some node, was not Allow by the facts
// that the last attempt saw, and is now.
//
// This is not left to queueing hints, because hints and ledger are different
// consumers of the same informers. A hint may run before the ledger has taken
// the event in: the pod would be tried too early, be refused by the old facts,
// and then sleep, for the event has passed. kube-scheduler chains its own caches
// before its handlers for this reason (eventhandlers.go, DeviceClass); a plugin
// can't. The waker hears of a change after the ledger, and compares two
// snapshots, so that exactly the pods that the change concerns are tried again.
// Pods that are just being tried are not lost either: Handle.Activate has the
// queue remember it for them.
//
// What the ledger can't see is left to hints: see EventsToRegister.
//
// Safe for parallel use.
type waker struct {
	core    *core
	pods    corelisters.PodLister
	retries workqueue.TypedRateLimitingInterface[types.UID]
	signal  chan struct{} // of capacity 1: something was touched

	mu      sync.Mutex
	waiting map[types.UID]*waiting
	volumes map[ledger.VolumeID]bool // touched since the last look
	nodes   map[ledger.NodeName]bool
}

// waiting is a pod from its first PreFilter until it is bound or gone.
type waiting struct {
	pod      *corev1.Pod
	fact     ledger.Pod
	based    bool            // base is set: the caches were complete
	base     ledger.Snapshot // by which it was refused, as far as the waker knows
	reserved bool            // it has a node: nothing to wake
	refused  []refusal       // by the controller, newest last
}

// refusal is what the controller said of a pod at a node.
type refusal struct {
	node    ledger.NodeName
	message string
	until   time.Time
}

func newWaker(c *core) *waker {
	return &waker{
		core: c,
		pods: c.handle.SharedInformerFactory().Core().V1().Pods().Lister(),
		retries: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](retryFirst, retryMost)),
		signal:  make(chan struct{}, 1),
		waiting: map[types.UID]*waiting{},
		volumes: map[ledger.VolumeID]bool{},
		nodes:   map[ledger.NodeName]bool{},
	}
}

// enter notes that a pod is being tried, and returns what to judge it by: a
// snapshot, unless the caches are not complete yet, and the refusals that last.
// The pod is on the list before the snapshot is made: no change after it is
// missed. What it returns never changes.
func (w *waker) enter(pod *corev1.Pod, fact ledger.Pod) waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	entry := &waiting{pod: pod, fact: fact}
	if earlier := w.waiting[pod.UID]; earlier != nil {
		now := w.core.now()
		for _, r := range earlier.refused {
			if now.Before(r.until) {
				entry.refused = append(entry.refused, r)
			}
		}
	}
	w.waiting[pod.UID] = entry
	if w.core.facts.HasSynced() {
		entry.base, entry.based = w.core.facts.Snapshot(), true
	}
	return *entry
}

// refuse leaves a node out for a pod, for a while.
func (w *waker) refuse(uid types.UID, n ledger.NodeName, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.waiting[uid]; entry != nil {
		entry.refused = append(slices.Clip(entry.refused), refusal{n, message, w.core.now().Add(refusalLasts)})
		w.retries.AddAfter(uid, refusalLasts)
	}
}

// leave takes a pod off the list: it needs nothing any more.
func (w *waker) leave(uid types.UID) {
	w.mu.Lock()
	delete(w.waiting, uid)
	w.mu.Unlock()
	w.retries.Forget(uid)
}

// reserved notes that a pod has a node, or no longer has one.
func (w *waker) reserved(uid types.UID, has bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if entry := w.waiting[uid]; entry != nil {
		entry.reserved = has
	}
}

// retry has a pod tried again soon, and less soon each time until it is bound.
func (w *waker) retry(uid types.UID) { w.retries.AddRateLimited(uid) }

// touch takes in what has changed. It returns at once.
func (w *waker) touch(t ledger.Touched) {
	if len(t.Volumes) == 0 && len(t.Nodes) == 0 {
		return
	}
	w.mu.Lock()
	if len(w.waiting) > 0 {
		for _, v := range t.Volumes {
			w.volumes[v] = true
		}
		for _, n := range t.Nodes {
			w.nodes[n] = true
		}
	}
	w.mu.Unlock()
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// run wakes pods until ctx is done.
func (w *waker) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer w.retries.ShutDown()
	running.Go(func() {
		for w.nextRetry(ctx) {
		}
	})
	if w.core.facts.WaitForSync(ctx) != nil {
		return
	}
	w.wakeUnbased(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.signal:
			w.look(ctx)
		}
	}
}

func (w *waker) nextRetry(ctx context.Context) bool {
	uid, shutdown := w.retries.Get()
	if shutdown {
		return false
	}
	defer w.retries.Done(uid)
	w.mu.Lock()
	entry := w.waiting[uid]
	idle := entry != nil && !entry.reserved
	w.mu.Unlock()
	if idle {
		w.wake(ctx, entry)
	}
	return true
}

// wakeUnbased wakes the pods that came before the caches were complete.
func (w *waker) wakeUnbased(ctx context.Context) {
	w.mu.Lock()
	var early []*waiting
	for _, entry := range w.waiting {
		if !entry.based {
			early = append(early, entry)
		}
	}
	w.mu.Unlock()
	for _, entry := range early {
		w.wake(ctx, entry)
	}
}

// look judges the waiting pods by what has been touched since the last look.
func (w *waker) look(ctx context.Context) {
	w.mu.Lock()
	volumes, nodes := w.volumes, w.nodes
	w.volumes, w.nodes = map[ledger.VolumeID]bool{}, map[ledger.NodeName]bool{}
	entries := make([]*waiting, 0, len(w.waiting))
	for uid, entry := range w.waiting {
		switch {
		case w.gone(entry.pod):
			delete(w.waiting, uid)
			w.retries.Forget(uid)
		case entry.based && !entry.reserved:
			entries = append(entries, entry)
		}
	}
	w.mu.Unlock()

	now := w.core.facts.Snapshot()
	for _, entry := range entries {
		lifted := w.lifted(entry, now, volumes, nodes)
		w.mu.Lock()
		entry.base = now
		w.mu.Unlock()
		if lifted {
			w.wake(ctx, entry)
		}
	}
}

// gone says whether a pod is no more, or bound. The lister has every pod that
// the scheduling queue has.
func (w *waker) gone(pod *corev1.Pod) bool {
	known, err := w.pods.Pods(pod.Namespace).Get(pod.Name)
	return err != nil || known.UID != pod.UID || known.Spec.NodeName != ""
}

// wake has a pod tried again at once.
func (w *waker) wake(ctx context.Context, entry *waiting) {
	logger := klog.FromContext(ctx)
	logger.V(4).Info("Trying a pod again", "pod", klog.KObj(entry.pod))
	w.core.handle.Activate(logger, map[string]*corev1.Pod{string(entry.pod.UID): entry.pod})
}

// lifted says whether a refusal of the pod is no more. What can't have changed
// is not judged again: only the nodes that were touched, or all of them when it
// was one of the pod's own volumes or its policy.
func (w *waker) lifted(entry *waiting, after ledger.Snapshot, volumes map[ledger.VolumeID]bool, nodes map[ledger.NodeName]bool) bool {
	before, a := entry.base, w.core.arbiter
	was, is := arbiter.PodRequest(before, &entry.fact), arbiter.PodRequest(after, &entry.fact)
	if a.Admissible(after, is).Allowed() && !a.Admissible(before, was).Allowed() {
		return true // if only to be told what else is in the way
	}
	now := w.core.now()
	fits := func(n ledger.NodeName) bool {
		return !a.Fit(before, was, n, now).Allowed() && a.Fit(after, is, n, now).Allowed()
	}
	if ownTouched(was, volumes) || ownTouched(is, volumes) || policyChanged(before, after, is) {
		for n := range after.Nodes() {
			if fits(n.Name) {
				return true
			}
		}
		return false
	}
	for n := range nodes {
		if fits(n) {
			return true
		}
	}
	return false
}

func ownTouched(r arbiter.Request, volumes map[ledger.VolumeID]bool) bool {
	return slices.ContainsFunc(r.Needs, func(n arbiter.Need) bool { return volumes[n.Volume] })
}

// policyChanged says whether a policy of a driver that the pod needs has
// changed: that touches every node.
func policyChanged(before, after ledger.Snapshot, r arbiter.Request) bool {
	return slices.ContainsFunc(r.Needs, func(n arbiter.Need) bool {
		was, is := arbiter.PolicyFor(before, n.Volume.Driver, ""), arbiter.PolicyFor(after, n.Volume.Driver, "")
		return was.Name != is.Name || was.Version != is.Version
	})
}
