// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/test/bench/scale/result"
)

func (r *run) draining(ctx context.Context) error {
	nodes := r.inZone(drainZone)
	nodes = nodes[:min(len(nodes), max(1, r.nodes/10))]
	out := &result.Drain{Nodes: len(nodes), AtOnce: max(1, len(nodes)/10)}
	used, err := r.use()
	if err != nil {
		return err
	}
	if err := r.meter.begin(); err != nil {
		return err
	}
	began := time.Now()
	var mu sync.Mutex
	queue := make(chan string, len(nodes))
	for _, node := range nodes {
		queue <- node
	}
	close(queue)
	err = each(ctx, out.AtOnce, func(int) error {
		for node := range queue {
			away, volumes, err := r.empty(ctx, node)
			if err != nil {
				return fmt.Errorf("drain %s: %w", node, err)
			}
			mu.Lock()
			out.Away, out.Volumes = append(out.Away, away...), out.Volumes+volumes
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return err
	}
	out.Seconds = time.Since(began).Seconds()
	slices.Sort(out.Away)
	if _, err = r.untilQuiet(ctx); err != nil {
		return err
	}
	if out.Writes, err = r.meter.end(); err != nil {
		return err
	}
	if out.Use, err = used(); err != nil {
		return err
	}
	r.into.Drain = out
	return each(ctx, len(nodes), func(i int) error { return r.cordon(ctx, nodes[i], false) })
}

func (r *run) empty(ctx context.Context, node string) (away []float64, volumes int, err error) {
	if err := r.cordon(ctx, node, true); err != nil {
		return nil, 0, err
	}
	only := map[string]bool{node: true}
	names, workloads := r.watcher.affected(only)
	evicted := make([]time.Time, len(workloads))
	if err := each(ctx, len(workloads), func(i int) error {
		is, ok := r.watcher.where(workloads[i])
		if !ok {
			return errors.New("a pod is gone before it is evicted")
		}
		evicted[i] = time.Now()
		return r.kube.PolicyV1().Evictions(workloadNamespace).Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: is.pod, Namespace: workloadNamespace}})
	}); err != nil {
		return nil, 0, err
	}
	if err := r.await(ctx, "its pods run elsewhere", func() error {
		if n := len(r.watcher.elsewhere(r.watcher.running, workloads, only)); n < len(workloads) {
			return fmt.Errorf("%d of %d do", n, len(workloads))
		}
		return nil
	}); err != nil {
		return nil, 0, err
	}
	for i, workload := range workloads {
		is, _ := r.watcher.where(workload)
		away = append(away, is.since.Sub(evicted[i]).Seconds())
	}
	return away, len(names), nil
}

func (r *run) cordon(ctx context.Context, node string, closed bool) error {
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, closed)
	_, err := r.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	return err
}
