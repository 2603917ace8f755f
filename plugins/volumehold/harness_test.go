// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	kubeevents "k8s.io/client-go/tools/events"
	kubemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	schedulerqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const (
	driver  = "disk.example.com"
	profile = "moorage-scheduler"
)

const patience = 30 * time.Second

type world struct {
	t      testing.TB
	ledger *ledger.Ledger

	mu        sync.Mutex
	subscribe []func(ledger.Touched)
	synced    chan struct{}
	pods      map[string]*corev1.Pod // by UID
}

func newWorld(t testing.TB) *world {
	w := &world{
		t: t, ledger: ledger.New(), synced: make(chan struct{}), pods: map[string]*corev1.Pod{},
	}
	return w
}

func (w *world) Ledger() *ledger.Ledger           { return w.ledger }
func (w *world) Snapshot() ledger.Snapshot        { return w.ledger.Snapshot() }
func (w *world) Apply(e ledger.Event)             { w.apply(e) }
func (w *world) Subscribe(f func(ledger.Touched)) { w.subscribe = append(w.subscribe, f) }
func (w *world) WaitForSync(c context.Context) error {
	select {
	case <-w.synced:
		return nil
	case <-c.Done():
		return c.Err()
	}
}
func (w *world) HasSynced() bool {
	select {
	case <-w.synced:
		return true
	default:
		return false
	}
}

func (w *world) ConfirmPod(_ context.Context, _, _, uid string) (*corev1.Pod, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods[uid], nil
}

func (w *world) apply(events ...ledger.Event) {
	for _, e := range events {
		touched := w.ledger.Apply(time.Now(), e)
		for _, f := range w.subscribe {
			f(touched)
		}
	}
}

type queue struct {
	mu    sync.Mutex
	woken map[string]int // by pod name
}

func (q *queue) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, p := range pods {
		q.woken[p.Name]++
	}
}

func (q *queue) names() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Sorted(maps.Keys(q.woken))
}

func (q *queue) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	clear(q.woken)
}

type handle struct {
	fwk.Handle
	asked atomic.Int32
}

func (h *handle) GetWaitingPod(uid types.UID) fwk.WaitingPod {
	defer h.asked.Add(1)
	return h.Handle.GetWaitingPod(uid)
}

type rig struct {
	*world
	framework.Framework
	plugin  *VolumeHold
	handle  *handle
	queue   *queue
	kube    *fake.Clientset
	metrics kubemetrics.KubeRegistry
	later   atomic.Int64 // the lead of the plugin's clock in nanoseconds

	podGroups map[string]podGroup // by name, under mu
}

func newRig(t testing.TB, events ...ledger.Event) *rig {
	t.Helper()
	r := newStillRig(t, events...)
	r.plugin.core.start(r.plugin.core.process)
	close(r.synced)
	return r
}

const besideName = "Beside"

type beside struct {
	counts []string
	filter func(pod *corev1.Pod, node string, counted int) bool
}

func (b *beside) Name() string { return besideName }

func (b *beside) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	counted := 0
	for _, p := range node.GetPods() {
		if slices.Contains(b.counts, p.GetPod().Name) {
			counted++
		}
	}
	if b.filter == nil || b.filter(pod, node.Node().Name, counted) {
		return nil
	}
	return fwk.NewStatus(fwk.Unschedulable, "the other plugin refuses it")
}

func newRigBeside(t testing.TB, filter func(*corev1.Pod, string, int) bool, counted ...*corev1.Pod) *rig {
	t.Helper()
	other := &beside{filter: filter}
	pods := make([]*corev1.Pod, 0, len(counted))
	for _, p := range counted {
		other.counts = append(other.counts, p.Name)
		pods = append(pods, boundTo(p, "n2"))
	}
	r := newRigOf(t, other, pods)
	r.plugin.core.start(r.plugin.core.process)
	close(r.synced)
	return r
}

// newStillRig has incomplete caches and no background work.
func newStillRig(t testing.TB, events ...ledger.Event) *rig {
	t.Helper()
	return newRigOf(t, &beside{}, nil, events...)
}

func newRigOf(t testing.TB, other *beside, pods []*corev1.Pod, events ...ledger.Event) *rig {
	t.Helper()
	metrics.Register()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	r := &rig{world: newWorld(t), queue: &queue{woken: map[string]int{}}, kube: fake.NewClientset(), metrics: kubemetrics.NewKubeRegistry(), podGroups: map[string]podGroup{}}
	factory := informers.NewSharedInformerFactory(r.kube, 0)
	registry := frameworkruntime.Registry{
		Name: func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			r.handle = &handle{Handle: h}
			made, err := newCore(ctx, config{
				Facts: r.world, Handle: r.handle, Metrics: r.metrics, Groups: r, Conditions: r.kube,
				Now: func() time.Time { return time.Now().Add(time.Duration(r.later.Load())) },
			})
			if err != nil {
				return nil, err
			}
			args, err := decode(nil)
			r.plugin = &VolumeHold{core: made, handle: h, weights: weightsOf(args)}
			return r.plugin, err
		},
	}
	for name, plugin := range map[string]frameworkruntime.PluginFactory{
		queuesort.Name: queuesort.New, defaultbinder.Name: defaultbinder.New,
		besideName: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return other, nil },
	} {
		if err := registry.Register(name, plugin); err != nil {
			t.Fatal(err)
		}
	}
	plugins := &schedulerconfig.Plugins{MultiPoint: schedulerconfig.PluginSet{Enabled: []schedulerconfig.Plugin{
		{Name: queuesort.Name}, {Name: Name, Weight: 1}, {Name: besideName}, {Name: defaultbinder.Name},
	}}}
	nodes := []*corev1.Node{kubeNode("n1"), kubeNode("n2"), kubeNode("n3")}
	made, err := frameworkruntime.NewFramework(ctx, registry,
		&schedulerconfig.KubeSchedulerProfile{SchedulerName: profile, Plugins: plugins},
		frameworkruntime.WithClientSet(r.kube), frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(cache.NewSnapshot(pods, nodes)),
		frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()),
		frameworkruntime.WithPodActivator(r.queue),
		frameworkruntime.WithPodNominator(schedulerqueue.NewTestQueue(ctx, nil)), // without nominations
		frameworkruntime.WithEventRecorder(kubeevents.NewFakeRecorder(1000)))
	if err != nil {
		t.Fatal(err)
	}
	r.Framework = made
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for _, node := range nodes {
		r.apply(readyNode(node.Name), slotsAt(node.Name, 2))
	}
	r.apply(readyNode("n9")) // missing in the cycle's view
	r.apply(events...)
	return r
}

func (r *rig) get(key groupKey) (podGroup, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if found, ok := r.podGroups[key.name]; ok {
		return found, nil
	}
	return podGroup{}, fmt.Errorf("PodGroup %s does not exist", key)
}

func (r *rig) notify(func(groupKey)) {}

func (r *rig) known(pods ...*corev1.Pod) {
	r.t.Helper()
	for _, p := range pods {
		if _, err := r.kube.CoreV1().Pods(p.Namespace).Create(r.t.Context(), p, metav1.CreateOptions{}); err != nil {
			r.t.Fatal(err)
		}
		lister := r.SharedInformerFactory().Core().V1().Pods().Lister()
		eventually(r.t, "pod "+p.Name+" in the lister", func() bool {
			_, err := lister.Pods(p.Namespace).Get(p.Name)
			return err == nil && (groupOf(p).name == "" || slices.ContainsFunc(r.plugin.core.groups.pods(groupOf(p)), func(seen *corev1.Pod) bool { return seen.UID == p.UID }))
		})
		r.mu.Lock()
		r.pods[string(p.UID)] = p
		r.mu.Unlock()
		r.apply(factOf(p))
	}
}

func (r *rig) prefilter(pod *corev1.Pod) (fwk.CycleState, *fwk.PreFilterResult, *fwk.Status) {
	state := framework.NewCycleState()
	result, status, _ := r.RunPreFilterPlugins(r.t.Context(), state, pod)
	return state, result, status
}

func (r *rig) filter(pod *corev1.Pod, node string) *fwk.Status {
	r.t.Helper()
	state, _, status := r.prefilter(pod)
	if !status.IsSuccess() {
		return status
	}
	return r.RunFilterPlugins(r.t.Context(), state, pod, r.node(node))
}

func (r *rig) node(name string) fwk.NodeInfo {
	r.t.Helper()
	info, err := r.SnapshotSharedLister().NodeInfos().Get(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return info
}

type cycle struct {
	rig   *rig
	pod   *corev1.Pod
	state fwk.CycleState
	node  string
}

func (r *rig) reserve(pod *corev1.Pod, node string) *cycle {
	r.t.Helper()
	state, _, status := r.prefilter(pod)
	if status.IsSuccess() {
		status = r.RunFilterPlugins(r.t.Context(), state, pod, r.node(node))
	}
	if status.IsSuccess() {
		status = r.RunReservePluginsReserve(r.t.Context(), state, pod, node)
	}
	if !status.IsSuccess() {
		r.t.Fatalf("pod %s at %s: %v", pod.Name, node, status)
	}
	return &cycle{r, pod, state, node}
}

func (c *cycle) permit() *cycle {
	c.rig.t.Helper()
	waits, status := c.rig.RunPermitPlugins(c.rig.t.Context(), c.state, c.pod, c.node)
	if !status.IsWait() {
		c.rig.t.Fatalf("Permit of %s: %v", c.pod.Name, status)
	}
	c.rig.AddWaitingPod(c.pod, waits)
	return c
}

func (c *cycle) verdict() *fwk.Status {
	return c.rig.WaitOnPermit(c.rig.t.Context(), c.pod)
}

func (c *cycle) unreserve() {
	c.rig.RunReservePluginsUnreserve(c.rig.t.Context(), c.state, c.pod, c.node)
}

func eventually(t testing.TB, what string, happens func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return happens(), nil
	})
	if err != nil {
		t.Fatalf("waited for %s: %v", what, err)
	}
}
