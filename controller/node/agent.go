// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodemounts"
)

// firstRetry is how long after a failure it tries again; each time twice as long.
const firstRetry = time.Second

// A question on the watch while writes fail shows that the API server is back: it ends the pause within
// hurrySpread, so that a cluster's nodes don't all write at once, and the pauses start again. That
// happens once in hurryEvery, while the pauses grow to 16 s: an answer is tried within less time than
// the controller waits for it (rules.LookPatience, 30 s).
const (
	hurrySpread = 2 * time.Second
	hurryEvery  = 30 * time.Second
)

// agent looks at one node and writes its findings.
type agent struct {
	config  Config
	client  client.NodeMountReportInterface
	node    string
	uid     types.UID
	look    func(before []nodemounts.Alive) sight
	clock   clock.WithTicker
	metrics *measures
	changed chan struct{} // a mount did
	asked   chan struct{} // for a look, by the watch
	// identify asks the API server for this process's identity; nil: it is not asked.
	identify func(context.Context) (self, error)
	made     makings
	// spread is a time below the given one, different at each node.
	spread func(time.Duration) time.Duration

	mu sync.Mutex
	// last is the object's last known state; nil: it has to be read.
	last *v1alpha1.NodeMountReport
	// refused is since when the API server has refused all that it was asked to write; zero: it
	// does not.
	refused time.Time
	// looking is since when a look is under way; zero: none is.
	looking time.Time
	// alive are the file systems of volumes that the kernel has. remembered: those of an earlier
	// process of this boot are among them.
	alive      map[nodemounts.Alive]bool
	remembered bool
	// unmounted: the last look found a file system without a mount. The kernel gives no sign
	// when that ends.
	unmounted bool
}

func newAgent(c Config, own client.NodeMountReportInterface, node string, uid types.UID, look func([]nodemounts.Alive) sight) *agent {
	return &agent{
		config: c, client: own, node: node, uid: uid, look: look, clock: clock.RealClock{}, metrics: newMeasures(node),
		changed: make(chan struct{}, 1), asked: make(chan struct{}, 1), spread: rand.N[time.Duration],
		alive: map[nodemounts.Alive]bool{},
	}
}

// run looks until ctx is done: at once, soon after mounts changed, when asked, and now and then. While
// writes fail it waits longer each time, regardless of changes at the node; a question ends such a
// pause. It returns an error if the Node is no longer its first one.
func (a *agent) run(ctx context.Context) error {
	due := a.clock.NewTimer(0)
	defer due.Stop()
	p := pace{at: a.clock.Now()}
	sooner := func(wait time.Duration) bool {
		then := a.clock.Now().Add(wait)
		if !then.Before(p.at) {
			return false
		}
		p.at = then
		due.Reset(wait)
		return true
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
			if p.failures == 0 {
				sooner(a.config.Gather)
			}
		case <-a.asked:
			switch now := a.clock.Now(); {
			case p.failures == 0:
				sooner(0)
			case p.mayHurry(now) && sooner(a.spread(hurrySpread)):
				p.hurried, p.pause = now, 0
			}
		case <-due.C():
			wait := a.config.Rescan
			err := a.round(ctx)
			a.wrote(err)
			if errors.Is(err, errAnotherNode) {
				return err
			}
			if err != nil {
				wait = p.failed(a.config.RetryAtMost)
				klog.FromContext(ctx).Error(err, "What the node has could not be published", "failures", p.failures, "nextTry", wait)
			} else {
				p.failures, p.pause = 0, 0
				if a.unmounted {
					wait = min(wait, a.config.Gather)
				}
			}
			p.at = a.clock.Now().Add(wait)
			due.Reset(wait)
		}
	}
}

// pace is when an agent looks next.
type pace struct {
	at time.Time
	// failures is how many rounds have failed since one went well, and pause how long it
	// waits, or has waited, since the last of them.
	failures int
	pause    time.Duration
	// hurried is when a question last ended a pause.
	hurried time.Time
}

// failed notes that a round failed, and returns the pause that follows.
func (p *pace) failed(atMost time.Duration) time.Duration {
	p.failures++
	p.pause = min(max(2*p.pause, firstRetry), atMost)
	return p.pause
}

// mayHurry says whether a question may end a pause.
func (p *pace) mayHurry(now time.Time) bool {
	return p.hurried.IsZero() || now.Sub(p.hurried) >= hurryEvery
}

// round looks once, and writes its findings if they are new.
func (a *agent) round(ctx context.Context) error {
	object, err := a.current(ctx)
	if err != nil {
		if seen, err := a.see(ctx); err == nil {
			a.metrics.looked(seen.facts, a.clock.Now()) // metrics need no API server
		}
		a.metrics.wrote("error")
		return fmt.Errorf("read NodeMountReport %s: %w", a.node, err)
	}
	// The number is read before the look: the answer is younger than the question.
	looked := int64(0)
	if object != nil {
		looked, a.made.known = object.Spec.Look, true
	}
	a.remember(object)
	seen, err := a.see(ctx)
	if err != nil {
		return err
	}
	now := a.clock.Now()
	a.metrics.looked(seen.facts, now)
	a.unmounted = seen.facts.Unmounted()
	status := statusOf(seen, looked, a.uid)
	if object != nil && same(object.Status, status) {
		return nil
	}
	status.Observed = &metav1.Time{Time: now.Truncate(time.Second)}
	if err := a.write(ctx, object, status); err != nil {
		a.metrics.wrote("error")
		return fmt.Errorf("write NodeMountReport %s: %w", a.node, err)
	}
	a.metrics.wrote("ok")
	return nil
}

// see looks at the node, and leaves the look alone once ctx is done: a file of a folder, or
// the folder, may never answer, and the process has to end. Health knows how long it takes.
func (a *agent) see(ctx context.Context) (sight, error) {
	a.mu.Lock()
	a.looking = a.clock.Now()
	before := slices.Collect(maps.Keys(a.alive))
	a.mu.Unlock()
	seen := make(chan sight, 1)
	go func() {
		s := a.look(before)
		a.mu.Lock()
		a.looking = time.Time{}
		clear(a.alive)
		for _, is := range s.facts.Alive {
			a.alive[is] = true
		}
		a.mu.Unlock()
		seen <- s
	}()
	select {
	case s := <-seen:
		return s, nil
	case <-ctx.Done():
		return sight{}, fmt.Errorf("the look was not waited for: %w", ctx.Err())
	}
}

// remember takes in the file systems that an earlier process of this boot has found.
func (a *agent) remember(object *v1alpha1.NodeMountReport) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.remembered {
		return
	}
	a.remembered = true
	if boot := a.config.bootID(); object == nil || boot == "" || object.Status.BootID != boot {
		return
	}
	for i := range object.Status.Volumes {
		v := &object.Status.Volumes[i]
		was := nodemounts.Alive{Driver: v.Driver, Handle: v.Handle, PersistentVolume: v.PersistentVolume, Path: v.Path}
		if v.MoreFileSystems {
			a.alive[was] = true // its other file systems are unknown
		}
		for _, f := range v.FileSystems {
			was.FileSystem = nodemounts.FileSystem{Entry: f.Entry, Number: f.Number}
			a.alive[was] = true
		}
	}
}

// current returns the object, from memory where it is there; nil: there is none.
func (a *agent) current(ctx context.Context) (*v1alpha1.NodeMountReport, error) {
	a.mu.Lock()
	known := a.last
	a.mu.Unlock()
	if known != nil {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.config.WriteTimeout)
	defer cancel()
	object, err := a.client.Get(ctx, a.node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	a.learn(object)
	return object, nil
}

// write makes a missing object, and writes its status, on the version that was read: no later write of
// others is undone.
func (a *agent) write(ctx context.Context, object *v1alpha1.NodeMountReport, status v1alpha1.NodeMountReportStatus) error {
	ctx, cancel := context.WithTimeout(ctx, a.config.WriteTimeout)
	defer cancel()
	var err error
	if object == nil {
		if err := a.mayMake(ctx); err != nil {
			return err
		}
		if object, err = a.client.Create(ctx, a.fresh(), metav1.CreateOptions{FieldManager: v1alpha1.NodeName}); err != nil {
			if apierrors.IsForbidden(err) {
				return errors.Join(a.recognized(ctx), err)
			}
			return err
		}
		a.makes()
	}
	next := object.DeepCopy()
	next.Status = status
	written, err := a.client.UpdateStatus(ctx, next, metav1.UpdateOptions{FieldManager: v1alpha1.NodeName})
	if err != nil {
		a.forget()
		return err
	}
	a.learn(written)
	return nil
}

// fresh is an object that goes when its Node does.
func (a *agent) fresh() *v1alpha1.NodeMountReport {
	return &v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{
		Name:            a.node,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: a.node, UID: a.uid}},
	}}
}

// learn takes the object as the API server has it, unless a later one is known. It is
// safe for parallel use.
func (a *agent) learn(object *v1alpha1.NodeMountReport) {
	if object.Name != a.node {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if order, known := a.compared(object); known && order <= 0 {
		return
	}
	a.last = object
}

// compared says whether the object is older (-1) or newer (1) than the known one; false if none of that
// UID is known, or their versions can't be compared. The caller has the lock.
func (a *agent) compared(object *v1alpha1.NodeMountReport) (order int, known bool) {
	if a.last == nil || a.last.UID != object.UID {
		return 0, false
	}
	order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, a.last.ResourceVersion)
	return order, err == nil
}

// forget has the object read before the next write.
func (a *agent) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = nil
}

// told takes in a watch event of the object. If it asks for a look, or has content that this process
// did not write, a look follows soon.
func (a *agent) told(object *v1alpha1.NodeMountReport) {
	a.learn(object)
	if object.Name == a.node && object.Spec.Look != object.Status.Looked {
		signal(a.asked)
	}
}

// listed takes in the object from a list. If that is older than the known state, the API server answers
// from an old cache, or its data was restored from a backup: the object is read again.
func (a *agent) listed(object *v1alpha1.NodeMountReport) {
	a.mu.Lock()
	order, known := a.compared(object)
	older := known && order < 0 && object.Name == a.node
	if older {
		a.last = nil
	}
	a.mu.Unlock()
	if older {
		signal(a.asked)
		return
	}
	a.told(object)
}

// gone takes that the object was deleted.
func (a *agent) gone(object *v1alpha1.NodeMountReport) {
	if object.Name == a.node {
		a.forget()
		signal(a.asked)
	}
}

// unlisted takes in that the object is not there, or was not when the API server listed it. A known
// object is read again.
func (a *agent) unlisted() {
	a.mu.Lock()
	known := a.last != nil
	a.last = nil
	a.mu.Unlock()
	if known {
		signal(a.asked)
	}
}

// signal leaves one signal, however many there were.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // one is there
	}
}
