// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/test/bench"
	"github.com/moorage-dev/moorage/test/bench/scale/result"
	"github.com/moorage-dev/moorage/test/sandbox"
)

func processes() []string {
	return []string{
		sandbox.APIServer, sandbox.Etcd, sandbox.ControllerManager, sandbox.Scheduler, sandbox.MoorageController,
		sandbox.MoorageScheduler, sandbox.MoorageWebhook, sandbox.Attacher,
	}
}

func (r *run) pids() map[string]int {
	out := map[string]int{}
	for _, p := range r.cluster.Processes() {
		if p.PID != 0 {
			out[p.Name] = p.PID
		}
	}
	return out
}

func (r *run) use() (func() (result.Use, error), error) {
	spent, err := bench.MeterCPU(r.cluster)
	if err != nil {
		return nil, err
	}
	return func() (result.Use, error) {
		cpu, err := spent()
		out := result.Use{CPUSeconds: cpu, ResidentMiB: map[string]float64{}}
		pids := r.pids()
		for _, name := range processes() {
			if pids[name] == 0 {
				continue
			}
			memory, failed := bench.ProcessMemory(pids[name], "VmRSS")
			err = errors.Join(err, failed)
			out.ResidentMiB[name] = memory["VmRSS"]
		}
		return out, err
	}, nil
}

func (r *run) resting(ctx context.Context) error {
	used, err := r.use()
	if err != nil {
		return err
	}
	if err := pass(ctx, r.rest); err != nil {
		return err
	}
	r.into.Rest.Seconds = r.rest.Seconds()
	r.into.Rest.Use, err = used()
	return err
}

func pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *run) inQuiet(ctx context.Context) error {
	end := r.others.begin(ctx)
	if err := pass(ctx, r.quiet); err != nil {
		return err
	}
	var err error
	if r.into.Quiet, err = end(r.patience); err != nil {
		return err
	}
	_, err = r.untilQuiet(ctx)
	return err
}

// A pod waits at its node for its volume meanwhile.
func (r *run) starting(ctx context.Context) error {
	process, leaseNamespace, _ := r.controller()
	if err := r.cluster.Terminate(ctx, process, time.Minute); err != nil {
		return err
	}
	// Moorage's controller hands its Lease over; kube-controller-manager leaves it.
	var err error
	if !r.mode.Moorage() {
		err = r.kube.CoordinationV1().Leases(leaseNamespace).Delete(ctx, process, metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the Lease away: %w", err)
	}
	name, ok := r.others.take()
	if !ok {
		return errors.New("no bystander is left that could wait for the controller")
	}
	node := r.inZone(drainZone)[0]
	if err := r.maker.pod(ctx, startNamespace, name, node, map[string]string{bystanderLabel: "true"}, []string{name}); err != nil {
		return err
	}
	if err := r.meter.begin(); err != nil {
		return err
	}
	r.meter.countAll(true)
	defer r.meter.countAll(false)
	began := time.Now()
	if err := r.cluster.StartAgain(process); err != nil {
		return err
	}
	var attached time.Time
	if err := r.await(ctx, "the volume that waits is attached", func() error {
		if since := r.watcher.since(name); !since.IsZero() {
			attached = since
			return nil
		}
		return errors.New("it is not")
	}); err != nil {
		return err
	}
	last, err := r.untilQuiet(ctx)
	if err != nil {
		return err
	}
	created, _, err := r.meter.moments()
	if err != nil {
		return err
	}
	writes, err := r.meter.end()
	if err != nil {
		return err
	}
	pid := r.pids()[process]
	cpu, err := bench.ProcessSeconds(pid)
	if err != nil {
		return err
	}
	memory, err := bench.ProcessMemory(pid, "VmHWM")
	r.into.Start = result.Start{
		DecidedSeconds: created.Sub(began).Seconds(), AttachedSeconds: attached.Sub(began).Seconds(), QuietSeconds: last.Sub(began).Seconds(),
		CPUSeconds: cpu, PeakMiB: memory["VmHWM"],
	}
	for _, w := range writes.All {
		if r.isController(w.User) {
			r.into.Start.Writes += w.Count
		}
	}
	return errors.Join(err, r.kube.CoreV1().Pods(startNamespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

const startNamespace = bystanderNamespace
