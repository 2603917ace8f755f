// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/bench/scale/hollow"
	"github.com/moorage-dev/moorage/test/bench/scale/result"
	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/audit"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// leaseDuration is the default of kubelets.
const leaseDuration = 40 * time.Second

type run struct {
	plan
	log func(format string, args ...any)

	cluster   *sandbox.Cluster
	kube      kubernetes.Interface
	maker     *maker
	fleet     *hollow.Fleet
	watcher   *watcher
	workloads *workloads
	others    *bystanders
	meter     *meter
	into      *result.Run
}

// The result has the measurements before a failure.
func measure(ctx context.Context, p plan, options sandbox.Options, log func(string, ...any)) (out result.Run) {
	out = result.Run{Mode: string(p.mode), Load: p.load()}
	r := &run{plan: p, log: log, into: &out}
	if err := r.whole(ctx, options); err != nil {
		out.Failed = err.Error()
		log("FAILED: %v", err)
	}
	return out
}

func (r *run) whole(ctx context.Context, options sandbox.Options) (err error) {
	options.Shape = sandbox.Shape{
		Mode: r.mode, Slots: r.slots(), AttachLatency: r.latency, DetachLatency: r.latency, KubeletStatusInterval: r.status,
		MoorageAttacher: r.moorageAttacher,
	}
	options.Nodeless, options.TuneControlPlane, options.TuneAttacher = true, true, true
	options.Progress = func(string) {}
	if r.cluster, err = sandbox.Start(ctx, options); err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			r.cluster.KeepLogs()
			r.log("the logs are in %s", r.cluster.Dir())
		}
		err = errors.Join(err, r.cluster.Stop())
	}()
	life, stop := context.WithCancel(ctx)
	defer func() { stop(); r.fleet.Wait() }()
	if err := r.prepare(life); err != nil {
		return err
	}
	for _, phase := range []struct {
		name string
		do   func(context.Context) error
		skip bool
	}{
		{"build", r.build, false}, {"rest", r.resting, false}, {"quiet", r.inQuiet, false}, {"start", r.starting, false},
		{"storm", func(ctx context.Context) error { return r.storm(ctx, stormZone, false, &r.into.Storm) }, r.skipStorm},
		{"drain", r.draining, r.skipDrain},
		{"change", func(ctx context.Context) error { return r.storm(ctx, changeZone, true, &r.into.Change) }, r.skipChange},
		{"judge", r.judge, false},
	} {
		if phase.skip {
			continue
		}
		began := time.Now()
		if err := errors.Join(phase.do(life), r.workloads.failure()); err != nil {
			return fmt.Errorf("%s: %w", phase.name, err)
		}
		r.log("%s: %.0f s", phase.name, time.Since(began).Seconds())
	}
	return nil
}

func (r *run) prepare(ctx context.Context) (err error) {
	r.kube = r.cluster.Client()
	r.maker = &maker{kube: r.kube, disk: r.cluster.Disk(), enforced: r.mode.Moorage(), volumes: map[string]hollow.Volume{}}
	r.fleet, err = hollow.New(hollow.Config{
		API: r.cluster.RESTConfig(), Disk: r.cluster.Disk(), Driver: sandbox.DriverName, Slots: r.slots(),
		Status: r.status, Lease: leaseDuration, Resolve: r.maker.resolve, Log: r.few(),
	})
	if err != nil {
		return err
	}
	r.watcher = newWatcher(r.fleet)
	r.workloads = &workloads{maker: r.maker, perPod: r.perPod, queue: make(chan string, r.plan.workloads()), generations: map[string]int{}}
	r.others = newBystanders(r.maker)
	r.watcher.replace = func(workload string) { r.workloads.queue <- workload }
	r.watcher.bound, r.watcher.attachedFor = r.others.bound, r.others.attached
	r.watcher.ran = func(name string, at time.Time) { r.others.runs(ctx, name, at) }
	_, _, user := r.controller()
	r.meter = newMeter(audit.Begin(r.cluster.AuditLog()), user, r.foreign)
	if err := r.watcher.start(ctx, r.kube); err != nil {
		return err
	}
	r.workloads.run(ctx)
	return nil
}

const fewLines = 20

func (r *run) few() func(string, ...any) {
	var said atomic.Int32
	return func(format string, args ...any) {
		if said.Add(1) <= fewLines {
			r.log(format, args...)
		}
	}
}

func (r *run) foreign(o *audit.Object) bool {
	switch {
	case o.Namespace == bystanderNamespace, isBystander(o.Name):
		return true
	case o.Resource == "volumeattachments":
		return r.watcher.isForeign(o.Name)
	case o.Resource == "volumeholds":
		return r.foreignHolds()[o.Name]
	}
	return false
}

func (r *run) foreignHolds() map[string]bool {
	r.maker.mu.Lock()
	defer r.maker.mu.Unlock()
	if r.maker.holds == nil {
		r.maker.holds = map[string]bool{}
		for claim, v := range r.maker.volumes {
			if isBystander(claim) {
				r.maker.holds[v1alpha1.VolumeHoldName(sandbox.DriverName, v.Handle)] = true
			}
		}
	}
	return r.maker.holds
}

func (r *run) build(ctx context.Context) error {
	for _, name := range []string{workloadNamespace, bystanderNamespace} {
		if err := r.maker.namespace(ctx, name); err != nil {
			return err
		}
	}
	names := make([]string, r.nodes)
	for i := range names {
		names[i] = nodeName(i)
	}
	if err := each(ctx, r.nodes, func(i int) error {
		return r.fleet.Add(ctx, names[i], fmt.Sprintf("zone-%d", zoneOf(i)), i)
	}); err != nil {
		return err
	}
	total := r.plan.workloads()
	if err := each(ctx, total*r.perPod, func(i int) error {
		return r.maker.volume(ctx, workloadNamespace, claimsOf(workloadName(i/r.perPod), r.perPod)[i%r.perPod])
	}); err != nil {
		return err
	}
	if err := each(ctx, bystanderVolumes, func(i int) error { return r.maker.volume(ctx, bystanderNamespace, bystanderName(i)) }); err != nil {
		return err
	}
	if err := r.await(ctx, "all nodes are Ready", func() error {
		if _, ready := r.watcher.counts(names); ready < r.nodes {
			return fmt.Errorf("%d of %d are", ready, r.nodes)
		}
		return nil
	}); err != nil {
		return err
	}
	r.log("%d nodes and %d volumes are made", r.nodes, total*r.perPod)
	began := time.Now()
	if err := each(ctx, total, func(i int) error { return r.workloads.create(ctx, workloadName(i), names[i%r.nodes]) }); err != nil {
		return err
	}
	if err := r.await(ctx, "all pods run", func() error {
		if running, _ := r.watcher.counts(nil); running < total {
			return fmt.Errorf("%d of %d do", running, total)
		}
		return nil
	}); err != nil {
		return err
	}
	r.into.BuildSeconds = time.Since(began).Seconds()
	_, err := r.untilQuiet(ctx)
	return err
}

func (r *run) await(ctx context.Context, what string, check func() error) error {
	return await(ctx, r.cluster, r.patience, what, check)
}

// A quiet controller writes nothing for this time.
const calm = 5 * time.Second

func (r *run) untilQuiet(ctx context.Context) (last time.Time, err error) {
	from := time.Now()
	err = r.await(ctx, "the controller is quiet", func() error {
		var err error
		if _, last, err = r.meter.moments(); err != nil {
			return err
		}
		if now := time.Now(); now.Sub(from) < calm || now.Sub(last) < calm {
			return errors.New("it writes")
		}
		return nil
	})
	return last, err
}

func (r *run) judge(ctx context.Context) error {
	violations, err := r.cluster.Disk().Violations(ctx, 0)
	if err != nil {
		return err
	}
	r.into.Violations = len(violations)
	rules := map[diskapi.Rule]int{}
	for _, v := range violations {
		if rules[v.Rule]++; rules[v.Rule] <= 3 {
			r.log("the judge: %s: %s", v.Rule, v.Message)
		}
	}
	return nil
}

func (r *run) zoneSet(zone int) map[string]bool {
	set := map[string]bool{}
	for _, name := range r.inZone(zone) {
		set[name] = true
	}
	return set
}

func outOfService() corev1.Taint {
	return corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
}
