// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	"github.com/moorage-dev/moorage/test/bench/scheduler/result"
)

// It has the measured pods, and no others.
const measuredNamespace = "measured-0"

// From the first creation to the last binding of the measured pods.
type observation struct {
	points points
	pods   int // that are measured

	mu         sync.Mutex
	bound      map[string]bool // by UID
	begin, end moment
	failed     map[string]int // attempts by reason of failure
	failedErr  error
}

type moment struct {
	at      time.Time
	cpu     cpu
	metrics reading
}

func newObservation() *observation {
	return &observation{bound: map[string]bool{}}
}

func (o *observation) expect(_ testContext, w *perf.Workload) (func(), error) {
	var err error
	o.pods, err = w.GetParam("measured")
	return nil, err
}

func (o *observation) watch(tCtx testContext) error {
	factory := informers.NewSharedInformerFactoryWithOptions(tCtx.Client(), 0, informers.WithNamespace(measuredNamespace))
	see := func(object any) {
		if pod, ok := object.(*corev1.Pod); ok && o.saw(pod) {
			o.readEvents(tCtx, tCtx.Client())
		}
	}
	pods := factory.Core().V1().Pods().Informer()
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, next any) { see(next) }})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(tCtx)
	tCtx.TB().Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}

func (o *observation) saw(pod *corev1.Pod) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begin.at.IsZero() {
		for _, c := range o.points {
			c.Reset()
		}
		o.begin = now()
	}
	if uid := string(pod.UID); pod.Spec.NodeName != "" && !o.bound[uid] {
		o.bound[uid] = true
		if len(o.bound) == o.pods {
			o.end = now()
			return true
		}
	}
	return false
}

// names matches the differences between messages of one meaning.
var names = regexp.MustCompile(`\b(claim|node|pod|high|pvc)-[a-z0-9-]+|[0-9]+`)

func (o *observation) readEvents(ctx context.Context, kube kubernetes.Interface) {
	list, err := kube.EventsV1().Events(measuredNamespace).List(ctx, metav1.ListOptions{})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed, o.failedErr = map[string]int{}, err
	if err != nil {
		return
	}
	for _, event := range list.Items {
		if event.Reason == "FailedScheduling" {
			o.failed[names.ReplaceAllString(event.Note, "…")]++
		}
	}
}

func now() moment {
	return moment{at: time.Now(), cpu: cpuNow(), metrics: read()}
}

func (o *observation) result() (result.Run, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.end.at.IsZero() {
		return result.Run{}, fmt.Errorf("of %d measured pods %d were seen to be bound", o.pods, len(o.bound))
	}
	if err := errors.Join(o.begin.metrics.err, o.end.metrics.err, o.failedErr); err != nil {
		return result.Run{}, err
	}
	run := result.Run{
		Pods: o.pods, Seconds: o.end.at.Sub(o.begin.at).Seconds(), CPUSeconds: (o.end.cpu.own - o.begin.cpu.own).Seconds(), EtcdSeconds: (o.end.cpu.etcd - o.begin.cpu.etcd).Seconds(),
		Points: map[string]result.Times{}, Plugins: map[string]result.Times{},
		Writes: writes(o.begin.metrics, o.end.metrics), Failed: o.failed,
	}
	if all := o.end.cpu.all - o.begin.cpu.all; all > 0 {
		run.MachineBusy = (o.end.cpu.busy - o.begin.cpu.busy) / all
	}
	for name, c := range o.points {
		if t := c.Times(); t.Count > 0 {
			run.Points[name] = t
		}
	}
	begin, end := o.begin.metrics, o.end.metrics
	run.Attempt = between(begin, end, "scheduler_scheduling_attempt_duration_seconds", map[string]string{"result": "scheduled"})
	run.Algorithm = between(begin, end, "scheduler_scheduling_algorithm_duration_seconds", nil)
	for _, plugin := range []string{"NodeVolumeLimits", "VolumeRestrictions", "VolumeHold"} {
		for _, point := range []string{"PreFilter", "Filter", "Score"} {
			t := between(begin, end, "scheduler_plugin_execution_duration_seconds", map[string]string{"plugin": plugin, "extension_point": point})
			if t.Count > 0 {
				run.Plugins[plugin+"/"+point] = t
			}
		}
	}
	return run, nil
}
