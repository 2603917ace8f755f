// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/test/bench/scale/hollow"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	workloadLabel  = "bench.moorage.dev/workload"
	bystanderLabel = "bench.moorage.dev/bystander"
)

type place struct {
	node  string
	pod   string
	since time.Time
}

// watcher knows places from a watch, and feeds the hollow nodes. It is safe for parallel use.
type watcher struct {
	fleet                   *hollow.Fleet
	replace                 func(workload string)
	bound, attachedFor, ran func(bystander string, at time.Time)

	mu       sync.Mutex
	attached map[string]place // by PersistentVolume
	running  map[string]place // by workload
	ready    map[string]bool  // nodes
	foreign  map[string]bool
}

func newWatcher(fleet *hollow.Fleet) *watcher {
	return &watcher{
		fleet: fleet, replace: func(string) {}, bound: nobody, attachedFor: nobody, ran: nobody,
		attached: map[string]place{}, running: map[string]place{}, ready: map[string]bool{}, foreign: map[string]bool{},
	}
}

func nobody(string, time.Time) {}

// start returns once it has seen all objects.
func (w *watcher) start(ctx context.Context, kube kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactory(kube, 0)
	synced := []cache.InformerSynced{}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		factory.Core().V1().Pods().Informer():                 handle(w.seePod, w.losePod),
		factory.Core().V1().Nodes().Informer():                handle(w.seeNode, func(*corev1.Node) {}),
		factory.Storage().V1().VolumeAttachments().Informer(): handle(w.seeAttachment, w.loseAttachment),
	} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watch the cluster: %w", err)
		}
		synced = append(synced, registration.HasSynced)
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return fmt.Errorf("watch the cluster: %w", context.Cause(ctx))
	}
	return nil
}

func handle[T any](see, lose func(*T)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { see(o.(*T)) },
		UpdateFunc: func(_, o any) { see(o.(*T)) },
		DeleteFunc: func(o any) {
			if unknown, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = unknown.Obj
			}
			if t, ok := o.(*T); ok {
				lose(t)
			}
		},
	}
}

func (w *watcher) seePod(pod *corev1.Pod) {
	now := time.Now()
	w.fleet.SeePod(pod)
	runs := pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
	if workload := pod.Labels[workloadLabel]; workload != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch is, ok := w.running[workload]; {
		case runs && (!ok || is.pod != pod.Name):
			w.running[workload] = place{node: pod.Spec.NodeName, pod: pod.Name, since: now}
		case !runs && ok && is.pod == pod.Name:
			delete(w.running, workload)
		}
	}
	if pod.Labels[bystanderLabel] == "" {
		return
	}
	if pod.Spec.NodeName != "" {
		w.bound(pod.Name, now)
	}
	if runs {
		w.ran(pod.Name, now)
	}
}

func (w *watcher) losePod(pod *corev1.Pod) {
	w.fleet.LosePod(pod)
	workload := pod.Labels[workloadLabel]
	if workload == "" {
		return
	}
	w.mu.Lock()
	if w.running[workload].pod == pod.Name {
		delete(w.running, workload)
	}
	w.mu.Unlock()
	w.replace(workload)
}

func (w *watcher) seeNode(node *corev1.Node) {
	w.fleet.SeeNode(node)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready[node.Name] = sandbox.IsReady(node)
}

func (w *watcher) seeAttachment(a *storagev1.VolumeAttachment) {
	now := time.Now()
	if a.Spec.Source.PersistentVolumeName == nil {
		return
	}
	volume := *a.Spec.Source.PersistentVolumeName
	w.mu.Lock()
	defer w.mu.Unlock()
	if isBystander(volume) {
		w.foreign[a.Name] = true
		if a.Status.Attached {
			w.attachedFor(volume, now)
		}
	}
	if a.Status.Attached && a.DeletionTimestamp == nil && w.attached[volume].node != a.Spec.NodeName {
		w.attached[volume] = place{node: a.Spec.NodeName, since: now}
	}
}

func (w *watcher) loseAttachment(a *storagev1.VolumeAttachment) {
	if a.Spec.Source.PersistentVolumeName == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if volume := *a.Spec.Source.PersistentVolumeName; w.attached[volume].node == a.Spec.NodeName {
		delete(w.attached, volume)
	}
}

func at(of map[string]place, nodes map[string]bool) []string {
	var out []string
	for name, is := range of {
		if nodes[is.node] {
			out = append(out, name)
		}
	}
	return out
}

func (w *watcher) affected(nodes map[string]bool) (volumes, workloads []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, volume := range at(w.attached, nodes) {
		if !isBystander(volume) {
			volumes = append(volumes, volume)
		}
	}
	return volumes, at(w.running, nodes)
}

func (w *watcher) elsewhere(of map[string]place, names []string, nodes map[string]bool) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []time.Time
	for _, name := range names {
		if is, ok := of[name]; ok && !nodes[is.node] {
			out = append(out, is.since)
		}
	}
	return out
}

// It is zero if the volume is not attached there.
func (w *watcher) since(volume string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.attached[volume].since
}

func (w *watcher) counts(nodes []string) (running, ready int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range nodes {
		if w.ready[name] {
			ready++
		}
	}
	return len(w.running), ready
}

func (w *watcher) isForeign(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.foreign[name]
}

func (w *watcher) where(workload string) (place, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	is, ok := w.running[workload]
	return is, ok
}

// Results are times of the watch's events: a later look changes no number.
const look = 100 * time.Millisecond

// await fails when time is up or a component of the cluster dies.
func await(ctx context.Context, c *sandbox.Cluster, patience time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-c.Failed():
			return c.Failure()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, context.Cause(ctx), err)
		}
	}
}
