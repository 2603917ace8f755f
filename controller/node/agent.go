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

// firstRetry is the first pause after a failure; the pause doubles.
const firstRetry = time.Second

// A question while writes fail shows that the API server is back. It ends the pause within hurrySpread, so
// that a cluster's nodes don't all write at once. That happens once in hurryEvery, while the pauses grow to
// 16 s: within the controller's wait for an answer (rules.LookPatience, 30 s).
const (
	hurrySpread = 2 * time.Second
	hurryEvery  = 30 * time.Second
)

type agent struct {
	config  Config
	client  client.NodeMountReportInterface
	node    string
	uid     types.UID
	look    func(before []nodemounts.Alive) sight
	clock   clock.WithTicker
	metrics *measures
	changed chan struct{} // a mount did
	asked   chan struct{} // by the watch
	// identify asks the API server for this process's identity; nil: no question.
	identify func(context.Context) (self, error)
	made     makings
	// spread is a time below the given one, different at each node.
	spread func(time.Duration) time.Duration

	mu sync.Mutex
	// last is the object's last known state; nil: read it first.
	last *v1alpha1.NodeMountReport
	// refused is since when the API server refuses all writes; or zero.
	refused time.Time
	// looking is the begin of the present look; zero: none.
	looking time.Time
	// alive are volumes' file systems in the kernel. remembered: with an earlier process' of this boot.
	alive      map[nodemounts.Alive]bool
	remembered bool
	// unmounted: a file system had no mount. The kernel does not signal its end.
	unmounted bool
}

func newAgent(c Config, own client.NodeMountReportInterface, node string, uid types.UID, look func([]nodemounts.Alive) sight) *agent {
	return &agent{
		config: c, client: own, node: node, uid: uid, look: look, clock: clock.RealClock{}, metrics: newMeasures(node),
		changed: make(chan struct{}, 1), asked: make(chan struct{}, 1), spread: rand.N[time.Duration],
		alive: map[nodemounts.Alive]bool{},
	}
}

// run looks until ctx is done: at once, soon after mounts changed, when asked, and now and then. Failed
// writes lengthen the pause; only a question ends it. It returns an error if the Node is no longer its
// first one.
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

type pace struct {
	at time.Time
	// failures counts failed rounds in a row; pause follows the last.
	failures int
	pause    time.Duration
	hurried  time.Time
}

func (p *pace) failed(atMost time.Duration) time.Duration {
	p.failures++
	p.pause = min(max(2*p.pause, firstRetry), atMost)
	return p.pause
}

func (p *pace) mayHurry(now time.Time) bool {
	return p.hurried.IsZero() || now.Sub(p.hurried) >= hurryEvery
}

// round looks once, and writes new findings.
func (a *agent) round(ctx context.Context) error {
	object, err := a.current(ctx)
	if err != nil {
		if seen, err := a.see(ctx); err == nil {
			a.metrics.looked(seen.facts, a.clock.Now()) // metrics need no API server
		}
		a.metrics.wrote("error")
		return fmt.Errorf("read NodeMountReport %s: %w", a.node, err)
	}
	// The number is read first: the answer is younger than the question.
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

// see abandons the look once ctx is done: a file or folder may never answer, and the process has to end.
// Health knows how long it takes.
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

// remember takes the file systems found by an earlier process of this boot.
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

// current returns the object, from memory if possible; nil: there is none.
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

// write writes the status at the version read, and first makes a missing object: it undoes no later write
// of others.
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

func (a *agent) fresh() *v1alpha1.NodeMountReport {
	return &v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{
		Name:            a.node,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: a.node, UID: a.uid}},
	}}
}

// learn takes the object, unless a later one is known. Safe for parallel use.
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

// compared: the object is older (-1) or newer (1) than the known one; false: another UID, or incomparable
// versions. The caller has the lock.
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

// told takes a watch event. A question, or foreign content, causes a look.
func (a *agent) told(object *v1alpha1.NodeMountReport) {
	a.learn(object)
	if object.Name == a.node && object.Spec.Look != object.Status.Looked {
		signal(a.asked)
	}
}

// listed takes the object from a list. If it is older than the known state, from an old cache or a restored
// backup, the object is read again.
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

func (a *agent) gone(object *v1alpha1.NodeMountReport) {
	if object.Name == a.node {
		a.forget()
		signal(a.asked)
	}
}

// unlisted takes an absence. A known object is read again.
func (a *agent) unlisted() {
	a.mu.Lock()
	known := a.last != nil
	a.last = nil
	a.mu.Unlock()
	if known {
		signal(a.asked)
	}
}

// signal leaves one signal at most.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default: // one is there
	}
}
