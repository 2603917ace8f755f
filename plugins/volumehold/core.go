// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/watch"
	"github.com/moorage-dev/moorage/internal/write"
	"github.com/moorage-dev/moorage/plugins/internal/binding"
	"github.com/moorage-dev/moorage/plugins/internal/requeuer"
)

type facts interface {
	requeuer.Facts
	ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
	Apply(ledger.Event)
	Subscribe(func(ledger.Touched))
}

var _ facts = &watch.Observer{}

type config struct {
	Facts facts
	// Handle of any profile: they share waiting pods, queue and informers.
	Handle  fwk.Handle
	Now     func() time.Time // nil: time.Now
	Metrics registry
	Groups  groupSource
	// Binds sends Bindings; nil: the Handle's client.
	Binds kubernetes.Interface
	// Conditions has its own rate limit.
	Conditions kubernetes.Interface
}

// core is shared by all profiles.
type core struct {
	facts   facts
	arbiter rules.Arbiter
	handle  fwk.Handle
	pods    corelisters.PodLister // has all pods of the scheduling queue
	now     func() time.Time
	process context.Context // Permit's own context ends with the cycle

	placer     *binding.Placer
	until      atomic.Pointer[func() time.Time] // end of the lease; nil: no election
	executor   atomic.Pointer[write.Executor]   // for tickets; nil before the term
	requeuer   *requeuer.Requeuer
	conditions *conditionWriter
	groups     *groups

	metrics *pluginMetrics
}

// ctx ends with the process.
func newCore(ctx context.Context, cfg config) (*core, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	pods := cfg.Handle.SharedInformerFactory().Core().V1().Pods()
	c := &core{facts: cfg.Facts, handle: cfg.Handle, pods: pods.Lister(), now: cfg.Now, process: ctx}
	c.conditions, c.groups = newConditionWriter(c, cfg.Conditions), newGroups(c, cfg.Groups)
	c.requeuer = requeuer.New(requeuer.Config{
		Facts: cfg.Facts, Arbiter: c.arbiter, Now: cfg.Now, Wake: c.wake, Gone: c.gone, Gated: c.notWorthTrying, Waits: c.conditions.enqueue,
		Retry: requeuer.Retry{InitialDelay: 100 * time.Millisecond, MaxTries: 9, CacheLag: time.Second, MayBeBlocked: true},
	})
	if cfg.Binds == nil {
		cfg.Binds = cfg.Handle.ClientSet()
	}
	c.placer = &binding.Placer{Ledger: cfg.Facts.Ledger(), Now: cfg.Now}
	c.placer.Binder.Confirm, c.placer.Binder.Change, c.placer.Binder.Until = cfg.Facts.ConfirmPod, binding.ChangeBy(cfg.Binds), c.leaseEnd
	c.placer.Binder.Send = func(ctx context.Context, b *corev1.Binding) error {
		return cfg.Binds.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
	}
	c.placer.Subscribe(c.touch)
	cfg.Groups.notify(c.groups.changed)
	cfg.Facts.Subscribe(c.touch)
	var err error
	if c.metrics, err = newMetrics(cfg.Metrics, c); err != nil {
		return nil, err
	}
	if _, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.podSeen, UpdateFunc: c.podWritten, DeleteFunc: c.podGone}); err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return c, nil
}

// leaseEnd is zero without a lease.
func (c *core) leaseEnd() time.Time {
	if until := c.until.Load(); until != nil {
		return (*until)()
	}
	return time.Time{}
}

func (c *core) start(ctx context.Context) {
	go c.requeuer.Run(ctx)
	go c.conditions.run(ctx)
}

func (c *core) touch(t ledger.Touched) { c.requeuer.Touch(t) }

// wake has a pod tried at once. The queue remembers this during an attempt.
func (c *core) wake(ctx context.Context, pod *corev1.Pod) {
	c.handle.Activate(klog.FromContext(ctx), map[string]*corev1.Pod{string(pod.UID): pod})
}

// gone says whether kube-scheduler no longer tries a pod.
func (c *core) gone(pod *corev1.Pod) bool {
	known, err := c.pods.Pods(pod.Namespace).Get(pod.Name)
	return err != nil || known.UID != pod.UID || known.Spec.NodeName != "" || known.DeletionTimestamp != nil
}

func (c *core) podSeen(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		c.groups.podSeen(pod)
	}
}

func (c *core) podWritten(old, updated any) {
	pod, ok := updated.(*corev1.Pod)
	if !ok {
		return
	}
	if before, ok := old.(*corev1.Pod); ok && before.UID != pod.UID {
		c.groups.podGone(before)
	}
	c.groups.podSeen(pod)
	switch {
	case pod.Spec.NodeName != "":
		c.groups.podSettled(pod)
	default:
		c.conditions.observe(pod)
	}
}

func (c *core) podGone(object any) {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	if pod, ok := object.(*corev1.Pod); ok {
		c.groups.podGone(pod)
		c.groups.podSettled(pod)
	}
}
