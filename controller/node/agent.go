// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
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
)

// firstRetry is how long after a failure it tries again; each time twice as long.
const firstRetry = time.Second

// agent looks at one node and writes what it finds.
type agent struct {
	config  Config
	client  client.NodeVolumesInterface
	node    string
	uid     types.UID
	look    func() sight
	clock   clock.WithTicker
	metrics *measures
	orders  *orders
	nodes   nodeGetter
	drivers unstager
	calls   sync.WaitGroup
	changed chan struct{} // a mount did
	asked   chan struct{} // for a look

	mu sync.Mutex
	// last is the object as far as is known; nil: it has to be read.
	last *v1alpha1.NodeVolumes
}

func newAgent(c Config, own client.NodeVolumesInterface, node string, uid types.UID, look func() sight) *agent {
	return &agent{
		config: c, client: own, node: node, uid: uid, look: look, clock: clock.RealClock{}, metrics: newMeasures(node),
		orders: newOrders(c.Repair, clock.RealClock{}), drivers: drivers{c.KubeletRoot},
		changed: make(chan struct{}, 1), asked: make(chan struct{}, 1),
	}
}

// run looks until ctx is done: at once, soon after mounts changed, when asked, and now
// and then. While writes fail it waits longer and longer, whatever happens.
func (a *agent) run(ctx context.Context) {
	due := a.clock.NewTimer(0)
	defer due.Stop()
	at, failures := a.clock.Now(), 0
	sooner := func(wait time.Duration) {
		if then := a.clock.Now().Add(wait); failures == 0 && then.Before(at) {
			at = then
			due.Reset(wait)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
			sooner(a.config.Gather)
		case <-a.asked:
			sooner(0)
		case <-due.C():
			wait := a.config.Rescan
			if err := a.round(ctx); err != nil {
				klog.FromContext(ctx).Error(err, "What the node has could not be published", "failures", failures+1)
				wait = min(firstRetry<<min(failures, 16), a.config.RetryAtMost)
				failures++
			} else {
				failures = 0
			}
			at = a.clock.Now().Add(wait)
			due.Reset(wait)
		}
	}
}

// round looks once, and writes what it found if it is not written yet.
func (a *agent) round(ctx context.Context) error {
	object, err := a.current(ctx)
	if err != nil {
		a.metrics.looked(a.look().facts, a.clock.Now()) // metrics need no API server
		a.metrics.wrote("error")
		return fmt.Errorf("read NodeVolumes %s: %w", a.node, err)
	}
	// The number is read before the look: the answer is younger than the question.
	looked := int64(0)
	if object != nil {
		looked = object.Spec.Look
	}
	seen := a.look()
	now := a.clock.Now()
	a.metrics.looked(seen.facts, now)
	var begun []v1alpha1.NodeUnstage
	if object != nil {
		a.orders.read(object, seen.machine.BootID)
		begun = a.orders.begin(object, seen)
	}
	status := statusOf(seen, looked, a.uid)
	status.Repairs, status.Unstaged = a.config.Repair, a.orders.said(begun)
	if object != nil && len(begun) == 0 && same(object.Status, status) {
		return nil
	}
	status.Observed = &metav1.Time{Time: now.Truncate(time.Second)}
	if err := a.write(ctx, object, status); err != nil {
		a.orders.forget(begun)
		a.metrics.wrote("error")
		return fmt.Errorf("write NodeVolumes %s: %w", a.node, err)
	}
	a.metrics.wrote("ok")
	a.orders.written(begun)
	a.carryOut(ctx, begun)
	return nil
}

// current returns the object, from memory where it is there; nil: there is none.
func (a *agent) current(ctx context.Context) (*v1alpha1.NodeVolumes, error) {
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

// write makes the object where there is none, and gives it its status: on the version
// that was read, so that nothing that somebody else wrote since is undone.
func (a *agent) write(ctx context.Context, object *v1alpha1.NodeVolumes, status v1alpha1.NodeVolumesStatus) error {
	ctx, cancel := context.WithTimeout(ctx, a.config.WriteTimeout)
	defer cancel()
	var err error
	if object == nil {
		if object, err = a.client.Create(ctx, a.fresh(), metav1.CreateOptions{FieldManager: v1alpha1.NodeName}); err != nil {
			return err
		}
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
func (a *agent) fresh() *v1alpha1.NodeVolumes {
	return &v1alpha1.NodeVolumes{ObjectMeta: metav1.ObjectMeta{
		Name:            a.node,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: a.node, UID: a.uid}},
	}}
}

// learn takes the object as the API server has it, unless a later one is known. It is
// safe for parallel use.
func (a *agent) learn(object *v1alpha1.NodeVolumes) {
	if object.Name != a.node {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last != nil && a.last.UID == object.UID {
		if order, err := resourceversion.CompareResourceVersion(object.ResourceVersion, a.last.ResourceVersion); err == nil && order <= 0 {
			return
		}
	}
	a.last = object
	a.orders.noted(object)
}

// forget has the object read before the next write.
func (a *agent) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = nil
}

// told takes what a watch says of the object. One that asks for a look, or says
// something that this process did not write, is looked at soon.
func (a *agent) told(object *v1alpha1.NodeVolumes) {
	a.learn(object)
	if object.Name == a.node && object.Spec.Look != object.Status.Looked {
		signal(a.asked)
	}
}

// gone takes that the object was deleted.
func (a *agent) gone(object *v1alpha1.NodeVolumes) {
	if object.Name == a.node {
		a.forget()
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
