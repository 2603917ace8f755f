// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/moorage-dev/moorage/test/bench/scale/result"
)

func (r *run) isController(user string) bool {
	_, _, controller := r.controller()
	return "system:serviceaccount:"+user == controller || user == controller
}

type stormed struct {
	dead               map[string]bool
	volumes, workloads []string
	began, killed      time.Time
}

// storm switches a zone off, taints its nodes and measures until all is elsewhere. With kill the controller
// dies halfway.
func (r *run) storm(ctx context.Context, zone int, kill bool, into **result.Storm) error {
	nodes := r.inZone(zone)
	s := &stormed{dead: r.zoneSet(zone)}
	s.volumes, s.workloads = r.watcher.affected(s.dead)
	if err := each(ctx, len(nodes), func(i int) error { return r.fleet.PowerOff(ctx, nodes[i]) }); err != nil {
		return err
	}
	if err := r.awaitReady(ctx, nodes, false); err != nil {
		return err
	}
	if _, err := r.untilQuiet(ctx); err != nil {
		return err
	}
	used, err := r.use()
	if err != nil {
		return err
	}
	if err := r.meter.begin(); err != nil {
		return err
	}
	end := r.others.begin(ctx)
	s.began = time.Now()
	err = each(ctx, len(nodes), func(i int) error { return r.taint(ctx, nodes[i], true) })
	if err == nil && kill {
		err = r.killHalfway(ctx, s)
	}
	if err == nil {
		err = r.awaitElsewhere(ctx, s)
	}
	waiting, failed := end(r.patience)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	out := &result.Storm{Nodes: len(nodes), Volumes: len(s.volumes), Pods: len(s.workloads), Bystanders: waiting}
	if err := r.tell(ctx, s, out); err != nil {
		return err
	}
	if out.Use, err = used(); err != nil {
		return err
	}
	*into = out
	return r.comeBack(ctx, nodes)
}

func (r *run) tell(ctx context.Context, s *stormed, out *result.Storm) error {
	last, err := r.untilQuiet(ctx)
	if err != nil {
		return err
	}
	if out.Writes, err = r.meter.end(); err != nil {
		return err
	}
	times := r.watcher.elsewhere(r.watcher.attached, s.volumes, s.dead)
	slices.SortFunc(times, time.Time.Compare)
	for _, tenths := range []int{1, 5, 9} {
		if n := len(times); n > 0 {
			out.Attached = append(out.Attached, times[(n*tenths+9)/10-1].Sub(s.began).Seconds())
		}
	}
	out.AttachedSeconds = latest(times).Sub(s.began).Seconds()
	out.RunningSeconds = latest(r.watcher.elsewhere(r.watcher.running, s.workloads, s.dead)).Sub(s.began).Seconds()
	out.QuietSeconds = last.Sub(s.began).Seconds()
	if !s.killed.IsZero() {
		out.KilledSeconds = s.killed.Sub(s.began).Seconds()
	}
	return nil
}

func latest(times []time.Time) time.Time {
	if len(times) == 0 {
		return time.Time{}
	}
	return slices.MaxFunc(times, time.Time.Compare)
}

func (r *run) killHalfway(ctx context.Context, s *stormed) error {
	if err := r.await(ctx, "half of the volumes are attached elsewhere", func() error {
		if n := len(r.watcher.elsewhere(r.watcher.attached, s.volumes, s.dead)); 2*n < len(s.volumes) {
			return fmt.Errorf("%d of %d are", n, len(s.volumes))
		}
		return nil
	}); err != nil {
		return err
	}
	process, _, _ := r.controller()
	s.killed = time.Now()
	if err := r.cluster.Kill(ctx, process); err != nil {
		return err
	}
	return r.cluster.StartAgain(process)
}

func (r *run) awaitElsewhere(ctx context.Context, s *stormed) error {
	return r.await(ctx, "all volumes are attached, and all pods run, elsewhere", func() error {
		volumes := len(r.watcher.elsewhere(r.watcher.attached, s.volumes, s.dead))
		pods := len(r.watcher.elsewhere(r.watcher.running, s.workloads, s.dead))
		if volumes < len(s.volumes) || pods < len(s.workloads) {
			return fmt.Errorf("%d of %d volumes and %d of %d pods are", volumes, len(s.volumes), pods, len(s.workloads))
		}
		return nil
	})
}

func (r *run) awaitReady(ctx context.Context, nodes []string, want bool) error {
	return r.await(ctx, fmt.Sprintf("nodes are Ready: %t", want), func() error {
		_, ready := r.watcher.counts(nodes)
		if want && ready < len(nodes) || !want && ready > 0 {
			return fmt.Errorf("%d of %d are", ready, len(nodes))
		}
		return nil
	})
}

func (r *run) taint(ctx context.Context, name string, out bool) error {
	nodes := r.kube.CoreV1().Nodes()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
		if out {
			node.Spec.Taints = append(node.Spec.Taints, outOfService())
		}
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("taint of %s: %w", name, err)
	}
	return nil
}

func (r *run) comeBack(ctx context.Context, nodes []string) error {
	if err := each(ctx, len(nodes), func(i int) error { return r.fleet.PowerOn(ctx, nodes[i]) }); err != nil {
		return err
	}
	if err := r.awaitReady(ctx, nodes, true); err != nil {
		return err
	}
	if err := each(ctx, len(nodes), func(i int) error { return r.taint(ctx, nodes[i], false) }); err != nil {
		return err
	}
	_, err := r.untilQuiet(ctx)
	return err
}
